"""The volume claims of a stateful set: made before the pod that uses them, kept or deleted with it as the set says.

Whether a claim outlives its pod is said by its owners: with whenScaled Delete a claim belongs to the pod that is given up, with
whenDeleted Delete to the set; garbage collection does the rest.
"""

from __future__ import annotations

from typing import Final

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.meta import OwnerReference
from drayman.api.storage import PersistentVolumeClaim
from drayman.api.workloads import StatefulSet
from drayman.cluster.client import Client
from drayman.cluster.errors import AlreadyExistsError, NotFoundError
from drayman.cluster.informers import Informers
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import VOLUME_CLAIMS
from drayman.workloads.pod_bodies import owner_reference
from drayman.workloads.stateful_sets.identity import (
    claim_bodies,
    claim_names,
    ordinal_of,
)

_BODIES: Final = VOLUME_CLAIMS.as_values()


class VolumeClaims:
    """The claims of all stateful sets."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._claims = informers.informer(VOLUME_CLAIMS).cache

    async def ensure(self, stateful_set: StatefulSet, ordinal: int) -> bool:
        """Makes the claims that a pod lacks. False where one is being deleted, and the pod has to wait."""
        for body in claim_bodies(stateful_set, ordinal):
            found = self._claims.get(body["metadata"]["name"], stateful_set.metadata.namespace)
            if found is None:
                try:
                    await self._client.create(_BODIES, body)
                except AlreadyExistsError:
                    # Made by us a moment ago, or by a person who wants it to be used.
                    continue
            elif found.metadata.deletion_timestamp is not None:
                return False
        return True

    async def own(self, stateful_set: StatefulSet, pod: Pod, *, condemned: bool) -> None:
        """Gives the claims of a pod the owners that the set's policy asks for."""
        policy = stateful_set.spec.persistent_volume_claim_retention_policy
        ordinal = ordinal_of(stateful_set.metadata.name, pod.metadata.name)
        if ordinal is None or not stateful_set.spec.volume_claim_templates:
            return
        ours = {stateful_set.metadata.uid, pod.metadata.uid}
        wanted: list[OwnerReference] = []
        if condemned and policy.when_scaled == "Delete":
            wanted = [
                OwnerReference(
                    api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid
                )
            ]
        elif policy.when_deleted == "Delete":
            wanted = [owner_reference(stateful_set)]
        for name in claim_names(stateful_set, ordinal).values():
            claim = self._claims.get(name, stateful_set.metadata.namespace)
            if claim is not None:
                others = [o for o in claim.metadata.owner_references if o.uid not in ours]
                await self._set_owners(claim, [*others, *wanted])

    async def _set_owners(self, claim: PersistentVolumeClaim, owners: list[OwnerReference]) -> None:
        metadata = claim.metadata
        before, after = set(map(_uid, metadata.owner_references)), set(map(_uid, owners))
        if before == after:
            return
        change = {
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "ownerReferences": [codec.to_dict(owner) for owner in owners],
        }
        try:
            await self._client.patch(
                VOLUME_CLAIMS, metadata.name, merge_patch({"metadata": change}), metadata.namespace
            )
        except NotFoundError:
            return


def _uid(owner: OwnerReference) -> str:
    return owner.uid
