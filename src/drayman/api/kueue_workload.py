"""Kueue's Workload: what waits for quota, what it was given, and what became of it.

Read like the other kinds of Kueue (`api/kueue.py`): `spec_of(WorkloadSpec, workload)` and `status_of(WorkloadStatus, workload)`. Its
conditions and their reasons are named here, because whoever decides, writes or explains must use the same words.
"""

from __future__ import annotations

from typing import Final

from msgspec import field

from drayman.api.core import Toleration
from drayman.api.kueue import KUEUE_VERSION, QueueObject
from drayman.api.meta import Condition
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Int32, Int64, Json, Timestamp, always

QUOTA_RESERVED: Final = "QuotaReserved"
ADMITTED: Final = "Admitted"
PODS_READY: Final = "PodsReady"
EVICTED: Final = "Evicted"
PREEMPTED: Final = "Preempted"
REQUEUED: Final = "Requeued"
FINISHED: Final = "Finished"
DEACTIVATION_TARGET: Final = "DeactivationTarget"
BLOCKED_ON_PREEMPTION_GATES: Final = "BlockedOnPreemptionGates"


class Workload(QueueObject):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("Workload")


class SliceConstraint(ApiStruct):
    topology: str = ""
    size: Int32 = 0


class TopologyRequest(ApiStruct):
    """How near each other the pods of a set must be.

    Kueue writes one with nothing but an index label on every plain Job, so its presence alone requests no topology.
    """

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_index_label: str | None = None
    sub_group_index_label: str | None = None
    sub_group_count: Int32 | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: Int32 | None = None
    podset_slice_required_topology_constraints: tuple[SliceConstraint, ...] = ()

    @property
    def names_topology(self) -> bool:
        """Whether a topology is requested: required, preferred, unconstrained, or for slices."""
        return (
            self.required is not None
            or self.preferred is not None
            or self.unconstrained is True
            or self.pod_set_slice_required_topology is not None
            or self.pod_set_slice_size is not None
            or bool(self.podset_slice_required_topology_constraints)
        )


class PodSet(ApiStruct, merge_key=("name",)):
    name: str = "main"
    template: dict[str, Json] = field(default_factory=dict)
    """See `kueue.pod_template_of`."""
    count: Int32 = 1
    min_count: Int32 | None = None
    topology_request: TopologyRequest | None = None


class PriorityClassReference(ApiStruct):
    group: str = ""
    kind: str = ""
    name: str = ""


class PreemptionGate(ApiStruct, merge_key=("name",)):
    name: str = ""


class WorkloadSpec(ApiStruct):
    pod_sets: tuple[PodSet, ...] = ()
    queue_name: str = ""
    priority_class_ref: PriorityClassReference | None = None
    priority: Int32 | None = None
    active: bool = True
    maximum_execution_time_seconds: Int32 | None = None
    preemption_gates: tuple[PreemptionGate, ...] = ()


class IndividualValues(ApiStruct):
    """A value for each domain: `prefix + root + suffix`."""

    prefix: str = ""
    suffix: str = ""
    roots: tuple[str, ...] = ()


class LevelValues(ApiStruct):
    """The values of one level in the domains of a slice: one that all share, or one for each."""

    universal: str | None = None
    individual: IndividualValues | None = None


class PodCounts(ApiStruct):
    universal: Int32 | None = None
    individual: tuple[Int32, ...] = ()


class TopologyAssignmentSlice(ApiStruct):
    domain_count: Int32 = 0
    values_per_level: tuple[LevelValues, ...] = ()
    pod_counts: PodCounts = PodCounts()


class TopologyAssignment(ApiStruct):
    """How many pods of a set go to each domain, compressed."""

    levels: tuple[str, ...] = ()
    slices: tuple[TopologyAssignmentSlice, ...] = ()


class PodSetAssignment(ApiStruct, merge_key=("name",)):
    name: str = "main"
    flavors: dict[str, str] = field(default_factory=dict)
    resource_usage: dict[str, Quantity] = field(default_factory=dict)
    """Of all pods together."""
    count: Int32 | None = None
    topology_assignment: TopologyAssignment | None = None
    delayed_topology_request: str | None = None


class Admission(ApiStruct):
    cluster_queue: str = ""
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class RequeueState(ApiStruct):
    count: Int32 | None = None
    requeue_at: Timestamp | None = None


class ReclaimablePods(ApiStruct, merge_key=("name",)):
    """Pods of a set that have ended and will not be replaced."""

    name: str = ""
    count: Int32 = 0


class PodSetUpdate(ApiStruct, merge_key=("name",)):
    """What a check wants the pods of a set to have."""

    name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class AdmissionCheckState(ApiStruct, merge_key=("name",)):
    name: str = ""
    state: str = "Pending"
    last_transition_time: Timestamp | None = None
    message: str = ""
    requeue_after_seconds: Int32 | None = None
    retry_count: Int32 | None = None
    pod_set_updates: tuple[PodSetUpdate, ...] = ()


class PodSetRequest(ApiStruct, merge_key=("name",)):
    """What a set of pods asked for when it was last tried, for all pods together."""

    name: str = "main"
    resources: dict[str, Quantity] = field(default_factory=dict)


class EvictionCount(ApiStruct, merge_key=("reason", "underlyingCause")):
    reason: str = ""
    underlying_cause: str = ""
    count: Int32 = 0


class SchedulingStats(ApiStruct):
    evictions: tuple[EvictionCount, ...] = ()


class UnhealthyNode(ApiStruct, merge_key=("name",)):
    name: str = ""


class PreemptionGateState(ApiStruct, merge_key=("name",)):
    name: str = ""
    position: str = "Closed"
    last_transition_time: Timestamp | None = None


class WorkloadStatus(ApiStruct):
    conditions: tuple[Condition, ...] = ()
    admission: Admission | None = None
    requeue_state: RequeueState | None = None
    reclaimable_pods: tuple[ReclaimablePods, ...] = ()
    admission_checks: tuple[AdmissionCheckState, ...] = ()
    resource_requests: tuple[PodSetRequest, ...] = ()
    accumulated_past_execution_time_seconds: Int64 | None = None
    scheduling_stats: SchedulingStats | None = None
    nominated_cluster_names: tuple[str, ...] = ()
    cluster_name: str | None = None
    unhealthy_nodes: tuple[UnhealthyNode, ...] = ()
    preemption_gates: tuple[PreemptionGateState, ...] = ()

    def condition(self, type_: str) -> Condition | None:
        return next((each for each in self.conditions if each.type_ == type_), None)

    def is_true(self, type_: str) -> bool:
        found = self.condition(type_)
        return found is not None and found.status == "True"
