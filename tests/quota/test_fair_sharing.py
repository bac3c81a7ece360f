"""Fair sharing: shares, who comes first by them, and whom they let a workload drive out."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.quota.amounts import MOST
from drayman.quota.tree.fairness import share_of
from quota.queues import Object, Story, cohort, flavor, held, limits, pods, queue, workload

FAIR, RECLAIMED, OWN = "InCohortFairSharing", "InCohortReclamation", "InClusterQueue"
FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
IN = "in"


def sharing(*strategies: str) -> Object:
    return {"fairSharing": {"preemptionStrategies": list(strategies)}}


BOTH = sharing(FINAL, INITIAL)
POLICY: dict[str, Any] = {"within": "LowerPriority", "reclaim": "Any"}


def share(story: Story, name: str) -> int:
    """The share of a queue or cohort as its status shows it."""
    forest = story.run.state.books.forest
    return share_of(forest.queues.get(name) or forest.cohorts[name]).rounded


def two(one: dict[str, Any], other: dict[str, Any], weight: Any = None) -> list[Object]:
    """A cohort of two queues with cpu and gpu."""
    return [
        *queue("a", cohort="co", quota={"f": one}, weight=weight),
        *queue("b", cohort="co", quota={"f": other}),
    ]


@pytest.mark.parametrize(
    ("cpu", "gpu", "expected"),
    [(3, 7, 200), (3, 3, 100), (1, 2, 0), (5, 0, 300)],
    ids=["f1", "f2", "f2: within quota", "f2: with a workload of 4"],
)
def test_f1_f2_the_share_is_that_of_the_dominant_resource(
    cpu: int, gpu: int, expected: int
) -> None:
    """What is borrowed over what there is to lend, in thousandths, of the resource where that is most."""
    used = pods(cpu=cpu, gpu=gpu)
    story = Story(two({"cpu": 2, "gpu": 5}, {"cpu": 8, "gpu": 5}), held("w", "a", used))
    assert share(story, "a") == expected


@pytest.mark.parametrize(("weight", "expected"), [(2, 100), ("500m", 400), (1, 200)])
def test_f3_the_weight_divides_the_share(weight: Any, expected: int) -> None:
    """Twice the weight, half the share."""
    story = Story(two({"gpu": 5}, {"gpu": 5}, weight), held("w", "a", pods(gpu=7)))
    assert share(story, "a") == expected


def test_f4_without_weight_borrowing_is_infinitely_much() -> None:
    """It is shown as the largest number there is."""
    story = Story(two({"gpu": 5}, {"gpu": 10}, 0), held("w", "a", pods(gpu=7)))
    assert share(story, "a") == MOST


@pytest.mark.parametrize(("used", "weight"), [(501, 1), (800, 300)])
def test_f5_shares_are_rounded_up(used: int, weight: int) -> None:
    """Whoever borrows has a share that shows."""
    story = Story(two({"gpu": 500}, {"gpu": 1000}, weight), held("w", "a", pods(gpu=used)))
    assert share(story, "a") == 1


def test_f6_what_nobody_lends_does_not_count() -> None:
    """A resource that cannot be borrowed is no part of the share."""
    nothing = limits(5, lend=0)
    story = Story(two({"gpu": nothing}, {"gpu": nothing}), held("w", "a", pods(gpu=7)))
    assert share(story, "a") == 0


def test_f7_flavors_of_a_resource_are_added_up() -> None:
    """Five borrowed of two hundred, whatever the flavors."""
    story = Story(
        flavor("on-demand"),
        flavor("spot"),
        queue("a", cohort="co", quota={"on-demand": {"cpu": 20}, "spot": {"cpu": 80}}),
        queue("b", cohort="co", quota={"on-demand": {"cpu": 100}}),
        held("one", "a", 25, flavor="on-demand"),
        held("two", "a", 5, flavor="spot"),
    )
    assert share(story, "a") == 25


def test_f8_cohorts_have_shares_with_their_weights() -> None:
    """Of fifty, five are borrowed: a tenth for the queue, half of that for its cohort of weight two."""
    story = Story(
        cohort("root", cpu=45),
        cohort("child", "root", weight=2),
        queue("q", 5, "child"),
        held("w", "q", 10),
    )
    assert (share(story, "q"), share(story, "child"), share(story, "root")) == (100, 50, 0)


def test_f9_a_borrowing_limit_limits_what_there_is_to_lend() -> None:
    """The queue has all that its cohort may borrow."""
    story = Story(
        cohort("root", cpu=50),
        cohort("child", "root", cpu=limits(0, borrow=10)),
        queue("q", 0, "child"),
        held("w", "q", 10),
    )
    assert (share(story, "q"), share(story, "child")) == (1000, 200)


def test_f10_without_a_cohort_there_is_no_share() -> None:
    """Nothing is borrowed."""
    assert share(Story(queue("q", 1), held("w", "q", 5)), "q") == 0


def abc(**weights: Any) -> list[Object]:
    """Three queues of three."""
    return [
        one for name in "abc" for one in queue(name, 3, "co", weight=weights.get(name), **POLICY)
    ]


def ones(name: str, count: int, priority: int = 0) -> list[tuple[str, str, Any, int]]:
    return [(f"{name}{number}", name, 1, priority) for number in range(1, count + 1)]


def of(name: str, *sizes: Any) -> list[tuple[str, str, Any, int]]:
    """Workloads of these sizes; a pair has a priority."""
    found = []
    for number, size in enumerate(sizes, 1):
        amount, priority = size if isinstance(size, tuple) else (size, 0)
        found.append((f"{name}{number}", name, amount, priority))
    return found


Held = list[tuple[str, str, Any, int]]
CASES: dict[str, tuple[list[Object], Held, str, Any, dict[str, str] | int]] = {
    "f11: within its quota it takes from a borrower": (
        abc(), [*ones("a", 3), *ones("b", 5), *ones("c", 1)], "c", 1, {"b1": RECLAIMED}),
    "f12: beyond it by share": (
        abc(), [*ones("a", 3), *ones("b", 5), *ones("c", 1)], "a", 1, {"b1": FAIR}),
    "f13: who is not needed stays": (
        abc(), [*of("a", 3, 1), *of("b", 2, 3)], "c", 3, {"a1": RECLAIMED}),
    "f15: everybody at nominal": (abc(), [*ones("a", 3), *ones("b", 3), *ones("c", 3)], "c", 1, {}),
    "f16: not if it turned the imbalance round": (
        abc(), [*ones("a", 3), *ones("b", 5), *ones("c", 1)], "a", 2, {}),
    "f17: its own go without a look at shares": (
        abc(), [*of("a", (1, -1), (1, -1), 1, 1), *ones("b", 5)], "a", 2, {"a1": OWN, "a2": OWN}),
    "f19: one that has all": (abc(), of("b", 9), "a", 2, {"b1": RECLAIMED}),
    "f20: nobody if it would have more afterwards": (abc(), [*of("a", 2), *of("b", 7)], "a", 5, {}),
    "f21: nor with several": (abc(), of("b", 2, 2, 3), "a", 6, {}),
    "f25: nor at nominal": (abc(), [*of("b", 3, 3), *of("c", 3)], "a", 4, {}),
    "f28: weight two may have more": (
        abc(a=2), [*ones("a", 3), *ones("b", 6)], "a", 2, {"b1": FAIR, "b2": FAIR}),
    "f29: without weight all that is borrowed goes": (
        abc(b=0), [*ones("a", 3), *ones("b", 6)], "a", 3,
        {"b1": FAIR, "b2": FAIR, "b3": FAIR}),
    "f29: at nominal nothing does": (
        abc(b=0), [*ones("a", 3), *ones("b", 3), *ones("c", 3)], "a", 1, {}),
    "f30: without weight, below nominal, it reclaims": (
        abc(a=0), [*ones("a", 2), *ones("b", 4), *ones("c", 3)], "a", 1, {"b1": RECLAIMED}),
    "f31: without weight it does not borrow from one with": (
        abc(a=0), [*ones("a", 3), *ones("b", 6)], "a", 1, {}),
    "f31: from another one without it may": (
        abc(a=0, b=0), [*ones("a", 3), *ones("b", 6)], "a", 1, {"b1": FAIR}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_f_whom_shares_let_a_workload_drive_out(name: str) -> None:
    """As many as bring the shares nearer together, and no more."""
    queues, holders, where, size, victims = CASES[name]
    held_by = [held(who, cq, amount, priority=prio) for who, cq, amount, prio in holders]
    story = Story(queues, *held_by, workload(IN, where, size), config=BOTH)
    assert story.victims(IN) == victims


def test_f14_from_both_as_their_shares_change() -> None:
    """With every victim another queue may have the highest share."""
    story = Story(
        abc(),
        *(held(f"a{n}", "a", size) for n, size in enumerate((0.5, 0.5, 3))),
        *(held(f"b{n}", "b", size) for n, size in enumerate((0.5, 0.5, 3))),
        workload(IN, "c", 2),
        config=BOTH,
    )
    taken = story.victims(IN)
    assert sorted(name[0] for name in taken) == ["a", "b"]
    assert not {"a2", "b2"} & taken.keys()


@pytest.mark.parametrize(
    ("own", "others", "size", "victims"),
    [
        ([(1, -1), 1, 1], [1] * 6, 2, {"a1": OWN, "b1": FAIR}),
        ([(2, -1), (1, -1)], [3, 3], 4, {"a1": OWN, "b1": FAIR}),
    ],
    ids=["f18", "f22"],
)
def test_f18_f22_own_ones_first_and_then_by_share(
    own: list[Any], others: list[Any], size: int, victims: dict[str, str]
) -> None:
    """What its own do not make up for comes from who borrows most."""
    holders = [*of("a", *own), *of("b", *others)]
    held_by = [held(who, cq, amount, priority=prio) for who, cq, amount, prio in holders]
    story = Story(abc(), *held_by, workload(IN, "a", size), config=BOTH)
    assert story.victims(IN) == victims


def test_f23_the_first_strategy_is_enough() -> None:
    """The workload by which shares stay in order goes, not the larger one that the second strategy would allow."""
    holders = [*of("b", 2, 1, 2), *of("c", 1)]
    held_by = [held(who, cq, amount) for who, cq, amount, _ in holders]
    story = Story(abc(), *held_by, workload(IN, "a", "3500m"), config=BOTH)
    assert story.victims(IN) == {"b2": FAIR}


def test_f24_no_flapping() -> None:
    """Whoever gave way does not drive the other out again."""
    holders = [*of("b", 2, 2.5), *of("c", 2, 2.5)]
    held_by = [held(who, cq, amount) for who, cq, amount, _ in holders]
    story = Story(abc(), *held_by, workload(IN, "a", "3500m"), config=BOTH)
    events = story.settle()["events"]
    assert {e["workload"] for e in events if e["type"] == "preempted"} == {
        "default/b1",
        "default/c1",
    }


def test_f26_priority_of_a_queue_within_its_share_does_not_matter() -> None:
    """borrowWithinCohort has no effect on shares."""
    story = Story(
        queue("a", 3, "co", force=0, **POLICY),
        queue("b", 3, "co", **POLICY),
        queue("low", 3, "co", **POLICY),
        *(held(f"a{n}", "a", 1) for n in range(3)),
        *(held(f"b{n}", "b", 1) for n in range(3)),
        *(held(f"l{n}", "low", 1, priority=-1) for n in range(3)),
        workload(IN, "a", 2),
        config=BOTH,
    )
    assert story.victims(IN) == {}


@pytest.mark.parametrize(("strategy", "victim"), [(INITIAL, "b1"), (FINAL, "b2")])
def test_f27_what_the_strategies_compare(strategy: str, victim: str) -> None:
    """The share as it is allows the large one; the share that would remain only the small one."""
    story = Story(
        abc(),
        held("a1", "a", 3),
        held("b1", "b", 5),
        held("b2", "b", 1, priority=1),
        workload(IN, "a", 1),
        config=sharing(strategy),
    )
    assert story.victims(IN) == {victim: FAIR}


def test_f32_down_the_tree_to_the_highest_share() -> None:
    """Victims come from every branch that has more than it would get by weight."""
    story = Story(
        cohort("ROOT", cpu=5),
        cohort("LEFT", "ROOT", cpu=5, weight=2),
        cohort("RIGHT", "ROOT", cpu=5),
        queue("a", 1, "LEFT", weight=2, **POLICY),
        queue("b", 1, "LEFT", **POLICY),
        queue("c", 1, "ROOT", **POLICY),
        queue("d", 1, "RIGHT", **POLICY),
        queue("e", 1, "RIGHT", weight="990m", **POLICY),
        *(
            held(f"{name}{number}", name, 1, priority=number)
            for name in "bcde"
            for number in range(1, 6)
        ),
        workload(IN, "a", 5),
        config=BOTH,
    )
    assert set(story.victims(IN)) == {"b1", "b2", "c1", "c2", "e1"}


def test_f33_a_cohort_that_does_not_borrow_is_left_alone() -> None:
    """Its own workloads go, although the other queue borrows within its cohort."""
    story = Story(
        cohort("ROOT"),
        cohort("RIGHT", "ROOT", cpu=1),
        queue("a", 4, "ROOT", weight=10, **POLICY),
        queue("b", 0, "RIGHT", **POLICY),
        *(held(f"a{n}", "a", 1, priority=-1) for n in range(3)),
        held("b1", "b", 1),
        workload(IN, "a", 4),
        config=BOTH,
    )
    assert set(story.victims(IN)) == {"a0", "a1", "a2"}


def test_f34_weights_of_cohorts_three_levels_deep() -> None:
    """A weight that is a little larger is enough."""
    objects: list[Any] = [cohort("ROOT"), cohort("CAPACITY", "ROOT", cpu=1)]
    for name, weight in (("A", "1010m"), ("B", "990m")):
        objects += [
            cohort(name, "ROOT", weight=weight),
            cohort(f"{name}A", name),
            queue(name.lower(), 0, f"{name}A", **POLICY),
        ]
    story = Story(*objects, held("b1", "b", 1), workload(IN, "a", 1), config=BOTH)
    assert story.victims(IN) == {"b1": FAIR}


def test_f35_who_stays_within_its_quota_comes_first() -> None:
    """Even if its queue has the larger share, by borrowing something else."""
    quota = {"f": {"cpu": 4}, "g": {"cpu": 0}}
    story = Story(
        flavor("g"),
        queue("a", cohort="co", quota=quota, **POLICY),
        queue("b", 0, "co", **POLICY),
        queue("pool", cohort="co", quota={"g": {"cpu": 4}}),
        held("elsewhere", "a", 4, flavor="g"),
        workload("borrows", "b", 4),
        workload("own", "a", 4),
        config=BOTH,
    )
    assert story.admitted() == {"elsewhere", "own"}


@pytest.mark.parametrize(("priority", "first"), [(0, "older"), (1, "newer")])
def test_f36_with_equal_shares_priority_and_then_age(priority: int, first: str) -> None:
    """The order between queues whose shares would be the same."""
    story = Story(
        queue("a", 0, "co", reclaim="Never"),
        queue("b", 0, "co", reclaim="Never"),
        cohort("co", cpu=1),
        workload("older", "a", 1),
        workload("newer", "b", 1, priority=priority),
        config=BOTH,
    )
    assert story.admitted() == {first}


def test_own_victims_do_not_bring_a_workload_home() -> None:
    """It would borrow beside them, so others are taken by the shares and not for its own quota, and own ones stay if that is enough."""
    story = Story(
        queue("a", 3, "co", weight="0.1", **POLICY),
        queue("b", 1, "co", **POLICY),
        held("own", "a", 1, priority=-1),
        held("other", "b", 3),
        workload(IN, "a", 3),
        config=BOTH,
    )
    assert story.victims(IN) == {"other": FAIR}
