"""What the object of a workload says, as far as decisions about quota depend on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from drayman.api.custom_groups import spec_of
from drayman.api.errors import DecodeError
from drayman.api.kueue import status_of
from drayman.api.kueue_workload import (
    ADMITTED,
    EVICTED,
    FINISHED,
    PODS_READY,
    QUOTA_RESERVED,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)
from drayman.api.limit_ranges import LimitRange
from drayman.api.times import seconds_of
from drayman.quota.admissions import holding_of
from drayman.quota.claims.records import uses_of
from drayman.quota.demands import PodSetDemand, Pricing, Unpriced
from drayman.quota.entries import Facts, Holding
from drayman.quota.reasons import ADMISSION_CHECK, PODS_READY_TIMEOUT
from drayman.quota.requests import demands_of
from drayman.quota.settings import EVICTION, QuotaSettings
from drayman.workloads.queued.names import REPLACES

_OPEN = "Open"


class Reading(Struct, frozen=True):
    """A workload as its object has it."""

    facts: Facts
    holding: Holding | None
    told: str
    """Why it has no quota, as its condition says it; empty: nothing was said yet. Not among the facts: nothing is decided by it."""


def key_of(namespace: str, name: str) -> str:
    return f"{namespace}/{name}"


def read(
    workload: Workload,
    settings: QuotaSettings,
    limit_ranges: Sequence[LimitRange],
    pricing: Pricing | None,
    runs_elsewhere: Callable[[str], bool],
) -> Reading:
    """Read a workload. Raises DecodeError where its spec or status makes no sense.

    `runs_elsewhere`: whether the workloads of a local queue, by its key, run in another cluster.
    """
    metadata = workload.metadata
    spec = spec_of(WorkloadSpec, workload)
    status = status_of(WorkloadStatus, workload)
    created = seconds_of(metadata.creation_timestamp) or 0.0
    evicted = status.condition(EVICTED)
    queue = key_of(metadata.namespace, spec.queue_name)
    is_elsewhere = runs_elsewhere(queue)
    try:
        demands = demands_of(
            metadata.namespace,
            key_of(metadata.namespace, metadata.name),
            spec.pod_sets,
            status.reclaimable_pods,
            limit_ranges,
            settings.resources,
            pricing,
            runs_elsewhere=is_elsewhere,
        )
    except DecodeError as error:
        raise error.under("spec.podSets") from error
    requeue = status.requeue_state
    opened = {each.name for each in status.preemption_gates if each.position == _OPEN}
    facts = Facts(
        key=key_of(metadata.namespace, metadata.name),
        namespace=metadata.namespace,
        uid=metadata.uid or key_of(metadata.namespace, metadata.name),
        queue=queue,
        priority=spec.priority or 0,
        created=created,
        queued_since=_queued_since(status, created, settings),
        active=spec.active,
        finished=status.is_true(FINISHED),
        evicted=evicted is not None and evicted.status == "True",
        evicted_for=evicted.reason if evicted is not None and evicted.status == "True" else "",
        requeue_at=(seconds_of(requeue.requeue_at) or 0.0) if requeue is not None else 0.0,
        demands=demands,
        failed_checks=any(each.state in ("Retry", "Rejected") for each in status.admission_checks),
        gates_closed=any(each.name not in opened for each in spec.preemption_gates),
        admitted=status.is_true(ADMITTED),
        pods_ready=status.is_true(PODS_READY),
        replaces=_replaced(workload),
        owner=_owner(workload),
        runs_elsewhere=is_elsewhere,
    )
    told = status.condition(QUOTA_RESERVED)
    reason = "" if told is None else told.reason
    return Reading(facts, _holding(workload, status, demands), reason)


def _replaced(workload: Workload) -> str:
    """The key of another workload whose place this one is to take."""
    metadata = workload.metadata
    named = metadata.annotations.get(REPLACES, "")
    return "" if named == key_of(metadata.namespace, metadata.name) else named


def _owner(workload: Workload) -> str:
    owners = workload.metadata.owner_references
    return next((owner.uid for owner in owners if owner.controller), "")


def _queued_since(status: WorkloadStatus, created: float, settings: QuotaSettings) -> float:
    """Who is evicted because its pods were not ready, or by a check, goes to the back of its priority; all others keep their place."""
    evicted = status.condition(EVICTED)
    if evicted is None or evicted.status != "True" or evicted.last_transition_time is None:
        return created
    to_the_back = settings.wait_for_pods_ready.requeuing_strategy.timestamp == EVICTION
    if evicted.reason == ADMISSION_CHECK or (evicted.reason == PODS_READY_TIMEOUT and to_the_back):
        return seconds_of(evicted.last_transition_time)
    return created


def _holding(
    workload: Workload, status: WorkloadStatus, demands: tuple[PodSetDemand, ...] | Unpriced
) -> Holding | None:
    reserved = status.condition(QUOTA_RESERVED)
    if status.admission is None or reserved is None or reserved.status != "True":
        return None
    since = seconds_of(reserved.last_transition_time) or 0.0
    metadata = workload.metadata
    claims = uses_of(metadata.namespace, metadata.annotations)
    return holding_of(status.admission, since, demands, status.reclaimable_pods, claims)
