"""The reasons that conditions of workloads and queues give, by the names that Kueue gives them."""

from __future__ import annotations

from typing import Final

# QuotaReserved=False.
PENDING_EVALUATION: Final = "PendingEvaluation"
WAITING_FOR_QUOTA: Final = "WaitingForQuota"
EXCEEDS_MAX_QUOTA: Final = "ExceedsMaxQuota"
NO_MATCHING_FLAVOR: Final = "NoMatchingFlavor"
TOPOLOGY_PLACEMENT_FAILED: Final = "TopologyPlacementFailed"
WAITING_FOR_PREEMPTED: Final = "WaitingForPreemptedWorkloads"
WAITING_FOR_ROOM: Final = "WaitingForRoom"
"""Not one of Kueue's: there is quota, and no room for all pods."""
WAITING_FOR_PODS_READY: Final = "WaitingForPodsReady"
MISCONFIGURED: Final = "Misconfigured"
SUSPENDED: Final = "Suspended"

SEVERITY: Final = {
    TOPOLOGY_PLACEMENT_FAILED: 0,
    WAITING_FOR_QUOTA: 1,
    EXCEEDS_MAX_QUOTA: 2,
    NO_MATCHING_FLAVOR: 3,
}
"""Which of several reasons is given: the most severe of all that must be met, the least severe of alternatives."""

# Evicted.
PREEMPTED: Final = "Preempted"
PODS_READY_TIMEOUT: Final = "PodsReadyTimeout"
ADMISSION_CHECK: Final = "AdmissionCheck"
CLUSTER_QUEUE_STOPPED: Final = "ClusterQueueStopped"
LOCAL_QUEUE_STOPPED: Final = "LocalQueueStopped"
DEACTIVATED: Final = "Deactivated"

# Preempted.
IN_CLUSTER_QUEUE: Final = "InClusterQueue"
IN_COHORT_RECLAMATION: Final = "InCohortReclamation"
WHILE_BORROWING: Final = "InCohortReclaimWhileBorrowing"
IN_COHORT_FAIR_SHARING: Final = "InCohortFairSharing"

# Active=False of a cluster queue.
READY: Final = "Ready"
STOPPED: Final = "Stopped"
TERMINATING: Final = "Terminating"
FLAVOR_NOT_FOUND: Final = "FlavorNotFound"
CHECK_NOT_FOUND: Final = "AdmissionCheckNotFound"
CHECK_INACTIVE: Final = "AdmissionCheckInactive"
TOPOLOGY_NOT_FOUND: Final = "TopologyNotFound"
