"""Workloads that have quota and no room drive others out, where their queue may; and nobody in vain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.kueue import pod_template_of
from drayman.api.kueue_workload import Admission
from drayman.api.meta import ObjectMeta
from drayman.placement.state import ClusterState
from drayman.quota.admissions import holding_of
from drayman.quota.decisions import Decision, Preempted, Refused
from drayman.quota.entries import Entry
from drayman.quota.quota_and_room import Cycles
from quota.fitting.clusters import (
    HOST,
    NAMESPACE,
    add_node,
    content,
    make_node,
    make_state,
    template,
    whole,
)
from quota.fitting.hall import Hall, work
from quota.queues import limits, queue

FAIR = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}}
Q = "default/"


def gpu_cluster(*devices: int) -> ClusterState:
    """Nodes a, b, ... with 40 CPUs and so many devices each."""
    state = make_state()
    for letter, number in zip("abcdefgh", devices, strict=False):
        add_node(state, make_node(letter, 40), whole(letter, ["small"] * number))
    return state


def preempted(decisions: list[Decision]) -> dict[str, str]:
    """Who has to go, with the reason."""
    return {
        each.key.removeprefix(Q): each.reason for each in decisions if isinstance(each, Preempted)
    }


def said(decisions: list[Decision], name: str) -> Refused:
    found = [each for each in decisions if isinstance(each, Refused) and each.key == Q + name]
    return found[-1]


def running(hall: Hall, *names: str) -> None:
    """These were admitted, and their pods run."""
    hall.rest()
    assert set(names) <= hall.admitted()
    for name in names:
        hall.start(name)


def fragmented(within: str, priority: int = 0, **spec: Any) -> Hall:
    """Two nodes of two devices, each with a pod that has one; there is quota for anything."""
    hall = Hall(gpu_cluster(2, 2), queue("q", 100, within=within, **spec))
    for number, (name, node) in enumerate((("old", "a"), ("new", "b"))):
        made = template(["one"], nodeSelector={HOST: node})
        hall.submit(work(name, "q", made, priority=priority, at=number))
        running(hall, name)
    return hall


def test_fragmented_devices_are_made_room_on() -> None:
    """One device is free on each of two nodes. Who needs two has the one go that came last, and starts when it has gone."""
    hall = fragmented("LowerPriority")
    hall.submit(work("big", "q", template(["two"]), priority=1, at=9))
    decisions = hall.settle()
    assert preempted(decisions) == {"new": "InClusterQueue"}
    assert "no room for its pods" in next(
        each.message for each in decisions if isinstance(each, Preempted)
    )
    assert said(decisions, "big").reason == "WaitingForPreemptedWorkloads"
    hall.rest()
    assert hall.admitted() == {"old", "big"}
    hall.start("big")


@pytest.mark.parametrize(
    ("within", "priority", "words"),
    [
        ("Never", 0, "ClusterQueue q preempts nobody"),
        ("LowerPriority", 5, "there is nobody that it may preempt"),
    ],
)
def test_who_may_not_preempt_is_told_so(within: str, priority: int, words: str) -> None:
    hall = fragmented(within, priority)
    hall.submit(work("big", "q", template(["two"]), priority=1, at=9))
    decisions = hall.settle()
    assert preempted(decisions) == {}
    assert said(decisions, "big").reason == "WaitingForRoom"
    assert words in said(decisions, "big").message


def test_nobody_goes_if_there_would_be_no_room_afterwards() -> None:
    """No node has three devices, whoever leaves."""
    hall = fragmented("LowerPriority")
    hall.submit(work("huge", "q", template(["two", "one"]), priority=1, at=9))
    decisions = hall.settle()
    assert preempted(decisions) == {}
    assert "there would still be no room" in said(decisions, "huge").message


def test_nobody_goes_for_quota_if_there_would_be_no_room_afterwards() -> None:
    """By quota alone, it would drive out the other one."""
    hall = Hall(gpu_cluster(2), queue("q", 2, within="LowerPriority"))
    hall.submit(work("small", "q", template(["one"], 2)))
    running(hall, "small")
    hall.submit(work("huge", "q", template(["two", "one"], 1), priority=1, at=9))
    decisions = hall.settle()
    assert preempted(decisions) == {}
    assert said(decisions, "huge").reason == "WaitingForRoom"
    # When there is a node for it, it does.
    add_node(hall.cluster, make_node("z", 40), whole("z", ["small"] * 3))
    hall.quota.room_may_be_free()
    assert preempted(hall.settle()) == {"small": "InClusterQueue"}
    hall.rest()
    hall.start("huge")


def test_pods_outside_of_queues_are_no_victims() -> None:
    """A pod that no queue knows has most of the node: nobody goes for what it would have to leave."""
    hall = Hall(gpu_cluster(0), queue("q", 100, within="LowerPriority"))
    hall.submit(work("small", "q", template([], 1)))
    running(hall, "small")
    spec = replace(pod_template_of(template([], 38)).spec, node_name="a")
    hall.cluster.set_pod(
        Pod(metadata=ObjectMeta(name="s", namespace=NAMESPACE, uid="s"), spec=spec)
    )
    hall.submit(work("big", "q", template([], 30), priority=1, at=9))
    assert preempted(hall.settle()) == {}


def test_borrowers_give_room_back() -> None:
    """The other queue borrows: its workload goes, whatever its priority; and not one of a queue within its quota."""
    hall = Hall(
        gpu_cluster(2),
        queue("mine", 2, "c", reclaim="Any"),
        queue("theirs", limits(0), "c"),
        queue("rich", 2, "c"),
    )
    hall.submit(work("borrower", "theirs", template(["one"]), priority=9))
    hall.submit(work("owner", "rich", template(["one"]), at=1))
    running(hall, "borrower", "owner")
    hall.submit(work("one", "mine", template(["one"]), at=9))
    assert preempted(hall.settle()) == {"borrower": "InCohortReclamation"}
    hall.rest()
    assert hall.admitted() == {"one", "owner"}


def test_what_leaves_by_itself_is_waited_for() -> None:
    """While the pod of one that was evicted still runs, nobody else is told to go; nor in the moment before its claim is gone."""
    hall = fragmented("LowerPriority")
    hall.submit(work("big", "q", template(["two"]), priority=1, at=9))
    assert preempted(hall.settle()) == {"new": "InClusterQueue"}
    hall.quota.room_may_be_free()
    decisions = hall.settle()
    assert preempted(decisions) == {}
    assert "others are about to leave" in said(decisions, "big").message
    (pod,) = hall.pods[Q + "new"]
    (claim,) = hall.cluster.claims_used_by(pod)
    hall.cluster.remove_pod(pod.metadata.uid)
    for seen in (hall.rooms, hall.departing):
        seen.lose(pod)
    hall.quota.room_may_be_free()
    assert preempted(hall.settle()) == {}
    hall.cluster.remove_claim(claim)
    hall.departing.lose_claim(claim)
    hall.rest()
    assert hall.admitted() == {"old", "big"}


def test_room_that_is_made_is_not_given_to_others() -> None:
    """Another one of the same importance would fit into what is free, and would leave too little; one that is more important may."""
    hall = fragmented("LowerPriority")
    hall.submit(work("big", "q", template(["two"]), priority=1, at=9))
    hall.settle()
    for node in ("a", "b"):
        made = template(["one"], nodeSelector={HOST: node})
        hall.submit(work(f"on-{node}", "q", made, priority=1, at=10))
    decisions = hall.settle()
    # One of the two is beside who stays; the other one would be in the way.
    refused = [each for each in decisions if isinstance(each, Refused)]
    assert ["room is being made for workload default/big" in each.message for each in refused] == [
        True
    ]
    assert len(hall.admitted() & {"on-a", "on-b"}) == 1
    hall.rest()
    assert "big" in hall.admitted()


def test_a_queue_that_goes_during_a_cycle_has_nobody_without_room() -> None:
    """Two find no room in one cycle; of the second nothing is said, because its queue is deleted when the first has been told."""
    hall = Hall(gpu_cluster(1), queue("p", 100), queue("q", 100))
    for name in ("p", "q"):
        hall.submit(work(f"big-{name}", name, template(["two"])))
    cycle = Cycles(hall.quota).run(hall.now)
    first = next(cycle)
    hall.quota.remove_cluster_queue("q" if first.key == "default/big-p" else "p")
    assert list(cycle) == []
    assert isinstance(first.decision, Refused)
    assert not any(map(hall.quota.holds_quota, hall.workloads))


def test_two_never_count_on_the_same_place() -> None:
    """Three devices are free. One leaving makes room for either of two that need four, and for both there is none."""
    hall = Hall(
        gpu_cluster(5),
        queue("q", 100, within="LowerPriority"),
        queue("p", 100, within="LowerPriority"),
    )
    for name in ("q", "p"):
        hall.submit(work(f"small-{name}", name, template(["one"])))
    running(hall, "small-q", "small-p")
    for name in ("q", "p"):
        hall.submit(work(f"big-{name}", name, template(["two", "two"]), priority=1, at=9))
    assert len(preempted(hall.settle())) == 1
    hall.rest()
    assert len(hall.admitted() & {"big-q", "big-p"}) == 1


def left_by_big() -> Hall:
    """`big` has driven out `new`, which is gone for good; the free devices of node b are enough for it."""
    hall = Hall(
        gpu_cluster(2, 2),
        queue("q", 100, within="LowerPriority"),
        queue("p", 100, within="LowerPriority"),
    )
    for number, (name, node) in enumerate((("old", "a"), ("new", "b"))):
        made = template(["one"], nodeSelector={HOST: node})
        hall.submit(work(name, "q", made, at=number))
        running(hall, name)
    hall.submit(work("big", "q", template(["two"], 4), priority=1, at=9))
    assert preempted(hall.settle()) == {"new": "InClusterQueue"}
    return hall


def lower_quota(hall: Hall) -> None:
    cluster_queue, _ = queue("q", 2, within="LowerPriority")
    hall.put(cluster_queue)


def exclude_namespace(hall: Hall) -> None:
    cluster_queue, _ = queue("q", 100, within="LowerPriority")
    cluster_queue["spec"]["namespaceSelector"] = {"matchLabels": {"other": "yes"}}
    hall.put(cluster_queue)


def put_another_in_front(hall: Hall) -> None:
    """The queue is strict, and its head gets no quota."""
    cluster_queue, _ = queue("q", 100, within="LowerPriority", queueingStrategy="StrictFIFO")
    hall.put(cluster_queue)
    hall.submit(work("head", "q", template([], 101), priority=2, at=8))


@pytest.mark.parametrize("change", [lower_quota, exclude_namespace, put_another_in_front])
def test_room_is_not_kept_for_who_does_not_wait_for_it_any_more(change: Any) -> None:
    """Something keeps the preemptor from what it had made room for. An equal workload of another queue is not kept waiting for it."""
    hall = left_by_big()
    change(hall)
    hall.settle()
    hall.finish(Q + "new")
    hall.settle()
    assert "big" not in hall.admitted()
    hall.submit(work("other", "p", template(["two"]), priority=1, at=10))
    hall.settle()
    assert "other" in hall.admitted()


def test_a_preemption_that_was_not_written_is_decided_again() -> None:
    """Room is not kept for the preemptor until then, which is tried again at once."""
    hall = left_by_big()
    hall.quota.not_driven_out(Q + "new", Q + "big")
    assert not hall.clearing.is_awaited(Q + "big")
    decisions = hall.quota.cycle(hall.now)
    assert [each.key for each in decisions] == [Q + "big"]


# Laws.


@st.composite
def halls(draw: st.DrawFn) -> Hall:
    """Up to three nodes with up to three devices, and up to three queues of a cohort with any policies."""
    state = make_state()
    for number in range(draw(st.integers(1, 3))):
        models = draw(st.lists(st.sampled_from(["small", "large"]), max_size=3))
        node = f"n{number}"
        add_node(state, make_node(node, draw(st.integers(1, 4))), whole(node, models))
    queues = [
        queue(
            f"q{number}",
            limits(draw(st.integers(0, 6))),
            "c",
            within=draw(st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])),
            reclaim=draw(st.sampled_from(["Never", "LowerPriority", "Any"])),
            force=draw(st.sampled_from([False, None, 0])),
            queueingStrategy=draw(st.sampled_from(["StrictFIFO", "BestEffortFIFO"])),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    return Hall(state, *queues, config=draw(st.sampled_from([None, None, FAIR])))


@st.composite
def lives(draw: st.DrawFn) -> tuple[Hall, list[Any]]:
    """A hall, and workloads that come to it one after the other."""
    hall = draw(halls())
    names = sorted(hall.quota.books.queues)
    made = []
    for number in range(draw(st.integers(2, 7))):
        claims = draw(st.lists(st.sampled_from(["one", "two", "large"]), max_size=2))
        body = template(claims, draw(st.integers(1, 2)))
        pods, priority = draw(st.integers(1, 2)), draw(st.integers(0, 2))
        where = draw(st.sampled_from(names))
        made.append(work(f"w{number}", where, body, pods, priority, number))
    return hall, made


@settings(max_examples=100, deadline=None)
@given(lives(), st.data())
def test_what_is_admitted_binds_and_nothing_is_left_behind(
    life: tuple[Hall, list[Any]], data: st.DataObject
) -> None:
    """Workloads come, start, are driven out and end in any order: all pods of all that are admitted get their nodes, nobody is driven out
    without end, and when all have ended, nothing is used or kept."""
    hall, coming = life
    before = content(hall.cluster)
    for workload in coming:
        hall.submit(workload)
        hall.settle()
        for key in hall.leaving():
            if data.draw(st.booleans()):
                hall.leave(key)
        for name in sorted(hall.admitted()):
            if Q + name not in hall.leaving() and data.draw(st.booleans()):
                hall.start(name)
    for _ in range(len(coming) + 1):
        hall.rest()
        for name in sorted(hall.admitted()):
            hall.start(name)
        for name in sorted(hall.admitted()):
            hall.finish(Q + name)
    assert not list(hall.rooms.book)
    assert content(hall.cluster) == before
    for node in hall.quota.books.forest.queues.values():
        assert set(node.usage.values()) <= {0}


class Checking:
    """Stands before the one that is asked for room, and checks who is driven out."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self.admit = hall.clearing.admit
        self.fits = hall.clearing.fits
        self.speaks_for_shape = hall.clearing.speaks_for_shape
        self.is_awaited = hall.clearing.is_awaited
        self.unseated = hall.clearing.unseated
        self.seats = hall.clearing.seats
        self.nodes_of = hall.clearing.nodes_of
        self.gives_up = hall.clearing.gives_up

    def awaits(self, entry: Entry, admission: Admission, victims: frozenset[str]) -> None:
        """There is room without the victims. If it was for room alone, there is none if any of them stays."""
        assert self.fits(entry, admission, victims)
        place = self._hall.quota.books.queues[entry.waits_in].place
        if place.fits(holding_of(admission, 0.0, ()).usage.quota):
            still = victims - set(self._hall.leaving())
            assert not any(self.fits(entry, admission, victims - {each}) for each in still)
        self._hall.clearing.awaits(entry, admission, victims)


