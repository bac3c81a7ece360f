"""What a job needs: whether it is decided, how many pods it lacks or has too many, when to look again.

The order of the questions matters, since a job can meet several ends at once: what was decided before stands; then failures; then
success. Pods are either made or deleted in one round, not both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from drayman.api.core import Pod
from drayman.api.jobs import Job, SuccessRule
from drayman.api.pods import is_terminating
from drayman.api.times import seconds_of
from drayman.workloads.jobs.census import Census, wanted_at_once
from drayman.workloads.jobs.failures import (
    BackoffTimes,
    FailureRow,
    judge,
    replaces_failed_only,
    restarted_too_often,
)
from drayman.workloads.jobs.indexes import IndexSet
from drayman.workloads.jobs.pods import (
    FAILURES,
    IGNORED_FAILURES,
    Seed,
    count_in,
    index_of,
)
from drayman.workloads.pod_bodies import MOST_PER_ROUND
from drayman.workloads.pod_state import expendable_first, finished_at

FAILING: Final = "FailureTarget"
SUCCEEDING: Final = "SuccessCriteriaMet"


@dataclass(frozen=True, slots=True)
class JobVerdict:
    """A job is decided; it ends when all of its pods have."""

    type_: Literal["FailureTarget", "SuccessCriteriaMet"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class JobDecision:
    """What to do about a job's pods now."""

    row: FailureRow
    verdict: JobVerdict | None = None
    create: tuple[Seed, ...] = ()
    delete: tuple[Pod, ...] = ()
    wait: float | None = None
    """Seconds after which time alone changes the decision."""


def decide(
    census: Census,
    row: FailureRow,
    times: BackoffTimes,
    now: float,
    *,
    most: int = MOST_PER_ROUND,
) -> JobDecision:
    """`row` is how many failures there were in a row before the pods that the status does not have yet.

    No more pods than `most` are made.
    """
    job = census.job
    row = row.after(census.new_succeeded, census.new_failed)
    verdict = next(_verdicts(census, now), None)
    if verdict is not None:
        return JobDecision(row, verdict, delete=census.active)
    decision = JobDecision(row, wait=_until_deadline(job, now))
    if job.metadata.deletion_timestamp is None:
        decision = _manage(census, decision, times, now, most)
    remaining = len(census.active) - len(decision.delete) + len(decision.create)
    if _is_complete(census, remaining):
        reached = "Reached expected number of succeeded pods"
        return replace(decision, verdict=JobVerdict(SUCCEEDING, "CompletionsReached", reached))
    return decision


def _verdicts(census: Census, now: float) -> Iterator[JobVerdict]:
    """Why a job is decided, the most binding reason first."""
    job = census.job
    standing = {c.type_: c for c in job.status.conditions if c.status == "True"}
    if met := standing.get(SUCCEEDING):
        yield JobVerdict(SUCCEEDING, met.reason, met.message)
    if failing := standing.get(FAILING):
        yield JobVerdict(FAILING, failing.reason, failing.message)
    for pod in census.new_failed:
        if message := judge(job.spec.pod_failure_policy, pod).message:
            yield JobVerdict(FAILING, "PodFailurePolicy", message)
    if census.failed > job.spec.backoff_limit or restarted_too_often(job, census.pods):
        message = "Job has reached the specified backoff limit"
        yield JobVerdict(FAILING, "BackoffLimitExceeded", message)
    if (left := _until_deadline(job, now)) is not None and left <= 0:
        message = "Job was active longer than specified deadline"
        yield JobVerdict(FAILING, "DeadlineExceeded", message)
    if census.counts_by_index:
        yield from _index_verdicts(census)
    if census.is_indexed and job.spec.success_policy is not None:
        for position, rule in enumerate(job.spec.success_policy.rules):
            if _is_met(rule, census.succeeded_indexes, census.completions):
                yield JobVerdict(SUCCEEDING, "SuccessPolicy", f"Matched rules at index {position}")


def _index_verdicts(census: Census) -> Iterator[JobVerdict]:
    failed, most = len(census.failed_indexes), census.job.spec.max_failed_indexes
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        yield JobVerdict(FAILING, "MaxFailedIndexesExceeded", message)
    elif failed and failed + len(census.succeeded_indexes) >= census.completions:
        yield JobVerdict(FAILING, "FailedIndexes", "Job has failed indexes")


