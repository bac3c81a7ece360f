"""The taints by which a control plane says what is wrong with a node, and those that daemons tolerate."""

from __future__ import annotations

from typing import Final

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
MEMORY_PRESSURE: Final = "node.kubernetes.io/memory-pressure"
DISK_PRESSURE: Final = "node.kubernetes.io/disk-pressure"
PID_PRESSURE: Final = "node.kubernetes.io/pid-pressure"
NETWORK_UNAVAILABLE: Final = "node.kubernetes.io/network-unavailable"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""Set by people: what ran on the node will not come back."""

DAEMONS_TOLERATE: Final = (
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoExecute"),
    (DISK_PRESSURE, "NoSchedule"),
    (MEMORY_PRESSURE, "NoSchedule"),
    (PID_PRESSURE, "NoSchedule"),
    (UNSCHEDULABLE, "NoSchedule"),
)
"""Keys and effects. A daemon looks after its node even when the node is in trouble."""