@settings(max_examples=100, deadline=None)
@given(lives())
def test_nobody_is_driven_out_in_vain(life: tuple[Hall, list[Any]]) -> None:
    """Who is driven out for room has to go, every one of them (`Checking`). When they have gone, whoever drove them out has quota and
    room, unless it was driven out in turn."""
    hall, coming = life
    hall.quota.ask_for_room(Checking(hall))
    for workload in coming:
        hall.rest()
        for name in sorted(hall.admitted()):
            hall.start(name)
        hall.submit(workload)
        decisions = hall.settle()
        by = {each.by for each in decisions if isinstance(each, Preempted)}
        hall.rest()
        if len(by) == 1:
            (key,) = by
            again = [each for each in hall.log if isinstance(each, Preempted) and each.key == key]
            assert key.removeprefix(Q) in hall.admitted() or again


class Counting:
    """Stands before the one that is asked for room, and counts questions."""

    def __init__(self, hall: Hall) -> None:
        self._clearing = hall.clearing
        self.speaks_for_shape = hall.clearing.speaks_for_shape
        self.admit = hall.clearing.admit
        self.gives_up = hall.clearing.gives_up
        self.awaits = hall.clearing.awaits
        self.is_awaited = hall.clearing.is_awaited
        self.unseated = hall.clearing.unseated
        self.seats = hall.clearing.seats
        self.nodes_of = hall.clearing.nodes_of
        self.asked = 0

    def fits(self, entry: Entry, admission: Admission, without: frozenset[str]) -> bool:
        self.asked += 1
        return self._clearing.fits(entry, admission, without)


