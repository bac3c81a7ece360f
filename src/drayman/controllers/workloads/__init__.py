"""The controllers of what runs pods, and of what protects and serves them."""

from __future__ import annotations

from typing import Final

from drayman.controllers.workloads.daemon_sets import DaemonSetController
from drayman.controllers.workloads.deployments import DeploymentController
from drayman.controllers.workloads.disruption import DisruptionController
from drayman.controllers.workloads.jobs import JobController
from drayman.controllers.workloads.protection import (
    PodGroupProtectionController,
    VolumeClaimProtectionController,
    VolumeProtectionController,
)
from drayman.controllers.workloads.replica_sets import ReplicaSetController, ReplicationManager
from drayman.controllers.workloads.service_accounts import ServiceAccountController
from drayman.controllers.workloads.stateful_sets import StatefulSetController

CONTROLLERS: Final = (
    JobController,
    ReplicaSetController,
    ReplicationManager,
    DeploymentController,
    StatefulSetController,
    DaemonSetController,
    DisruptionController,
    ServiceAccountController,
    VolumeClaimProtectionController,
    VolumeProtectionController,
    PodGroupProtectionController,
)
"""All of them; each is made with a client and informers."""
