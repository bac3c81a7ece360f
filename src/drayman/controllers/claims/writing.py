"""Decisions about claims as writes.

Where the cluster has transactions, all changes for one pod or one claim are written together, and many of these at once. Elsewhere it takes
the calls that Kubernetes itself makes, one after the other, each on the version that the last one returned; calls for several pods and
claims run at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from drayman.api import codec
from drayman.api.alignment import ALIGNMENT
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim, ResourceClaimConsumerReference
from drayman.api.struct import Json
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, NotFoundError
from drayman.cluster.options import DeleteOptions, WriteOptions
from drayman.cluster.patches import apply_patch, merge_patch
from drayman.cluster.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS, Resource
from drayman.cluster.together import Bundle, write_in_turn, write_together
from drayman.cluster.writes import (
    CreateWrite,
    DeleteWrite,
    Parts,
    PartsWrite,
    PatchWrite,
    Path,
    RemoveWrite,
    Write,
)
from drayman.placement.alignment import without_note
from drayman.placement.claims import FINALIZER
from drayman.workloads.claims.generating import Generation
from drayman.workloads.claims.releasing import Release
from drayman.workloads.claims.reserving import Reservation

STATUS_MANAGER: Final = "ResourceClaimController"
_MANAGER: Final = "kube-controller-manager"
_AS_CONTROLLER: Final = WriteOptions(field_manager=_MANAGER)
_APPLY: Final = WriteOptions(field_manager=STATUS_MANAGER, force=True)
_AT_ONCE: Final = 10
"""How many tasks are carried out at the same time where each is written separately."""

Steps = Callable[[Client], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be written about one object."""

    writes: Sequence[Write]
    """In one transaction."""
    steps: Steps
    """The same as calls one after the other, for a cluster without transactions."""


async def carry_out(client: Client, tasks: Sequence[Task]) -> list[ClusterError | None]:
    """For each task, what it was refused with."""
    if client.transactional:
        refusals: dict[int, ClusterError] = {}
        bundles = [
            Bundle(task.writes, partial(refusals.__setitem__, number))
            for number, task in enumerate(tasks)
        ]
        await write_together(client, bundles)
        return [refusals.get(number) for number in range(len(tasks))]
    room = asyncio.Semaphore(_AT_ONCE)

    async def alone(task: Task) -> ClusterError | None:
        async with room:
            try:
                await task.steps(client)
            except ClusterError as error:
                return error
            return None

    return await asyncio.gather(*map(alone, tasks))


def generation_task(generation: Generation) -> Task:
    """The claims come first: a claim that a status names must exist."""
    return Task(_generation_writes(generation), partial(_generate_by_steps, generation))


def _generation_writes(generation: Generation) -> list[Write]:
    writes = _creations(generation)
    if generation.statuses:
        meta = generation.user.metadata
        statuses: Parts = {("status", "resourceClaimStatuses"): _entries(generation)}
        writes.append(
            PartsWrite(
                resource_of(generation.user),
                meta.name,
                meta.namespace,
                statuses,
                uid=meta.uid,
                field_manager=STATUS_MANAGER,
            )
        )
    return writes


async def _generate_by_steps(generation: Generation, client: Client) -> None:
    """The status is applied, so that entries which others have added meanwhile stay."""
    writes = _creations(generation)
    if generation.statuses:
        writes.append(_application(generation))
    await write_in_turn(client, writes)


def _application(generation: Generation) -> Write:
    user, meta = generation.user, generation.user.metadata
    # With the uid the entries cannot end up in another object of the same name.
    identity = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
    status = {"resourceClaimStatuses": _entries(generation)}
    kind = {"apiVersion": user.api_version, "kind": user.kind}
    patch = apply_patch({**kind, "metadata": identity, "status": status})
    return PatchWrite(resource_of(user), meta.name, patch, meta.namespace, "status", _APPLY)


def resource_of(user: Pod | PodGroup) -> Resource[Any]:
    return POD_GROUPS if isinstance(user, PodGroup) else PODS


def _creations(generation: Generation) -> list[Write]:
    return [
        CreateWrite(RESOURCE_CLAIMS, claim, options=_AS_CONTROLLER) for claim in generation.claims
    ]


