"""How much work a cycle is in large trees: in proportion to the queues in it, for each workload that is tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calls import counted_calls
from drayman.api.codec import convert
from drayman.api.kueue_workload import Workload
from drayman.quota.state import QuotaState
from quota.queues import Object, Story, held, queue, workload

FAIRLY = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}}
FEW, MANY, LIMIT = 20, 80, 6
"""Four times as many queues may be up to six times as much work."""


def calls(work: Callable[[], Any]) -> int:
    """How many functions are called."""
    with counted_calls() as found:
        work()
    return found.count


def cycle_of(state: QuotaState, *waiting: Object) -> int:
    """The work of a cycle in which these are tried."""
    for each in waiting:
        state.set_workload(convert(Workload, each), 0.0)
    return calls(lambda: state.cycle(3_000_000.0))


def in_a_cohort(number: int) -> list[list[Object]]:
    return [queue(f"q{each}", 2, "c", reclaim="Any") for each in range(number)]


def test_a_search_for_victims_by_fair_shares_looks_at_each_queue_once() -> None:
    """All queues borrow as much, and what the workload would borrow is too much to take anything from them."""
    found = []
    for number in (FEW, MANY):
        borrowing = [
            held(f"h{each}-{one}", f"q{each}", 1) for each in range(number) for one in "xyz"
        ]
        story = Story(
            queue("last", number, "c", reclaim="Any"),
            *in_a_cohort(number),
            *borrowing,
            config=FAIRLY,
        )
        found.append(cycle_of(story.run.state, workload("w", "last", 2 * number)))
    assert found[1] < LIMIT * found[0], found


def test_the_order_of_fair_shares_is_found_once_for_each_head() -> None:
    """There is quota for the heads of all queues, and the one with the smallest share comes first, again and again."""
    found = []
    for number in (FEW, MANY):
        story = Story(*in_a_cohort(number), config=FAIRLY)
        heads = [workload(f"w{each}", f"q{each}", 1) for each in range(number)]
        found.append(cycle_of(story.run.state, *heads))
    assert found[1] < LIMIT * found[0], found
