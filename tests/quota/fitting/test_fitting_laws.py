"""Laws of admission with room: what is admitted binds, no device is promised twice, and release restores the state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drayman.api.core import Pod
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.placements import Placement
from drayman.placement.nominations import Nominations
from drayman.placement.state import ClusterState
from drayman.quota.fitting.book import RoomBook
from drayman.quota.fitting.expecting import WorkloadPods
from drayman.quota.fitting.fitter import Fitter, Intact
from drayman.quota.fitting.reservation import RoomReservation
from quota.fitting.clusters import (
    HOST,
    TEMPLATES,
    add_node,
    content,
    make_node,
    make_state,
    parts,
    pod_set,
    real_pods,
    shares,
    template,
    whole,
    workload,
)

ZONE = "zone"


@st.composite
def clusters(draw: st.DrawFn) -> ClusterState:
    """One to three nodes with whole devices of two models, partitions and a device to share."""
    state = make_state()
    for number in range(draw(st.integers(1, 3))):
        name = f"n{number}"
        zone = {ZONE: draw(st.sampled_from(["z0", "z1"]))}
        node = make_node(name, draw(st.integers(1, 4)), labels=zone)
        models = draw(st.lists(st.sampled_from(["small", "large"]), max_size=3))
        slices = [whole(name, models)]
        if draw(st.booleans()):
            slices.append(parts(name, 3, draw(st.sampled_from([2, 4]))))
        if draw(st.booleans()):
            slices.append(shares(name, draw(st.sampled_from([3, 4]))))
        add_node(state, node, *slices)
    return state


_ALIKE = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOST}
RULES: tuple[dict[str, Any], ...] = (
    {},
    {"nodeSelector": {ZONE: "z0"}},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_ALIKE]}}},
)
"""Where pods may be: anywhere, in a zone, or on a node without another pod with the label that some have."""


def made_template(claims: list[str], cpu: int, rule: int, *, labelled: bool, port: bool) -> Any:
    made = template(claims, cpu, **RULES[rule])
    if labelled:
        made["metadata"] = {"labels": {"app": "x"}}
    if port:
        made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return made


templates = st.builds(
    made_template,
    st.lists(st.sampled_from(sorted(TEMPLATES)), max_size=2),
    st.integers(1, 2),
    st.sampled_from([0, 0, 1, 2]),
    labelled=st.booleans(),
    port=st.sampled_from([False, False, True]),
)


@st.composite
def workloads(draw: st.DrawFn) -> list[tuple[WorkloadPods, int]]:
    """Workloads of one or two pod sets, with the priority of their pods."""
    found = []
    for number in range(draw(st.integers(1, 5))):
        sets = [
            pod_set(draw(st.integers(1, 2)), draw(templates), name=f"s{each}")
            for each in range(draw(st.integers(1, 2)))
        ]
        found.append((workload(f"w{number}", *sets), draw(st.sampled_from([0, 0, 10]))))
    return found


@dataclass
class Cluster:
    """A cluster with quota and a scheduler, in one state."""

    state: ClusterState
    book: RoomBook = field(init=False)
    fitter: Fitter = field(init=False)
    nominations: Nominations = field(init=False)
    decider: Decider = field(init=False)

    def __post_init__(self) -> None:
        self.book = RoomBook(self.state)
        self.fitter = Fitter(self.state, self.book)
        self.nominations = Nominations(self.state)
        self.decider = Decider(self.state, nominations=self.nominations)

    def admit(self, wanted: WorkloadPods) -> bool:
        found = self.fitter.fit(wanted, 0.0)
        if isinstance(found, RoomReservation):
            self.book.keep(found)
        return isinstance(found, RoomReservation)

    def appear(self, wanted: WorkloadPods, pod_set: str, pod: Pod) -> None:
        """A pod exists: its place passes from the book to the scheduler's promises."""
        place = self.book.hand_over(wanted.key, pod_set, pod)
        assert place is not None
        self.book.fulfil(pod.metadata.uid)
        self.nominations.keep(pod, place.node, place.allocations)

    def held(self) -> Counter[object]:
        """How often each device is held as a whole."""
        return Counter(
            holding.device
            for _, holdings in self.state.ledger.holders()
            for holding in holdings
            if holding.share_id is None
        )


