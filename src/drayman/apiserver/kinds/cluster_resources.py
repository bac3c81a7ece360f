"""The remaining groups: coordination, scheduling, policy, rbac, storage, discovery, node."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.kinds import access_control, pod_groups, policy, storage
from drayman.apiserver.kinds.core_tables import shortened
from drayman.apiserver.kinds.leases import ENDPOINT_SLICE, LEASE, RUNTIME_CLASS
from drayman.apiserver.kinds.reading import at, items_at, text_at
from drayman.apiserver.kinds.tables import (
    AGE,
    CREATED_AT,
    NAME,
    NAME_AND_AGE,
    NONE,
    UNSET,
    Cell,
    column,
    number,
    text,
)
from drayman.apiserver.resources import Resource, Subresource
from drayman.apiserver.strategy import Object

V1: Final = ("v1",)
RBAC: Final = access_control.GROUP
STORAGE: Final = "storage.k8s.io"
SCHEDULING: Final = "scheduling.k8s.io"


def _flag(*path: str) -> Cell:
    return lambda obj, _now: bool(at(obj, *path))


def _count_or_none(name: str) -> Cell:
    def cell(obj: Object, _now: datetime) -> str:
        value = at(obj, "spec", name)
        return "N/A" if value is None else str(value)

    return cell


def _subjects(kind: str) -> Cell:
    return lambda obj, _now: access_control.subject_names(obj, kind)


def _slice_ports(obj: Object, _now: datetime) -> str:
    ports = [
        str(at(port, "port") or text_at(port, "name") or "*") for port in items_at(obj, "ports")
    ]
    return shortened(ports, missing=UNSET)


def _slice_endpoints(obj: Object, _now: datetime) -> str:
    found = [a for endpoint in items_at(obj, "endpoints") for a in items_at(endpoint, "addresses")]
    return shortened(found, missing=UNSET)


def _audiences(obj: Object, _now: datetime) -> str:
    requests: Json = at(obj, "spec", "tokenRequests")
    if requests is None:
        return UNSET
    return ",".join(text_at(request, "audience") for request in requests)


_BINDING_COLUMNS: Final = (
    NAME,
    column("Role", lambda obj, _now: access_control.role_of(obj)),
    AGE,
    column("Users", _subjects("User"), wide=True),
    column("Groups", _subjects("Group"), wide=True),
    column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)

RESOURCES: Final = (
    Resource(
        group="coordination.k8s.io",
        versions=V1,
        kind="Lease",
        plural="leases",
        namespaced=True,
        strategy=LEASE,
        columns=(NAME, column("Holder", text("spec", "holderIdentity")), AGE),
        creates_on_update=True,
        requires_version_on_update=True,
    ),
    Resource(
        group="discovery.k8s.io",
        versions=V1,
        kind="EndpointSlice",
        plural="endpointslices",
        namespaced=True,
        strategy=ENDPOINT_SLICE,
        has_generation=True,
        columns=(
            NAME,
            column("AddressType", text("addressType")),
            column("Ports", _slice_ports),
            column("Endpoints", _slice_endpoints),
            AGE,
        ),
    ),
    Resource(
        group="node.k8s.io",
        versions=V1,
        kind="RuntimeClass",
        plural="runtimeclasses",
        namespaced=False,
        strategy=RUNTIME_CLASS,
        columns=(NAME, column("Handler", text("handler")), AGE),
        creates_on_update=True,
        requires_version_on_update=True,
    ),
    Resource(
        group="policy",
        versions=V1,
        kind="PodDisruptionBudget",
        plural="poddisruptionbudgets",
        namespaced=True,
        short_names=("pdb",),
        strategy=policy.BUDGET,
        has_generation=True,
        requires_version_on_update=True,
        columns=(
            NAME,
            column("Min Available", _count_or_none("minAvailable")),
            column("Max Unavailable", _count_or_none("maxUnavailable")),
            column("Allowed Disruptions", number("status", "disruptionsAllowed"), "integer"),
            AGE,
        ),
        subresources=(Subresource(name="status", strategy=policy.BUDGET_STATUS),),
    ),
    Resource(
        group=RBAC,
        versions=V1,
        kind="ClusterRoleBinding",
        plural="clusterrolebindings",
        namespaced=False,
        strategy=access_control.CLUSTER_ROLE_BINDING,
        columns=_BINDING_COLUMNS,
        creates_on_update=True,
    ),
    Resource(
        group=RBAC,
        versions=V1,
        kind="ClusterRole",
        plural="clusterroles",
        namespaced=False,
        strategy=access_control.CLUSTER_ROLE,
        columns=(NAME, CREATED_AT),
        creates_on_update=True,
    ),
    Resource(
        group=RBAC,
        versions=V1,
        kind="RoleBinding",
        plural="rolebindings",
        namespaced=True,
        strategy=access_control.ROLE_BINDING,
        columns=_BINDING_COLUMNS,
        creates_on_update=True,
    ),
    Resource(
        group=RBAC,
        versions=V1,
        kind="Role",
        plural="roles",
        namespaced=True,
        strategy=access_control.ROLE,
        columns=(NAME, CREATED_AT),
        creates_on_update=True,
    ),
    Resource(
        group=SCHEDULING,
        versions=V1,
        kind="PriorityClass",
        plural="priorityclasses",
        namespaced=False,
        short_names=("pc",),
        strategy=policy.PRIORITY_CLASS,
        has_generation=True,
        columns=(
            NAME,
            column("Value", number("value"), "integer"),
            column("Global-Default", _flag("globalDefault"), "boolean"),
            AGE,
            column("PreemptionPolicy", text("preemptionPolicy")),
        ),
    ),
    Resource(
        group=SCHEDULING,
        versions=("v1alpha2",),
        kind="Workload",
        plural="workloads",
        namespaced=True,
        strategy=pod_groups.WORKLOAD,
        columns=NAME_AND_AGE,
    ),
    Resource(
        group=SCHEDULING,
        versions=("v1alpha2",),
        kind="PodGroup",
        plural="podgroups",
        namespaced=True,
        strategy=pod_groups.POD_GROUP,
        columns=(
            NAME,
            column("Policy", pod_groups.policy_of),
            column("Workload", pod_groups.workload_of),
            column("Status", pod_groups.status_of),
            AGE,
        ),
        subresources=(Subresource(name="status", strategy=pod_groups.POD_GROUP_STATUS),),
    ),
    Resource(
        group=STORAGE,
        versions=V1,
        kind="CSIDriver",
        plural="csidrivers",
        namespaced=False,
        strategy=storage.CSI_DRIVER,
        answers_with_deleted_object=True,
        requires_version_on_update=True,
        columns=(
            NAME,
            column("AttachRequired", _flag("spec", "attachRequired"), "boolean"),
            column("PodInfoOnMount", _flag("spec", "podInfoOnMount"), "boolean"),
            column("StorageCapacity", _flag("spec", "storageCapacity"), "boolean"),
            column("TokenRequests", _audiences),
            column("RequiresRepublish", _flag("spec", "requiresRepublish"), "boolean"),
            column(
                "Modes",
                lambda obj, _now: ",".join(items_at(obj, "spec", "volumeLifecycleModes")) or NONE,
            ),
            AGE,
        ),
    ),
    Resource(
        group=STORAGE,
        versions=V1,
        kind="CSINode",
        plural="csinodes",
        namespaced=False,
        strategy=storage.CSI_NODE,
        answers_with_deleted_object=True,
        requires_version_on_update=True,
        columns=(
            NAME,
            column("Drivers", lambda obj, _now: len(items_at(obj, "spec", "drivers")), "integer"),
            AGE,
        ),
    ),
    Resource(
        group=STORAGE,
        versions=V1,
        kind="StorageClass",
        plural="storageclasses",
        namespaced=False,
        short_names=("sc",),
        strategy=storage.STORAGE_CLASS,
        answers_with_deleted_object=True,
        columns=(
            NAME,
            column("Provisioner", text("provisioner")),
            column("ReclaimPolicy", text("reclaimPolicy")),
            column("VolumeBindingMode", text("volumeBindingMode")),
            column("AllowVolumeExpansion", _flag("allowVolumeExpansion")),
            AGE,
        ),
    ),
    Resource(
        group=STORAGE,
        versions=V1,
        kind="VolumeAttachment",
        plural="volumeattachments",
        namespaced=False,
        strategy=storage.VOLUME_ATTACHMENT,
        answers_with_deleted_object=True,
        requires_version_on_update=True,
        columns=(
            NAME,
            column("Attacher", text("spec", "attacher")),
            column("PV", text("spec", "source", "persistentVolumeName")),
            column("Node", text("spec", "nodeName")),
            column("Attached", _flag("status", "attached"), "boolean"),
            AGE,
        ),
        subresources=(Subresource(name="status", strategy=storage.VOLUME_ATTACHMENT_STATUS),),
    ),
)
