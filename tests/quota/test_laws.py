"""Laws that hold for every tree and every load: nothing is given twice, nothing is lost, and what is supposed leaves no trace."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.quota.amounts import FlavorResource
from drayman.quota.tree.ledger import Usage
from drayman.quota.tree.nodes import Node
from quota.queues import Story, cohort, limits, queue, workload
from rounds import rounds

CPU = FlavorResource("f", "cpu")
FAIR = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}}
amounts = st.integers(0, 6)
limit = st.none() | st.integers(0, 6)


@st.composite
def trees(draw: st.DrawFn) -> list[Any]:
    """Up to three levels of cohorts with up to five queues, with limits of all kinds."""
    objects: list[Any] = [cohort("root", cpu=draw(amounts))]
    names = ["root"]
    for number in range(draw(st.integers(0, 3))):
        parent = draw(st.sampled_from(names))
        quota = limits(draw(amounts), draw(limit), draw(limit))
        weight = draw(st.sampled_from([None, 0, 1, 2]))
        objects.append(cohort(f"c{number}", parent, quota, weight))
        names.append(f"c{number}")
    queues = [
        queue(
            f"q{number}",
            limits(draw(amounts), draw(limit), draw(limit)),
            draw(st.sampled_from(names)),
            within=draw(st.sampled_from(["Never", "LowerPriority"])),
            reclaim=draw(st.sampled_from(["Never", "LowerPriority", "Any"])),
            weight=draw(st.sampled_from([None, 0, 1, 3])),
            queueingStrategy=draw(st.sampled_from(["StrictFIFO", "BestEffortFIFO"])),
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    return [*objects, *queues]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    objects = draw(trees())
    queues = [each[0]["metadata"]["name"] for each in objects if isinstance(each, list)]
    story = Story(*objects, config=draw(st.sampled_from([None, FAIR])))
    for number in range(draw(st.integers(1, 12))):
        size, priority = draw(st.integers(1, 5)), draw(st.integers(-1, 1))
        where = draw(st.sampled_from(queues))
        story.create(workload(f"w{number}", where, size, priority=priority))
    return story


def nodes(story: Story) -> list[Node]:
    forest = story.run.state.books.forest
    return [*forest.queues.values(), *forest.cohorts.values()]


def usage(story: Story) -> dict[str, int]:
    return {node.name: node.usage.get(CPU, 0) for node in nodes(story)}


def expected(node: Node, of_queues: dict[str, int]) -> int:
    """What a node uses, worked out from what its queues use."""
    if node.is_queue:
        return of_queues.get(node.name, 0)
    return sum(
        max(0, expected(child, of_queues) - child.local.get(CPU, 0)) for child in node.children
    )


@settings(max_examples=rounds(60), deadline=None)
@given(stories())
def test_usage_is_what_workloads_hold_and_never_more_than_the_tree_allows(story: Story) -> None:
    """The ledger agrees with a sum over workloads at every node; no limit is exceeded anywhere."""
    workloads = story.settle()["workloads"]
    of_queues: dict[str, int] = {}
    for key, each in workloads.items():
        if each["status"] == "admitted":
            where = story.run.state.entries[key].holding
            assert where is not None
            amount = where.usage.quota[CPU]
            of_queues[where.cluster_queue] = of_queues.get(where.cluster_queue, 0) + amount
    for node in nodes(story):
        used = node.usage.get(CPU, 0)
        assert used == expected(node, of_queues)
        quota = node.quota(CPU)
        if node.parent is None:
            assert used <= node.subtree.get(CPU, 0)
        elif quota.borrowing_limit is not None:
            assert used <= node.subtree.get(CPU, 0) + quota.borrowing_limit
        assert used <= node.potential.get(CPU, 0) or used == 0


@settings(max_examples=rounds(60), deadline=None)
@given(stories())
def test_when_all_have_ended_nothing_is_used(story: Story) -> None:
    """Whatever happened on the way, every reservation is given back exactly."""
    admitted = story.admitted()
    rounds = 0
    while admitted and rounds < 40:
        for name in sorted(admitted):
            story.finish(name)
        admitted = story.admitted()
        rounds += 1
    assert set(usage(story).values()) <= {0}


@settings(max_examples=rounds(80), deadline=None)
@given(
    trees(),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=12),
)
def test_a_trial_leaves_no_trace(objects: list[Any], changes: list[tuple[int, int]]) -> None:
    """What is added and removed in a trial, in whatever order, is undone number by number."""
    story = Story(*objects)
    ledger = story.run.state.books.ledger
    places = sorted(story.run.state.books.forest.queues.values(), key=lambda node: node.name)
    for place in places:
        ledger.add(place, Usage({CPU: 2000}))
    before = usage(story)
    with ledger.trial():
        for index, amount in changes:
            place = places[index % len(places)]
            with ledger.trial():
                ledger.remove(place, Usage({CPU: min(2000, amount * 1000)}))
            ledger.add(place, Usage({CPU: amount * 1000}))
    assert usage(story) == before
    for place in places:
        ledger.remove(place, Usage({CPU: 2000}))
    assert set(usage(story).values()) == {0}


@settings(max_examples=rounds(40), deadline=None)
@given(stories())
def test_whoever_waits_has_a_reason_that_holds(story: Story) -> None:
    """A workload at the head of a queue of best effort waits only if it does not fit."""
    checkpoint = story.settle()
    state = story.run.state
    for name, queue_state in state.books.queues.items():
        for entry in queue_state.waiting:
            reason = checkpoint["workloads"][entry.key].get("conditions", {}).get("QuotaReserved")
            if reason and reason[1] == "WaitingForQuota" and not queue_state.waiting.strict:
                demands: Any = entry.facts.demands
                asked = demands[0].per_pod["cpu"]
                assert state.books.forest.queues[name].available(CPU) < asked


def test_every_workload_of_equal_queues_gets_its_turn() -> None:
    """With fair sharing, queues of equal weight come to equal shares of what is lent."""
    queues = [queue(name, 0, "root", reclaim="Any") for name in "abc"]
    story = Story(cohort("root", cpu=12), *queues, config=FAIR)
    for number in range(30):
        story.create(workload(f"w{number:02}", "aaaaaaaabc"[number % 10], 1))
    story.settle()
    used = usage(story)
    assert (used["a"], used["b"], used["c"]) == (6000, 3000, 3000)


@settings(max_examples=rounds(40), deadline=None)
@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 10)), min_size=2, max_size=4),
    st.randoms(use_true_random=False),
)
def test_shares_are_those_of_a_direct_computation(
    pool: int, queues: list[tuple[int, int]], random: Any
) -> None:
    """Nobody waits who would still have no larger share than another one after that one gave up a workload."""
    objects = [
        queue(f"q{n}", 0, "root", reclaim="Any", weight=w) for n, (w, _) in enumerate(queues)
    ]
    story = Story(cohort("root", cpu=pool), *objects, config=FAIR)
    waiting = [f"q{n}" for n, (_, wanted) in enumerate(queues) for _ in range(wanted)]
    random.shuffle(waiting)
    for number, where in enumerate(waiting):
        story.create(workload(f"w{number:02}", where, 1))
    story.settle()
    used = usage(story)
    assert used["root"] == 1000 * min(pool, len(waiting))
    for n, (weight, wanted) in enumerate(queues):
        mine = used[f"q{n}"] // 1000
        if mine == wanted:
            continue
        for m, (other_weight, _) in enumerate(queues):
            theirs = used[f"q{m}"] // 1000
            assert m == n or (mine + 1) * other_weight > (theirs - 1) * weight


@settings(max_examples=rounds(60), deadline=None)
@given(trees(), st.data())
def test_the_order_in_which_the_engine_hears_of_objects_does_not_matter(
    objects: list[Any], data: st.DataObject
) -> None:
    """Age counts, and not who was seen first."""
    queues = [each[0]["metadata"]["name"] for each in objects if isinstance(each, list)]
    drawn = st.lists(st.tuples(st.sampled_from(queues), st.integers(1, 5), st.integers(-1, 1)))
    asked = data.draw(drawn.filter(lambda each: len(each) <= 10))
    waiting = [
        workload(f"w{number}", where, size, priority=priority)
        for number, (where, size, priority) in enumerate(asked)
    ]
    told = data.draw(st.permutations([*objects, *waiting]))
    one, other = Story(*objects, *waiting), Story(*told)
    assert one.settle()["events"] == other.settle()["events"]
