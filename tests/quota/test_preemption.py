"""Classical preemption: by priority within a queue, and from those elsewhere that use more than their own quota."""

from __future__ import annotations

from typing import Any

import pytest

from quota.queues import Object, Story, cohort, flavor, held, limits, pods, queue, workload

OWN, RECLAIMED, BY_FORCE = (
    "InClusterQueue",
    "InCohortReclamation",
    "InCohortReclaimWhileBorrowing",
)
IN = "in"

QUOTA = {"f": {"cpu": limits(6, borrow=6), "memory": limits("3Gi", borrow="3Gi")}}
FREE = {"f": {"cpu": 6, "memory": "3Gi"}}


def alone() -> list[Object]:
    return queue("alone", 6, within="LowerPriority")


def pair(quota: Any = QUOTA) -> list[Object]:
    return [
        *queue("c1", cohort="co", quota=quota, within="LowerPriority", reclaim="LowerPriority"),
        *queue("c2", cohort="co", quota=quota, within="Never", reclaim="Any"),
    ]


def standard() -> list[Object]:
    """Queues that may take from others while they borrow, up to priority 0, and a pool."""
    policy: Any = {"reclaim": "LowerPriority", "force": 0}
    return [
        *queue("a", limits(1, borrow=12), "all", within="Never", **policy),
        *queue("b", limits(1, borrow=12), "all", within="LowerPriority", **policy),
        *queue("best-effort", limits(1, borrow=12), "all"),
        *queue("shared", 10, "all"),
    ]


def lending() -> list[Object]:
    return [
        *queue("lend1", limits(6, lend=4), "co", within="LowerPriority", reclaim="LowerPriority"),
        *queue("lend2", limits(6, lend=2), "co", within="LowerPriority", reclaim="Any"),
    ]


def three() -> list[Object]:
    policy: Any = {"within": "LowerPriority", "reclaim": "LowerPriority"}
    return [each for name in "abc" for each in queue(name, 2, "co", **policy)]


class Case:
    """Queues, who holds quota, who comes, and whom it drives out."""

    def __init__(
        self,
        queues: list[Any],
        holders: list[tuple[str, str, Any, int]],
        incoming: tuple[str, Any, int],
        victims: dict[str, str],
    ) -> None:
        self.queues, self.holders = queues, holders
        self.incoming, self.victims = incoming, victims


