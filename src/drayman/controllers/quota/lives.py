"""What becomes of a Workload beside cycles of admission: checks, readiness, time limits, stopped queues, deactivation, and the end.

Each look compares the Workload with its queue, its spec and the clock, writes at most one step, and says when to look again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.api.kueue_workload import WorkloadStatus
from drayman.api.meta import ObjectMeta
from drayman.api.times import seconds_of
from drayman.cluster.resources import JsonObject
from drayman.controllers.quota.admitting import Admitting
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.charges import Charges
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.owners import Owners
from drayman.controllers.quota.shared import Shared
from drayman.quota.decisions import Evicted, Refused
from drayman.quota.reasons import PENDING_EVALUATION
from drayman.workloads.dispatching.life import is_elsewhere
from drayman.workloads.dispatching.names import ORIGIN
from drayman.workloads.queued import life
from drayman.workloads.queued.conditions import (
    BY_CHECK,
    BY_TIMEOUT,
    DEACTIVATED,
    LIMIT_EXCEEDED,
    OF_CHECK,
    OWNER_NOT_FOUND,
    TIME_EXCEEDED,
    WAIT_FOR_START,
    since,
)
from drayman.workloads.queued.names import IS_GROUP, JOB_UID

_JITTER: Final = 0.0001


class Lives:
    """Looks at Workloads, one by one."""

    def __init__(
        self,
        shared: Shared,
        admitting: Admitting,
        owners: Owners,
        is_in_use: Callable[[Known], bool] = lambda _: False,
    ) -> None:
        """`is_in_use` says whether pods of a Workload are still on nodes."""
        self._shared = shared
        self._admitting = admitting
        self._owners = owners
        self._is_in_use = is_in_use
        self.loop = Loop("workloads of queues", self.attend)
        self._charges = Charges(shared, admitting, self.loop.queue.add)
        admitting.listen(self.loop.queue.add)
        admitting.listen_to_queues(self.loop.queue.add)

    async def attend(self, key: Key) -> None:
        known = self._shared.book.find(key)
        if known is None or known.problem:
            return
        if known.is_leaving:
            # What it was made for may be gone before its pods, which may take as long to end as they like.
            if not (
                self._owners.will_let_go(known) or _runs_elsewhere(known) or self._is_in_use(known)
            ):
                await self._shared.book.let_go(known)
            return
        if life.is_finished(known.status):
            await self._retain(known, self._shared.configuration.keep_finished_s)
            return
        status = self._next(known)
        if status != known.status:
            written = await self._shared.book.write_status(known, status)
            self._report(known, written)
            self._admitting.look_at([key])
            return
        if await self._charges.attend(known):
            return
        if not await self._deactivate(known) and not await self._drop(known):
            self._look_later(known)

    # One step.

    def _next(self, known: Known) -> WorkloadStatus:
        """What the status should be; the same if there is nothing to do."""
        for step in (
            self._ownership,
            self._activity,
            self._standing,
            self._checks,
            self._time,
            self._readiness,
            self._release,
            self._requeue,
        ):
            status = step(known)
            if status != known.status:
                return status
        return known.status

    @property
    def _now(self) -> float:
        return self._shared.clock()

    def _ownership(self, known: Known) -> WorkloadStatus:
        """Left behind by what it was made for (`--cascade=orphan`): nothing would ever give its quota back."""
        if not _is_orphan(known.workload.metadata) or self._shared.book.holds_back(known):
            return known.status
        text = "What the workload was made for does not exist any more"
        return life.over(known.status, OWNER_NOT_FOUND, text, self._now, known.generation)

    def _activity(self, known: Known) -> WorkloadStatus:
        """Made inactive, or active again."""
        status, now = known.status, self._now
        if not known.spec.active:
            if life.is_evicted(status):
                if life.holds_quota(status) or life.is_deactivated(status):
                    return status
                text = "The workload is deactivated"
                return life.requeued(status, False, DEACTIVATED, text, now, known.generation)
            cause = life.deactivation_cause(status)
            target = status.condition("DeactivationTarget")
            message = "The workload is deactivated"
            if target is not None and cause:
                message = f"{message} due to {target.message}"
            return life.evicted(
                status, DEACTIVATED, message, now, cause=cause, generation=known.generation
            )
        if life.is_deactivated(status):
            return life.reactivated(status, now, known.generation)
        return status

    def _standing(self, known: Known) -> WorkloadStatus:
        """What its queue means for it."""
        status, name = known.status, "/".join(known.key)
        if name not in self._admitting.state.entries or not known.spec.active:
            return status
        standing = self._admitting.state.standing(name)
        if isinstance(standing, Evicted):
            if life.holds_quota(status) and not life.is_evicted(status):
                return life.evicted(
                    status,
                    standing.reason,
                    standing.message,
                    self._now,
                    generation=known.generation,
                )
        elif isinstance(standing, Refused) and not life.holds_quota(status):
            return self._admitting.verdicts.refusal(known, standing)
        return status

    def _checks(self, known: Known) -> WorkloadStatus:
        status, now = known.status, self._now
        if not life.holds_quota(status) or life.is_evicted(status) or status.admission is None:
            return status
        needed = self._admitting.verdicts.required_checks(status.admission)
        if needed is None:
            return status  # Nobody can tell what it has to wait for.
        status = life.with_checks(status, needed, now)
        rejected = [each for each in status.admission_checks if each.state == life.REJECTED]
        if rejected:
            if life.deactivation_cause(status):
                return status
            text = ", ".join(f"{each.name}: {each.message}" for each in rejected)
            return life.to_be_deactivated(
                status, OF_CHECK, f"admission check(s) rejected it: {text}", now, known.generation
            )
        again = [each.name for each in status.admission_checks if each.state == life.RETRY]
        if again:
            wait = life.retried_after(status)
            if wait:
                status = life.not_before(status, now + wait)
            text = f"At least one admission check is asking for another try: {', '.join(again)}"
            return life.evicted(
                status, BY_CHECK, text, now, cause=OF_CHECK, generation=known.generation
            )
        if life.is_admitted(status):
            return status
        if life.are_checks_ready(status):
            return life.admitted(status, now, known.generation)
        return life.not_yet_admitted(status, now, known.generation)

    def _time(self, known: Known) -> WorkloadStatus:
        """More time than it may take, over all its admissions."""
        status, most = known.status, known.spec.maximum_execution_time_seconds
        if most is None or not life.is_admitted(status) or life.deactivation_cause(status):
            return status
        if life.running_seconds(status, self._now) < most:
            return status
        text = f"exceeding the maximum execution time of {most}s"
        return life.to_be_deactivated(status, TIME_EXCEEDED, text, self._now, known.generation)

    def _readiness(self, known: Known) -> WorkloadStatus:
        status, left = known.status, self._left_to_be_ready(known)
        if left is None or left > 0 or life.deactivation_cause(status):
            return status
        again = self._shared.configuration.quota.wait_for_pods_ready.requeuing_strategy
        now, timer = self._now, life.readiness_timer(status)
        assert timer is not None
        if life.exceeds(status, again.backoff_limit_count):
            text = "exceeding the maximum number of re-queuing retries"
            return life.to_be_deactivated(status, LIMIT_EXCEEDED, text, now, known.generation)
        text = f"Exceeded the PodsReady timeout {known.key[0]}/{known.name}"
        status = life.evicted(
            status, BY_TIMEOUT, text, now, cause=timer[0], generation=known.generation
        )
        return life.backed_off(
            status, now, again.backoff_base_seconds, again.backoff_max_seconds, _JITTER
        )

    def _left_to_be_ready(self, known: Known) -> float | None:
        """How long pods may still take; None if nobody waits for them."""
        timer = life.readiness_timer(known.status)
        if timer is None or life.is_evicted(known.status) or not self._owners.has_pods(known):
            return None
        what, begun = timer
        configuration = self._shared.configuration
        limit = configuration.start_timeout_s
        if what != WAIT_FOR_START:
            limit = configuration.recovery_timeout_s
            if limit == 0:
                return None
        return begun + limit - self._now

    def _release(self, known: Known) -> WorkloadStatus:
        """Give back the quota of what nobody runs."""
        status = known.status
        if not life.is_evicted(status) or not life.holds_quota(status):
            return status
        if self._owners.will_let_go(known) or is_elsewhere(status):
            return status
        if self._shared.book.holds_back(known):
            return status
        evicted = status.condition("Evicted")
        message = "" if evicted is None else evicted.message
        return life.released(status, PENDING_EVALUATION, message, self._now, known.generation)

    def _requeue(self, known: Known) -> WorkloadStatus:
        """Back in its queue when what it was evicted for is over."""
        status, now, why = known.status, self._now, life.waits_to_be_requeued(known.status)
        if not why or life.holds_quota(status) or not known.spec.active:
            return status
        if life.is_stopped_by_queue(status):
            name = "/".join(known.key)
            entry = self._admitting.state.entries.get(name)
            if entry is None or isinstance(self._admitting.state.standing(name), Refused):
                return status
            return life.back_in_queue(status, now, known.generation)
        due = status.requeue_state.requeue_at if status.requeue_state is not None else None
        if why in (BY_TIMEOUT, BY_CHECK) and (seconds_of(due) or 0.0) <= now:
            return life.back_in_queue(status, now, known.generation)
        return status

    # What is not in the status.

    async def _deactivate(self, known: Known) -> bool:
        """Make a Workload inactive that is to be."""
        if not life.deactivation_cause(known.status) or not known.spec.active:
            return False
        change: JsonObject = {"op": "add", "path": "/spec/active", "value": False}
        await self._shared.book.change(known, [change])
        self._admitting.look_at([known.key])
        return True

    async def _drop(self, known: Known) -> bool:
        """Delete what was deactivated here, and not by its owner, and has been kept for long enough; with its owners."""
        left = self._left_to_keep(known)
        if left is None or left > 0:
            return False
        await self._owners.delete(known)
        await self._shared.book.delete(known)
        return True

    def _left_to_keep(self, known: Known) -> float | None:
        """For how long a deactivated Workload is still kept; None: for ever, or as long as somebody uses it."""
        seconds, status = self._shared.configuration.keep_deactivated_s, known.status
        begun = since(status, "Evicted")
        if seconds is None or known.spec.active or not life.deactivation_cause(status):
            return None
        if begun is None or life.holds_quota(status):
            return None
        return begun + seconds - self._now

    async def _retain(self, known: Known, seconds: float | None) -> None:
        """Delete a Workload that has ended and has been kept for long enough."""
        await self._shared.book.let_go(known)
        found = known.status.condition("Finished")
        if seconds is None or found is None or found.last_transition_time is None:
            return
        left = seconds_of(found.last_transition_time) + seconds - self._now
        if left > 0:
            self.loop.queue.add_after(known.key, left)
        else:
            await self._shared.book.delete(known)

    def _look_later(self, known: Known) -> None:
        """When the passing of time alone may change something."""
        waits = [self._left_to_be_ready(known), self._left_to_keep(known)]
        most = known.spec.maximum_execution_time_seconds
        if most is not None and life.is_admitted(known.status):
            waits.append(most - life.running_seconds(known.status, self._now))
        state = known.status.requeue_state
        if state is not None and state.requeue_at is not None:
            waits.append(seconds_of(state.requeue_at) - self._now)
        due = [each for each in waits if each is not None]
        if due:
            # Times are written to the second, so a moment later is soon enough and never too early.
            self.loop.queue.add_after(known.key, max(0.0, min(due)) + 0.05)

    def _report(self, before: Known, after: Known) -> None:
        old, new = before.status, after.status
        book = self._shared.book
        if life.is_evicted(new) and not life.is_evicted(old):
            evicted = new.condition("Evicted")
            assert evicted is not None
            book.record(after, "Normal", f"EvictedDueTo{evicted.reason}", evicted.message)
        if life.is_admitted(new) and not life.is_admitted(old):
            queue = "" if new.admission is None else new.admission.cluster_queue
            book.record(after, "Normal", "Admitted", f"Admitted by ClusterQueue {queue}")
        if life.deactivation_cause(new) == OF_CHECK and not life.deactivation_cause(old):
            target = new.condition("DeactivationTarget")
            note = "" if target is None else target.message
            book.record(after, "Warning", "AdmissionCheckRejected", note)


def _is_orphan(metadata: ObjectMeta) -> bool:
    """Whether a Workload was made here for something that does not own it any more. Copies of other clusters have no owner at first."""
    made_here = JOB_UID in metadata.labels or metadata.annotations.get(IS_GROUP) == "true"
    return made_here and ORIGIN not in metadata.labels and not metadata.owner_references


def _runs_elsewhere(known: Known) -> bool:
    """Whether another cluster has to stop it first."""
    return is_elsewhere(known.status) and not life.is_finished(known.status)
