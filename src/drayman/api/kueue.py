"""Kueue's kinds as types, in the form of v1beta2: flavors, queues, cohorts, workloads, checks, and clusters to hand work to.

A cluster has them only if their definitions are installed, so they are read like the other custom kinds (`api/custom_groups.py`): an object
keeps its spec and status as decoded JSON, and `spec_of` and `status_of` decode them one object at a time. An object that makes no sense is
a fact about that object and hides no other. What is left out in an object is what Kueue's webhooks would have defaulted it to, so objects
of a cluster without those webhooks mean the same.

Pod templates stay decoded JSON, because whatever they say has to reach the pods; `pod_template_of` reads what quota depends on.
"""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec import field
from msgspec.structs import replace

from drayman.api import codec
from drayman.api.core import Container, PodSpec, Taint, Toleration
from drayman.api.custom_groups import KUEUE, CustomObject
from drayman.api.errors import DecodeError
from drayman.api.meta import Condition, LabelSelector, ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Int32, Int64, Json, Timestamp, always

KUEUE_VERSION: Final = f"{KUEUE}/v1beta2"

S = TypeVar("S", bound=ApiStruct)


class QueueObject(CustomObject):
    """An object of Kueue's whose spec and status are not decoded yet."""

    status: Json = None


def status_of(type_: type[S], value: QueueObject) -> S:
    """The status of an object. Raises DecodeError, whose path begins with `status`."""
    try:
        return codec.convert(type_, {} if value.status is None else value.status)
    except DecodeError as error:
        raise error.under("status") from error


# Flavors and quota.


class ResourceFlavor(QueueObject):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("ResourceFlavor")


class ResourceFlavorSpec(ApiStruct):
    node_labels: dict[str, str] = field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_name: str | None = None


class ResourceQuota(ApiStruct, merge_key=("name",)):
    name: str = ""
    nominal_quota: Quantity = Quantity.ZERO
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(ApiStruct, merge_key=("name",)):
    name: str = ""
    resources: tuple[ResourceQuota, ...] = ()


class ResourceGroup(ApiStruct):
    covered_resources: tuple[str, ...] = ()
    flavors: tuple[FlavorQuotas, ...] = ()


class FairSharing(ApiStruct):
    weight: Quantity | None = None
    """1 if it is left out."""


# Cluster queues, cohorts and local queues.


class FlavorFungibility(ApiStruct):
    when_can_borrow: str = "MayStopSearch"
    when_can_preempt: str = "TryNextFlavor"
    preference: str | None = None


class BorrowWithinCohort(ApiStruct):
    policy: str = "Never"
    max_priority_threshold: Int32 | None = None


class QueuePreemption(ApiStruct):
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: BorrowWithinCohort | None = None
    within_cluster_queue: str = "Never"


class AdmissionCheckRule(ApiStruct, merge_key=("name",)):
    """A check that workloads of a queue need. Without flavors: whatever flavor they get."""

    name: str = ""
    on_flavors: tuple[str, ...] = ()


class AdmissionChecksStrategy(ApiStruct):
    admission_checks: tuple[AdmissionCheckRule, ...] = ()


class AdmissionScope(ApiStruct):
    admission_mode: str = ""


class ClusterQueue(QueueObject):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("ClusterQueue")


class ClusterQueueSpec(ApiStruct):
    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort_name: str = ""
    queueing_strategy: str = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = None
    """None: of no namespace; an empty one: of all."""
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    preemption: QueuePreemption = QueuePreemption()
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    admission_scope: AdmissionScope | None = None


class ResourceUsage(ApiStruct, merge_key=("name",)):
    name: str = ""
    total: Quantity = Quantity.ZERO
    borrowed: Quantity = Quantity.ZERO


class FlavorUsage(ApiStruct, merge_key=("name",)):
    name: str = ""
    resources: tuple[ResourceUsage, ...] = ()


class FairSharingStatus(ApiStruct):
    weighted_share: Int64 = 0


class ClusterQueueStatus(ApiStruct):
    conditions: tuple[Condition, ...] = ()
    flavors_reservation: tuple[FlavorUsage, ...] = ()
    flavors_usage: tuple[FlavorUsage, ...] = ()
    pending_workloads: Int32 = 0
    reserving_workloads: Int32 = 0
    admitted_workloads: Int32 = 0
    fair_sharing: FairSharingStatus | None = None


class Cohort(QueueObject):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("Cohort")


class CohortSpec(ApiStruct):
    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    """Quota that its members share, on top of theirs."""
    fair_sharing: FairSharing | None = None