def crowded(reclaim_quota: int) -> Hall:
    """Four nodes of four devices, all of them in use by a pod each."""
    hall = Hall(gpu_cluster(4, 4, 4, 4), queue("q", reclaim_quota, within="LowerPriority"))
    names = [f"l{each}" for each in range(16)]
    for number, name in enumerate(names):
        hall.submit(work(name, "q", template(["one"]), at=number))
    running(hall, *names)
    return hall


@pytest.mark.parametrize("quota", [100, 16], ids=["for room", "for quota and room"])
def test_a_long_search_is_made_in_parts_and_comes_to_the_same(quota: int) -> None:
    """With little work at a time, cycles follow each other that decide nothing new, until the same victims are found."""
    big = work("big", "q", template(["two"]), pods=6, priority=5, at=30)
    found = []
    for limit in (None, 40):
        hall = crowded(quota)
        counting = Counting(hall)
        hall.quota.ask_for_room(counting, limit)
        hall.submit(big)
        cycles, most, decisions = 0, 0, list[Decision]()
        while not preempted(decisions):
            cycles += 1
            assert cycles < 50
            before = counting.asked
            hall.now += 1
            decisions = hall.cycle()
            most = max(most, counting.asked - before)
            assert preempted(decisions) or hall.quota.is_unfinished
        assert not hall.quota.is_unfinished
        found.append((preempted(decisions), cycles, most))
    (whole, one, all_at_once), (parts, several, at_a_time) = found
    assert whole == parts
    assert len(whole) == 12
    assert one == 1 < several
    assert at_a_time < all_at_once / 2


def test_a_search_in_parts_begins_again_where_the_cluster_has_changed() -> None:
    """What was found while a node was there that is gone is not acted on."""
    hall = crowded(100)
    hall.quota.ask_for_room(hall.clearing, 40)
    hall.submit(work("big", "q", template(["two"]), pods=7, priority=5, at=30))
    hall.cycle()
    assert hall.quota.is_unfinished
    hall.cluster.remove_node("a")
    decisions = hall.settle()
    assert not preempted(decisions)
    assert "there would still be no room" in said(decisions, "big").message
