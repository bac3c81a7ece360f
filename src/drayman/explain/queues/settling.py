"""What becomes of everything that waits: cycles of the engine until nothing new comes of them, as things are or after a supposed change.

A workload that is refused speaks for all of its queue that ask for the same: the engine tries one of them and puts the others aside
with it. Those behind the head of a strict queue are not tried at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from drayman.api.kueue_workload import EVICTED, Workload
from drayman.api.times import timestamp_at
from drayman.explain.queues.engine import Queues
from drayman.quota.decisions import Evicted, Preempted, Refused, Reserved
from drayman.quota.entries import Entry
from drayman.quota.reasons import PREEMPTED, WAITING_FOR_PREEMPTED

MOST_CYCLES: Final = 20_000
"""After as many, what was not tried yet is not known."""


class Settled:
    """What the engine decides about all that wait, if nothing else changes."""

    def __init__(self) -> None:
        self.given: dict[str, Reserved] = {}
        """Those that get quota, in the order in which they do."""
        self.refused: dict[str, Refused] = {}
        self.victims: dict[str, list[Preempted]] = {}
        """By the workload that drives them out."""
        self.evicted: set[str] = set()
        """Those that have been told to give up their quota, and have not done so."""
        self._of_shape: dict[tuple[str, object], Refused] = {}
        self.is_complete = False

    def refusal_of(self, entry: Entry) -> Refused | None:
        """Why a workload gets no quota: what it was told, or another that asks for the same."""
        found = self.refused.get(entry.key)
        return found or self._of_shape.get((entry.waits_in, entry.shape))

    def note(self, queues: Queues, decision: Reserved | Preempted | Evicted | Refused) -> bool:
        """Whether this is new."""
        if isinstance(decision, Reserved):
            self.given[decision.key] = decision
            self.refused.pop(decision.key, None)
            return True
        if isinstance(decision, Preempted):
            those = self.victims.setdefault(decision.by, [])
            is_new = all(each.key != decision.key for each in those)
            if is_new:
                those.append(decision)
            return is_new
        if isinstance(decision, Evicted) or self.refused.get(decision.key) == decision:
            return False
        self.refused[decision.key] = decision
        if decision.reason != WAITING_FOR_PREEMPTED:
            entry = queues.state.entries[decision.key]
            self._of_shape[entry.waits_in, entry.shape] = decision
        return True


def settle(queues: Queues, at: float | None = None) -> Settled:
    """Have the engine decide until it comes to rest, at some time. What it gives away counts afterwards, until it is taken back."""
    now = queues.now if at is None else at
    settled = Settled()
    for _ in range(MOST_CYCLES):
        decisions = queues.state.cycle(now)
        fresh = [settled.note(queues, decision) for decision in decisions]
        for decision in decisions:
            if isinstance(decision, Preempted) and decision.key not in settled.evicted:
                settled.evicted.add(decision.key)
                queues.state.set_workload(_told_to_go(queues.workloads[decision.key], now), now)
        if not any(fresh):
            settled.is_complete = True
            break
    return settled


def _told_to_go(workload: Workload, now: float) -> Workload:
    """A workload as it is while it gives up its quota: it holds it until its pods have ended."""
    status = dict(workload.status) if isinstance(workload.status, dict) else {}
    others = [each for each in status.get("conditions") or () if each.get("type") != EVICTED]
    evicted = {
        "type": EVICTED,
        "status": "True",
        "reason": PREEMPTED,
        "message": "",
        "lastTransitionTime": timestamp_at(now),
    }
    return replace(workload, status={**status, "conditions": [*others, evicted]})


Step = Callable[[], object]


def supposed(queues: Queues, change: Step, undo: Step) -> Settled:
    """What becomes of all that wait after a change. Everything is as before afterwards."""
    change()
    try:
        settled = settle(queues)
    finally:
        undo()
    take_back(queues, settled)
    return settled


def take_back(queues: Queues, settled: Settled) -> None:
    """Undo what the engine gave away and remembered, so that it can be asked again."""
    state = queues.state
    for key in settled.evicted:
        # As if it came anew: the engine also remembers who drove out whom.
        state.remove_workload(key)
        state.set_workload(queues.workloads[key], queues.now)
    for key in settled.given:
        state.forget(key, queues.now)
    for key in settled.refused:
        if key in state.entries:
            state.entries[key].positions = {}
    for queue in state.books.queues.values():
        queue.waiting.forget_preemptor()
        state.books.wake(queue.name)
    assert (
        state.books.forest.queues is not None
    )  # the trees, built anew if the change was about them


def without(queues: Queues, keys: Iterable[str]) -> Settled:
    """What becomes of all that wait if workloads end."""
    gone = [key for key in keys if key in queues.workloads]

    def change() -> None:
        for key in gone:
            queues.state.remove_workload(key)

    def undo() -> None:
        for key in gone:
            queues.state.set_workload(queues.workloads[key], queues.now)

    return supposed(queues, change, undo)