class CohortStatus(ApiStruct):
    fair_sharing: FairSharingStatus | None = None


class LocalQueue(QueueObject):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("LocalQueue")


class LocalQueueSpec(ApiStruct):
    cluster_queue: str = ""
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None


class AdmissionFairSharingStatus(ApiStruct):
    consumed_resources: dict[str, Quantity] = field(default_factory=dict)
    last_update: Timestamp | None = None


class LocalQueueFairSharingStatus(ApiStruct):
    weighted_share: Int64 = 0
    admission_fair_sharing_status: AdmissionFairSharingStatus | None = None


class LocalQueueStatus(ApiStruct):
    conditions: tuple[Condition, ...] = ()
    pending_workloads: Int32 = 0
    reserving_workloads: Int32 = 0
    admitted_workloads: Int32 = 0
    flavors_reservation: tuple[FlavorUsage, ...] = ()
    flavors_usage: tuple[FlavorUsage, ...] = ()
    fair_sharing: LocalQueueFairSharingStatus | None = None


# Classes and checks.


class WorkloadPriorityClass(ApiStruct):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("WorkloadPriorityClass")
    metadata: ObjectMeta = ObjectMeta()
    value: Int32 = 0
    description: str = ""


class ParametersReference(ApiStruct):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class AdmissionCheck(QueueObject):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("AdmissionCheck")


class AdmissionCheckSpec(ApiStruct):
    controller_name: str = ""
    parameters: ParametersReference | None = None


class ConditionsStatus(ApiStruct):
    """The status of kinds that have conditions alone: AdmissionCheck and MultiKueueCluster."""

    conditions: tuple[Condition, ...] = ()


class RetryStrategy(ApiStruct):
    backoff_limit_count: Int32 = 3
    backoff_base_seconds: Int32 = 60
    backoff_max_seconds: Int32 = 1800


class ProvisioningRequestConfig(QueueObject):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("ProvisioningRequestConfig")


class NodeSelectorUpdate(ApiStruct, merge_key=("key",)):
    key: str = ""
    value_from_provisioning_class_detail: str = ""


class ProvisionedPodSetUpdates(ApiStruct):
    node_selector: tuple[NodeSelectorUpdate, ...] = ()


class ProvisioningRequestConfigSpec(ApiStruct):
    provisioning_class_name: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    managed_resources: tuple[str, ...] = ()
    """Empty: all."""
    retry_strategy: RetryStrategy = RetryStrategy()
    pod_set_updates: ProvisionedPodSetUpdates | None = None
    pod_set_merge_policy: str | None = None


# Other clusters.


class MultiKueueConfig(QueueObject):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("MultiKueueConfig")


class MultiKueueConfigSpec(ApiStruct):
    clusters: tuple[str, ...] = ()
    quota_management: str = "Manual"


class MultiKueueCluster(QueueObject):
    api_version: str = always(KUEUE_VERSION)
    kind: str = always("MultiKueueCluster")


class KubeConfigSource(ApiStruct):
    location: str = ""
    location_type: str = "Secret"


class ClusterProfileReference(ApiStruct):
    name: str = ""


class ClusterSource(ApiStruct):
    """One of the two."""

    kube_config: KubeConfigSource | None = None
    cluster_profile_ref: ClusterProfileReference | None = None


class MultiKueueClusterSpec(ApiStruct):
    cluster_source: ClusterSource = ClusterSource()


# Pod templates.


class TemplateLabels(ApiStruct):
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class PodTemplate(ApiStruct):
    """What quota depends on in a template of pods."""

    metadata: TemplateLabels = TemplateLabels()
    spec: PodSpec = PodSpec()


def pod_template_of(template: Json) -> PodTemplate:
    """A pod template in its decoded form, with the requests that its pods get from their limits.

    The server sets those requests in pods, and not in templates. Raises DecodeError, whose path begins with `template`.
    """
    try:
        found = codec.convert(PodTemplate, template or {})
    except DecodeError as error:
        raise error.under("template") from error
    spec = found.spec
    if not any(each.resources.limits for each in (*spec.containers, *spec.init_containers)):
        return found
    spec = replace(
        spec,
        containers=tuple(map(_with_requests, spec.containers)),
        init_containers=tuple(map(_with_requests, spec.init_containers)),
    )
    return replace(found, spec=spec)


def _with_requests(container: Container) -> Container:
    resources = container.resources
    if not resources.limits.keys() - resources.requests.keys():
        return container
    requests = {**resources.limits, **resources.requests}
    return replace(container, resources=replace(resources, requests=requests))
