"""What there is when nothing moves: workloads, queues, and what happened since the last time."""

from __future__ import annotations

from typing import Any, Final

from drayman.api.custom_groups import spec_of
from drayman.api.kueue import status_of
from drayman.api.kueue_workload import (
    ADMITTED,
    EVICTED,
    PREEMPTED,
    QUOTA_RESERVED,
    REQUEUED,
    PodSetAssignment,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)
from drayman.quota.amounts import FlavorResource, quantity_of
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.reasons import READY
from drayman.quota.state import QuotaState
from drayman.quota.topology.assignments import placement_of
from drayman.quota.tree.fairness import share_of
from drayman.simulate.quota_replay.objects import Objects
from drayman.workloads.queued import life

_SHOWN: Final = (EVICTED, PREEMPTED, REQUEUED)


def checkpoint_of(
    label: str, state: QuotaState, objects: Objects, events: list[dict[str, Any]]
) -> dict[str, Any]:
    """The checkpoint as JSON."""
    return {
        "label": label,
        "workloads": {key: _workload(workload) for key, workload in objects.workloads()},
        "clusterQueues": {
            name: _queue(state, queue) for name, queue in sorted(state.books.queues.items())
        },
        "events": events,
    }


def _workload(workload: Workload) -> dict[str, Any]:
    status = status_of(WorkloadStatus, workload)
    shown: dict[str, Any] = {"status": _phase(status)}
    if shown["status"] in ("admitted", "quotaReserved") and status.admission is not None:
        shown["podSets"] = [_pod_set(each) for each in status.admission.pod_set_assignments]
    if not spec_of(WorkloadSpec, workload).active:
        shown["active"] = False
    if status.scheduling_stats is not None:
        shown["evictions"] = {each.reason: each.count for each in status.scheduling_stats.evictions}
    if conditions := _conditions(status):
        shown["conditions"] = conditions
    return shown


def _phase(status: WorkloadStatus) -> str:
    if life.is_finished(status):
        return "finished"
    if not life.holds_quota(status):
        return "pending"
    return "admitted" if status.is_true(ADMITTED) else "quotaReserved"


def _conditions(status: WorkloadStatus) -> dict[str, list[str]]:
    shown = {}
    for type_ in (QUOTA_RESERVED, *_SHOWN):
        found = status.condition(type_)
        if found is not None and (type_ != QUOTA_RESERVED or found.status == "False"):
            shown[type_] = [found.status, found.reason]
    return shown


def _pod_set(assigned: PodSetAssignment) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": assigned.name,
        "count": assigned.count,
        "flavors": dict(assigned.flavors),
        "usage": {name: str(quantity) for name, quantity in assigned.resource_usage.items()},
    }
    if assigned.topology_assignment is not None:
        placement = placement_of(assigned.topology_assignment)
        shown["topology"] = {
            "levels": list(placement.levels),
            "domains": [[list(domain), pods] for domain, pods in placement.domains],
        }
    return shown


def _queue(state: QuotaState, queue: ClusterQueueState) -> dict[str, Any]:
    forest = state.books.forest
    node = forest.queues.get(queue.name)
    reservation: dict[str, dict[str, list[str]]] = {}
    for group in queue.spec.resource_groups:
        for flavor in group.flavors:
            shown = reservation.setdefault(flavor.name, {})
            for each in flavor.resources:
                what = FlavorResource(flavor.name, each.name)
                total = 0 if node is None else node.usage.get(what, 0)
                borrowed = 0 if node is None else node.borrowed(what)
                shown[each.name] = [
                    str(quantity_of(each.name, amount)) for amount in (total, borrowed)
                ]
    described: dict[str, Any] = {
        "active": ["False", queue.inactive] if queue.inactive else ["True", READY],
        "pending": len(queue.waiting),
        "reserving": len(queue.holders),
        "admitted": sum(each.facts.admitted for each in queue.holders.values()),
        "reservation": reservation,
    }
    if state.settings.fair_sharing is not None and node is not None:
        described["weightedShare"] = share_of(node).rounded
    return described
