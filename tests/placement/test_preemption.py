"""Who has to go so that a more important pod fits."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.demand import Demand, Demands
from drayman.placement.nodes import NodeState
from drayman.placement.parties import Occupant, Party
from drayman.placement.pauses import completed
from drayman.placement.placing import Found, Placer
from drayman.placement.preemption import (
    Changed,
    Fits,
    Preemption,
    Victims,
    VictimSearch,
)
from drayman.placement.state import ClusterState
from oracle.build import device_class, piece
from oracle.observed import seen_in

ALLOCATABLE = {"cpu": "4", "memory": "4Gi", "pods": "10"}
DEVICES = 3


class Crowd:
    """Nodes `n0`, `n1`, ... with three devices each, and the pods on them."""

    def __init__(self, nodes: int = 1) -> None:
        self.state = ClusterState(Features(), lambda _: None)
        self.state.set_class(convert(DeviceClass, device_class("gpu")))
        self.occupants: dict[str, list[Party]] = {}
        self.protected: set[str] = set()
        self.unused: list[ResourceClaim] = []
        for number in range(nodes):
            name = f"n{number}"
            self.occupants[name] = []
            node = {"metadata": {"name": name}, "status": {"allocatable": ALLOCATABLE}}
            self.state.set_node(convert(Node, node))
            devices = [f"d{n}" for n in range(DEVICES)]
            made = piece(devices, pool=name, name=name, nodeName=name)
            self.state.set_slice(convert(ResourceSlice, made))

    def add(
        self,
        name: str,
        priority: int,
        *,
        cpu: int = 0,
        device: int | None = None,
        node: str = "n0",
        leaving: bool = False,
        **status: Any,
    ) -> None:
        """A pod on a node, with CPUs and perhaps a device."""
        pod = make_pod(name, priority, cpu, node, **status)
        claims: tuple[ResourceClaim, ...] = ()
        if device is not None:
            claim = make_claim(
                f"claim-of-{name}",
                {"driver": "gpu.example.com", "pool": node, "device": f"d{device}"},
                users=[{"resource": "pods", "name": name, "uid": name}],
            )
            self.state.set_claim(claim)
            claims = (claim,)
        self.state.set_placed_pod(pod)
        self.occupants[node].append(Party.alone(Occupant(pod, claims, node), is_leaving=leaving))

    def share(self, claim: str, device: int, *pods: str, node: str = "n0") -> None:
        """Pods without priority that use one claim together."""
        users = [{"resource": "pods", "name": name, "uid": name} for name in pods]
        made = make_claim(
            claim, {"driver": "gpu.example.com", "pool": node, "device": f"d{device}"}, users=users
        )
        self.state.set_claim(made)
        for name in pods:
            pod = make_pod(name, 0, 0, node)
            self.state.set_placed_pod(pod)
            self.occupants[node].append(Party.alone(Occupant(pod, (made,), node)))

    def victims(self, priority: int, *, cpu: int = 0, devices: int = 0) -> Victims | None:
        """Who goes for a pod of this priority."""
        return found_by(
            self.search.victims(
                priority, list(self.state.nodes.values()), self.fits(cpu, devices), self.unused
            )
        )

    @property
    def search(self) -> Preemption:
        return Preemption(self.state, self.occupants.__getitem__, self.violating)

    @property
    def pausing(self) -> Preemption:
        """A search for which a break is always due."""
        return Preemption(self.state, self.occupants.__getitem__, self.violating, lambda: True)

    def violating(self, pods: Sequence[Pod]) -> Generator[None, None, set[str]]:
        yield from ()
        return {pod.metadata.uid for pod in pods if pod.metadata.name in self.protected}

    def fits(self, cpu: int, devices: int) -> Fits:
        claims = (make_claim("wanted", count=devices),) if devices else ()
        demand = Demands(self.state, 600.0).of(make_pod("new", 0, cpu), claims, 0.0)
        return self.fits_for(demand)

    def fits_for(self, demand: Demand) -> Fits:
        return lambda node: Placer(self.state, Policy.BEST).found_on(demand, node)

    def seen(self) -> Any:
        """Everything that preemption could have changed."""
        sums = {
            name: (
                node.usage.cpu,
                node.usage.memory,
                dict(node.usage.extended),
                set(node.usage.pods),
            )
            for name, node in self.state.nodes.items()
        }
        return sums, seen_in(self.state.ledger)


def found_by(search: VictimSearch) -> Victims | None:
    """The result of a search without breaks."""
    found = completed(search)
    assert not isinstance(found, Changed)
    return found


def make_pod(name: str, priority: int, cpu: int, node: str = "", **status: Any) -> Pod:
    resources = {"requests": {"cpu": str(cpu)} if cpu else {}}
    spec = {
        "priority": priority,
        "nodeName": node,
        "containers": [{"name": "c", "resources": resources}],
    }
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": status})


def make_claim(
    name: str,
    result: dict[str, str] | None = None,
    count: int = 1,
    users: Sequence[dict[str, str]] = (),
) -> ResourceClaim:
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": wanted}]}}
    status: dict[str, Any] = {"reservedFor": list(users)}
    if result:
        status["allocation"] = {"devices": {"results": [{"request": "r", **result}]}}
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    return convert(ResourceClaim, {"metadata": metadata, "spec": spec, "status": status})


def names(found: Victims | None) -> list[str]:
    return [] if found is None else sorted(pod.metadata.name for pod in found.pods)


def test_nobody_goes_for_an_equal() -> None:
    """Only pods of lower priority are victims."""
    crowd = Crowd()
    crowd.add("a", 5, cpu=4)
    assert names(crowd.victims(5, cpu=1)) == []
    assert names(crowd.victims(6, cpu=1)) == ["a"]


def test_as_few_as_needed() -> None:
    """Who need not go stays, the most important first."""
    crowd = Crowd()
    for name, priority in (("a", 1), ("b", 2), ("c", 3), ("d", 4)):
        crowd.add(name, priority, cpu=1)
    assert names(crowd.victims(9, cpu=2)) == ["a", "b"]


def test_devices_count_like_cpu() -> None:
    """The pod that holds what is needed goes; one that holds none of it stays."""
    crowd = Crowd()
    crowd.add("bystander", 0, cpu=1)
    for number in range(DEVICES):
        crowd.add(f"holder-{number}", number + 1, device=number)
    assert names(crowd.victims(9, devices=1)) == ["holder-0"]
    assert names(crowd.victims(9, devices=2)) == ["holder-0", "holder-1"]


def test_nobody_goes_in_vain() -> None:
    """Where the pod would not fit even then, everybody stays."""
    crowd = Crowd()
    crowd.add("a", 0, cpu=4)
    assert names(crowd.victims(9, cpu=5)) == []
    assert names(crowd.victims(9, devices=DEVICES + 1)) == []


def test_protected_pods_are_spared_where_others_will_do() -> None:
    """Pods under a disruption budget are given back first, whatever their priority."""
    crowd = Crowd()
    crowd.add("protected", 1, cpu=2)
    crowd.add("open", 5, cpu=2)
    crowd.protected.add("protected")
    found = crowd.victims(9, cpu=2)
    assert names(found) == ["open"]
    assert found is not None
    assert found.violations == 0


def test_the_cheapest_node() -> None:
    """Fewest broken budgets, then the least important victims, then the fewest."""
    crowd = Crowd(3)
    crowd.add("protected", 0, cpu=4, node="n0")
    crowd.add("important", 7, cpu=4, node="n1")
    crowd.add("small", 3, cpu=2, node="n2")
    crowd.add("tiny", 3, cpu=2, node="n2")
    crowd.protected.add("protected")
    assert names(crowd.victims(9, cpu=4)) == ["small", "tiny"]
    assert names(crowd.victims(9, cpu=2)) in (["small"], ["tiny"])


def test_no_number_of_hopeless_nodes_hides_one_that_helps() -> None:
    """Nodes on which nobody's leaving would help do not count among those that are looked at."""
    crowd = Crowd(150)
    for number in range(150):
        crowd.add(f"p{number}", 0, cpu=1, node=f"n{number}")
    for number in range(150):
        if number != 99:  # the last of all by name
            crowd.add(f"q{number}", 9, cpu=3, node=f"n{number}")
    crowd.add("large", 0, cpu=3, node="n99")
    found = crowd.victims(5, cpu=4)
    assert found is not None
    assert (found.node, names(found)) == ("n99", ["large", "p99"])


