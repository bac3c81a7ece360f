"""ReplicaSets and ReplicationControllers: so many pods of one template, whichever they are."""

from __future__ import annotations

from drayman.controllers.workloads.replica_sets.controller import (
    ReplicaSetController,
    ReplicationManager,
)

__all__ = ["ReplicaSetController", "ReplicationManager"]
