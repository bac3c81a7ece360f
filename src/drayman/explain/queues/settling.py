"""What becomes of everything that waits: cycles of the engine until nothing new comes of them, as things are or after a supposed change.

The cycles are those of the control loop (`quota/quota_and_room.py`). What that would write, the engine is told here, and whoever keeps
room: who got quota holds it, who has to go has been told so and holds its quota until its pods have ended, which they do not within an
answer.

A workload that is refused speaks for all of its queue that ask for the same: the engine tries one of them and puts the others aside
with it. Those behind the head of a strict queue are not tried at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from drayman.api.kueue import status_of
from drayman.api.kueue_workload import Workload, WorkloadStatus
from drayman.explain.queues.engine import Queues
from drayman.quota.claims.records import notes_of
from drayman.quota.decisions import Preempted, Refused, Reserved
from drayman.quota.entries import Entry
from drayman.quota.fitting.rooms import ROOM
from drayman.quota.quota_and_room import Cycles, Made, Unseated
from drayman.quota.reasons import WAITING_FOR_PREEMPTED, WAITING_FOR_ROOM
from drayman.workloads.queued import life
from drayman.workloads.queued.bodies import status_body

MOST_CYCLES: Final = 20_000
"""After as many, what was not tried yet is not known."""


class Settled:
    """What the engine decides about all that wait, if nothing else changes."""

    def __init__(self) -> None:
        self.given: dict[str, Reserved] = {}
        """Those that get quota, in the order in which they do, also if there turns out to be no room."""
        self.unfit: dict[str, str] = {}
        """Of these, the ones without room for all their pods, and why: their quota is given to others."""
        self.refused: dict[str, Refused] = {}
        """Those that get no quota."""
        self.refusals: dict[str, Refused] = {}
        """What everybody is told that does not start, also for want of room."""
        self.victims: dict[str, list[Preempted]] = {}
        """By the workload that drives them out for their quota."""
        self.cleared: dict[str, list[Preempted]] = {}
        """By the workload that has quota and drives them out for their room."""
        self.lost: dict[str, Preempted] = {}
        """Those that get quota and have to give it up again to somebody who comes after them."""
        self.written: dict[str, Workload] = {}
        """Those that were told to give up quota, or given some where room is looked for, as they are afterwards."""
        self._of_shape: dict[tuple[str, object], Refused] = {}
        self.is_complete = False

    def refusal_of(self, entry: Entry) -> Refused | None:
        """Why a workload gets no quota: what it was told, or another that asks for the same."""
        found = self.refused.get(entry.key)
        return found or self._of_shape.get((entry.waits_in, entry.shape))

    @property
    def roomless(self) -> set[str]:
        """Those that lack quota and drive out nobody for it, because there would be no room either."""
        return {key for key, each in self.refused.items() if each.reason == WAITING_FOR_ROOM}

    def note(self, queues: Queues, made: Made) -> None:
        """Take in one decision."""
        match made.decision:
            case Reserved(key):
                self.given[key] = made.decision
                self.lost.pop(key, None)
                self.unfit.pop(key, None)
                self.refused.pop(key, None)
                self.refusals.pop(key, None)
            case Preempted(key, by):
                if self.given.pop(key, None) is not None:
                    self.lost[key] = made.decision
                of = self.victims if made.unseated is None else self.cleared
                of.setdefault(by, []).append(made.decision)
            case Refused(key) if made.unseated is not None:
                self.refusals[key] = made.decision
                self._note_unseated(key, made.unseated)
            case Refused(key, reason):
                self.refused[key] = self.refusals[key] = made.decision
                if reason not in (WAITING_FOR_PREEMPTED, WAITING_FOR_ROOM):
                    entry = queues.state.entries[key]
                    self._of_shape[entry.waits_in, entry.shape] = made.decision

    def _note_unseated(self, key: str, unseated: Unseated) -> None:
        self.given[key] = unseated.reserved
        self.unfit[key] = unseated.message
        self.refused.pop(key, None)


def settle(queues: Queues, at: float | None = None) -> Settled:
    """Have the engine decide until it comes to rest, at some time. What it gives away counts afterwards, until it is taken back."""
    now = queues.now if at is None else at
    settled = Settled()
    cycles = Cycles(queues.state)
    for _ in range(MOST_CYCLES):
        made = tuple(cycles.run(now))
        for each in made:
            settled.note(queues, each)
        for each in made:
            _write(queues, settled, each, now)
        if not made:
            settled.is_complete = True
            break
    return settled


def _write(queues: Queues, settled: Settled, made: Made, now: float) -> None:
    """Tell the engine of a workload as the control loop would write it.

    Where quota alone is tried, the engine knows already what it has given away: reading a workload again, and pricing it, would take far
    longer than to decide about it.
    """
    decision = made.decision
    if isinstance(decision, Refused) or decision.key not in queues.workloads:
        return
    if isinstance(decision, Reserved) and not queues.room.is_looked_for:
        return
    workload = settled.written.get(decision.key) or queues.workloads[decision.key]
    status, metadata = status_of(WorkloadStatus, workload), workload.metadata
    match decision:
        case Reserved(_, admission, claims):
            checks = queues.state.books.required_checks(admission) or ()
            status = life.granted(status, admission, checks, now)
            notes = notes_of(claims, metadata.annotations)
            if made.room is not None:
                notes[ROOM] = made.room
            metadata = replace(metadata, annotations={**metadata.annotations, **notes})
        case Preempted(_, _, reason, message):
            status = life.preempted(status, reason, message, now)
    written = replace(workload, metadata=metadata, status=status_body(status))
    settled.written[decision.key] = written
    queues.room.follow(written)
    queues.state.set_workload(written, now)


Step = Callable[[], object]


def supposed(queues: Queues, change: Step, undo: Step, leaving: Iterable[str] = ()) -> Settled:
    """What becomes of all that wait after a change, such as the end of workloads. Everything is as before afterwards."""
    with queues.room.trial() as trial:
        queues.room.leave(trial, leaving)
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
    queues.room.restore(queues.workloads[key] for key in settled.written)
    for key in settled.written:
        # As if it came anew: the engine also remembers who drove out whom.
        state.remove_workload(key)
        state.set_workload(queues.workloads[key], queues.now)
    for key in settled.given.keys() - settled.written.keys():
        state.forget(key, queues.now)
    state.room_may_be_free()
    for key in settled.refused:
        if key in state.entries:
            state.entries[key].positions = {}
    for queue in state.books.queues.values():
        queue.waiting.forget_preemptor()
        state.books.wake(queue.name)
    queues.forget_use()
    state.books.rebuild()


def without(queues: Queues, keys: Iterable[str]) -> Settled:
    """What becomes of all that wait if workloads end."""
    gone = [key for key in keys if key in queues.workloads]

    def change() -> None:
        for key in gone:
            queues.state.remove_workload(key)

    def undo() -> None:
        for key in gone:
            queues.state.set_workload(queues.workloads[key], queues.now)

    return supposed(queues, change, undo, gone)
