"""Moves deployments from one replica set to the next, at the pace they allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from drayman.api import codec
from drayman.api.workloads import Deployment, DeploymentStatus, ReplicaSet
from drayman.cluster.errors import AlreadyExistsError, ClusterError, NotFoundError
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import DEPLOYMENTS, REPLICA_SETS
from drayman.controllers.workloads.owning import Owner
from drayman.controllers.workloads.owning_pods import is_namespace_ending
from drayman.controllers.workloads.reconciling import Key
from drayman.workloads.conditions import Conditions, with_condition
from drayman.workloads.deployments.lineage import (
    REVISION,
    annotations_of_new,
    by_age,
    expired,
    find_new,
    new_replica_set,
    next_revision,
    size_annotations,
)
from drayman.workloads.deployments.progress import (
    PROGRESSING,
    counted,
    has_deadline,
    is_complete,
    until_stuck,
    with_failure,
    with_pause,
    with_progress,
)
from drayman.workloads.deployments.sizes import (
    Sizes,
    only_scales,
    scaled,
    size_of_new,
    sizes_of_old,
)

_REPLICA_SET_BODIES: Final = REPLICA_SETS.as_values()


class DeploymentController(Owner[Deployment, ReplicaSet]):
    """Keeps a replica set for the template of each deployment, and lets the earlier ones go."""

    resource = DEPLOYMENTS
    component = "deployment-controller"
    owned = REPLICA_SETS

    def selects(self, value: Deployment) -> bool:
        return value.metadata.deletion_timestamp is None

    async def reconcile(self, key: Key) -> None:
        deployment = self.find(key)
        if deployment is None:
            return
        sets = by_age(await self.claim(deployment))
        now = self.clock()
        if deployment.metadata.deletion_timestamp is not None:
            status = counted(deployment, sets, find_new(deployment, sets), now)
            await self._report(deployment, status, None)
            return
        deployment = _with_conditions(deployment, with_pause(deployment, now))
        if only_scales(deployment, sets):
            await self._scale(key, deployment, sets)
        elif deployment.spec.strategy.type_ == "Recreate":
            await self._recreate(key, deployment, sets)
        else:
            await self._roll(key, deployment, sets)

    async def _scale(self, key: Key, deployment: Deployment, sets: Sequence[ReplicaSet]) -> None:
        """Only the size changes; the template waits."""
        new = find_new(deployment, sets)
        old = _others(sets, new)
        if new is not None:
            new = await self._refresh(deployment, new, old)
        present = old if new is None else [*old, new]
        await self._resize(deployment, present, scaled(deployment, new, old))
        sets = self._sets(deployment)
        new = find_new(deployment, sets)
        if deployment.spec.paused:
            await self._forget(deployment, _others(sets, new))
        status = counted(deployment, sets, new, self.clock())
        await self._report(deployment, with_failure(status, sets), new)
        if not deployment.spec.paused:
            self.queue.add(key)

    async def _roll(self, key: Key, deployment: Deployment, sets: Sequence[ReplicaSet]) -> None:
        """A few pods at a time."""
        found = find_new(deployment, sets)
        old = _others(sets, found)
        if found is None:
            deployment, new = await self._create(deployment, old)
            if new is None:
                return
        else:
            new = await self._refresh(deployment, found, old)
            size = size_of_new(deployment, new, old)
            await self._resize(deployment, [new], {new.metadata.name: size})
        sets = self._sets(deployment)
        new = find_new(deployment, sets) or new
        sizes = sizes_of_old(deployment, new, _others(sets, new))
        await self._resize(deployment, sets, sizes)
        await self._finish(key, deployment)

    async def _recreate(self, key: Key, deployment: Deployment, sets: Sequence[ReplicaSet]) -> None:
        """Everything old has to be gone before anything new begins."""
        found = find_new(deployment, sets)
        old = _others(sets, found)
        await self._resize(deployment, old, {s.metadata.name: 0 for s in old})
        old = _others(self._sets(deployment), found)
        if not any(map(_has_pods, old)):
            if found is None:
                deployment, new = await self._create(deployment, old)
                if new is None:
                    return
            else:
                new = await self._refresh(deployment, found, old)
                sizes = {new.metadata.name: deployment.spec.replicas}
                await self._resize(deployment, [new], sizes)
        await self._finish(key, deployment)

    async def _finish(self, key: Key, deployment: Deployment) -> None:
        """Reports, and removes what is too old once all is done."""
        sets = self._sets(deployment)
        new, now = find_new(deployment, sets), self.clock()
        status = counted(deployment, sets, new, now)
        if is_complete(deployment, status):
            await self._forget(deployment, _others(sets, new))
        status = with_failure(with_progress(deployment, status, new, now), sets)
        await self._report(deployment, status, new)
        wait = until_stuck(deployment, status, now)
        if wait is not None:
            self.queue.add_after(key, wait)

    async def _create(
        self, deployment: Deployment, old: Sequence[ReplicaSet]
    ) -> tuple[Deployment, ReplicaSet | None]:
        """Makes the replica set of the present template; None where its name is taken and another must be found."""
        size = size_of_new(deployment, None, old)
        body = new_replica_set(deployment, next_revision(old), size)
        name = body["metadata"]["name"]
        try:
            made = await self.client.create(_REPLICA_SET_BODIES, body)
        except AlreadyExistsError:
            return deployment, await self._take_existing(deployment, name)
        except ClusterError as error:
            if is_namespace_ending(error):
                return deployment, None
            await self._report_refusal(deployment, name, error)
            raise
        new = codec.convert(ReplicaSet, made)
        self.holdings.wrote(new)
        if size:
            note = f"Scaled up replica set {name} from 0 to {size}"
            self.record(deployment, "Normal", "ScalingReplicaSet", note)
        message = f'Created new replica set "{name}"'
        return self._progressed(deployment, "True", "NewReplicaSetCreated", message), new

    async def _take_existing(self, deployment: Deployment, name: str) -> ReplicaSet | None:
        found = await self.client.get(REPLICA_SETS, name, deployment.metadata.namespace)
        owners = [o.uid for o in found.metadata.owner_references if o.controller]
        if owners == [deployment.metadata.uid] and find_new(deployment, [found]) is not None:
            self.holdings.wrote(found)
            return found
        collisions = (deployment.status.collision_count or 0) + 1
        status = msgspec.structs.replace(deployment.status, collision_count=collisions)
        await self.write_status(deployment, status)
        return None

    async def _report_refusal(self, deployment: Deployment, name: str, error: ClusterError) -> None:
        message = f'Failed to create new replica set "{name}": {error}'
        self.record(deployment, "Warning", "ReplicaSetCreateError", message)
        status = self._progressed(deployment, "False", "ReplicaSetCreateError", message).status
        if status != deployment.status:
            await self.write_status(deployment, status)

    def _progressed(
        self, deployment: Deployment, value: str, reason: str, message: str
    ) -> Deployment:
        if not has_deadline(deployment):
            return deployment
        conditions = with_condition(
            deployment.status.conditions,
            PROGRESSING,
            value,
            reason,
            message,
            self.clock(),
            updates=True,
        )
        return _with_conditions(deployment, conditions)

    async def _refresh(
        self, deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]
    ) -> ReplicaSet:
        """Writes its revision and other changes of the deployment to the present replica set."""
        annotations = annotations_of_new(deployment, new, next_revision(old))
        ready = deployment.spec.min_ready_seconds
        if annotations == new.metadata.annotations and ready == new.spec.min_ready_seconds:
            return new
        metadata = {"uid": new.metadata.uid, "annotations": annotations}
        change = {"metadata": metadata, "spec": {"minReadySeconds": ready}}
        return await self.patch_owned(new, merge_patch(change))

    async def _resize(
        self, deployment: Deployment, sets: Sequence[ReplicaSet], sizes: Sizes
    ) -> None:
        annotations = size_annotations(deployment)
        for replica_set in sets:
            size, before = sizes.get(replica_set.metadata.name), replica_set.spec.replicas
            if size is None:
                continue
            if size == before and annotations.items() <= replica_set.metadata.annotations.items():
                continue
            metadata = {
                "uid": replica_set.metadata.uid,
                "resourceVersion": replica_set.metadata.resource_version,
                "annotations": annotations,
            }
            change = merge_patch({"metadata": metadata, "spec": {"replicas": size}})
            await self.patch_owned(replica_set, change)
            if size != before:
                direction = "up" if size > before else "down"
                name = replica_set.metadata.name
                note = f"Scaled {direction} replica set {name} from {before} to {size}"
                self.record(deployment, "Normal", "ScalingReplicaSet", note)

    async def _forget(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> None:
        for replica_set in expired(deployment, old):
            metadata = replica_set.metadata
            options = DeleteOptions(uid=metadata.uid, propagation="Background")
            try:
                answer = await self.client.delete(
                    REPLICA_SETS, metadata.name, metadata.namespace, options=options
                )
            except NotFoundError:
                answer = None
            self.holdings.deleted(replica_set, answer)

    async def _report(
        self, deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None
    ) -> None:
        """Writes what has changed since the deployment was read."""
        metadata = deployment.metadata
        annotations = metadata.annotations
        if new is not None and REVISION in new.metadata.annotations:
            annotations = {**annotations, REVISION: new.metadata.annotations[REVISION]}
        before = self.find((metadata.namespace, metadata.name))
        if before is None or before.metadata.uid != metadata.uid:
            return
        if status != before.status or annotations != before.metadata.annotations:
            await self.write_status(deployment, status, annotations)

    def _sets(self, deployment: Deployment) -> list[ReplicaSet]:
        return by_age(self.holdings.of(deployment.metadata.uid))


def _with_conditions(deployment: Deployment, conditions: Conditions) -> Deployment:
    status = msgspec.structs.replace(deployment.status, conditions=conditions)
    return msgspec.structs.replace(deployment, status=status)


def _others(sets: Sequence[ReplicaSet], new: ReplicaSet | None) -> list[ReplicaSet]:
    return [s for s in sets if new is None or s.metadata.uid != new.metadata.uid]


def _has_pods(replica_set: ReplicaSet) -> bool:
    """Whether pods of a replica set are left, as far as its status is up to date."""
    status = replica_set.status
    return bool(
        status.replicas
        or status.terminating_replicas
        or replica_set.metadata.generation > status.observed_generation
    )
