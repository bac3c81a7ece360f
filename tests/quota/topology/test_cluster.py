"""The topologies of a cluster as an engine holds them."""

from __future__ import annotations

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.custom_groups import KueueTopology
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import SliceConstraint, TopologyRequest
from drayman.inventory.undo import UndoLog
from drayman.quota.demands import NotPlaced, Placement, TopologyDemand
from drayman.quota.topology.cluster import ClusterTopologies, PlacedUnit
from drayman.workloads.queued.names import WORKLOAD
from quota.topology.trees import BLOCK, FLAVOR, HOST, LEVELS, RACK, demand, node

ANYWHERE = TopologyRequest(unconstrained=True)
INDEXED = TopologyRequest(pod_index_label="batch.kubernetes.io/job-completion-index")
GROUPED = TopologyRequest(pod_set_group_name="g", unconstrained=False, sub_group_count=2)
SLICED = TopologyRequest(pod_set_slice_required_topology=RACK, pod_set_slice_size=2)
LAYERED = TopologyRequest(
    podset_slice_required_topology_constraints=(SliceConstraint(topology=RACK, size=2),)
)


def topology(*levels: str) -> KueueTopology:
    spec = {"levels": [{"nodeLabel": level} for level in levels]}
    return convert(KueueTopology, {"metadata": {"name": "t"}, "spec": spec})


def cluster(log: UndoLog | None = None, **hosts: int) -> ClusterTopologies:
    """One rack of hosts with so many processors, for two flavors that both have all of them."""
    found = ClusterTopologies(log)
    found.set_topology(topology(*LEVELS))
    for name in ("f", "g"):
        found.set_flavor(name, ResourceFlavorSpec(node_labels=FLAVOR, topology_name="t"))
    found.set_flavor("plain", ResourceFlavorSpec())
    for name, cpu in hosts.items():
        found.set_node(node(name, cpu, {BLOCK: "b", RACK: "r"}))
    return found


def unit(*demands: TopologyDemand, flavor: str = "f") -> PlacedUnit:
    return PlacedUnit(flavor, demands)


def pods(result: object) -> dict[str, dict[str, int]]:
    assert isinstance(result, dict), result
    return {
        name: {domain[-1]: count for domain, count in placement.domains}
        for name, placement in result.items()
    }


def pod(uid: str, where: str, cpu: str, **metadata: object) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": where, "containers": [container]}
    return convert(Pod, {"metadata": {"name": uid, "uid": uid, **metadata}, "spec": spec})


def test_pod_sets_are_placed_beside_each_other() -> None:
    """A later set gets what the earlier ones leave, and nothing of that is kept."""
    found = cluster(a=2, b=3)
    units = [unit(demand(2, name="one")), unit(demand(2, name="two"))]
    expected = {"one": {"a": 2}, "two": {"b": 2}}
    assert pods(found.place(units)) == expected
    assert pods(found.place(units)) == expected
    assert pods(found.place(units, as_if_empty=True)) == expected
    assert isinstance(found.place([*units, unit(demand(2, name="three"))]), NotPlaced)
    assert dict(found.used((HOST,))) == {}


def test_what_is_used_counts_for_all_flavors_that_have_the_node() -> None:
    """Two flavors with the same nodes do not give a node twice."""
    found = cluster(a=2)
    found.add([(Placement((HOST,), ((("a",), 2),)), {"cpu": 1000})])
    for flavor in ("f", "g"):
        assert isinstance(found.place([unit(demand(1), flavor=flavor)]), NotPlaced)
        assert pods(found.place([unit(demand(1), flavor=flavor)], as_if_empty=True)) == {
            "main": {"a": 1}
        }


def test_victims_are_supposed_to_be_gone_with_the_log_of_the_engine() -> None:
    """What is removed within a trial of the shared log is there again after it."""
    log = UndoLog()
    found = cluster(log, a=2)
    places = [(Placement((HOST,), ((("a",), 2),)), {"cpu": 1000})]
    found.add(places)
    with log.undone():
        found.remove(places)
        assert pods(found.place([unit(demand(2))])) == {"main": {"a": 2}}
    assert isinstance(found.place([unit(demand(1))]), NotPlaced)


def test_pods_of_nobody_take_room_and_give_it_back() -> None:
    """Pods that no topology assignment placed count on their node until they end or go; the others count with their workload."""
    found = cluster(a=2)
    found.set_pod(pod("x", "a", "1"))
    found.set_pod(pod("x", "a", "1"))
    found.set_pod(pod("y", "a", "1", annotations={WORKLOAD: "w"}))
    assert "only 1 out of 2" in found.place([unit(demand(2))]).message  # type: ignore[union-attr]
    found.remove_pod("x")
    assert pods(found.place([unit(demand(2))])) == {"main": {"a": 2}}


def test_nodes_and_topologies_come_and_go() -> None:
    """Flavors may be there before their topology, and nodes before both."""
    found = ClusterTopologies()
    found.set_node(node("a", 2, {BLOCK: "b", RACK: "r"}))
    found.set_flavor("f", ResourceFlavorSpec(node_labels=FLAVOR, topology_name="t"))
    assert found.is_missing("f")
    assert isinstance(found.place([unit(demand(1))]), NotPlaced)
    found.set_topology(topology(*LEVELS))
    assert not found.is_missing("f")
    assert pods(found.place([unit(demand(1))])) == {"main": {"a": 1}}
    found.set_topology(topology(RACK, HOST))
    assert found.mismatch("f", TopologyRequest(required=BLOCK), only_topologies=False) is not None
    found.remove_node("a")
    assert isinstance(found.place([unit(demand(1))]), NotPlaced)
    found.remove_topology("t")
    assert found.is_missing("f")


@pytest.mark.parametrize(
    ("flavor", "request_", "only", "words"),
    [
        ("plain", ANYWHERE, False, "does not support TopologyAwareScheduling"),
        ("plain", SLICED, False, "does not support TopologyAwareScheduling"),
        ("plain", LAYERED, False, "does not support TopologyAwareScheduling"),
        ("plain", None, False, None),
        ("plain", INDEXED, False, None),
        ("plain", GROUPED, False, None),
        ("f", INDEXED, False, "supports only TopologyAwareScheduling"),
        ("f", INDEXED, True, None),
        ("f", None, False, "supports only TopologyAwareScheduling"),
        ("f", None, True, None),
        ("f", TopologyRequest(required=RACK), False, None),
        ("f", TopologyRequest(preferred="row"), False, "does not contain the requested level"),
    ],
)
def test_whether_a_flavor_suits(
    flavor: str, request_: TopologyRequest | None, only: bool, words: str | None
) -> None:
    """Pods that request a topology need a flavor whose topology has the level; other pods need a flavor without one, as a rule.

    A request with only an index label or a group name requests no topology.
    """
    found = cluster(a=1).mismatch(flavor, request_, only_topologies=only)
    assert found is None if words is None else found is not None and words in found
