"""Room for pods and gangs that were refused, by preemption: looks for victims a part at a time, and has the result carried out.

Nearly always the first part is all, and then it is done before the next pod is decided about, which must see what is kept for the first.
Where it is not, others are not kept waiting: the rest is done in short parts, one in each iteration of the event loop, while other pods are
placed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Final

from drayman.cluster.breaks import STRETCH_S, Turnstile
from drayman.scheduler.preempting import Deciding, Preempted
from drayman.scheduler.unit import QueuedUnit

_log: Final = logging.getLogger(__name__)

FIRST_PART_S: Final = 0.02
"""How long the search for one pod may keep others waiting."""
MOST_SEARCHES: Final = 8
"""Searches that take breaks at the same time. Other pods are tried again later."""
LONGEST_S: Final = 10.0
"""The work of one search. Thousands of nodes take less."""


class MakingRoom:
    """The searches for victims of one scheduler."""

    def __init__(
        self,
        clock: Callable[[], float],
        still_waits: Callable[[QueuedUnit], bool],
        decided: Callable[[QueuedUnit, Preempted | None], None],
        put_off: Callable[[QueuedUnit], None],
    ) -> None:
        """`decided` is called with each result, `put_off` for a pod that is to be tried again after a while."""
        self._clock = clock
        self._still_waits = still_waits
        self._decided = decided
        self._put_off = put_off
        # By key. A unit is there if it was refused again meanwhile: the search may not have seen what has changed since it began.
        self._under_way: dict[str, QueuedUnit | None] = {}
        self._turnstile = Turnstile()
        self._due_at = 0.0

    def begin(self, entry: QueuedUnit, search: Deciding) -> Coroutine[None, None, None] | None:
        """Look for victims. Returns what is left to be done, if that takes long. The search takes breaks where `is_due`."""
        if entry.key in self._under_way:
            search.close()
            self._under_way[entry.key] = entry
            return None
        if self._advance(entry, search, FIRST_PART_S):
            return None
        if len(self._under_way) >= MOST_SEARCHES:
            search.close()
            self._put_off(entry)
            return None
        self._under_way[entry.key] = None
        return self._complete(entry, search)

    async def _complete(self, entry: QueuedUnit, search: Deciding) -> None:
        """Do the rest of a search. If it finds no victims, whoever was refused meanwhile looks again: nothing else may happen."""
        try:
            await self._do_rest(entry, search)
        finally:
            search.close()
            again = self._under_way.pop(entry.key)
        if again is not None:
            self._put_off(again)

    async def _do_rest(self, entry: QueuedUnit, search: Deciding) -> None:
        for _ in range(int(LONGEST_S / STRETCH_S)):
            await self._turnstile.enter()
            if not self._still_waits(entry) or self._advance(entry, search, STRETCH_S):
                return
        self._put_off(entry)

    def _advance(self, entry: QueuedUnit, search: Deciding, part_s: float) -> bool:
        """Do a part of a search. Returns whether it was the last."""
        self._due_at = self._clock() + part_s
        try:
            next(search)
        except StopIteration as end:
            self._decided(entry, end.value)
            if entry.key in self._under_way and end.value is not None and end.value.nominations:
                self._under_way[entry.key] = None
            return True
        except Exception:
            # As in a round: a pod that the scheduler cannot handle must not hold up the others.
            _log.exception("%s", entry)
            self._put_off(entry)
            return True
        return False

    def is_due(self) -> bool:
        """Whether it is time for a break."""
        return self._clock() >= self._due_at
