"""The remaining groups: autoscaling, certificates, coordination, discovery, networking, node, policy, rbac, scheduling."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drayman.apiserver.kinds import access_control, addresses, certificates, pod_groups, policy
from drayman.apiserver.kinds.autoscaling import AUTOSCALER, AUTOSCALER_STATUS
from drayman.apiserver.kinds.autoscaling_metrics import metrics_text
from drayman.apiserver.kinds.autoscaling_v1 import AutoscalerConversion
from drayman.apiserver.kinds.core_tables import shortened
from drayman.apiserver.kinds.leases import ENDPOINT_SLICE, LEASE, RUNTIME_CLASS
from drayman.apiserver.kinds.reading import at, items_at, text_at, text_reader
from drayman.apiserver.kinds.services import NO_PROXY
from drayman.apiserver.kinds.tables import (
    AGE,
    CREATED_AT,
    NAME,
    NAME_AND_AGE,
    NONE,
    UNSET,
    Cell,
    column,
    flag,
    human_duration,
    number,
    text,
)
from drayman.apiserver.served.acting import Gap, Part, by, nothing_acts
from drayman.apiserver.served.resources import ApiResource, Subresource
from drayman.apiserver.served.strategy import Object

RBAC: Final = access_control.GROUP
SCHEDULING: Final = "scheduling.k8s.io"


def _count_or_none(name: str) -> Cell:
    def cell(obj: Object, _now: datetime) -> str:
        value = at(obj, "spec", name)
        return "N/A" if value is None else str(value)

    return cell


def _scaled(obj: Object, _now: datetime) -> str:
    target = at(obj, "spec", "scaleTargetRef")
    return f"{text_at(target, 'kind')}/{text_at(target, 'name')}"


def _requested_duration(obj: Object, _now: datetime) -> str:
    seconds = at(obj, "spec", "expirationSeconds")
    return NONE if seconds is None else human_duration(seconds)


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


_BINDING_COLUMNS: Final = (
    NAME,
    column("Role", lambda obj, _now: access_control.role_of(obj)),
    AGE,
    column("Users", _subjects("User"), wide=True),
    column("Groups", _subjects("Group"), wide=True),
    column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)

_RIGHTS: Final = by(Part.SERVER, effect="rights are granted by it")

RESOURCES: Final = (
    ApiResource(
        group="autoscaling",
        versions=("v2", "v1"),
        kind="HorizontalPodAutoscaler",
        acting=nothing_acts("no autoscaler runs here: it scales nothing"),
        short_names=("hpa",),
        categories=("all",),
        strategy=AUTOSCALER,
        conversion=AutoscalerConversion(),
        columns=(
            NAME,
            column("Reference", _scaled),
            column("Targets", lambda obj, _now: metrics_text(obj)),
            column("MinPods", lambda obj, _now: str(at(obj, "spec", "minReplicas") or 0)),
            column("MaxPods", number("spec", "maxReplicas")),
            column("Replicas", number("status", "currentReplicas")),
            AGE,
        ),
        subresources=(Subresource(name="status", strategy=AUTOSCALER_STATUS),),
    ),
    ApiResource(
        group="certificates.k8s.io",
        kind="CertificateSigningRequest",
        acting=by(
            Part.CONTROLLERS,
            effect="what a node asks for itself is approved; what is approved is signed; it is removed an hour later",
            gap=Gap(
                Part.CONTROLLERS,
                "no signer of that name runs here: no certificate is issued for it",
                certificates.is_for_nobody,
                case="with signers of others",
            ),
        ),
        namespaced=False,
        short_names=("csr",),
        strategy=certificates.SIGNING_REQUEST,
        selectable={"spec.signerName": text_reader("spec", "signerName")},
        columns=(
            NAME,
            AGE,
            column("SignerName", text("spec", "signerName", missing=NONE)),
            column("Requestor", text("spec", "username")),
            column("RequestedDuration", _requested_duration),
            column("Condition", lambda obj, _now: certificates.condition_of(obj)),
        ),
        subresources=(
            Subresource(name="approval", strategy=certificates.APPROVAL),
            Subresource(name="status", strategy=certificates.STATUS),
        ),
    ),
    ApiResource(
        group="coordination.k8s.io",
        kind="Lease",
        acting=by(
            Part.CONTROLLERS,
            Part.NODES,
            effect="those of nodes show that they are alive; others are data",
        ),
        strategy=LEASE,
        columns=(NAME, column("Holder", text("spec", "holderIdentity")), AGE),
        creates_on_update=True,
        requires_version_on_update=True,
    ),
    ApiResource(
        group="discovery.k8s.io",
        kind="EndpointSlice",
        acting=nothing_acts(NO_PROXY),
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
    ApiResource(
        group="networking.k8s.io",
        kind="IPAddress",
        acting=nothing_acts("Services get their addresses without it here: it reserves nothing"),
        namespaced=False,
        short_names=("ip",),
        strategy=addresses.IP_ADDRESS,
        columns=(NAME, column("ParentRef", lambda obj, _now: addresses.parent_of(obj)), AGE),
    ),
    ApiResource(
        group="networking.k8s.io",
        kind="ServiceCIDR",
        acting=nothing_acts("Services get their addresses from one fixed range here: it adds none"),
        namespaced=False,
        strategy=addresses.SERVICE_CIDR,
        columns=(
            NAME,
            column("CIDRs", lambda obj, _now: ",".join(items_at(obj, "spec", "cidrs"))),
            AGE,
        ),
        subresources=(Subresource(name="status", strategy=addresses.SERVICE_CIDR_STATUS),),
    ),
    ApiResource(
        group="node.k8s.io",
        kind="RuntimeClass",
        acting=by(
            Part.SERVER,
            effect="its overhead, node selector and tolerations are added to pods; simulated nodes ignore its handler",
        ),
        namespaced=False,
        strategy=RUNTIME_CLASS,
        columns=(NAME, column("Handler", text("handler")), AGE),
        creates_on_update=True,
        requires_version_on_update=True,
    ),
    ApiResource(
        group="policy",
        kind="PodDisruptionBudget",
        acting=by(
            Part.SERVER,
            Part.CONTROLLERS,
            Part.SCHEDULER,
            effect="evictions are refused by it, its status is kept, and preemption spares its pods",
        ),
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
    ApiResource(
        group=RBAC,
        kind="ClusterRoleBinding",
        acting=_RIGHTS,
        namespaced=False,
        strategy=access_control.CLUSTER_ROLE_BINDING,
        columns=_BINDING_COLUMNS,
        creates_on_update=True,
    ),
    ApiResource(
        group=RBAC,
        kind="ClusterRole",
        acting=_RIGHTS,
        namespaced=False,
        strategy=access_control.CLUSTER_ROLE,
        columns=(NAME, CREATED_AT),
        creates_on_update=True,
    ),
    ApiResource(
        group=RBAC,
        kind="RoleBinding",
        acting=_RIGHTS,
        strategy=access_control.ROLE_BINDING,
        columns=_BINDING_COLUMNS,
        creates_on_update=True,
    ),
    ApiResource(
        group=RBAC,
        kind="Role",
        acting=_RIGHTS,
        strategy=access_control.ROLE,
        columns=(NAME, CREATED_AT),
        creates_on_update=True,
    ),
    ApiResource(
        group=SCHEDULING,
        kind="PriorityClass",
        acting=by(
            Part.SERVER,
            Part.SCHEDULER,
            effect="pods get their priority from it, and are ordered and preempted by that",
        ),
        namespaced=False,
        short_names=("pc",),
        strategy=policy.PRIORITY_CLASS,
        has_generation=True,
        columns=(
            NAME,
            column("Value", number("value"), "integer"),
            column("Global-Default", flag("globalDefault"), "boolean"),
            AGE,
            column("PreemptionPolicy", text("preemptionPolicy")),
        ),
    ),
    ApiResource(
        group=SCHEDULING,
        versions=("v1alpha2",),
        kind="Workload",
        acting=nothing_acts("no controller makes PodGroups of its templates here"),
        strategy=pod_groups.WORKLOAD,
        columns=NAME_AND_AGE,
    ),
    ApiResource(
        group=SCHEDULING,
        versions=("v1alpha2",),
        kind="PodGroup",
        acting=by(
            Part.SCHEDULER,
            Part.CONTROLLERS,
            effect="pods of a gang start together or not at all; claims that the group shares are"
            " reserved for it; it is not removed while in use",
        ),
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
)