def test_nodes_that_cannot_be_better_are_not_looked_at() -> None:
    """Where one victim of the lowest priority will do, and breaks as few budgets as possible, the search is over."""
    crowd = Crowd(50)
    for number in range(50):
        crowd.add(f"p{number}", 0, cpu=4, node=f"n{number}")
        crowd.protected.add(f"p{number}")
    looked_at: set[str] = set()

    def fits(node: NodeState) -> Found | None:
        looked_at.add(node.facts.name)
        return crowd.fits(1, 0)(node)

    found = found_by(crowd.search.victims(5, list(crowd.state.nodes.values()), fits))
    assert found is not None
    assert looked_at == {found.node}


def test_the_older_of_equals_stays() -> None:
    """Among pods of one priority those that started first are given back first."""
    crowd = Crowd()
    crowd.add("young", 1, cpu=2, startTime="2026-01-02T00:00:00Z")
    crowd.add("old", 1, cpu=2, startTime="2026-01-01T00:00:00Z")
    assert names(crowd.victims(9, cpu=2)) == ["young"]


def test_nobody_is_asked_where_somebody_leaves_anyway() -> None:
    """A pod that is on its way out makes the room: nobody has to go, and it is what is waited for."""
    crowd = Crowd(2)
    crowd.add("stays", 0, device=0)
    crowd.add("goes", 5, device=1, leaving=True)
    crowd.add("other", 0, cpu=4, node="n1")
    found = crowd.victims(3, devices=DEVICES - 1, cpu=1)
    assert found is not None
    assert (names(found), [pod.metadata.name for pod in found.leaving]) == ([], ["goes"])
    assert [claim.metadata.name for claim in found.freed] == ["claim-of-goes"]


