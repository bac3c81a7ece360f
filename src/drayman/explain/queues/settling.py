"""What becomes of everything that waits: cycles of the engine until nothing new comes of them, as things are or after a supposed change.

A workload that is refused speaks for all of its queue that ask for the same: the engine tries one of them and puts the others aside
with it. Those behind the head of a strict queue are not tried at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from drayman.api.kueue_workload import EVICTED, Workload
from drayman.api.times import timestamp_at
from drayman.explain.queues.engine import Queues
from drayman.explain.queues.seats import MOST_SEATED
from drayman.quota.decisions import Decision, Evicted, Preempted, Refused, Reserved
from drayman.quota.entries import Entry
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.reasons import PREEMPTED, WAITING_FOR_PREEMPTED

MOST_CYCLES: Final = 20_000
"""After as many, what was not tried yet is not known."""


class Settled:
    """What the engine decides about all that wait, if nothing else changes."""

    def __init__(self) -> None:
        self.given: dict[str, Reserved] = {}
        """Those that get quota, in the order in which they do."""
        self.unfit: dict[str, str] = {}
        """Of these, the ones without room for all their pods, and why: their quota is given to others."""
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


def settle(queues: Queues, at: float | None = None, *, seated: bool = False) -> Settled:
    """Have the engine decide until it comes to rest, at some time. What it gives away counts afterwards, until it is taken back.

    `seated`: with room for all pods of those that get quota, as the control loop looks for it.
    """
    now = queues.now if at is None else at
    settled = Settled()
    seen: set[Refused] = set()
    for _ in range(MOST_CYCLES):
        decided = queues.state.cycle(now)
        decisions = _with_room(queues, settled, decided) if seated else decided
        changes = [
            settled.note(queues, each) for each in decisions if not isinstance(each, Refused)
        ]
        if any(changes) or len(decisions) < len(decided):
            # Those that were refused may be tried again, each before others that were not tried at all.
            seen.clear()
        refused = [each for each in decisions if isinstance(each, Refused)]
        news = [each for each in refused if each not in seen]
        seen.update(refused)
        for each in refused:
            settled.note(queues, each)
        for decision in decisions:
            if isinstance(decision, Preempted) and decision.key not in settled.evicted:
                settled.evicted.add(decision.key)
                queues.state.set_workload(_told_to_go(queues.workloads[decision.key], now), now)
        if not any(changes) and not news and len(decisions) == len(decided):
            settled.is_complete = True
            break
    return settled


def _with_room(
    queues: Queues, settled: Settled, decisions: Sequence[Decision]
) -> tuple[Decision, ...]:
    """Decisions without those about workloads that get quota and no room. These are not tried again, so that others get the quota."""
    seats, flavors = queues.seats, queues.state.books.flavors
    kept: list[Decision] = []
    took_room = False
    for decision in decisions:
        found: str | Unfit | None = None
        if isinstance(decision, Reserved) and len(settled.given) < MOST_SEATED:
            found = seats.admit(queues.workloads[decision.key], decision, flavors)
        if not isinstance(found, Unfit):
            took_room = took_room or found is not None
            kept.append(decision)
        elif took_room and seats.has_topologies:
            # Others of this cycle were given the same devices. There may be places elsewhere.
            queues.state.forget(decision.key, queues.now)
        else:
            assert isinstance(decision, Reserved)
            settled.given[decision.key] = decision
            settled.unfit[decision.key] = found.message
            queues.state.without_room(decision.key, found.message, queues.now)
    return tuple(kept)


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


def supposed(queues: Queues, change: Step, undo: Step, leaving: Iterable[str] = ()) -> Settled:
    """What becomes of all that wait after a change, such as the end of workloads. Everything is as before afterwards."""
    with queues.seats.trial() as trial:
        queues.seats.leave(trial, leaving)
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
        queues.seats.forget(key)
        state.forget(key, queues.now)
    if settled.unfit:
        state.room_may_be_free()
    for key in settled.refused:
        if key in state.entries:
            state.entries[key].positions = {}
    for queue in state.books.queues.values():
        queue.waiting.forget_preemptor()
        state.books.wake(queue.name)
    queues.forget_use()
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

    return supposed(queues, change, undo, gone)
