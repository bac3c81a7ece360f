"""The checks of a scheduler of gangs that are about queues, by their numbers. The others are in `tests/scheduler/behaviour`."""

from __future__ import annotations

from quota.shares.town import group, outcome, queue


def test_8_quota_before_priority_then_buckets_of_priority_then_weights() -> None:
    """The quota of a low queue is kept, surplus goes to the highest priority first, and weights 1 and 3 give 25 and 75 of a hundred."""
    many = [str(1)] * 100
    quota = queue("low", 4, priority=50)
    first = [queue("high", 0, priority=200), quota]
    groups = [group(name, name, *many, age=age) for name, age in (("high", 2), ("low", 1))]
    assert outcome({"n": 20}, first, groups).running == {"high": 16, "low": 4}
    weighted = [queue("one", 0, weight=1), queue("three", 0, weight=3)]
    groups = [group(name, name, *many, age=age) for name, age in (("one", 2), ("three", 1))]
    found = outcome({"n": 100}, weighted, groups)
    assert found.running == {"one": 25, "three": 75}


def test_8_rounding_leaves_no_unit_idle() -> None:
    """Three equal queues share eight: three, three, and two for the youngest."""
    ages = {"a": 3000, "b": 2000, "c": 1000}
    queues = [queue(name, 0, age=age) for name, age in ages.items()]
    groups = [group(name, name, *["1"] * 8) for name in ages]
    found = outcome({"n": 8}, queues, groups)
    assert found.result.fair_share == {"a": 3, "b": 3, "c": 2}
    assert sum(found.running.values()) == 8


def test_9_reclaim_never_takes_a_queue_below_its_quota() -> None:
    """The other queue gets what is beyond the quota, unit by unit, and not one more."""
    queues = [queue("a", 6, age=2000), queue("b", 3)]
    groups = [group("runs", "b", *["1@n"] * 8), group("wants", "a", *["1"] * 8)]
    found = outcome({"n": 8}, queues, groups)
    assert found.running == {"runs": 3, "wants": 5}


def test_9_preempt_never_crosses_queues() -> None:
    """What is unimportant in another queue is left alone, while that queue is within its quota."""
    queues = [queue("a", 1), queue("b", 1)]
    groups = [group("low", "a", "1@n", priority=1), group("mine", "b", "1@n"), group("high", "b", "1", priority=90)]  # fmt: skip
    assert outcome({"n": 2}, queues, groups).evicted == {"mine": 1}


def test_9_work_that_is_not_preemptible_never_exceeds_its_quota() -> None:
    """Even where everything is free."""
    groups = [group(f"firm{n}", "a", "1", priority=100) for n in range(4)]
    assert sum(outcome({"n": 8}, [queue("a", 2)], groups).running.values()) == 2
