"""Devices count in what a domain holds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.kueue_workload import TopologyRequest
from drayman.api.resource import DeviceClass, ResourceClaimTemplate, ResourceSlice
from drayman.placement.decision.deciding import Decider
from drayman.placement.demand import Demand, Demands
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.fit.requests import requests_of
from drayman.placement.joint.arranging import Arranger
from drayman.placement.joint.seating import Seating
from drayman.placement.state import ClusterState
from drayman.quota.demands import NotPlaced, Placement, TopologyDemand
from drayman.quota.topology.counting import Limits
from drayman.quota.topology.devices import DeviceCounter, DeviceLimits, LedDeviceLimits
from drayman.quota.topology.flavor import FlavorTopology
from oracle.build import device, device_class, exactly, partitioned, piece, taint
from placement.domains.cluster import HOST, RACK, demand_for, make_pod, make_state

GPU = "example.com/gpu"
REQUIRED = TopologyRequest(required=RACK)


def cluster(racks: dict[str, list[int]], *, extended: bool = False) -> ClusterState:
    """Nodes with so many devices each, called r0-0, r0-1, ..."""
    state = make_state()
    if extended:
        value = device_class("gpu")
        value["spec"]["extendedResourceName"] = GPU
        state.set_class(convert(DeviceClass, value))
    for rack, hosts in racks.items():
        for number, devices in enumerate(hosts):
            add_node(state, f"{rack}-{number}", rack, [device(f"d{n}") for n in range(devices)])
    return state


def add_node(
    state: ClusterState,
    name: str,
    rack: str,
    devices: list[dict[str, Any]],
    offered: dict[str, str] | None = None,
) -> None:
    """A node with devices, and with extended resources that its kubelet offers."""
    value = {
        "metadata": {"name": name, "labels": {HOST: name, RACK: rack}},
        "status": {
            "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", **(offered or {})},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    state.set_node(convert(Node, value))
    if devices:
        slice_ = piece(devices, pool=name, name=name, nodeName=name)
        state.set_slice(convert(ResourceSlice, slice_))


def topology_of(state: ClusterState) -> FlavorTopology:
    found = FlavorTopology("t", (RACK, HOST), {})
    for node in state.nodes.values():
        found.set_node(node.node, {})
    return found


def asked(wanted: Demand, count: int, name: str = "main") -> TopologyDemand:
    amounts = requests_of(wanted.pod).amounts
    served = frozenset(wanted.extended)
    return TopologyDemand(name, count, amounts, {}, None, (), REQUIRED, served=served)


def placed(state: ClusterState, wanted: Demand, count: int) -> Placement | NotPlaced:
    limits: Limits = DeviceLimits(CopyCounts(state), wanted, count)
    result = topology_of(state).place([asked(wanted, count)], {}, limits)
    return result if isinstance(result, NotPlaced) else result["main"]


def test_a_rack_without_devices_holds_no_pods_with_claims() -> None:
    """Processors are everywhere; the rack with the devices is chosen, and what it lacks is said."""
    state = cluster({"a": [0, 0], "b": [2, 3]})
    found = placed(state, demand_for(state, 1), 5)
    assert isinstance(found, Placement)
    assert dict(found.domains) == {("b-0",): 2, ("b-1",): 3}
    refusal = placed(state, demand_for(state, 1), 6)
    assert isinstance(refusal, NotPlaced)
    assert "only 5 out of 6 pods" in refusal.message
    assert "limited by devices" in refusal.message


def test_devices_are_counted_node_by_node() -> None:
    """Three and three devices hold one pod of two each, and not three together."""
    state = cluster({"a": [3, 3], "b": [2, 2, 2]})
    found = placed(state, demand_for(state, 2), 3)
    assert isinstance(found, Placement)
    assert [domain for domain, _ in found.domains] == [("b-0",), ("b-1",), ("b-2",)]


def test_tainted_devices_hold_nothing() -> None:
    """A device that is tainted is not there for pods that do not tolerate it."""
    state = cluster({"a": [2]})
    broken = [device("d0"), device("d1", taints=[taint("broken")])]
    add_node(state, "b-0", "b", broken)
    found = placed(state, demand_for(state, 1), 2)
    assert isinstance(found, Placement)
    assert dict(found.domains) == {("a-0",): 2}
    assert isinstance(placed(state, demand_for(state, 1), 3), NotPlaced)


def test_partitions_are_counted_by_their_counters() -> None:
    """Two partitions that need the same counter are one."""
    state = cluster({"a": []})
    add_node(state, "a-0", "a", [])
    parts = [device(f"p{n}", spends={"s": {"c": 2}}) for n in range(3)]
    for each in partitioned(parts, {"s": {"c": 4}}, pool="a-0", nodeName="a-0"):
        state.set_slice(convert(ResourceSlice, each))
    assert isinstance(placed(state, demand_for(state, 1), 2), Placement)
    assert isinstance(placed(state, demand_for(state, 1), 3), NotPlaced)


def test_extended_resources_that_devices_serve() -> None:
    """A name that no node offers, but devices do, is counted by the devices."""
    state = cluster({"a": [2], "b": [4]}, extended=True)
    pod = convert_pod({"cpu": "1", GPU: "1"})
    wanted = Demands(state, 600.0).of(pod, (), 0.0)
    plain = topology_of(state).place([replace(asked(wanted, 3), served=frozenset())], {})
    assert isinstance(plain, NotPlaced)
    without_devices = topology_of(state).place([asked(wanted, 3)], {})
    assert not isinstance(without_devices, NotPlaced)
    found = placed(state, wanted, 3)
    assert isinstance(found, Placement)
    assert dict(found.domains) == {("b-0",): 3}


def convert_pod(requests: dict[str, str]) -> Any:
    resources = {"requests": requests, "limits": {GPU: requests[GPU]}}
    containers = [{"name": "c", "resources": resources}]
    return make_pod("p", containers=containers)


def test_a_leader_with_devices() -> None:
    """The rack in which the leader takes a device that the workers need is skipped."""
    state = cluster({"a": [4], "b": [3, 2]})
    decider = Decider(state)
    round_ = decider.round(0.0)
    workers = tuple(demand_for(state, 1, name=f"w{n}") for n in range(4))
    leader = demand_for(state, 1, name="leader")
    limits = LedDeviceLimits(
        state, Seating(round_, Policy.BEST), CopyCounts(state), workers, leader
    )
    pair = [asked(leader, 1, "leader"), asked(workers[0], 4, "workers")]
    result = topology_of(state).place(pair, {}, limits)
    assert not isinstance(result, NotPlaced)
    assert {domain[-1][0] for placement in result.values() for domain, _ in placement.domains} == {
        "b"
    }


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=2),
    st.integers(1, 3),
    st.integers(1, 5),
)
def test_what_is_placed_is_found_by_the_joint_search(
    hosts: list[list[int]], devices: int, count: int
) -> None:
    """The joint search has seats for all pods on the hosts of the placement; a refusal means that no rack has them."""
    state = cluster({f"r{number}": each for number, each in enumerate(hosts)})
    demands = [demand_for(state, devices, name=f"p{n}") for n in range(count)]
    found = placed(state, demands[0], count)
    arranger = Arranger(Decider(state).round(0.0), Policy.BEST)
    if isinstance(found, NotPlaced):
        for number in range(len(hosts)):
            rack = [n for n in state.nodes.values() if n.facts.labels[RACK] == f"r{number}"]
            assert arranger.arrange(demands, count, rack) is None
        return
    assert sum(number for _, number in found.domains) == count
    first = 0
    for domain, number in found.domains:
        here = demands[first : first + number]
        assert arranger.arrange(here, number, [state.nodes[domain[-1]]]) is not None
        first += number


def test_pods_that_do_not_exist_are_counted_by_their_templates() -> None:
    """A sample of the pods is enough: claims are drafted from the templates that the cluster has."""
    state = cluster({"a": [0, 0], "b": [2, 3]})
    spec = {"devices": {"requests": [exactly()]}}
    metadata = {"name": "one", "namespace": "default"}
    state.set_template(
        convert(ResourceClaimTemplate, {"metadata": metadata, "spec": {"spec": spec}})
    )
    counter = DeviceCounter(state)
    entry = {"name": "c", "resourceClaimTemplateName": "one"}
    worker, leader = (make_pod(name, resourceClaims=[entry]) for name in ("worker", "leader"))
    assert counter.limits(make_pod("plain"), 3, 0.0) is None
    topologies = topology_of(state)
    count = [asked(demand_for(state, 0), 5)]
    found = topologies.place(count, {}, counter.limits(worker, 5, 0.0))
    assert not isinstance(found, NotPlaced)
    assert dict(found["main"].domains) == {("b-0",): 2, ("b-1",): 3}
    pair = [asked(demand_for(state, 0), 1, "leader"), asked(demand_for(state, 0), 5, "workers")]
    with_leader = topologies.place(pair, {}, counter.limits(worker, 5, 0.0, leader))
    assert isinstance(with_leader, NotPlaced)
    assert "only 4 out of 5 pods beside the leader" in with_leader.message
