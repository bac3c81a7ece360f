"""When a pod that was not placed is tried again.

A pod whose refusal only an event could change sleeps, together with all pods of the same shape, or alone if the reason does not apply to
its copies. A pod that lacks something of its own waits for that. After a search that gave up, a failed write or an internal error, the pod
is tried again after a while even if nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from drayman.api.resource import ResourceClaim
from drayman.placement.claims import ClaimLack
from drayman.placement.decision.outcomes import (
    BeingWritten,
    KeptOut,
    Lacking,
    NoNode,
    NoPlacement,
    NotCharged,
    PromisedAway,
    Unfinished,
)
from drayman.placement.nominations import Nominations
from drayman.placement.wake import Wake
from drayman.scheduler.queue import Queue
from drayman.scheduler.unit import QueuedUnit

IN_A_ROW: Final = 8
"""Attempts without a pause for a pod that is overtaken again and again: server and scheduler might disagree about what is free."""
INTERNAL_ERROR: Final = "internal error of the scheduler; see its log"
"""Reported for a pod after an error of our own."""


BETWEEN_PARTS_S: Final = 0.02
"""How long a decision that takes long pauses between two parts, so that other pods have their turn."""


class Retrying:
    """Puts pods that were not placed where they wait."""

    def __init__(self, queue: Queue, nominations: Nominations) -> None:
        self._queue = queue
        self._nominations = nominations
        self._blocked: dict[str, set[str]] = {}  # pods that wait for a write, by uid of the claim

    def refused(self, entry: QueuedUnit, why: NoPlacement, now: float) -> None:
        """A decision found no place for the pod."""
        match why:
            case Lacking(error) if error.lack is ClaimLack.SHARE:
                self._queue.sleep_alone(entry)  # until there is another class or device
            case Lacking() | NotCharged():
                self._queue.wait(entry)
            case BeingWritten(claim):
                self._blocked.setdefault(claim.metadata.uid, set()).add(entry.key)
                self._queue.wait(entry)
            case Unfinished(rest=None):
                self._queue.pause(entry, now + BETWEEN_PARTS_S)
            case Unfinished():
                self._queue.wait(entry)
            case PromisedAway():
                self._queue.sleep_alone(entry)
            case NoNode(demand, not_found):
                if not_found.retry:
                    self._queue.hold_back(entry, now)
                    return
                hint = demand.hint(not_found.verdicts.values())
                if entry.key in self._nominations:
                    self._queue.sleep_alone(entry, hint=hint)
                else:
                    shape = demand.key if entry.leaf is None else (entry.leaf, demand.key)
                    self._queue.sleep(entry, shape, demand.interest, hint)
            case KeptOut(demand):
                self._queue.sleep(entry, ("kept out", entry.leaf, demand.key), Wake.ANYTHING)
            case _:
                assert_never(why)

    def awaits_others(self, entry: QueuedUnit, until: float | None) -> None:
        """Others were asked to go for the pod. If they are not gone by then, it looks for other room."""
        self._queue.sleep_alone(entry, until, entry.hint)

    def failed(self, entry: QueuedUnit, now: float) -> None:
        """Something went wrong, perhaps after the pod was placed."""
        self._queue.hold_back(entry, now)

    def overtaken(self, entry: QueuedUnit, now: float) -> None:
        """Others were faster to take what the pod was to get. That is known now, so the next decision will be another."""
        if entry.attempts % IN_A_ROW:
            self._queue.put_back(entry)
        else:
            self._queue.hold_back(entry, now)

    def settled(self, claims: Iterable[ResourceClaim]) -> None:
        """Writes for these claims are done or given up: pods that waited for them continue."""
        for claim in claims:
            waiting = self._blocked.pop(claim.metadata.uid, None)
            if waiting:
                self._queue.wake_pods(waiting)