def test_devices_of_a_claim_that_nobody_uses_any_more_are_about_to_be_free() -> None:
    """A claim that outlives its pod is waited for; no other pod goes for its devices."""
    crowd = Crowd()
    for number in range(DEVICES):
        crowd.add(f"holder-{number}", 0, device=number)
    (gone,) = crowd.occupants["n0"].pop(0).members
    crowd.state.remove_pod(gone.pod.metadata.uid)
    assert names(crowd.victims(9, devices=1)) == ["holder-2"]
    crowd.unused = list(gone.claims)
    found = crowd.victims(9, devices=1)
    assert found is not None
    assert names(found) == []
    assert found.freed == gone.claims


def test_pods_that_share_a_claim_free_it_together() -> None:
    """A device is free when the last of those who use it is gone, so both of them are victims."""
    crowd = Crowd()
    crowd.share("shared", 0, "one", "two")
    for number in range(1, DEVICES):
        crowd.add(f"important-{number}", 9, device=number)
    assert names(crowd.victims(5, devices=1)) == ["one", "two"]


_ALIKE: dict[str, Any] = {
    "labelSelector": {"matchLabels": {"app": "x"}},
    "topologyKey": "kubernetes.io/hostname",
}
_RULES: dict[str, dict[str, Any]] = {
    "anti-affinity": {
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_ALIKE]}
        }
    },
    "spread": {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **_ALIKE}
        ]
    },
    "host port": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
}


