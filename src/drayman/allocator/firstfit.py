"""Policy `first-fit`: upstream's order, without its explosions.

Most problems end within a few steps, so the first attempt prepares nothing. Only what is not settled then is searched again with
everything that prunes.
"""

from __future__ import annotations

from drayman.allocator.engine import Engine, ErrorFound, OutOfSteps, Placement, Pruning
from drayman.allocator.limits import PLAIN_SLOTS, PLAIN_STEPS, PLAIN_STEPS_PER_SLOT
from drayman.allocator.pruning import prune
from drayman.allocator.state import Transitions
from drayman.allocator.tables import Alternative, Tables


class FirstFit:
    """A search for the first allocation in upstream's order."""

    def __init__(self, tables: Tables, max_steps: int, *, strict: bool, plain: bool = True) -> None:
        self._tables = tables
        self._max_steps = max_steps
        self._strict = strict
        self._plain = plain
        self.steps = 0

    def run(self) -> list[tuple[Alternative, int]] | None:
        """Devices and what they serve, in order; None if there is no allocation. Raises ErrorFound, OutOfSteps."""
        if not self._tables.has_admin:
            return self._pass(admin_blocks=False)
        # Upstream loses a device to ordinary requests once an earlier one of the same search took it with admin access. Its
        # answers stand where it has some; where it has none, that alone must not be the reason.
        found = self._pass(admin_blocks=True)
        if found is not None:
            return found
        try:
            return self._pass(admin_blocks=False)
        except ErrorFound:
            return None

    def _pass(self, *, admin_blocks: bool) -> list[tuple[Alternative, int]] | None:
        transitions = Transitions(self._tables, admin_blocks=admin_blocks)
        if self._plain:
            wide = min(self._tables.slots, PLAIN_SLOTS) * PLAIN_STEPS_PER_SLOT
            budget = min(PLAIN_STEPS + wide, self._max_steps - self.steps)
            try:
                return self._run(transitions, None, budget)
            except OutOfSteps:
                if self.steps >= self._max_steps:
                    raise
        return self._run(
            transitions, prune(self._tables, transitions), self._max_steps - self.steps
        )

    def _run(
        self, transitions: Transitions, pruning: Pruning | None, budget: int
    ) -> list[tuple[Alternative, int]] | None:
        engine = Engine(self._tables, transitions, pruning, budget, strict=self._strict)
        try:
            found = engine.run()
        finally:
            self.steps += min(engine.steps, budget)
        return _path(engine.solution) if found else None


def _path(last: Placement | None) -> list[tuple[Alternative, int]]:
    path = []
    while last is not None:
        path.append((last.alternative, last.position))
        last = last.before
    path.reverse()
    return path
