"""Kubernetes' own groups of pods: PodGroup, which pods name, and Workload, which holds the templates that groups were made from.

An entry for a claim of a group, and its status, have the same fields as those of a pod. A pod's entry stands for the group's claim where
the two entries are equal.
"""

from __future__ import annotations

from typing import Final

from drayman.api.core import PodResourceClaim, PodResourceClaimStatus
from drayman.api.meta import Condition, ObjectMeta
from drayman.api.struct import ApiStruct, Int32, always

GROUP_API: Final = "scheduling.k8s.io"
_VERSION: Final = f"{GROUP_API}/v1alpha2"


class BasicPolicy(ApiStruct):
    """Pods are placed one by one."""


class GangPolicy(ApiStruct):
    """Pods are placed together, at least so many of them, or not at all."""

    min_count: Int32 = 0


class SchedulingPolicy(ApiStruct):
    """One of the two."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(ApiStruct):
    """All pods of a group go to nodes with the same value of a label."""

    key: str = ""


class SchedulingConstraints(ApiStruct):
    topology: tuple[TopologyConstraint, ...] = ()


class WorkloadTemplateReference(ApiStruct):
    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(ApiStruct):
    """The template that a group was made from."""

    workload: WorkloadTemplateReference | None = None


class GroupPolicies(ApiStruct):
    """What a group and its template have in common."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    disruption_mode: str = ""
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupSpec(GroupPolicies):
    pod_group_template_ref: PodGroupTemplateReference | None = None


class PodGroupStatus(ApiStruct):
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(ApiStruct):
    """Pods that are scheduled together."""

    api_version: str = always(_VERSION)
    kind: str = always("PodGroup")
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class PodGroupTemplate(GroupPolicies, merge_key=("name",)):
    name: str = ""


class ControllerReference(ApiStruct):
    """The object whose pods a Workload is about, in the same namespace."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(ApiStruct):
    controller_ref: ControllerReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(ApiStruct):
    """How the pods of an object are to be scheduled."""

    api_version: str = always(_VERSION)
    kind: str = always("Workload")
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
