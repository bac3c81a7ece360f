"""Policy `first-fit`: upstream's order, without its explosions.

Most problems end within a few steps, so the first attempt prepares nothing. What is not settled then is searched again with
everything that prunes. If that takes long too, it may be one claim that can never be served: each is tried alone before going on.
What is still open after that is a tight packing, in which the given order may waste what only the big requests could use, so the biggest
come first. That loses upstream's choice of devices, but nothing else: what is found is valid, and what is refuted is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec.structs import replace

from drayman.allocator.problem.limits import (
    ALONE_STEPS,
    GIVEN_ORDER_STEPS,
    PLAIN_SLOTS,
    PLAIN_STEPS,
    PLAIN_STEPS_PER_SLOT,
    STEPS_BEFORE_ALONE,
)
from drayman.allocator.problem.tables import Alternative, Request, Tables
from drayman.allocator.pruning.combined import prune
from drayman.allocator.pruning.sums import Sums
from drayman.allocator.tree.engine import Engine, ErrorFound, OutOfSteps, PlacedDevice
from drayman.allocator.tree.state import Transitions


class FirstFit:
    """A search for the first allocation in upstream's order."""

    def __init__(self, tables: Tables, max_steps: int, *, strict: bool) -> None:
        self._tables = tables
        self._max_steps = max_steps
        self._strict = strict
        self.steps = 0
        self.in_order = not tables.has_admin  # whether what is found comes first in search order

    def run(self) -> list[tuple[Alternative, int]] | None:
        """Devices and what they serve, in order; None if there is no allocation. Raises ErrorFound, OutOfSteps."""
        if not self._tables.has_admin:
            return self._pass(admin_blocks=False)
        # Upstream loses a device to ordinary requests once an earlier one of the same search took it with admin access. If
        # it has an answer, that answer stands; if it has none, this alone must not be the reason.
        found = self._pass(admin_blocks=True)
        if found is not None:
            return found
        try:
            return self._pass(admin_blocks=False)
        except ErrorFound:
            return None

    def _pass(self, *, admin_blocks: bool) -> list[tuple[Alternative, int]] | None:
        transitions = Transitions(self._tables, admin_blocks=admin_blocks)
        wide = min(self._tables.slots, PLAIN_SLOTS) * PLAIN_STEPS_PER_SLOT
        plain = Engine(self._tables, transitions, None, strict=self._strict)
        try:
            return self._run(plain, PLAIN_STEPS + wide)
        except OutOfSteps:
            self._stop_at_limit()
        return self._pruned(transitions)

    def _pruned(self, transitions: Transitions) -> list[tuple[Alternative, int]] | None:
        pruning = prune(self._tables, transitions)
        engine = Engine(self._tables, transitions, pruning, strict=self._strict)
        try:
            return self._run(engine, STEPS_BEFORE_ALONE + 2 * self._tables.slots)
        except OutOfSteps:
            self._stop_at_limit()
        if self._some_claim_is_hopeless(transitions):
            return None
        if self._tables.error_capable or transitions.admin_blocks:
            return self._run(engine, self._max_steps)  # the order decides what the answer is
        try:
            return self._run(engine, GIVEN_ORDER_STEPS)
        except OutOfSteps:
            self._stop_at_limit()
        return self._biggest_first(transitions)

    def _biggest_first(self, transitions: Transitions) -> list[tuple[Alternative, int]] | None:
        self.in_order = False
        tables = _with_biggest_first(self._tables, transitions)
        engine = Engine(tables, transitions, prune(tables, transitions), strict=self._strict)
        found = self._run(engine, self._max_steps)
        return None if found is None else _in_given_order(self._tables, found)

    def _run(self, engine: Engine, budget: int) -> list[tuple[Alternative, int]] | None:
        """Run an engine until it has taken so many steps, or until there are none left."""
        before = engine.steps
        try:
            found = engine.run(min(budget, before + self._max_steps - self.steps))
        finally:
            self.steps = min(self.steps + engine.steps - before, self._max_steps)
        return _path(engine.solution) if found else None

    def _stop_at_limit(self) -> None:
        if self.steps >= self._max_steps:
            raise OutOfSteps

    def _some_claim_is_hopeless(self, transitions: Transitions) -> bool:
        """Whether a claim cannot be served even if it is the only one."""
        for index in range(len(self._tables.claims)):
            requests = [r for r in self._tables.requests if r.claim <= index]
            if any(request.error_capable for request in requests):
                return False  # an error may be found before this claim is ever tried
            alone = _only(self._tables, index)
            engine = Engine(alone, transitions, prune(alone, transitions), strict=self._strict)
            try:
                if self._run(engine, ALONE_STEPS) is None:
                    return True
            except OutOfSteps:
                self._stop_at_limit()
        return False


def _only(tables: Tables, claim: int) -> Tables:
    """The problem with the requests of one claim only."""
    return _numbered(tables, [r for r in tables.requests if r.claim == claim])


def _numbered(tables: Tables, requests: Sequence[Request]) -> Tables:
    """The problem with these requests only, in this order."""
    return replace(
        tables,
        requests=tuple(
            replace(r, alternatives=tuple(replace(a, request=i) for a in r.alternatives))
            for i, r in enumerate(requests)
        ),
    )


def _with_biggest_first(tables: Tables, transitions: Transitions) -> Tables:
    """Claims by what they take in total, and the requests of each claim likewise."""
    sums = Sums(tables, transitions)
    by_claim: dict[int, list[tuple[Fraction, Request]]] = {}
    for request in tables.requests:
        weight = min(_weight(sums, a) for a in request.alternatives)
        by_claim.setdefault(request.claim, []).append((weight, request))
    claims = sorted(by_claim.values(), key=lambda members: -sum(weight for weight, _ in members))
    ordered: list[Request] = []
    for members in claims:
        members.sort(key=lambda member: -member[0])
        ordered += [replace(r, opens_claim=i == 0) for i, (_, r) in enumerate(members)]
    return _numbered(tables, ordered)


def _in_given_order(
    tables: Tables, placements: Sequence[tuple[Alternative, int]]
) -> list[tuple[Alternative, int]]:
    """Placements of reordered requests, named and sorted as in the problem itself."""
    known = {(a.claim, a.name): a for request in tables.requests for a in request.alternatives}
    given = [(known[a.claim, a.name], position) for a, position in placements]
    return sorted(given, key=lambda placement: (placement[0].request, placement[1]))


def _weight(sums: Sums, alternative: Alternative) -> Fraction:
    """How much a request takes: its devices, and the share of counters and capacities that each uses up at least."""
    each = Fraction(1)
    for name, amount in sums.counter_floor(alternative).items():
        each += Fraction(amount) / max(1, sums.largest_counter(name))
    for name, amount in sums.capacity_floor(alternative).items():
        each += Fraction(amount) / max(1, sums.largest_capacity(name))
    return each * alternative.number


def _path(last: PlacedDevice | None) -> list[tuple[Alternative, int]]:
    path = []
    while last is not None:
        path.append((last.alternative, last.position))
        last = last.before
    path.reverse()
    return path