CASES = {
    "p1: the least important goes": Case(
        alone(),
        [("low", "alone", 2, -1), ("mid", "alone", 2, 0), ("high", "alone", 2, 1)],
        ("alone", 2, 1),
        {"low": OWN},
    ),
    "p2: as many as it takes go": Case(
        alone(),
        [("low", "alone", 2, -1), ("mid", "alone", 2, 0), ("high", "alone", 2, 1)],
        ("alone", 3, 1),
        {"low": OWN, "mid": OWN},
    ),
    "p3: nobody of the same priority goes": Case(
        alone(), [("low", "alone", 3, -1), ("mid", "alone", 3, 0)], ("alone", 1, -1), {}
    ),
    "p4: nobody goes in vain": Case(
        alone(), [("low", "alone", 3, -1), ("mid", "alone", 3, 0)], ("alone", 4, 0), {}
    ),
    "p5: what is free counts": Case(
        alone(),
        [("low", "alone", 1, -1), ("mid", "alone", 1, 0), ("high", "alone", 3, 1)],
        ("alone", 2, 1),
        {"low": OWN},
    ),
    "p6: who turns out not to be needed stays": Case(
        alone(),
        [("low", "alone", 1, -1), ("mid", "alone", 2, 0), ("high", "alone", 3, 1)],
        ("alone", 2, 1),
        {"mid": OWN},
    ),
    "p9: a borrower gives back": Case(
        pair(),
        [("c1-low", "c1", 3, -1), ("c2-mid", "c2", 3, 0), ("c2-high", "c2", 6, 1)],
        ("c1", pods(cpu=3, memory=0), 1),
        {"c2-mid": RECLAIMED},
    ),
    "p10: where nobody borrows nothing is given back": Case(
        pair(), [("c1-high", "c1", 4, 1), ("c2-low", "c2", 4, -1)], ("c1", 4, 1), {}
    ),
    "p11: nor if the queue would borrow itself": Case(
        pair(),
        [("c1-high", "c1", 4, 1), ("c2-a", "c2", 4, -1), ("c2-b", "c2", 4, -1)],
        ("c1", 4, 1),
        {},
    ),
    "p12: its own go if it has to borrow anyway": Case(
        pair(),
        [("c1-low", "c1", 4, -1), ("c2-low", "c2", 4, -1), ("c2-high", "c2", 4, 1)],
        ("c1", pods(cpu=4, memory="5Gi"), 1),
        {"c1-low": OWN},
    ),
    "p13: with limits": Case(
        pair(),
        [("c1-med", "c1", 4, 0), ("c1-low", "c1", 4, -1), ("c2-low", "c2", 4, -1)],
        ("c1", 4, 1),
        {"c1-low": OWN},
    ),
    "p13: without limits": Case(
        pair(FREE),
        [("c1-med", "c1", 4, 0), ("c1-low", "c1", 4, -1), ("c2-low", "c2", 4, -1)],
        ("c1", 4, 1),
        {"c1-low": OWN},
    ),
    "p14: who borrows memory takes cpu from its own": Case(
        pair(),
        [("c1-med", "c1", 4, 0), *((f"c2-{n}", "c2", n, -1) for n in (5, 1)), ("x", "c2", 1, -1)],
        ("c1", pods(cpu=2, memory="5Gi"), 1),
        {"c1-med": OWN},
    ),
    "p15: equal priority is not lower": Case(
        pair(), [("c1", "c1", 2, 0), ("c2a", "c2", 4, 0), ("c2b", "c2", 4, 0)], ("c1", 4, 0), {}
    ),
    "p16: any borrower, the least important first": Case(
        pair(),
        [("zero", "c1", 4, 0), ("one", "c1", 4, 1), ("c2", "c2", 2, 0)],
        ("c2", 4, 0),
        {"zero": RECLAIMED},
    ),
    "p17: from both": Case(
        pair(),
        [
            ("c1-low", "c1", 3, -1),
            ("c1-mid", "c1", 2, 0),
            ("c2-low", "c2", 3, -1),
            ("c2-mid", "c2", 4, 0),
        ],
        ("c1", 4, 0),
        {"c1-low": OWN, "c2-low": RECLAIMED},
    ),
    "p18: not in the own queue if that is forbidden": Case(
        pair(), [("c2-low", "c2", 3, -1)], ("c2", 12, 1), {}
    ),
    "p20: while it borrows, up to the threshold": Case(
        standard(),
        [("ten", "best-effort", 10, -1), ("one", "best-effort", 1, -1)],
        ("a", 10, 0),
        {"ten": BY_FORCE},
    ),
    "p21: not above it": Case(standard(), [("b", "b", 10, 1)], ("a", 10, 2), {}),
    "p22: anybody lower if it ends up not borrowing": Case(
        standard(), [("b", "b", 13, 1)], ("a", 1, 2), {"b": RECLAIMED}
    ),
    "p23: its own are not to be taken": Case(standard(), [("a", "a", 13, 1)], ("a", 1, 2), {}),
    "p24: its own are": Case(
        standard(),
        [("a10", "a", 10, 1), ("a1", "a", 1, 1), ("b1", "b", 1, 1), ("b2", "b", 1, 2)],
        ("b", 1, 3),
        {"b1": OWN},
    ),
    "p25: both": Case(
        standard(),
        [("b10", "b", 10, 2), ("b1", "b", 1, 1), ("e1", "best-effort", 1, -1), ("e2", "best-effort", 1, -2)],
        ("b", 2, 2),
        {"e2": BY_FORCE, "b1": OWN},
    ),
    "p26: only what is lent comes back": Case(
        lending(),
        [("lend1-low", "lend1", 3, -1), ("lend2-mid", "lend2", 3, 0), ("lend2-high", "lend2", 4, 1)],
        ("lend1", 3, 1),
        {"lend2-mid": RECLAIMED},
    ),
    "p27: more than can ever be had is not asked for": Case(
        lending(), [("lend2-low", "lend2", 10, -1)], ("lend1", 9, 0), {}
    ),
    "p28: two of its own": Case(
        three(),
        [
            *((f"a{n}", "a", 1, priority) for n, priority in enumerate((-2, -2, -1))),
            *((f"b{n}", "b", 1, 0) for n in range(3)),
        ],
        ("a", 2, 0),
        {"a0": OWN, "a1": OWN},
    ),
    "p29: one of its own and one of a borrower": Case(
        three(),
        [
            ("a0", "a", 1, -1),
            *((f"b{n}", "b", 1, 0) for n in range(4)),
            ("b-low", "b", 1, -1),
        ],
        ("a", 2, 0),
        {"a0": OWN, "b-low": RECLAIMED},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_p_whom_a_workload_drives_out(name: str) -> None:
    """Exactly those that its queue may take and that it takes to make it fit."""
    case = CASES[name]
    holders = [held(who, where, size, priority=prio) for who, where, size, prio in case.holders]
    where, size, priority = case.incoming
    story = Story(case.queues, *holders, workload(IN, where, size, priority=priority))
    assert story.victims(IN) == case.victims


def test_p7_other_flavors_are_left_alone() -> None:
    """Who has nothing of the flavor in question stays."""
    quota = {"alpha": {"cpu": 2}, "beta": {"cpu": 2}}
    story = Story(
        flavor("alpha", nodeLabels={"kind": "alpha"}),
        flavor("beta", nodeLabels={"kind": "beta"}),
        queue("q", quota=quota, within="LowerPriority"),
        held("other", "q", 2, flavor="alpha", priority=-1),
        held("victim", "q", 2, flavor="beta", priority=-1),
    )
    asking = pods(cpu=1)
    asking["template"]["spec"]["nodeSelector"] = {"kind": "beta"}
    story.create(workload(IN, "q", asking))
    assert story.victims(IN) == {"victim": OWN}


def test_p8_a_victim_for_each_flavor() -> None:
    """Two pod sets on two flavors need room in both."""
    quota = {"alpha": {"cpu": 2}, "beta": {"cpu": 2}}
    sets = []
    for kind in ("alpha", "beta"):
        each = pods(kind, cpu=2)
        each["template"]["spec"]["nodeSelector"] = {"kind": kind}
        sets.append(each)
    story = Story(
        *(flavor(kind, nodeLabels={"kind": kind}) for kind in ("alpha", "beta")),
        queue("q", quota=quota, within="LowerPriority"),
        held("a", "q", 2, flavor="alpha", priority=-1),
        held("b", "q", 2, flavor="beta", priority=-1),
        workload(IN, "q", *sets),
    )
    assert story.victims(IN) == {"a": OWN, "b": OWN}


def test_p19_of_equal_ones_the_last_goes() -> None:
    """If newer workloads of the same priority may be taken, the one that got quota last is."""
    late = workload(IN, "q", 2, priority=1)
    story = Story(
        queue("q", 6, within="LowerOrNewerEqualPriority"),
        held("top", "q", 2, priority=2),
        held("older", "q", 2, priority=1),
        held("newer", "q", 2, priority=1, since=5),
    )
    story.create(late)
    assert story.victims(IN) == {"newer": OWN}


def hierarchy(*borrowers: Object, nominal: int = 0, pool: int = 2) -> list[Any]:
    """A queue in a cohort with a pool of its own, and a borrower elsewhere under the root."""
    return [
        cohort("c", "r", cpu=pool),
        queue("q", nominal, "c", reclaim="LowerPriority", within="LowerPriority", force=0),
        queue("borrower", 0, "r"),
        *borrowers,
    ]


def test_p30_a_cohort_gets_its_quota_back() -> None:
    """What a branch has is taken back from borrowers of other branches, whose priority is lower."""
    story = Story(*hierarchy(held("b", "borrower", 2)), workload(IN, "q", 2, priority=1))
    assert story.victims(IN) == {"b": RECLAIMED}


def test_p30_priority_does_not_matter_where_anybody_may_be_taken() -> None:
    """A queue that reclaims from anybody gets back the quota of its branch from the most important."""
    story = Story(
        cohort("c", "r", cpu=2),
        queue("q", 0, "c", reclaim="Any"),
        queue("borrower", 0, "r"),
        held("one", "borrower", 1, priority=1),
        held("two", "borrower", 1, priority=2),
        workload(IN, "q", 2),
    )
    assert story.victims(IN) == {"one": RECLAIMED, "two": RECLAIMED}


def test_p31_who_uses_its_own_quota_is_left_alone() -> None:
    """However unimportant it is."""
    story = Story(
        *hierarchy(held("b", "borrower", 2)),
        queue("nominal", 2, "r"),
        held("own", "nominal", 2, priority=-10),
        workload(IN, "q", 2, priority=1),
    )
    assert story.victims(IN) == {"b": RECLAIMED}


def test_p32_local_quota_and_that_of_the_cohort_together() -> None:
    """Part of the request is quota that the queue does not lend, the rest its cohort's."""
    story = Story(
        cohort("c", "r", cpu=2),
        queue("q", limits(3, lend=2), "c", reclaim="Any"),
        queue("borrower", 0, "r"),
        held("b", "borrower", 4),
        workload(IN, "q", 5, priority=-2),
    )
    assert story.victims(IN) == {"b": RECLAIMED}


def test_p33_from_a_sibling_by_force() -> None:
    """Within a cohort that has the quota, siblings up to the threshold are taken while borrowing."""
    policy: Any = {"within": "LowerPriority", "reclaim": "LowerPriority", "force": 0}
    story = Story(
        cohort("c", cpu=3),
        queue("q", 0, "c", **policy),
        queue("sibling", 0, "c"),
        held("s1", "sibling", 1, priority=1),
        held("s0", "sibling", 1, priority=0),
        held("own", "q", 1, priority=-1),
        workload(IN, "q", 2, priority=1),
    )
    assert story.victims(IN) == {"own": OWN, "s0": BY_FORCE}


def test_p34_across_cohorts() -> None:
    """A queue gets its quota back from a borrower in another cohort."""
    story = Story(
        cohort("left", "root"),
        cohort("right", "root"),
        queue("l", 10, "left", reclaim="Any"),
        queue("r", 0, "right"),
        held("w", "r", 5),
        workload(IN, "l", 8),
    )
    assert story.victims(IN) == {"w": RECLAIMED}


def test_p35_who_is_leaving_already_is_counted_and_not_driven_out_again() -> None:
    """It is preferred to others, and no decision is made about it."""
    story = Story(
        queue("q", 4, within="LowerPriority"),
        held("stays", "q", 2, priority=-2),
        held("leaves", "q", 2, priority=-1, evicted=True),
    )
    story.create(workload(IN, "q", 2, priority=1))
    decisions = story.run.state.cycle(9e9)
    assert [type(each).__name__ for each in decisions] == ["Refused"]
    assert "Pending the preemption of 1" in decisions[0].message  # type: ignore[union-attr]


def test_p36_two_that_need_the_same_victim() -> None:
    """The second waits if the room that the first makes is enough for both."""
    story = Story(
        queue("a", 2, "co", reclaim="Any"),
        queue("b", 2, "co", reclaim="Any"),
        queue("c", 0, "co"),
        held("big", "c", 4),
        workload("one", "a", 2),
        workload("two", "b", 2),
    )
    checkpoint = story.settle()
    taken = [event["workload"] for event in checkpoint["events"] if event["type"] == "preempted"]
    assert taken == ["default/big"]
    assert [e["workload"] for e in checkpoint["events"] if e["type"] == "reserved"] == [
        "default/one",
        "default/two",
    ]


def test_p37_a_closed_gate_keeps_a_workload_from_preempting() -> None:
    """It says so, unless it fits or there is nobody to drive out."""
    asking = workload(IN, "q", 2, priority=1)
    asking["spec"]["preemptionGates"] = [{"name": "example.com/gate"}]
    story = Story(queue("q", 2, within="LowerPriority"), held("low", "q", 2, priority=-1), asking)
    assert story.victims(IN) == {}
    assert story.reason(IN) == "BlockedOnPreemptionGates"
    gate = {"name": "example.com/gate", "position": "Open"}
    story.patch("Workload", IN, {"status": {"preemptionGates": [gate]}})
    assert story.victims(IN) == {"low": OWN}


def test_a_circle_of_preemptions_comes_to_rest() -> None:
    """Priority, own quota and shares together make no order here; still somebody keeps the quota."""
    policy: Any = {"within": "LowerPriority", "reclaim": "Any"}
    quota = {"f": {"cpu": 3, "memory": "3Gi"}}
    story = Story(
        cohort("root"),
        cohort("c0", "root", weight=3),
        cohort("c00", "c0", weight=2),
        queue("q0", cohort="c0", quota={"f": {"cpu": 2, "memory": 0}}, **policy),
        queue("q1", cohort="root", quota=quota, weight=1, **policy),
        queue("q2", cohort="c00", quota={"f": {"cpu": 0, "memory": 0}}, reclaim="Any"),
        workload("w00", "q1", pods(cpu=2, memory="3Gi")),
        workload("w01", "q1", pods(cpu=1, memory="1Gi"), priority=-1),
        workload("w02", "q0", pods(cpu=2, memory="2Gi"), priority=-1),
        workload("w03", "q1", pods(cpu=1, memory="2Gi"), priority=-1),
        workload("w04", "q1", pods(cpu=2, memory=0)),
        workload("w05", "q2", pods(cpu=1, memory=0)),
        workload("w06", "q1", pods(cpu=2, memory="1Gi"), priority=1),
        config={"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}},
    )
    assert len(story.admitted()) >= 3


def test_who_waits_for_victims_that_take_their_time_goes_on_waiting() -> None:
    """As long as they have not gone, nobody else is driven out, and it stays the first of its queue."""
    story = Story(
        queue("q", 2, within="LowerPriority"),
        held("low", "q", 2, priority=-1),
        workload(IN, "q", 2, priority=1),
    )
    state = story.run.state
    first = state.cycle(9e9)
    assert [type(each).__name__ for each in first] == ["Preempted", "Refused"]
    evicted = held("low", "q", 2, priority=-1, evicted=True)
    story.run.objects.create([evicted], 9e9)
    for _ in range(3):
        (again,) = state.cycle(9e9)
        assert again.reason == "WaitingForPreemptedWorkloads"  # type: ignore[union-attr]
    assert state.books.queues["q"].waiting.sticky == f"default/{IN}"


def test_the_reason_of_a_victim_is_the_right_by_which_it_was_taken() -> None:
    """Also where the workload borrows nothing in the end: who could be taken by force is told so."""
    story = Story(
        queue("a", 4, "co", within="LowerPriority", reclaim="LowerPriority", force=0),
        queue("b", 0, "co"),
        held("own", "a", 2, priority=-1),
        held("unimportant", "b", 1, priority=-1),
        held("important", "b", 1, priority=1),
        workload(IN, "a", 4, priority=2),
    )
    assert story.victims(IN) == {"own": OWN, "unimportant": BY_FORCE, "important": RECLAIMED}


def test_who_fits_once_the_victims_of_another_are_gone_waits_for_that() -> None:
    """Two need the same workload gone. What will be free is kept for the second, too, so that nobody borrows it meanwhile."""
    story = Story(
        queue("a", 3, "co", reclaim="Any"),
        queue("b", 3, "co", reclaim="Any"),
        queue("c", 0, "co"),
        queue("d", 0, "co"),
        held("large", "c", 5),
        workload("one", "a", 3),
        workload("two", "b", 3),
        workload("borrower", "d", 1),
    )
    refused = {
        each.key: each.reason
        for each in story.run.state.cycle(9e9)
        if type(each).__name__ == "Refused"
    }
    assert refused["default/two"] == "WaitingForPreemptedWorkloads"
    assert story.run.state.books.queues["b"].waiting.sticky == "default/two"


def test_nobody_gets_what_is_kept_for_those_that_wait_for_victims() -> None:
    """The same to the end: the borrower never gets quota that it would have to give back at once."""
    story = Story(
        queue("a", 3, "co", reclaim="Any"),
        queue("b", 3, "co", reclaim="Any"),
        queue("c", 0, "co"),
        queue("d", 0, "co"),
        held("large", "c", 5),
        workload("one", "a", 3),
        workload("two", "b", 3),
        workload("borrower", "d", 1),
    )
    events = story.settle()["events"]
    assert [(each["type"], each["workload"]) for each in events] == [
        ("preempted", "default/large"),
        ("reserved", "default/one"),
        ("reserved", "default/two"),
    ]