@pytest.mark.parametrize("rule", _RULES)
def test_victims_resolve_what_pods_say_of_each_other(rule: str) -> None:
    """A pod that keeps another one away by its labels or its ports is a candidate like one that holds the CPU."""
    crowd = Crowd(2)
    crowd.state.remove_node("n1")
    node = {"metadata": {"name": "n0", "labels": {"kubernetes.io/hostname": "n0"}}}
    empty = {"metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}}}
    full = {**empty, "status": {"allocatable": {"cpu": "0", "memory": "0", "pods": "9"}}}
    crowd.state.set_node(convert(Node, {**node, "status": {"allocatable": ALLOCATABLE}}))
    crowd.state.set_node(convert(Node, full))
    other = social_pod("other", 0, rule, "n0")
    crowd.state.set_placed_pod(other)
    crowd.occupants["n0"].append(Party.alone(Occupant(other)))
    bystander = make_pod("bystander", 0, 1, "n0")
    crowd.state.set_placed_pod(bystander)
    crowd.occupants["n0"].append(Party.alone(Occupant(bystander)))
    wanted = Demands(crowd.state, 600.0).of(social_pod("new", 9, rule), (), 0.0)
    found = found_by(crowd.search.victims(9, [crowd.state.nodes["n0"]], crowd.fits_for(wanted)))
    assert names(found) == ["other"]
    assert crowd.fits_for(wanted)(crowd.state.nodes["n0"]) is None


def social_pod(name: str, priority: int, rule: str, node: str = "") -> Pod:
    """A pod that minds others of its kind."""
    spec = {"containers": [{"name": "c"}], **_RULES[rule]}
    spec |= {"priority": priority, "nodeName": node}
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "x"}}
    return convert(Pod, {"metadata": metadata, "spec": spec})


_Drawn = tuple[int, int, bool, int, bool, bool]
"""Priority, CPUs, whether with a device, node, whether protected, whether leaving."""
_PODS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 2),
        st.booleans(),
        st.integers(0, 1),
        st.booleans(),
        st.booleans(),
    ),
    max_size=7,
)


def crowd_of(pods: list[_Drawn]) -> Crowd:
    """Two nodes with these pods, as far as devices are left for them."""
    crowd = Crowd(2)
    free = {f"n{n}": list(range(DEVICES)) for n in range(2)}
    for number, (rank, cpus, has_device, node, is_protected, leaves) in enumerate(pods):
        where = f"n{node}"
        device = free[where].pop() if has_device and free[where] else None
        crowd.add(f"p{number}", rank, cpu=cpus, device=device, node=where, leaving=leaves)
        if is_protected:
            crowd.protected.add(f"p{number}")
    return crowd


@given(_PODS, st.integers(1, 4), st.integers(0, 4), st.integers(0, 3))
def test_thinking_changes_nothing_and_no_victim_is_spare(
    pods: list[_Drawn], priority: int, cpu: int, devices: int
) -> None:
    """The state is what it was before. Without the victims the pod fits; with any one of them back it does not."""
    crowd = crowd_of(pods)
    before = crowd.seen()
    found = crowd.victims(priority, cpu=cpu, devices=devices)
    assert crowd.seen() == before
    if found is None:
        return
    fits = crowd.fits(cpu, devices)
    node = crowd.state.nodes[found.node]
    gone = [p for p in crowd.occupants[found.node] if p.pods[0] in found.pods]
    assert all(o.priority < priority for o in gone)
    for party in (p for p in crowd.occupants[found.node] if p.is_leaving or p in gone):
        _remove(crowd, party.members[0])
    assert fits(node) is not None
    for (occupant,) in (party.members for party in gone):
        _put_back(crowd, occupant)
        assert fits(node) is None, f"{occupant.pod.metadata.name} need not go"
        _remove(crowd, occupant)


@given(_PODS, st.integers(1, 4), st.integers(0, 4), st.integers(0, 3))
def test_the_node_is_the_cheapest_of_all(
    pods: list[_Drawn], priority: int, cpu: int, devices: int
) -> None:
    """All nodes together cost what the cheapest of them costs by itself."""
    crowd = crowd_of(pods)
    fits = crowd.fits(cpu, devices)
    assume(not any(fits(node) for node in crowd.state.nodes.values()))
    each = [
        found_by(crowd.search.victims(priority, [node], fits))
        for node in crowd.state.nodes.values()
    ]
    found = crowd.victims(priority, cpu=cpu, devices=devices)
    cheapest = min((victims.cost for victims in each if victims is not None), default=None)
    assert (None if found is None else found.cost) == cheapest


