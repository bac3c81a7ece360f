"""Finalizers that keep a deleted object until nothing uses it: how they are taken off."""

from __future__ import annotations

from typing import TypeVar

from drayman.cluster.patches import strategic_merge_patch
from drayman.controllers.workloads.holdings import HasMetadata
from drayman.controllers.workloads.reconciling import Reconciler

T = TypeVar("T", bound=HasMetadata)


class Protection(Reconciler[T]):
    """Takes one finalizer off what has been deleted."""

    async def unprotect(self, value: T, finalizer: str) -> None:
        metadata = value.metadata
        change = {"uid": metadata.uid, "$deleteFromPrimitiveList/finalizers": [finalizer]}
        await self.client.patch(
            self.resource,
            metadata.name,
            strategic_merge_patch({"metadata": change}),
            metadata.namespace or None,
        )


def is_leaving(value: HasMetadata, finalizer: str) -> bool:
    """Whether an object has been deleted and a finalizer keeps it."""
    metadata = value.metadata
    return metadata.deletion_timestamp is not None and finalizer in metadata.finalizers
