"""Which pods of a job have failed, what its failure policy makes of that, and how long to wait before the next attempt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from drayman.api.core import ContainerStatus, Pod
from drayman.api.jobs import ExitCodes, Job, PodFailurePolicy, PodFailureRule
from drayman.api.pods import is_terminating
from drayman.api.times import time_left
from drayman.workloads.pod_state import finished_at, restarts

FIRST_BACKOFF_S: Final = 10.0
LONGEST_BACKOFF_S: Final = 360.0


@dataclass(frozen=True, slots=True)
class BackoffTimes:
    """How long a job waits after its first failure, and at most, in seconds."""

    first: float = FIRST_BACKOFF_S
    longest: float = LONGEST_BACKOFF_S

    def remaining(self, failures: int, last_failure: float | None, now: float) -> float:
        """Seconds until the next attempt after so many failures in a row."""
        if failures == 0 or last_failure is None:
            return 0.0
        delay = min(self.longest, self.first * 2.0 ** min(failures - 1, 60))
        return time_left(last_failure, delay, now)


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Failures since the last success."""

    failures: int = 0
    last: float | None = None

    def after(self, succeeded: Iterable[Pod], failed: Sequence[Pod]) -> FailureRow:
        """The row once these pods have ended too."""
        last_success = max(map(finished_at, succeeded), default=None)
        times = [finished_at(pod) for pod in failed]
        if last_success is None:
            if not times:
                return self
            return FailureRow(self.failures + len(times), max(times))
        later = [time for time in times if time > last_success]
        return FailureRow(len(later), max(later, default=None))


class Judgement(NamedTuple):
    """What a failure policy says about one failed pod."""

    counts: bool = True
    action: str = ""
    message: str = ""
    """Why the whole job fails, where it does."""


def replaces_failed_only(job: Job) -> bool:
    return job.spec.pod_replacement_policy == "Failed"


def has_failed(job: Job, pod: Pod) -> bool:
    """A pod that is deleted will not succeed, so it counts as failed unless the job waits for that to be certain."""
    if pod.status.phase == "Failed":
        return True
    if replaces_failed_only(job):
        return False
    return is_terminating(pod)


def judge(policy: PodFailurePolicy | None, pod: Pod) -> Judgement:
    """The first rule that fits decides; without one a failure counts."""
    for position, rule in enumerate(policy.rules if policy is not None else ()):
        message = _match(rule, pod, position)
        if message is None:
            continue
        fatal = rule.action == "FailJob"
        return Judgement(rule.action != "Ignore", rule.action, message if fatal else "")
    return Judgement()


def _match(rule: PodFailureRule, pod: Pod, position: int) -> str | None:
    """How a rule fits, in Kubernetes' words; None if it does not."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    ending = f"matching {rule.action} rule at index {position}"
    if rule.on_exit_codes is not None:
        statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
        for status in statuses:
            code = _failed_with(status, rule.on_exit_codes)
            if code is not None:
                return (
                    f"Container {status.name} for pod {where} failed with exit code {code} {ending}"
                )
        return None
    wanted = {(pattern.type_, pattern.status) for pattern in rule.on_pod_conditions}
    for condition in pod.status.conditions:
        if (condition.type_, condition.status) in wanted:
            return f"Pod {where} has condition {condition.type_} {ending}"
    return None


def _failed_with(status: ContainerStatus, codes: ExitCodes) -> int | None:
    terminated = status.state.terminated
    if terminated is None or terminated.exit_code == 0:
        return None
    if codes.container_name is not None and codes.container_name != status.name:
        return None
    fits = (terminated.exit_code in codes.values) is (codes.operator == "In")
    return terminated.exit_code if fits else None


def restarted_too_often(job: Job, pods: Iterable[Pod]) -> bool:
    """Whether the containers of a job that restarts them in place have used up its attempts."""
    if (job.spec.template.get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    alive = ("Running", "Pending")
    total = sum(restarts(pod) for pod in pods if pod.status.phase in alive)
    return total > 0 if job.spec.backoff_limit == 0 else total >= job.spec.backoff_limit