def test_a_group_says_how_much_its_pods_cost() -> None:
    """Of two nodes that could be cleared, the one is whose pods are less important, as their group says."""
    crowd = Crowd(nodes=2)
    crowd.add("of-group", 3, cpu=4, node="n0")
    crowd.add("alone", 2, cpu=4, node="n1")
    assert names(crowd.victims(5, cpu=4)) == ["alone"]
    (party,) = crowd.occupants["n0"]
    crowd.occupants["n0"] = [Party(party.members, 1)]
    assert names(crowd.victims(5, cpu=4)) == ["of-group"]


@given(_PODS, st.integers(1, 4), st.integers(0, 4), st.integers(0, 3))
def test_breaks_change_neither_the_result_nor_the_state(
    pods: list[_Drawn], priority: int, cpu: int, devices: int
) -> None:
    """A search that pauses wherever it can finds what one without breaks finds, and in each break the state is as it was."""
    crowd = crowd_of(pods)
    before = crowd.seen()
    nodes, fits = list(crowd.state.nodes.values()), crowd.fits(cpu, devices)
    search = crowd.pausing.victims(priority, nodes, fits)
    while True:
        try:
            next(search)
        except StopIteration as end:
            found = end.value
            break
        assert crowd.seen() == before
    assert crowd.seen() == before
    wanted = crowd.victims(priority, cpu=cpu, devices=devices)
    assert (wanted is None) == (found is None)
    if wanted is not None:
        assert (found.node, names(found), found.cost) == (wanted.node, names(wanted), wanted.cost)


def test_no_more_than_one_question_is_put_to_a_node_between_two_breaks() -> None:
    """The question takes long where pods say much about each other."""
    crowd = Crowd()
    for number in range(9):
        crowd.add(f"p{number}", 1)
    asked = 0

    def fits(node: NodeState) -> Found | None:
        nonlocal asked
        asked += 1
        return crowd.fits(0, 0)(node)

    most, before = 0, 0
    for _ in crowd.pausing.victims(5, list(crowd.state.nodes.values()), fits):
        most, before = max(most, asked - before), asked
    assert asked > 9
    assert most == 1


def test_pods_that_have_gone_during_a_break_are_not_victims() -> None:
    crowd = Crowd()
    for name in ("a", "b", "c", "d"):
        crowd.add(name, 1, cpu=1)
    search = crowd.pausing.victims(5, list(crowd.state.nodes.values()), crowd.fits(3, 0))
    for _ in range(3):
        next(search)
    crowd.state.remove_pod("a")
    crowd.occupants["n0"].pop(0)
    found = found_by(search)
    assert names(found) == ["c", "d"] or names(found) == ["b", "c", "d"]
    assert crowd.fits(4, 0)(crowd.state.nodes["n0"]) is None


def test_room_that_others_have_taken_during_a_break_is_noticed() -> None:
    """Then the search has to be repeated."""
    crowd = Crowd()
    crowd.add("small", 1, cpu=2)
    nodes, fits = list(crowd.state.nodes.values()), crowd.fits(4, 0)
    breaks = sum(1 for _ in crowd.pausing.victims(5, nodes, fits))
    search = crowd.pausing.victims(5, nodes, fits)
    for _ in range(breaks):
        next(search)
    crowd.add("equal", 5, cpu=2)
    assert isinstance(completed(search), Changed)


def test_a_node_that_has_gone_during_a_break_is_noticed() -> None:
    crowd = Crowd()
    crowd.add("small", 1, cpu=2)
    search = crowd.pausing.victims(5, list(crowd.state.nodes.values()), crowd.fits(4, 0))
    next(search)
    crowd.state.remove_node("n0")
    assert completed(search) is None


def _remove(crowd: Crowd, occupant: Occupant) -> None:
    crowd.state.remove_pod(occupant.pod.metadata.uid)
    for claim in occupant.claims:
        crowd.state.remove_claim(claim)


def _put_back(crowd: Crowd, occupant: Occupant) -> None:
    crowd.state.set_placed_pod(occupant.pod)
    for claim in occupant.claims:
        crowd.state.set_claim(claim)
