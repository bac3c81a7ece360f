"""The parts of core/v1 that allocation and scheduling read."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import field

from drayman.api.meta import LabelSelector, ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Int32, Int64, Json, Timestamp, always

EventType = Literal["Normal", "Warning"]
"""Whether an event reports something that may need attention."""


class NodeSelectorRequirement(ApiStruct):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Taint(ApiStruct):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Timestamp | None = None


class Toleration(ApiStruct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class NodeSpec(ApiStruct):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = field(name="providerID", default="")


class NodeCondition(ApiStruct, merge_key=("type",)):
    type_: str = field(name="type", default="")
    status: str = ""
    reason: str = ""
    message: str = ""
    last_heartbeat_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None


class NodeSystemInfo(ApiStruct):
    container_runtime_version: str = ""


class NodeStatus(ApiStruct):
    capacity: dict[str, Quantity] = field(default_factory=dict)
    allocatable: dict[str, Quantity] = field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("Node")
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("Namespace")
    metadata: ObjectMeta = ObjectMeta()


class ContainerClaim(ApiStruct):
    name: str = ""
    request: str = ""


class ResourceRequirements(ApiStruct):
    limits: dict[str, Quantity] = field(default_factory=dict)
    requests: dict[str, Quantity] = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(ApiStruct, merge_key=("containerPort", "protocol")):
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = ""
    name: str = ""


class Container(ApiStruct, merge_key=("name",)):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    restart_policy: str | None = None
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()


class PodResourceClaim(ApiStruct, merge_key=("name",)):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(ApiStruct, merge_key=("name",)):
    name: str = ""


class PodSchedulingGroup(ApiStruct):
    """The PodGroup that a pod is a member of."""

    pod_group_name: str | None = None


class PreferredSchedulingTerm(ApiStruct):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiStruct):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(ApiStruct):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(ApiStruct):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiStruct):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(ApiStruct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
"""What a pod does where it cannot be spread as it wants."""


class TopologySpreadConstraint(ApiStruct, merge_key=("topologyKey", "whenUnsatisfiable")):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PersistentVolumeClaimVolumeSource(ApiStruct):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(ApiStruct):
    """A claim that is made for the pod. Its template stays decoded JSON: whatever that says has to reach the claim."""

    volume_claim_template: dict[str, Json] = field(default_factory=dict)


class Volume(ApiStruct, merge_key=("name",)):
    """A volume of a pod. Only those that tie a pod to nodes are distinguished."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None


class PodSpec(ApiStruct):
    volumes: tuple[Volume, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    restart_policy: str = ""
    active_deadline_seconds: Int64 | None = None
    node_selector: dict[str, str] = field(default_factory=dict)
    node_name: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None
    overhead: dict[str, Quantity] = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None


class PodResourceClaimStatus(ApiStruct, merge_key=("name",)):
    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiStruct):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class NodeAllocatableResourceClaimStatus(ApiStruct, merge_key=("resourceClaimName",)):
    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    resources: dict[str, Quantity] = field(default_factory=dict)


class PodCondition(ApiStruct, merge_key=("type",)):
    type_: str = field(name="type", default="")
    status: str = ""
    reason: str = ""
    message: str = ""
    last_probe_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None


class ContainerStateWaiting(ApiStruct):
    reason: str = ""
    message: str = ""


class ContainerStateTerminated(ApiStruct):
    exit_code: Int32 = 0
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    finished_at: Timestamp | None = None


class ContainerState(ApiStruct):
    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(ApiStruct, merge_key=("name",)):
    name: str = ""
    restart_count: Int32 = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(ApiStruct):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    start_time: Timestamp | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


class Pod(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("Pod")
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