def _entries(generation: Generation) -> list[Json]:
    return [codec.to_dict(status) for status in generation.statuses]


def release_task(release: Release) -> Task:
    """A claim that nothing else holds is released and deleted in one write. Each step fails if the claim changed since the last one."""
    return Task(_release_writes(release), partial(_release_by_steps, release))


def _release_writes(release: Release) -> list[Write]:
    claim, meta = release.claim, release.claim.metadata
    parts: dict[Path, Json] = {}
    if release.changes_status:
        parts |= {("status", name): value for name, value in _status_of(release).items()}
    if release.removes_finalizer:
        parts["metadata", "finalizers"] = _other_finalizers(claim)
        if ALIGNMENT in meta.annotations:
            parts["metadata", "annotations"] = (
                dict(without_note(claim).metadata.annotations) or None
            )
    if not parts:
        return [_deletion(claim)] if release.deletes else []
    write = PartsWrite.of(RESOURCE_CLAIMS, claim, parts, field_manager=_MANAGER)
    is_deleting = meta.deletion_timestamp is not None
    if release.deletes or (is_deleting and release.removes_finalizer):
        return [RemoveWrite(write)]
    return [write]


async def _release_by_steps(release: Release, client: Client) -> None:
    claim = await _give_back(client, release) if release.changes_status else release.claim
    if release.removes_finalizer and FINALIZER in claim.metadata.finalizers:
        await _remove_finalizer(client, claim)
    if release.deletes:
        await _delete(client, claim)


async def _give_back(client: Client, release: Release) -> ResourceClaim:
    meta = release.claim.metadata
    change = {
        "metadata": {"resourceVersion": meta.resource_version},
        "status": _status_of(release),
    }
    return await client.patch(
        RESOURCE_CLAIMS,
        meta.name,
        merge_patch(change),
        meta.namespace,
        subresource="status",
        options=_AS_CONTROLLER,
    )


async def _remove_finalizer(client: Client, claim: ResourceClaim) -> None:
    meta = claim.metadata
    change: dict[str, Json] = {
        "resourceVersion": meta.resource_version,
        "finalizers": _other_finalizers(claim),
    }
    if ALIGNMENT in meta.annotations:
        change["annotations"] = {ALIGNMENT: None}
    await client.patch(
        RESOURCE_CLAIMS,
        meta.name,
        merge_patch({"metadata": change}),
        meta.namespace,
        options=_AS_CONTROLLER,
    )


async def _delete(client: Client, claim: ResourceClaim) -> None:
    meta = claim.metadata
    try:
        await client.delete(
            RESOURCE_CLAIMS, meta.name, meta.namespace, options=DeleteOptions(uid=meta.uid)
        )
    except NotFoundError:
        return


def reservation_task(reservations: Sequence[Reservation]) -> Task:
    """Adds to the consumers of some claims, if they have not changed."""
    writes = [_reservation(*reservation) for reservation in reservations]
    return Task(writes, partial(write_in_turn, writes=writes))


def _reservation(claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> Write:
    consumers = (*claim.status.reserved_for, consumer)
    entries: list[Json] = [codec.to_dict(consumer) for consumer in consumers]
    parts: Parts = {("status", "reservedFor"): entries}
    return PartsWrite.of(RESOURCE_CLAIMS, claim, parts, field_manager=_MANAGER)


def _status_of(release: Release) -> dict[str, Json]:
    """The fields of the status that a release changes."""
    status: dict[str, Json] = {
        "reservedFor": [codec.to_dict(consumer) for consumer in release.remaining] or None
    }
    if release.deallocates:
        status |= {"allocation": None, "devices": None}
    return status


def _other_finalizers(claim: ResourceClaim) -> list[str] | None:
    return [name for name in claim.metadata.finalizers if name != FINALIZER] or None


def _deletion(claim: ResourceClaim) -> Write:
    meta = claim.metadata
    return DeleteWrite(RESOURCE_CLAIMS, meta.name, meta.namespace, DeleteOptions(uid=meta.uid))
