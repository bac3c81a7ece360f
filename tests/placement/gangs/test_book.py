"""The book of gangs: who waits, who is placed, and that it does not matter in which order that became known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from calls import counted_calls
from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup, PluginPodGroup
from drayman.inventory.undo import UndoLog
from drayman.placement.gangs.book import GangBook, ranked
from drayman.placement.gangs.dialects import kubernetes
from drayman.placement.gangs.gang import Flaw, Gang
from drayman.placement.gangs.quorum import Shortfall
from placement.gangs.building import (
    INDEX,
    custom,
    enter,
    group,
    job,
    job_reference,
    pod,
    topology,
)

GANG = group({"schedulingPolicy": {"gang": {"minCount": 3}}})
KEY = kubernetes.key_of("ml", "g")


def book_with(*values: Any) -> GangBook:
    book = GangBook()
    for each in values:
        enter(book, each)
    return book


def test_a_member_waits_then_is_placed_then_has_succeeded() -> None:
    """As the API server shows it."""
    book = book_with(GANG, pod("a", group="g"))
    assert set(book.waiting(KEY)) == {"uid-a"}
    book.see(pod("a", group="g", node="n"))
    assert (set(book.waiting(KEY)), set(book.placed(KEY))) == (set(), {"uid-a"})
    assert book.placed(KEY)["uid-a"].node == "n"
    book.see(pod("a", group="g", node="n", phase="Succeeded"))
    assert (set(book.placed(KEY)), set(book.succeeded(KEY))) == (set(), {"uid-a"})
    book.forget(pod("a", group="g"))
    assert book.all_keys() == []


def test_a_decision_counts_until_it_is_taken_back() -> None:
    """Also while the API server shows the pod without a node."""
    book = book_with(GANG, pod("a", group="g"))
    book.place(pod("a", group="g"), "n")
    book.see(pod("a", group="g", labels={"changed": "yes"}))
    assert book.placed(KEY)["uid-a"].node == "n"
    book.displace("uid-a")
    assert set(book.waiting(KEY)) == {"uid-a"}


def test_a_pod_that_is_bound_does_not_wait_again() -> None:
    """What the API server has bound cannot be placed elsewhere; and a pod of a plan exists only while it is placed."""
    book = book_with(GANG, pod("a", group="g", node="n"))
    member = book.displace("uid-a")
    assert book.all_keys() == []
    assert member is not None
    book.rejoin(member)
    assert set(book.placed(KEY)) == {"uid-a"}
    planned = pod("b", group="g")
    book.place(planned, "n")
    book.displace("uid-b")
    assert set(book.placed(KEY)) == {"uid-a"}
    assert not book.waiting(KEY)


def test_those_that_go_are_not_counted() -> None:
    """A member that has failed, or is deleted before it had a node, is none any more. One on a node still has its place."""
    book = book_with(GANG, *(pod(name, group="g") for name in "abcd"))
    gang = book.gang(KEY)
    assert isinstance(gang, Gang)
    assert book.lack(gang) is None
    book.see(pod("a", group="g", phase="Failed"))
    assert book.lack(gang) is None
    book.see(pod("b", group="g", leaving=True))
    assert book.lack(gang) == Shortfall(2, 3)
    book.see(pod("c", group="g", node="n", phase="Running", leaving=True))
    assert book.lack(gang) == Shortfall(1, 3)
    assert set(book.placed(KEY)) == {"uid-c"}


def test_members_that_have_succeeded_count() -> None:
    """The last member of a gang may be replaced after others are done."""
    done = (pod(name, group="g", node="n", phase="Succeeded") for name in "ab")
    book = book_with(GANG, *done, pod("c", group="g"))
    gang = book.gang(KEY)
    assert isinstance(gang, Gang)
    assert book.lack(gang) is None


def test_members_in_the_order_of_their_ranks() -> None:
    """By number and not by text; those without a rank come last, by name."""
    members = [pod(f"p{n}", group="g", labels={INDEX: str(n)}) for n in (10, 9, 0)]
    book = book_with(GANG, pod("z", group="g"), pod("y", group="g"), *members)
    names = [each.pod.metadata.name for each in ranked(book.waiting(KEY))]
    assert names == ["p0", "p9", "p10", "y", "z"]


def test_a_group_may_come_after_its_pods_and_change() -> None:
    """The gang is what its object says now."""
    member = pod("a", group="g")
    book = book_with(member)
    assert str(book.gang_of(member)) == "pod group ml/g does not exist"
    book.set_group(GANG)
    first = book.gang_of(member)
    assert isinstance(first, Gang)
    assert book.gang_of(member) is first
    book.set_group(group({"schedulingPolicy": {"gang": {"minCount": 5}}}))
    second = book.gang_of(member)
    assert isinstance(second, Gang)
    assert second.least == 5


def test_a_topology_may_come_after_its_gang() -> None:
    """And may go again."""
    constraint = {"topology": "racks", "requiredTopologyLevel": "rack"}
    member = pod("a", stated={"pod-group-name": "g"})
    book = book_with(custom(KaiPodGroup, {"topologyConstraint": constraint}), member)
    assert not isinstance(book.gang_of(member), Gang)
    book.topologies.set(topology(("rack", "")))
    assert isinstance(book.gang_of(member), Gang)
    book.topologies.remove(topology())
    assert not isinstance(book.gang_of(member), Gang)


def test_an_annotation_of_a_job_may_come_and_go() -> None:
    """Its pods are a gang as long as it is there, under whichever name."""
    members = [pod(name, owner=job_reference()) for name in "ab"]
    book = book_with(*members)
    assert book.gang_of(members[0]) is None
    book.set_job(job({"drayman.dev/gang": "2"}))
    (key,) = book.all_keys()
    assert set(book.waiting(key)) == {"uid-a", "uid-b"}
    book.set_job(job({"drayman.dev/gang": "2", "drayman.dev/gang-name": "pair"}))
    assert [each.name for each in book.all_keys()] == ["pair"]
    book.set_job(job({}))
    assert book.all_keys() == []
    book.set_job(job({"drayman.dev/gang": "2"}))
    book.remove_job(job({}))
    assert book.gang_of(members[0]) is None


# Laws.

_OWNER = job_reference()
_MARKS: tuple[dict[str, Any], ...] = (
    {"group": "g"},
    {"labels": {"scheduling.x-k8s.io/pod-group": "g", INDEX: "1"}},
    {"stated": {"pod-group-name": "g"}, "labels": {"kai.scheduler/subgroup-name": "a"}},
    {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
        "stated": {"kueue.x-k8s.io/pod-group-total-count": "2"},
    },
    {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
        "stated": {"kueue.x-k8s.io/pod-group-total-count": "3"},
    },
    {"stated": {"drayman.dev/gang": "2"}, "owner": _OWNER},
    {"stated": {"drayman.dev/gang": "two"}, "owner": _OWNER},
    {"owner": _OWNER},
    {},
)
_STANDINGS: tuple[dict[str, Any], ...] = (
    {},
    {"node": "n"},
    {"node": "n", "phase": "Succeeded"},
    {"node": "n", "phase": "Failed"},
    {"leaving": True},
    {"node": "m", "leaving": True},
)
_PODS = st.builds(
    lambda number, marks, standing: pod(f"p{number}", **marks, **standing),
    st.integers(0, 7),
    st.sampled_from(_MARKS),
    st.sampled_from(_STANDINGS),
)
_CONSTRAINT = {"topology": "racks", "requiredTopologyLevel": "rack"}
_OBJECTS = st.sampled_from(
    [
        GANG,
        group({"schedulingPolicy": {"basic": {}}}),
        custom(PluginPodGroup, {"minMember": 2}),
        custom(PluginPodGroup, {"minMember": "two"}),
        custom(KaiPodGroup, {"topologyConstraint": _CONSTRAINT}),
        custom(KaiPodGroup, {"subGroups": [{"name": "a"}]}),
        topology(("rack", "")),
        topology(("block", "")),
        job({"drayman.dev/gang": "4"}),
        job({"kai.scheduler/batch-min-member": "2"}),
        job({}),
    ]
)


def identity(value: Any) -> tuple[str, str]:
    return type(value).__name__, value.metadata.name


def contents(book: GangBook, pods: Sequence[Pod]) -> Any:
    """All that can be asked."""
    keys = book.all_keys()
    return (
        keys,
        [(dict(book.waiting(k)), dict(book.placed(k)), dict(book.succeeded(k))) for k in keys],
        [book.gang(key) for key in keys],
        [book.gang_of(each) for each in pods],
        [book.lack(gang) for key in keys if isinstance(gang := book.gang(key), Gang)],
    )


@given(st.lists(_PODS | _OBJECTS, max_size=14), st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(events: list[Any], random: Any) -> None:
    """As long as what happens to one object stays in order, the same is known in the end."""
    pods = [each for each in events if isinstance(each, Pod)]
    shuffled = list(events)
    random.shuffle(shuffled)
    later: dict[Any, list[Any]] = {}
    for each in events:
        later.setdefault(identity(each), []).append(each)
    reordered = [later[identity(each)].pop(0) for each in shuffled]
    first, second = book_with(*events), book_with(*reordered)
    only_last = book_with(*{identity(each): each for each in events}.values())
    assert contents(first, pods) == contents(second, pods) == contents(only_last, pods)


_MOVES = st.lists(
    st.tuples(st.sampled_from(["see", "forget", "place", "displace", "remove"]), _PODS | _OBJECTS),
    max_size=14,
)


def carry_out(book: GangBook, moves: list[tuple[str, Any]]) -> None:
    for name, value in moves:
        if not isinstance(value, Pod):
            if name != "remove":
                enter(book, value)
            elif identity(value)[0] == "Job":
                book.remove_job(value)
            elif identity(value)[0] == "KaiTopology":
                book.topologies.remove(value)
            else:
                book.remove_group(value)
        elif name == "place":
            book.place(value, "n")
        elif name == "displace":
            book.displace(value.metadata.uid)
        elif name == "see":
            book.see(value)
        else:
            book.forget(value)


@given(_MOVES, _MOVES, _MOVES)
def test_what_is_undone_was_never_done(before: Any, during: Any, after: Any) -> None:
    """A trial leaves no trace, neither at its end nor in what follows."""
    log = UndoLog()
    book, control = GangBook(log), GangBook()
    for each in (book, control):
        carry_out(each, before)
    pods = [value for _, value in (*before, *during, *after) if isinstance(value, Pod)]
    with log.undone():
        carry_out(book, during)
        contents(book, pods)
    assert contents(book, pods) == contents(control, pods)
    for each in (book, control):
        carry_out(each, after)
    assert contents(book, pods) == contents(control, pods)


@given(_MOVES)
def test_a_pod_is_in_one_place(moves: Any) -> None:
    """Each member has one standing in one gang, and nothing is left of those that are gone."""
    book = GangBook()
    carry_out(book, moves)
    found = [
        uid
        for key in book.all_keys()
        for members in (book.waiting(key), book.placed(key), book.succeeded(key))
        for uid in members
    ]
    assert len(found) == len(set(found))
    for uid in found:
        member = book.member(uid)
        assert member is not None
        book.forget(member.pod)
    assert book.all_keys() == []


def test_a_gang_is_read_in_a_bounded_number_of_steps_whatever_its_pods_state() -> None:
    """Each member states something else, and the gang is read again after each of them."""
    for stating in ("drayman.dev/gang", "drayman.dev/gang-timeout"):
        counts = []
        for number in (300, 1_200):
            owner = job_reference()
            members = [
                pod(f"p{n}", owner=owner, stated={"drayman.dev/gang": "2", stating: f"{n + 1}x"})
                for n in range(number)
            ]
            book = book_with(*members[1:])
            with counted_calls() as work:
                book.see(members[0])
                key = book.key_of(members[0])
                assert key is not None
                assert isinstance(book.gang(key), Flaw)
            counts.append(work.count)
        assert counts[1] < 2 * counts[0]


def test_members_that_contradict_each_other_are_counted_and_not_all_listed() -> None:
    """The reason is read by people, and a thousand pods may each state something else."""
    owner = job_reference()
    members = [
        pod(f"p{n}", owner=owner, stated={"drayman.dev/gang": str(n + 2)}) for n in range(20)
    ]
    book = book_with(*members)
    found = book.gang_of(members[0])
    assert isinstance(found, Flaw)
    assert found.message == (
        "its pods state different things: 10 and 11 and 12 and 13 and 14 and 15 and 16 and 17 and 12 more"
    )


def test_the_first_flaw_by_name_counts_whichever_pod_came_or_went() -> None:
    """A pod that has a flaw and goes leaves the flaw of another."""
    owner = job_reference()
    wrong = {"drayman.dev/gang": "many"}
    members = [pod(name, owner=owner, stated=wrong) for name in "bac"]
    book = book_with(*members)

    key = book.key_of(members[0])
    assert key is not None

    def blamed() -> str:
        found = book.gang(key)
        assert isinstance(found, Flaw)
        return found.object

    assert blamed() == "pod ml/a"
    book.forget(members[1])
    assert blamed() == "pod ml/b"
    book.see(members[1])
    assert blamed() == "pod ml/a"
    book.forget(members[0])
    book.forget(members[1])
    assert blamed() == "pod ml/c"
