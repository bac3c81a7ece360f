"""The engine places pods with claims where there are devices for them."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Namespace
from drayman.api.custom_groups import KueueTopology
from drayman.api.kueue import ClusterQueue, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.placement.state import ClusterState
from drayman.quota.decisions import Decision, Preempted, Refused, Reserved
from drayman.quota.settings import settings_of
from drayman.quota.state import QuotaState
from drayman.quota.topology.assignments import placement_of
from drayman.quota.topology.devices import DeviceCounter
from oracle.build import exactly
from oracle.selectors import GPU
from placement.domains.cluster import HOST, RACK
from quota.topology.test_devices import GPU as RESOURCE
from quota.topology.test_devices import add_node, cluster

MOMENT = "2026-01-01T00:00:00Z"


def named(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "creationTimestamp": MOMENT}
    return {"metadata": metadata, "spec": spec}


def make_engine(state: ClusterState, cpus: int = 100, **spec: Any) -> QuotaState:
    """A queue with plenty of quota, and a flavor with racks."""
    engine = QuotaState(settings_of({}))
    engine.set_namespace(convert(Namespace, {"metadata": {"name": "default"}}))
    levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
    engine.set_topology(convert(KueueTopology, named("t", levels=levels)))
    for node in state.nodes.values():
        engine.set_node(node.node)
    engine.set_flavor(convert(ResourceFlavor, named("f", topologyName="t")))
    nominal = {"cpu": str(cpus), RESOURCE: "100"}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in nominal.items()]
    groups = [
        {"coveredResources": list(nominal), "flavors": [{"name": "f", "resources": resources}]}
    ]
    queue = named("q", namespaceSelector={}, resourceGroups=groups, **spec)
    engine.set_cluster_queue(convert(ClusterQueue, queue), 0.0)
    engine.set_local_queue(convert(LocalQueue, named("l", clusterQueue="q")), 0.0)
    engine.books.ledger.topologies.counter = DeviceCounter(state)
    return engine


def make_workload(
    name: str, count: int, template: str = "", priority: int = 0, gpus: int = 0
) -> Workload:
    """Pods that ask for devices by a template, or by a limit of so many GPUs."""
    resources: dict[str, Any] = {"requests": {"cpu": "1"}}
    if gpus:
        resources["limits"] = {RESOURCE: str(gpus)}
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": resources}]}
    if template:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    pod = {"spec": spec}
    request = {"required": RACK}
    sets = [{"name": "main", "count": count, "template": pod, "topologyRequest": request}]
    made = named(name, queueName="l", podSets=sets, priority=priority)
    made["metadata"]["uid"] = name
    return convert(Workload, made)


def add_template(state: ClusterState, name: str, count: int) -> None:
    spec = {"spec": {"devices": {"requests": [exactly(count=count)]}}}
    metadata = {"name": name, "namespace": "default"}
    state.set_template(convert(ResourceClaimTemplate, {"metadata": metadata, "spec": spec}))


def tried(engine: QuotaState, workload: Workload) -> list[Decision]:
    engine.set_workload(workload, 0.0)
    return list(engine.cycle(1.0))


def test_the_rack_that_has_the_devices_is_chosen() -> None:
    """The tighter rack by processors has none."""
    state = cluster({"a": [0], "b": [2, 3]})
    add_template(state, "one", 1)
    (decision,) = tried(make_engine(state), make_workload("w", 5, "one"))
    assert isinstance(decision, Reserved)
    assignment = decision.admission.pod_set_assignments[0].topology_assignment
    assert assignment is not None
    assert dict(placement_of(assignment).domains) == {("b-0",): 2, ("b-1",): 3}


def test_what_no_rack_has_devices_for_waits_with_the_figures() -> None:
    """How many pods a rack has devices for; and that a template is missing."""
    state = cluster({"a": [0], "b": [2, 3]})
    add_template(state, "two", 2)
    engine = make_engine(state)
    (decision,) = tried(engine, make_workload("w", 3, "two"))
    assert isinstance(decision, Refused)
    assert "only 2 out of 3 pods" in decision.message
    assert "limited by devices" in decision.message
    (missing,) = tried(engine, make_workload("x", 1, "absent"))
    assert isinstance(missing, Refused)
    assert "absent" in missing.message


def test_workloads_with_other_claims_are_tried_for_themselves() -> None:
    """One that asks for two devices for each pod does not stand for one that asks for one, though they cost the same."""
    state = cluster({"b": [2, 3]})
    add_template(state, "one", 1)
    add_template(state, "two", 2)
    engine = make_engine(state)
    (large,) = tried(engine, make_workload("large", 3, "two"))
    (small,) = tried(engine, make_workload("small", 3, "one"))
    assert isinstance(large, Refused)
    assert isinstance(small, Reserved)


def hold(state: ClusterState, name: str, pool: str, device: str) -> None:
    """A claim that has a device."""
    result = {"request": "req", "driver": GPU, "pool": pool, "device": device}
    value = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [exactly()]}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
    state.set_claim(convert(ResourceClaim, value))


def test_devices_of_those_who_have_to_go_keep_nobody_from_their_quota() -> None:
    """They have the only devices, which count as theirs until they have gone."""
    state = cluster({"b": [2]})
    add_template(state, "one", 1)
    engine = make_engine(state, 2, preemption={"withinClusterQueue": "LowerPriority"})
    (low,) = tried(engine, make_workload("low", 2, "one"))
    assert isinstance(low, Reserved)
    for number in range(2):
        hold(state, f"low-{number}", "b-0", f"d{number}")
    decisions = tried(engine, make_workload("high", 2, "one", priority=1))
    assert [each.key for each in decisions if isinstance(each, Preempted)] == ["default/low"]


def test_nobody_has_to_go_where_only_devices_are_missing() -> None:
    """Another one has places and no devices: to drive it out would not help."""
    state = cluster({"b": [2]})
    add_template(state, "one", 1)
    engine = make_engine(state, 10, preemption={"withinClusterQueue": "LowerPriority"})
    (low,) = tried(engine, make_workload("low", 2, "one"))
    assert isinstance(low, Reserved)
    decisions = tried(engine, make_workload("high", 3, "one", priority=1))
    (refused,) = decisions
    assert isinstance(refused, Refused)
    assert refused.reason == "TopologyPlacementFailed"
    assert "limited by devices" in refused.message


# Extended resources that devices serve.


def test_limits_of_extended_resources_are_counted_by_devices() -> None:
    """A Workload states only limits, which become requests of its pods; the rack that has the devices is chosen."""
    state = cluster({"a": [0], "b": [2, 4]}, extended=True)
    (decision,) = tried(make_engine(state), make_workload("w", 3, gpus=2))
    assert isinstance(decision, Reserved)
    assignment = decision.admission.pod_set_assignments[0].topology_assignment
    assert assignment is not None
    assert dict(placement_of(assignment).domains) == {("b-0",): 1, ("b-1",): 2}


def test_extended_resources_wait_with_the_figures_of_devices() -> None:
    """Two of four GPUs are held: one rack holds one more pod of two."""
    state = cluster({"b": [4]}, extended=True)
    hold(state, "x", "b-0", "d0")
    hold(state, "y", "b-0", "d1")
    (refused,) = tried(make_engine(state), make_workload("w", 2, gpus=2))
    assert isinstance(refused, Refused)
    assert "only 1 out of 2 pods" in refused.message
    assert "1 limited by devices" in refused.message


def test_workloads_with_extended_resources_preempt_by_priority() -> None:
    """Their devices are held by Workloads of lower priority, as with claim templates."""
    state = cluster({"b": [2]}, extended=True)
    engine = make_engine(state, 2, preemption={"withinClusterQueue": "LowerPriority"})
    (low,) = tried(engine, make_workload("low", 2, gpus=1))
    assert isinstance(low, Reserved)
    for number in range(2):
        hold(state, f"low-{number}", "b-0", f"d{number}")
    decisions = tried(engine, make_workload("high", 2, priority=1, gpus=1))
    assert [each.key for each in decisions if isinstance(each, Preempted)] == ["default/low"]


def test_nodes_that_offer_an_extended_resource_are_counted_by_it() -> None:
    """A node whose kubelet offers the resource has no devices for it, and a node whose kubelet offers none has."""
    state = cluster({"b": [2]}, extended=True)
    add_node(state, "b-1", "b", [], {RESOURCE: "3"})
    add_node(state, "b-2", "b", [], {RESOURCE: "0"})
    (decision,) = tried(make_engine(state), make_workload("w", 5, gpus=1))
    assert isinstance(decision, Reserved)
    assignment = decision.admission.pod_set_assignments[0].topology_assignment
    assert assignment is not None
    assert dict(placement_of(assignment).domains) == {("b-0",): 2, ("b-1",): 3}
    (refused,) = tried(make_engine(state), make_workload("x", 6, gpus=1))
    assert isinstance(refused, Refused)
    assert "only 5 out of 6 pods" in refused.message