def _is_met(rule: SuccessRule, succeeded: IndexSet, completions: int) -> bool:
    if not succeeded.intervals:
        return False
    if rule.succeeded_indexes is None:
        return rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
    wanted = IndexSet.parse(rule.succeeded_indexes, completions)
    if not wanted.intervals:
        return False
    both = wanted.overlap(succeeded)
    return both == len(wanted) or (
        rule.succeeded_count is not None and both >= rule.succeeded_count
    )


def _until_deadline(job: Job, now: float) -> float | None:
    """Seconds that a job may still be active; None where that is not limited, or not now."""
    limit, start = job.spec.active_deadline_seconds, job.status.start_time
    if limit is None or job.spec.suspend:
        return None
    return float(limit) if start is None else seconds_of(start) + limit - now


def _is_complete(census: Census, active: int) -> bool:
    if active:
        return False
    if census.job.spec.completions is None:
        return census.succeeded > 0
    return census.succeeded >= census.completions


def _manage(
    census: Census, decision: JobDecision, times: BackoffTimes, now: float, most: int
) -> JobDecision:
    active = len(census.active)
    wanted = 0 if census.job.spec.suspend else _wanted_active(census)
    surplus = _surplus(census, max(0, active - wanted), now)
    if surplus or census.job.spec.suspend:
        return replace(decision, delete=tuple(surplus))
    # A job that only replaces pods that have certainly failed waits for those that are being deleted.
    waited_for = census.terminating if replaces_failed_only(census.job) else 0
    missing = min(wanted - waited_for - active, most)
    if missing <= 0:
        return decision
    if not census.counts_by_index:
        left = times.remaining(decision.row.failures, decision.row.last, now)
        if left > 0:
            return replace(decision, wait=_soonest((decision.wait, left)))
    return _seeded(census, decision, missing, times, now)


def _wanted_active(census: Census) -> int:
    wanted = wanted_at_once(census.job, census.succeeded)
    return len(census.active) if wanted is None else wanted


def _surplus(census: Census, at_least: int, now: float) -> list[Pod]:
    """Pods to give up: those whose index is of no use, and as many more as have to go."""
    if not at_least and not census.is_indexed:
        return []
    ranked = expendable_first(census.active, now)
    useless = _useless(census, ranked) if census.is_indexed else []
    if len(useless) >= at_least:
        return useless[:MOST_PER_ROUND]
    chosen = {pod.metadata.uid for pod in useless}
    others = [pod for pod in ranked if pod.metadata.uid not in chosen]
    return [*useless, *others[: at_least - len(useless)]][:MOST_PER_ROUND]


def _useless(census: Census, ranked: list[Pod]) -> list[Pod]:
    """Pods without an index that counts, and of several with one index all but the best."""
    found, kept = [], set()
    for pod in reversed(ranked):
        index = index_of(pod, census.completions)
        if index is None or index in kept:
            found.append(pod)
        else:
            kept.add(index)
    return found


def _seeded(
    census: Census, decision: JobDecision, missing: int, times: BackoffTimes, now: float
) -> JobDecision:
    if not census.is_indexed:
        return replace(decision, create=(Seed(),) * missing)
    taken = (census.succeeded_indexes | census.failed_indexes).with_indexes(
        census.indexes(census.active)
    )
    if replaces_failed_only(census.job):
        taken = taken.with_indexes(census.indexes(filter(is_terminating, census.pods)))
    pending = taken.absent(missing, census.completions)
    if not census.counts_by_index:
        return replace(decision, create=tuple(Seed(index) for index in pending))
    seeds, waits = [], [decision.wait]
    for index in pending:
        last = census.last_failures.get(index)
        left = 0.0 if last is None else times.remaining(_attempts(last), finished_at(last), now)
        if left > 0:
            waits.append(left)
        else:
            seeds.append(_next_attempt(census.job, index, last))
    return replace(decision, create=tuple(seeds), wait=_soonest(waits))


def _soonest(delays: Iterable[float | None]) -> float | None:
    """The shortest of the delays that are not None."""
    return min((delay for delay in delays if delay is not None), default=None)


def _attempts(pod: Pod) -> int:
    return count_in(pod, FAILURES) + count_in(pod, IGNORED_FAILURES) + 1


def _next_attempt(job: Job, index: int, last: Pod | None) -> Seed:
    if last is None:
        return Seed(index, failures=0)
    counts = judge(job.spec.pod_failure_policy, last).counts
    return Seed(
        index,
        failures=count_in(last, FAILURES) + counts,
        ignored_failures=count_in(last, IGNORED_FAILURES) + (not counts),
    )
