"""Runs a scenario: applies its steps, and has the engine decide until nothing moves any more.

A workload that gets quota is admitted at once, one that has to give it up has stopped before the next cycle. The clock goes on by a
second with each cycle. Everything has come to rest when no queue has anything left to try, or when as many cycles as there are workloads,
and a few more, have changed nothing.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from drayman.api import codec
from drayman.api.kueue import status_of
from drayman.api.kueue_workload import (
    EVICTED,
    QUOTA_RESERVED,
    WorkloadStatus,
)
from drayman.api.times import moment_of
from drayman.quota.decisions import Decision, Evicted, Preempted, Refused, Reserved
from drayman.quota.reasons import (
    CLUSTER_QUEUE_STOPPED,
    DEACTIVATED,
    LOCAL_QUEUE_STOPPED,
    PENDING_EVALUATION,
    SUSPENDED,
)
from drayman.quota.settings import settings_of
from drayman.quota.state import QuotaState
from drayman.simulate.quota_replay.checkpoint import checkpoint_of
from drayman.simulate.quota_replay.devices import ScenarioDevices
from drayman.simulate.quota_replay.objects import Objects
from drayman.simulate.quota_replay.scenario import Scenario, Step
from drayman.workloads.queued import life
from drayman.workloads.queued.conditions import setting
from drayman.workloads.queued.kinds import Ended

Checkpoint = dict[str, Any]

_START: Final = moment_of("2026-01-01T00:00:00Z").timestamp()
_STEP_S: Final = 10_000
_DONE_S: Final = 5_000
_SPARE_CYCLES: Final = 8
_MOST_CYCLES: Final = 5_000
"""Far more than any scenario needs that comes to rest at all."""
_RESTARTED: Final = {
    CLUSTER_QUEUE_STOPPED: "ClusterQueueRestarted",
    LOCAL_QUEUE_STOPPED: "LocalQueueRestarted",
}


def replay(scenario: Scenario) -> list[Checkpoint]:
    """The checkpoints of a scenario, one for each `settle`."""
    run = Run(scenario)
    for index, step in enumerate(scenario.steps):
        run.step(index, step)
    return run.checkpoints


class Run:
    """A scenario on its way."""

    def __init__(self, scenario: Scenario) -> None:
        devices = ScenarioDevices(scenario)
        self.state = QuotaState(settings_of(scenario.config), devices.pricing)
        self.objects = Objects(self.state, devices)
        self.checkpoints: list[Checkpoint] = []
        self._events: list[dict[str, Any]] = []
        self._cycle = 0
        self._now = _START
        self._told: dict[str, str] = {}
        """Workloads that have been told what is wrong with their queue, or with them."""

    def step(self, index: int, step: Step) -> None:
        self._now = max(self._now + 1, _START + index * _STEP_S + _DONE_S)
        if step.create is not None:
            self.objects.create(step.create, self._now)
        elif step.patch is not None:
            self.objects.patch(step.patch, self._now)
        elif step.delete is not None:
            self.objects.delete(step.delete, self._now)
        elif step.finish is not None:
            key = self.objects.finish(step.finish)
            done = Ended(succeeded=True, message="Job finished successfully")
            self._write(key, life.finished(self._status(key), done, self._now))
        elif step.settle is not None:
            self._settle(step.settle)

    def _settle(self, label: str) -> None:
        self._cycle = 1
        self.objects.price_again(self._now)
        quiet, most = 0, len(tuple(self.objects.workloads())) + _SPARE_CYCLES
        unsettled = False
        for _ in range(_MOST_CYCLES):
            moved = self._reconcile()
            happened = len(self._events)
            self._cycle += bool(moved)
            decisions = self.state.cycle(self._now)
            for decision in decisions:
                moved |= self._carry_out(decision)
            self._cycle += len(self._events) > happened
            self._now += 1
            quiet = 0 if moved else quiet + 1
            if (not decisions and not moved) or quiet > most:
                break
        else:
            unsettled = True
        checkpoint = checkpoint_of(label, self.state, self.objects, self._events)
        if unsettled:
            checkpoint["unsettled"] = True
        self.checkpoints.append(checkpoint)
        self._events = []

    # What becomes of decisions.

    def _carry_out(self, decision: Decision) -> bool:
        """Whether anything is otherwise than before."""
        match decision:
            case Reserved(key, admission):
                status = life.reserved(self._status(key), admission, self._now)
                self._write(key, life.admitted(status, self._now))
                self._note("reserved", key)
            case Preempted(key, by, reason, message):
                status = life.preempted(self._status(key), reason, message, self._now)
                self._note("preempted", key, by=by, reason=reason)
                self._stop(key, status, PENDING_EVALUATION, message)
            case Evicted(key, reason, message):
                status = life.evicted(self._status(key), reason, message, self._now)
                self._note("evicted", key, reason=reason)
                why = DEACTIVATED if reason == DEACTIVATED else SUSPENDED
                self._stop(key, status, why, message)
            case Refused(key, reason, message):
                before = self._status(key)
                refused = life.refused(before, reason, message, (), self._now)
                return self._write(key, refused)
        return True

    def _stop(self, key: str, status: WorkloadStatus, why: str, message: str) -> None:
        """The job has stopped. Pods that had ended before are not run again, so they stay reclaimable."""
        kept = status.reclaimable_pods
        status = life.released(status, why, message, self._now)
        self._write(key, replace(status, reclaimable_pods=kept))

    # What the state of queues means for workloads.

    def _reconcile(self) -> bool:
        moved = False
        for key, workload in tuple(self.objects.workloads()):
            status = status_of(WorkloadStatus, workload)
            if not life.is_finished(status):
                moved |= self._look_at(key, status)
        return moved

    def _look_at(self, key: str, status: WorkloadStatus) -> bool:
        standing = self.state.standing(key)
        if isinstance(standing, Evicted) and life.holds_quota(status):
            return self._carry_out(standing)
        if isinstance(standing, Evicted):
            return self._deactivate(key, status, standing)
        if isinstance(standing, Refused):
            self._told[key] = standing.reason
            return self._carry_out(standing)
        return self._resume(key, status)

    def _deactivate(self, key: str, status: WorkloadStatus, evicted: Evicted) -> bool:
        """A workload that has no quota is made inactive."""
        self._told[key] = evicted.reason
        if life.is_evicted(status) and _reason(status, EVICTED) == DEACTIVATED:
            return False
        status = life.evicted(status, DEACTIVATED, evicted.message, self._now)
        status = setting(status, QUOTA_RESERVED, False, DEACTIVATED, evicted.message, self._now)
        return self._write(key, status)

    def _resume(self, key: str, status: WorkloadStatus) -> bool:
        """Nothing is wrong with its queue, or with itself, any more."""
        if self._told.pop(key, "") and not life.holds_quota(status):
            text = "The workload is to be evaluated"
            status = setting(status, QUOTA_RESERVED, False, PENDING_EVALUATION, text, self._now)
        waits = life.waits_to_be_requeued(status)
        if waits in _RESTARTED:
            status = life.requeued(status, True, _RESTARTED[waits], "", self._now)
        elif waits == DEACTIVATED:
            status = life.reactivated(status, self._now)
        return self._write(key, status)

    def _status(self, key: str) -> WorkloadStatus:
        return status_of(WorkloadStatus, self.objects.workload(key))

    def _write(self, key: str, status: WorkloadStatus) -> bool:
        return self.objects.write_status(key, codec.to_dict(status), self._now)

    def _note(self, type_: str, key: str, **more: str) -> None:
        self._events.append({"type": type_, "cycle": self._cycle, "workload": key, **more})


def _reason(status: WorkloadStatus, type_: str) -> str:
    found = status.condition(type_)
    return "" if found is None else found.reason
