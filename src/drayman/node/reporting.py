"""What simulated and real nodes tell a cluster in the same way."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drayman.api.struct import Json
from drayman.api.times import micro_timestamp
from drayman.cluster.resources import LEASES

MANAGER: Final = "drayman-node"
"""Who owns the fields that nodes write."""
SIMULATED: Final = "drayman.dev/simulated"
"""Label of a node that the simulation may touch; its value is `true`."""
VERSION: Final = "v1.36.4"
"""Of Kubernetes, whose rules nodes follow."""
FAILED_PREPARE: Final = "FailedPrepareDynamicResources"
"""The event of a pod whose claims cannot be prepared."""
LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40


def lease_of(node: str, now: datetime) -> dict[str, Json]:
    """The lease that a node renews to say that it is alive."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": node, "namespace": LEASE_NAMESPACE},
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": micro_timestamp(now),
        },
    }
