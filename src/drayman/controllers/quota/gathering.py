"""Decisions of several cycles, on their way to be written together.

A cycle decides about one workload of each queue. Written one after the other, every cycle would wait for its transaction to be on disk
before the next begins. What a cycle gives away counts for the next one anyway, written or not, so cycles follow each other at once and
their decisions gather here, for as long as nobody is kept waiting by it.

- One decision about each workload is written, the last one: who was refused and got quota in a later cycle was never refused.
- Quota is given to a workload as it was when that was decided. Each decision has the version it is about; if the workload is another one
  by the time of writing, the quota is taken back and it is decided again.
- A preemption ends the gathering. The cycles after it depend on its being written, because whoever has to go is asked only once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from drayman.quota.decisions import Preempted
from drayman.quota.quota_and_room import Made

MOST: Final = 40
"""Decisions that are written together. Whoever ends meanwhile is noticed only afterwards, so more would leave quota unused."""
LONGEST_S: Final = 0.02
"""How long they gather: a moment beside the time that it takes to write that many."""


class Gathering:
    """Decisions that wait to be written, in the order in which they were made."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: dict[str, Made] = {}
        self._began = 0.0

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Made]:
        return iter(self._made.values())

    def add(self, decisions: Iterable[Made]) -> None:
        """Take in what a cycle has decided."""
        if not self._made:
            self._began = self._clock()
        for each in decisions:
            # In the place of the new one: whatever it depends on was decided before it.
            self._made.pop(each.key, None)
            self._made[each.key] = each

    @property
    def is_complete(self) -> bool:
        """Whether to write what there is before anything else is decided."""
        return len(self._made) >= MOST or (
            bool(self._made) and self._clock() - self._began >= LONGEST_S
        )

    def take(self) -> tuple[Made, ...]:
        """All that has gathered; from here on it is empty."""
        taken = tuple(self._made.values())
        self._made.clear()
        return taken


def drives_out(decisions: Iterable[Made]) -> bool:
    """Whether somebody has to give up quota."""
    return any(isinstance(each.decision, Preempted) for each in decisions)
