"""Whether what a Workload is for may run, why not, and what is written when it has stopped."""

from __future__ import annotations

from drayman.controllers.quota.book import Known
from drayman.controllers.quota.shared import Shared
from drayman.quota.reasons import PENDING_EVALUATION
from drayman.workloads.dispatching.life import is_elsewhere
from drayman.workloads.queued import life


async def release_quota(shared: Shared, workload: Known) -> None:
    """Give back the quota of an evicted Workload of which nothing runs, as soon as that is so."""
    if shared.book.holds_back(workload):
        return
    evicted = workload.status.condition("Evicted")
    message = "" if evicted is None else evicted.message
    status = life.released(
        workload.status, PENDING_EVALUATION, message, shared.clock(), workload.generation
    )
    await shared.book.write_status(workload, status)


def may_run(workload: Known) -> bool:
    return life.may_run(workload.status, workload.spec)


def is_stopped(workload: Known) -> bool:
    """Whether quota is to be given back by a Workload of which nothing runs in another cluster any more."""
    status = workload.status
    evicted = life.is_evicted(status) or not workload.spec.active
    return life.holds_quota(status) and evicted and not is_elsewhere(status)


def why_not(workload: Known) -> str:
    status = workload.status
    if not workload.spec.active:
        return "its Workload is not active"
    if life.is_evicted(status):
        evicted = status.condition("Evicted")
        return evicted.message if evicted is not None else "its Workload was evicted"
    return "Not admitted by cluster queue"
