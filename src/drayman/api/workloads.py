"""The parts of apps/v1, policy/v1 and what belongs to them that the controllers of workloads read.

Pod templates stay decoded JSON: a controller copies them into pods, and whatever a template says has to reach the pod, including fields
that this project does not declare.
"""

from __future__ import annotations

from msgspec import field

from drayman.api.meta import Condition, LabelSelector, ObjectMeta
from drayman.api.struct import ApiStruct, Int32, Int64, Json, Timestamp, always

PodTemplate = dict[str, Json]
"""metadata and spec of future pods."""
Amount = Int32 | str
"""A number, or a share such as `25%`."""


class WorkloadCondition(ApiStruct, merge_key=("type",)):
    """A condition of a replica set, a deployment, a stateful set or a daemon set."""

    type_: str = field(name="type", default="")
    status: str = ""
    last_update_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None
    reason: str = ""
    message: str = ""


class ReplicaSetSpec(ApiStruct):
    replicas: Int32 = 1
    min_ready_seconds: Int32 = 0
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = field(default_factory=dict)


class ReplicaSetStatus(ApiStruct):
    replicas: Int32 = field(default_factory=int)
    """Written even where it is zero, as the API has it."""
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 = 0
    conditions: tuple[WorkloadCondition, ...] = ()


class ReplicaSet(ApiStruct):
    api_version: str = always("apps/v1")
    kind: str = always("ReplicaSet")
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class ReplicationControllerSpec(ApiStruct):
    replicas: Int32 = 1
    min_ready_seconds: Int32 = 0
    labels: dict[str, str] = field(name="selector", default_factory=dict)
    """Identifies its pods; other kinds have a selector for that."""
    template: PodTemplate = field(default_factory=dict)

    @property
    def selector(self) -> LabelSelector:
        return LabelSelector(match_labels=self.labels)


class ReplicationControllerStatus(ApiStruct):
    replicas: Int32 = field(default_factory=int)
    """Written even where it is zero, as the API has it."""
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0
    conditions: tuple[WorkloadCondition, ...] = ()


class ReplicationController(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("ReplicationController")
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus()


class RollingUpdateDeployment(ApiStruct):
    max_unavailable: Amount | None = None
    max_surge: Amount | None = None


class DeploymentStrategy(ApiStruct):
    type_: str = field(name="type", default="")
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(ApiStruct):
    replicas: Int32 = 1
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = field(default_factory=dict)
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None
    paused: bool = False
    progress_deadline_seconds: Int32 | None = None


class DeploymentStatus(ApiStruct):
    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    conditions: tuple[WorkloadCondition, ...] = ()
    collision_count: Int32 | None = None


class Deployment(ApiStruct):
    api_version: str = always("apps/v1")
    kind: str = always("Deployment")
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class StatefulSetOrdinals(ApiStruct):
    start: Int32 = 0


class RollingUpdateStatefulSet(ApiStruct):
    partition: Int32 = 0
    max_unavailable: Amount | None = None


class StatefulSetUpdateStrategy(ApiStruct):
    type_: str = field(name="type", default="")
    rolling_update: RollingUpdateStatefulSet | None = None


class ClaimRetentionPolicy(ApiStruct):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetSpec(ApiStruct):
    replicas: Int32 = 1
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = field(default_factory=dict)
    volume_claim_templates: tuple[dict[str, Json], ...] = ()
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    revision_history_limit: Int32 | None = None
    min_ready_seconds: Int32 = 0
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy = ClaimRetentionPolicy()
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()


class StatefulSetStatus(ApiStruct):
    observed_generation: Int64 = 0
    replicas: Int32 = field(default_factory=int)
    ready_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Int32 | None = None
    conditions: tuple[WorkloadCondition, ...] = ()
    available_replicas: Int32 = field(default_factory=int)


class StatefulSet(ApiStruct):
    api_version: str = always("apps/v1")
    kind: str = always("StatefulSet")
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class RollingUpdateDaemonSet(ApiStruct):
    max_unavailable: Amount | None = None
    max_surge: Amount | None = None


class DaemonSetUpdateStrategy(ApiStruct):
    type_: str = field(name="type", default="")
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(ApiStruct):
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = field(default_factory=dict)
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None


class DaemonSetStatus(ApiStruct):
    current_number_scheduled: Int32 = field(default_factory=int)
    number_misscheduled: Int32 = field(default_factory=int)
    desired_number_scheduled: Int32 = field(default_factory=int)
    number_ready: Int32 = field(default_factory=int)
    observed_generation: Int64 = 0
    updated_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_unavailable: Int32 = 0
    collision_count: Int32 | None = None
    conditions: tuple[WorkloadCondition, ...] = ()


class DaemonSet(ApiStruct):
    api_version: str = always("apps/v1")
    kind: str = always("DaemonSet")
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(ApiStruct):
    """A template that a stateful set or a daemon set has, or had."""

    api_version: str = always("apps/v1")
    kind: str = always("ControllerRevision")
    metadata: ObjectMeta = ObjectMeta()
    data: Json = None
    revision: Int64 = field(default_factory=int)


class ServiceAccount(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("ServiceAccount")
    metadata: ObjectMeta = ObjectMeta()


class PodDisruptionBudgetSpec(ApiStruct):
    min_available: Amount | None = None
    max_unavailable: Amount | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiStruct):
    observed_generation: Int64 = 0
    disrupted_pods: dict[str, Timestamp] = field(default_factory=dict)
    disruptions_allowed: Int32 = field(default_factory=int)
    current_healthy: Int32 = field(default_factory=int)
    desired_healthy: Int32 = field(default_factory=int)
    expected_pods: Int32 = field(default_factory=int)
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(ApiStruct):
    api_version: str = always("policy/v1")
    kind: str = always("PodDisruptionBudget")
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class LeaseSpec(ApiStruct):
    holder_identity: str = ""
    lease_duration_seconds: Int32 | None = None
    renew_time: Timestamp | None = None


class Lease(ApiStruct):
    api_version: str = always("coordination.k8s.io/v1")
    kind: str = always("Lease")
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