@given(clusters(), workloads(), st.randoms(use_true_random=False))
def test_what_is_admitted_binds(
    state: ClusterState, wanted: list[tuple[WorkloadPods, int]], random: object
) -> None:
    """Pods of admitted workloads appear and are decided about in any order, and each of them gets a node."""
    cluster = Cluster(state)
    admitted = [(each, priority) for each, priority in wanted if cluster.admit(each)]
    pods = [
        (each, name, pod) for each, priority in admitted for name, pod in real_pods(each, priority)
    ]
    random.shuffle(pods)  # type: ignore[attr-defined]
    waiting: list[Pod] = []
    for each, name, pod in pods:
        cluster.appear(each, name, pod)
        waiting.append(pod)
        # Some are decided about at once, others wait until more have appeared.
        while waiting and random.random() < 0.5:  # type: ignore[attr-defined]
            _bind(cluster, waiting.pop(random.randrange(len(waiting))))  # type: ignore[attr-defined]
    for pod in waiting:
        _bind(cluster, pod)
    assert all(number == 1 for number in cluster.held().values())


def _bind(cluster: Cluster, pod: Pod) -> None:
    outcome = cluster.decider.round(0.0).decide(pod)
    assert isinstance(outcome, Placement), (pod.metadata.name, outcome)


@given(clusters(), workloads())
def test_no_device_is_promised_twice(
    state: ClusterState, wanted: list[tuple[WorkloadPods, int]]
) -> None:
    """A device that is not shared has one holder, and reservations that were just made are intact."""
    cluster = Cluster(state)
    for each, _ in wanted:
        cluster.admit(each)
        assert all(number == 1 for number in cluster.held().values())
    before = content(state)
    for reservation in cluster.book:
        assert isinstance(cluster.fitter.review(reservation, 0.0), Intact)
    assert content(state) == before


@given(clusters(), workloads(), st.data())
def test_release_restores_the_state(
    state: ClusterState, wanted: list[tuple[WorkloadPods, int]], data: st.DataObject
) -> None:
    """Workloads end in any order, some with pods that have their places; what is left is what was there before."""
    cluster = Cluster(state)
    before = content(state)
    admitted = [each for each, _ in wanted if cluster.admit(each)]
    after = content(state)
    for each in admitted:
        for name, pod in real_pods(each):
            cluster.book.hand_over(each.key, name, pod)
            cluster.book.fulfil(pod.metadata.uid)
    assert content(state) == before
    for each in admitted:
        for _, pod in real_pods(each):
            cluster.book.vacate(pod.metadata.uid)
    assert content(state) == after
    for each in data.draw(st.permutations(admitted)):
        cluster.book.release(each.key)
    assert content(state) == before


@given(clusters(), workloads(), st.data())
def test_a_cluster_that_shrinks_is_noticed(
    state: ClusterState, wanted: list[tuple[WorkloadPods, int]], data: st.DataObject
) -> None:
    """After a node is gone, a reservation is intact, moved to room that is there, or has no room; nothing is promised twice."""
    cluster = Cluster(state)
    for each, _ in wanted:
        cluster.admit(each)
    gone = data.draw(st.sampled_from(sorted(state.nodes)))
    state.remove_node(gone)
    for reservation in list(cluster.book):
        result = cluster.fitter.review(reservation, 0.0)
        if gone not in reservation.nodes:
            assert isinstance(result, Intact)
        elif hasattr(result, "reservation"):
            cluster.book.replace(result.reservation)
            assert gone not in result.reservation.nodes
            assert isinstance(cluster.fitter.review(result.reservation, 0.0), Intact)
        else:
            assert f"node {gone} is gone" in result.message  # type: ignore[union-attr]
            cluster.book.release(reservation.key)
        assert all(number == 1 for number in cluster.held().values())


def test_a_more_important_pod_with_room_of_its_own_leaves_that_of_others() -> None:
    """It would prefer the other node, which has the one device that the less important pod can use."""
    state = make_state()
    add_node(state, make_node("full", 2), whole("full", ["small"]))
    add_node(state, make_node("empty", 40), whole("empty", ["large"]))
    cluster = Cluster(state)
    modest, important = (
        workload("modest", pod_set(1, template(["large"]))),
        workload("important", pod_set(1, template(["one"]))),
    )
    assert cluster.admit(modest)
    assert cluster.admit(important)
    pods = {
        each.key: real_pods(each, priority) for each, priority in ((modest, 0), (important, 10))
    }
    for each in (modest, important):
        for name, pod in pods[each.key]:
            cluster.appear(each, name, pod)
    for each in (important, modest):
        for _, pod in pods[each.key]:
            _bind(cluster, pod)
