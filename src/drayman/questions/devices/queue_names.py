"""In which queue devices are held: the ClusterQueue that has given quota for them, or the Queue that a pod of the KAI Scheduler is in.

Which pods are a workload's is said by `quota.fitting.belonging`, which queue of KAI a pod is in by `placement.queueing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup, KaiQueue
from drayman.api.errors import DecodeError
from drayman.api.jobs import Job
from drayman.api.kueue import status_of
from drayman.api.kueue_workload import Workload, WorkloadStatus
from drayman.api.resource import ResourceClaim
from drayman.cluster import Client
from drayman.cluster.errors import ForbiddenError, NotFoundError
from drayman.cluster.resources import Resource, typed
from drayman.questions.reading import IN_PAGES

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueueObjects:
    """What says in which queues pods are."""

    workloads: tuple[Workload, ...] = ()
    kai_queues: tuple[KaiQueue, ...] = ()
    kai_pod_groups: tuple[KaiPodGroup, ...] = ()
    jobs: tuple[Job, ...] = ()


async def read_queue_objects(client: Client) -> tuple[QueueObjects, tuple[str, ...]]:
    """What there is of it, and what may not be read. What a cluster does not serve, it has none of."""
    (workloads, hidden), (queues, unseen) = await asyncio.gather(
        _listed(client, typed(Workload), "whose quota is used is not shown"),
        _listed(client, typed(KaiQueue), "who holds devices in them is not shown"),
    )
    if not queues:
        return QueueObjects(workloads), (*hidden, *unseen)
    lost = "pods that are in a queue by them are shown without"
    (groups, ungrouped), (jobs, unnamed) = await asyncio.gather(
        _listed(client, typed(KaiPodGroup), lost), _listed(client, typed(Job), lost)
    )
    found = QueueObjects(workloads, queues, groups, jobs)
    return found, (*hidden, *unseen, *ungrouped, *unnamed)


async def _listed(
    client: Client, resource: Resource[T], otherwise: str
) -> tuple[tuple[T, ...], tuple[str, ...]]:
    try:
        return (await client.list_all(resource, options=IN_PAGES)).items, ()
    except NotFoundError:
        return (), ()
    except ForbiddenError:
        return (), (f"you may not list {resource.qualified}: {otherwise}",)


def queue_names(
    objects: QueueObjects, pods: Iterable[Pod], claims: Iterable[ResourceClaim]
) -> Mapping[str, str]:
    """As in `ClusterQueue/a` or `Queue/b`, by the uid of what claims are reserved for, as far as it is in a queue."""
    from drayman.quota.fitting.belonging import handles_of_pod

    names = dict(_with_quota(objects.workloads))
    users = {each.uid for claim in claims for each in claim.status.reserved_for}
    concerned = [pod for pod in pods if pod.metadata.uid in users]
    leaves = _kai_leaves(objects, concerned)
    for pod in concerned:
        known = (names[each] for each in handles_of_pod(pod) if each in names)
        found = next(known, None) or leaves.get(pod.metadata.uid)
        if found is not None:
            names[pod.metadata.uid] = found
    return names


def _with_quota(workloads: Iterable[Workload]) -> Iterable[tuple[str, str]]:
    """The queue of each workload, by what its pods know it by. Those without quota have no devices."""
    from drayman.quota.fitting.belonging import handles_of

    for workload in workloads:
        try:
            admission = status_of(WorkloadStatus, workload).admission
        except DecodeError:
            continue
        if admission is not None:
            for handle in handles_of(workload):
                yield handle, f"ClusterQueue/{admission.cluster_queue}"


def _kai_leaves(objects: QueueObjects, pods: list[Pod]) -> Mapping[str, str]:
    """The queue of KAI that pods are in, by their uids."""
    if not objects.kai_queues:
        return {}
    from drayman.placement.world import Objects, state_of

    book = state_of(
        Objects(
            pods=tuple(pods),
            kai_queues=objects.kai_queues,
            kai_pod_groups=objects.kai_pod_groups,
            jobs=objects.jobs,
        )
    ).queues
    found = {pod.metadata.uid: book.leaf_of(pod.metadata.uid) for pod in pods}
    return {uid: f"Queue/{leaf}" for uid, leaf in found.items() if leaf and leaf in book.tree}
