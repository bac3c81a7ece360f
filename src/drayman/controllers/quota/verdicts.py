"""Writes what the engine decides: quota that a Workload gets, or has to give up, or why it waits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Final, Protocol

from drayman.api.kueue_workload import QUOTA_RESERVED, Admission, PodSetRequest, WorkloadStatus
from drayman.api.times import seconds_of
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.together import Bundle, write_together
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.shared import Shared
from drayman.quota.amounts import quantity_of
from drayman.quota.claims.records import notes_of
from drayman.quota.decisions import Decision, Evicted, Preempted, Refused, Reserved
from drayman.quota.demands import Unpriced
from drayman.quota.fitting.rooms import ROOM
from drayman.quota.flavors.asking import asked_of
from drayman.quota.quota_and_room import Made
from drayman.workloads.queued import life

if TYPE_CHECKING:
    from drayman.quota.state import QuotaState

_log: Final = logging.getLogger(__name__)


_TOGETHER: Final = 10
"""Statuses in one transaction: each takes a millisecond or two, and requests wait meanwhile."""
_PASSING: Final = (ConflictError, NotFoundError, NoneType)
"""Somebody else was quicker: what they did is known soon."""


Failed = tuple[Made, ClusterError | None]
"""A decision that was not written, and what the server said; None if it was not asked, because the Workload is another one by now."""


class Outcome(Enum):
    """What became of decisions."""

    WRITTEN = auto()
    OVERTAKEN = auto()
    """Something else had changed; decide again at once."""
    REFUSED = auto()
    """Something could not be written, and may be refused again: decide again later."""


class Engine(Protocol):
    """Who decides, and has to know what became of it."""

    state: QuotaState

    def tell(self, key: Key) -> None: ...

    def forget(self, key: Key) -> None: ...


class Verdicts:
    """Decisions, carried out."""

    def __init__(self, shared: Shared, engine: Engine) -> None:
        self._shared = shared
        self._engine = engine

    async def carry_out(self, made: Sequence[Made]) -> Outcome:
        """Write decisions, many in one transaction."""
        failed: list[Failed] = []
        bundles = [bundle for each in made if (bundle := self._bundle(each, failed)) is not None]
        await write_together(self._shared.client, bundles, largest=_TOGETHER)
        self.give_up([each for each, _ in failed])
        if not failed:
            return Outcome.WRITTEN
        passing = all(isinstance(error, _PASSING) for _, error in failed)
        return Outcome.OVERTAKEN if passing else Outcome.REFUSED

    def count(self, made: Sequence[Made]) -> None:
        """Count attempts to give quota, whatever becomes of them."""
        for each in made:
            if isinstance(each.decision, Reserved | Refused):
                result = "success" if isinstance(each.decision, Reserved) else "inadmissible"
                self._shared.tally.attempts[result,] += 1

    def give_up(self, made: Sequence[Made]) -> None:
        """Take back decisions that are not going to be written."""
        for each in made:
            match each.decision:
                case Reserved():
                    self._engine.forget(_key_of(each.key))
                case Preempted(key, by):
                    self._engine.state.not_driven_out(key, by)
                case Refused(key):
                    # Who is set aside is not tried again by itself, and would never say why it waits.
                    self._engine.state.try_again(key)

    def _bundle(self, made: Made, failed: list[Failed]) -> Bundle | None:
        key = _key_of(made.key)
        known = self._shared.book.find(key)
        if known is None or known.is_leaving or not self._is_about(made, known):
            if isinstance(made.decision, Reserved):
                failed.append((made, None))
            return None
        status, report = self._outcome(made.decision, known)
        if status == known.status:
            return None
        return self._shared.book.bundle(
            known,
            status,
            partial(self._refused, made, failed),
            partial(self._written, known.key, report),
            annotations=_notes(made, known),
        )

    def _is_about(self, made: Made, known: Known) -> bool:
        """Whether a decision still holds for a Workload. Quota is for what was asked for, in a queue that is there; a refusal cannot be
        wrong."""
        if not isinstance(made.decision, Reserved):
            return True
        version = known.workload.metadata.resource_version
        return made.version == version and self.required_checks(made.decision.admission) is not None

    def _written(self, key: Key, report: Callable[[Known], None], written: Known) -> None:
        report(written)
        self._engine.tell(key)

    def _refused(self, made: Made, failed: list[Failed], error: ClusterError) -> None:
        failed.append((made, error))
        level = logging.DEBUG if isinstance(error, _PASSING) else logging.WARNING
        _log.log(level, "Workload %s: %s; deciding again", made.key, error)

    def _outcome(
        self, decision: Decision, known: Known
    ) -> tuple[WorkloadStatus, Callable[[Known], None]]:
        """What becomes of a status, and what to report when it is written."""
        match decision:
            case Reserved():
                return self.reserved(known, decision.admission), self._report_reserved
            case Preempted():
                if life.is_evicted(known.status) or not life.holds_quota(known.status):
                    return known.status, _say_nothing
                status = life.preempted(
                    known.status, decision.reason, decision.message, self._now, known.generation
                )
                return status, partial(self._report_preempted, decision)
            case Evicted():
                return known.status, _say_nothing
            case Refused():
                return self.refusal(known, decision), partial(self._report_refused, decision)

    @property
    def _now(self) -> float:
        return self._shared.clock()

    def reserved(self, known: Known, admission: Admission) -> WorkloadStatus:
        """The status of a Workload that gets quota: admitted at once if nothing else has to be checked."""
        checks = self.required_checks(admission) or ()
        return life.granted(known.status, admission, checks, self._now, known.generation)

    def required_checks(self, admission: Admission) -> list[str] | None:
        """The checks that a queue has for the flavors that were assigned; None if the queue is not known."""
        return self._engine.state.books.required_checks(admission)

    def refusal(self, known: Known, decision: Refused) -> WorkloadStatus:
        """The status of a Workload that gets no quota now; the same if it says so already."""
        old = known.status.condition(QUOTA_RESERVED)
        said = None if old is None else (old.status, old.reason, old.message)
        if said == ("False", decision.reason, decision.message) or life.holds_quota(known.status):
            return known.status
        return life.refused(
            known.status,
            decision.reason,
            decision.message,
            self._asked(decision.key),
            self._now,
            known.generation,
        )

    def _asked(self, key: str) -> list[PodSetRequest]:
        """What each pod set asks for, for all its pods."""
        entry = self._engine.state.entries.get(key)
        if entry is None or isinstance(entry.facts.demands, Unpriced):
            return []
        demands = entry.facts.demands
        asked = asked_of(demands, self._engine.state.claims.users, counts_pods=False)
        return [
            PodSetRequest(
                name=demand.name,
                resources={name: quantity_of(name, amount) for name, amount in requests.items()},
            )
            for demand, requests in zip(demands, asked.requests, strict=True)
        ]

    # Events.

    def _report_reserved(self, known: Known) -> None:
        admission = known.status.admission
        queue = "" if admission is None else admission.cluster_queue
        queued = seconds_of(known.workload.metadata.creation_timestamp)
        waited = 0 if queued is None else max(0, int(self._now - queued))
        note = f"Quota reserved in ClusterQueue {queue}, wait time since queued was {waited}s"
        self._shared.book.record(known, "Normal", "QuotaReserved", note)
        if life.is_admitted(known.status):
            self._shared.book.record(
                known, "Normal", "Admitted", f"Admitted by ClusterQueue {queue}"
            )

    def _report_preempted(self, decision: Preempted, known: Known) -> None:
        self._shared.book.record(known, "Normal", "Preempted", decision.message)
        self._shared.book.record(known, "Normal", "EvictedDueToPreempted", decision.message)
        entry = self._engine.state.entries.get(decision.by)
        queue = "" if entry is None else entry.waits_in
        self._shared.tally.preempted[queue, decision.reason] += 1
        by = self._shared.book.find(_key_of(decision.by))
        if by is not None:
            note = f"Preempted workload {decision.key} due to {decision.reason}"
            self._shared.book.record(by, "Normal", "PreemptedWorkload", note)

    def _report_refused(self, decision: Refused, known: Known) -> None:
        self._shared.book.record(known, "Warning", "Pending", decision.message)


def _key_of(name: str) -> Key:
    namespace, _, rest = name.partition("/")
    return namespace, rest


def _notes(made: Made, known: Known) -> dict[str, str]:
    """What is written down beside the status."""
    notes = {} if made.room is None else {ROOM: made.room}
    if isinstance(made.decision, Reserved):
        if made.room is None and known.workload.metadata.annotations.get(ROOM):
            notes[ROOM] = ""  # of an earlier admission
        notes |= notes_of(made.decision.claims, known.workload.metadata.annotations)
    return notes


def _say_nothing(_known: Known) -> None:
    return
