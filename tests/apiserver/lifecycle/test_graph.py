"""The graph of owners and the queue of what is due: laws that hold for any history."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.lifecycle.due import LONGEST_RETRY_S, RETRY_S, Due, DueItems
from drayman.apiserver.lifecycle.graph import DependentObject, Graph, OwnerLink, blocks, node_of
from drayman.cluster.embedded.model import Key, Stored

UIDS = st.sampled_from("abcdef")
OWNERS = st.lists(
    st.builds(OwnerLink, uid=UIDS, block_owner_deletion=st.booleans()), max_size=3
).map(tuple)
NODES = st.builds(
    lambda uid, owners, finalizers, deleted: DependentObject(
        Key("things", "ns", uid), uid, owners, finalizers, deleted
    ),
    UIDS,
    OWNERS,
    st.lists(st.sampled_from(["orphan", "foregroundDeletion", "other"]), max_size=2).map(tuple),
    st.booleans(),
)
STEPS = st.lists(st.tuples(st.sampled_from(["put", "gone"]), NODES), max_size=30)


@given(STEPS)
def test_the_graph_is_what_the_objects_say(steps: list[tuple[str, DependentObject]]) -> None:
    """After any history the dependents of an owner are the objects that name it, and nobody else is remembered."""
    graph, there = Graph(), {}
    gone: set[str] = set()
    for step, node in steps:
        if step == "put":
            graph.put(node)
            there[node.uid] = node
            gone.discard(node.uid)
        else:
            graph.note_gone(there.pop(node.uid, node))
            gone.add(node.uid)
    for uid in "abcdef":
        named = {n.uid for n in there.values() if any(o.uid == uid for o in n.owners)}
        assert {node.uid for node in graph.dependents(uid)} == named
        assert graph.has_dependents(uid) == bool(named)
        assert graph.is_blocked(uid) == any(blocks(there[n], uid) for n in named - {uid})
        node = there.get(uid)
        assert graph.holds_on(uid) == (node is not None and (node.waits or node.frees))
        if graph.is_gone(uid, Key("things", "ns", "x")):
            assert named


def test_an_owner_that_was_seen_to_go_is_forgotten_with_its_last_dependent() -> None:
    """The graph remembers no more of the past than somebody still refers to."""
    graph = Graph()
    top = DependentObject(Key("things", "ns", "top"), "top")
    one, two = (
        DependentObject(Key("things", "ns", n), n, (OwnerLink(uid="top"),)) for n in ("one", "two")
    )
    graph.put(one)
    graph.put(two)
    graph.note_gone(top)
    for dependent in (one, two):
        assert graph.is_gone("top", dependent.key)
        graph.note_gone(dependent)
    assert not graph.is_gone("top", one.key)


def test_a_node_is_read_from_the_metadata_alone() -> None:
    """What else is in an object does not matter, nor do members that are null."""
    data = (
        b'{"kind":"T","metadata":{"name":"n","uid":"u","finalizers":null,"deletionTimestamp":"t",'
        b'"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"x","controller":true}]},'
        b'"spec":{"metadata":{"uid":"other"}}}'
    )
    node = node_of(Stored(Key("things", "ns", "n"), 1, data))
    assert node == DependentObject(
        Key("things", "ns", "n"), "u", (OwnerLink("v1", "K", "o", "x"),), (), True
    )


@dataclass(slots=True)
class Hand:
    """The hand of a clock that tests move."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.tuples(st.sampled_from(["ask", "take", "fail"]), st.integers(0, 4))))
def test_nothing_due_is_lost_or_twice(steps: list[tuple[str, int]]) -> None:
    """What was asked for is taken once for each time it was asked for since it was last taken, oldest first."""
    hand = Hand()
    due, expected = DueItems(hand), []
    for step, number in steps:
        item = Due("object", str(number))
        if step == "take":
            assert due.take(number) == expected[:number]
            del expected[:number]
            continue
        if step == "ask":
            due.ask(item)
        else:
            due.failed(item)
            hand.now += LONGEST_RETRY_S
            assert due.take(0) == []  # moves what is due again into line
        if item not in expected:
            expected.append(item)
    assert due.take(10) == expected
    assert due.take(10) == []
    assert due.idle_s() is None


def test_failures_are_tried_again_later_each_time() -> None:
    """The wait doubles up to a bound, and begins anew after a success."""
    hand = Hand()
    due, item = DueItems(hand), Due("namespace", "n")
    waits = []
    for _ in range(12):
        due.failed(item)
        wait = due.idle_s()
        assert wait is not None
        waits.append(wait)
        assert due.take(1) == []
        hand.now += wait
        assert due.take(1) == [item]
    doubled = [min(RETRY_S * 2.0**n, LONGEST_RETRY_S) for n in range(12)]
    assert waits == [round_to(w, waits[i]) for i, w in enumerate(doubled)]
    due.succeeded(item)
    due.failed(item)
    assert abs((due.idle_s() or 0.0) - RETRY_S) < 1e-6


def round_to(wanted: float, found: float) -> float:
    """The value found, if it is the one wanted but for the rounding of clocks."""
    return found if abs(wanted - found) < 1e-6 else wanted


def test_what_is_put_off_comes_in_its_time() -> None:
    """Not before, and also if it was looked at meanwhile."""
    hand = Hand()
    due, item = DueItems(hand), Due("object", "u")
    due.ask_after(item, 2.0)
    assert due.take(1) == []
    due.ask(item)
    assert due.take(1) == [item]
    assert due.idle_s() == 2.0
    hand.now += 2.0
    assert due.take(1) == [item]
    assert due.idle_s() is None
