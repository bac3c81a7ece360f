"""What a single node gives to several pods at once.

The pods are seated one after the other, as they would be if they came alone. If the last ones find nothing, all of them are asked for
together: an earlier pod may have taken what a later one needs more, such as a whole device where a part would have done.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.allocator import Exhausted, Plan, Policy, Question, search, signature
from drayman.inventory.allowance import STEP
from drayman.placement.decision.deciding import Round
from drayman.placement.demand import Demand
from drayman.placement.fit import FITS, usage_verdict
from drayman.placement.nodes import NodeState
from drayman.placement.placing import Found, Placer

_FARTHEST: Final = 64
"""How many pods are asked for together at most. Beyond it, a node takes those that fit one after the other."""


class Seat(Struct, frozen=True, eq=False):
    """A pod with a place: what it asks for, and what it gets."""

    demand: Demand
    found: Found


Seats: TypeAlias = tuple[Seat, ...]
"""In the order in which they are to be taken."""


class Seating:
    """Seats pods on single nodes, on top of everything that counts at the moment."""

    def __init__(self, round_: Round, policy: Policy) -> None:
        self._round = round_
        self._state = round_.decider.state
        self._policy = policy
        self.gave_up = False
        """Whether a search has ended without an answer, so that more pods might fit than were found to."""

    def seats(self, node: NodeState, demands: Sequence[Demand]) -> Seats | None:
        """Seats for all of these pods on a node; None if it does not have them."""
        found = self.in_turn(node, demands)
        return found if len(found) == len(demands) else self._together(node, demands)

    def most(self, node: NodeState, load: Sequence[Demand], more: Sequence[Demand]) -> int:
        """How many of some pods that are alike fit on a node beside others that fit there."""
        if not more:
            return 0
        number = max(len(self.in_turn(node, (*load, *more))) - len(load), 0)
        while number < len(more) and len(load) + number < _FARTHEST:
            if self._together(node, (*load, *more[: number + 1])) is None:
                break
            number += 1
        return number

    def in_turn(self, node: NodeState, demands: Sequence[Demand]) -> Seats:
        """Seats for the pods one after the other, until one finds nothing."""
        seats: list[Seat] = []
        with self._state.trial():
            for demand in demands:
                found = self._placer(demand).found_on(demand, node)
                if found is None:
                    break
                seat = Seat(demand, taken_as_it_is(found))
                self.take(seat)
                seats.append(seat)
        return tuple(seats)

    def take(self, seat: Seat) -> None:
        """Count a seat as taken. In a trial: nothing is to be written."""
        self._round.suppose(seat.demand, seat.found)

    def likeness(self, node: NodeState, demands: Sequence[Demand]) -> Hashable:
        """Equal for nodes that hold the same pods, as far as these are concerned. The demands are one of each kind."""
        facts, usage, state = node.facts, node.usage, self._state
        shape = facts.shape
        told_apart: list[Hashable] = []
        for demand in demands:
            is_open = state.static_verdicts.verdict(demand.needs, facts) is FITS
            if not is_open or demand.unavailable_on(node.node):
                told_apart.append(None)
                continue
            wanted = demand.on(facts)
            devices = signature(state.view(node), wanted.question) if wanted.claims else ()
            told_apart.append((wanted.delegated, devices))
        return (
            shape.cpu - usage.cpu,
            shape.memory - usage.memory,
            shape.storage - usage.storage,
            shape.pods - len(usage.pods),
            frozenset(shape.extended.items()),
            frozenset(usage.extended.items()),
            usage.ports.taken(),
            tuple(told_apart),
        )

    def _placer(self, demand: Demand) -> Placer:
        return self._round.decider.placer(demand)

    def _together(self, node: NodeState, demands: Sequence[Demand]) -> Seats | None:
        """Seats for all of the pods, found in one search for the devices of all of them."""
        wanted = [demand.on(node.facts) for demand in demands]
        claims = [claim for each in wanted for claim in each.claims]
        if not claims or len(demands) > _FARTHEST:
            return None
        if any(each.impossible is not None for each in wanted):
            return None
        if any(demand.alignment is not None for demand in demands):
            return None  # what a pod states about its devices is not about those of the others
        allowance = self._state.allowance
        allowance.spend(STEP)
        outcome = search(self._state.view(node), Question(claims), policy=self._policy)
        allowance.note(outcome.steps * STEP)
        if not isinstance(outcome, Plan):
            self.gave_up |= isinstance(outcome, Exhausted)
            return None
        if outcome.levels:
            return None  # levels that claims ask for are reached, and noted, pod by pod
        seats: list[Seat] = []
        first = 0
        with self._state.trial():
            for demand, each in zip(demands, wanted, strict=True):
                last = first + len(each.claims)
                found = Found(node, each, outcome.part(first, last) if each.claims else None)
                if not self._has_room(node, demand, found):
                    return None
                seat = Seat(demand, found)
                self.take(seat)
                seats.append(seat)
                first = last
        return tuple(seats)

    def _has_room(self, node: NodeState, demand: Demand, found: Found) -> bool:
        """Whether the node takes the pod, devices apart."""
        placer = self._placer(demand)
        if placer.node_verdict_on(demand, node) is not FITS:
            return False
        mapped = self._state.mapped_devices
        if not mapped or found.plan is None:
            return True
        needs = demand.needs.plus(mapped.requests_of(item.allocation for item in found.plan.claims))
        facts = node.facts
        return usage_verdict(needs, facts, node.usage, demand.delegated_on(facts)) is FITS


def taken_as_it_is(found: Found) -> Found:
    """The same, to be taken later in an equal state, though the ledger's clock has gone on."""
    plan = found.plan
    if plan is None:
        return found
    return Found(found.node, found.wanted, plan.part(0, len(plan.claims)), found.volumes)
