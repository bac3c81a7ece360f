"""Distinguishes what is in use from what would be taken by things that are only planned.

A plan and a count of copies are tried on a copy of the cluster, one after the other, and what the first ones get is gone for the next. To
the user, that is not in use: nothing holds it, so nothing could give it back. So where something is planned, what the tests rule out is
counted on the nodes without the plan, and whatever they rule out beyond that has gone to the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from drayman.allocator import RejectionReason as Test
from drayman.allocator.refusals.funnel import sieves
from drayman.allocator.refusals.sieve import Hurdle, Sieve
from drayman.inventory.view import NodeView
from drayman.placement.demand import Demand
from drayman.placement.refusing import Shortage
from drayman.placement.state import ClusterState
from drayman.reasons.finding import Group

_TESTS: Final = {
    Hurdle.FREE: Test.IN_USE,
    Hurdle.TAINTS: Test.TAINTED,
    Hurdle.CAPACITY: Test.CAPACITY,
    Hurdle.COUNTERS: Test.COUNTERS,
}
COUNTED_AGAIN: Final = frozenset(_TESTS.values())
"""The tests whose outcome may depend on what others have."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What is not there yet, but counts as if it were."""

    without: Callable[[str], NodeView]
    """A node, by name, as it is without it."""
    takers: str
    """The holder of what it takes, worded for the middle of a sentence."""


@dataclass(frozen=True, slots=True)
class Losses:
    """The devices that match a request and are not available, by cause."""

    lost: dict[Test, int]
    """Lost to what exists already."""
    taken: int
    """Lost to what is planned."""


def losses(
    planned: Planned,
    state: ClusterState,
    demand: Demand,
    groups: Iterable[Group],
    shortage: Shortage,
) -> Losses:
    """What a request loses on some nodes."""
    lost: Counter[Test] = Counter()
    taken = 0
    for name in (name for group in groups for name in group.nodes):
        node = state.nodes[name]
        before = _sieve(planned.without(name), demand, state, name, shortage)
        now = _sieve(state.view(node), demand, state, name, shortage)
        if before is None or now is None:
            continue
        for hurdle, test in _TESTS.items():
            lost[test] += _lost_at(before, hurdle)
        taken += (before.left_by(Hurdle.COUNTERS) & ~now.left_by(Hurdle.COUNTERS)).bit_count()
    return Losses({test: number for test, number in lost.items() if number}, taken)


def _sieve(
    view: NodeView, demand: Demand, state: ClusterState, name: str, shortage: Shortage
) -> Sieve | None:
    question = demand.on(state.nodes[name].facts).question
    for alternatives in sieves(view, question):
        for sieve in alternatives:
            if (sieve.wanted.claim, sieve.wanted.name) == (shortage.claim, shortage.request):
                return sieve
    return None


def _lost_at(sieve: Sieve, hurdle: Hurdle) -> int:
    left, found = sieve.everything, 0
    for passed in sieve.passed:
        if passed.test is hurdle:
            found += (left & ~passed.devices).bit_count()
        left = passed.devices
    return found
