"""The core group: how its resources are named and served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.apiserver.kinds import (
    config,
    core_tables,
    events,
    namespaces,
    nodes,
    services,
    storage,
)
from drayman.apiserver.kinds.accounts import ENDPOINTS, LIMIT_RANGE, RESOURCE_QUOTA, SERVICE_ACCOUNT
from drayman.apiserver.kinds.pods import table as pod_table
from drayman.apiserver.kinds.pods.strategy import (
    POD_STATUS,
    EphemeralContainersStrategy,
    PodStrategy,
    ResizeStrategy,
)
from drayman.apiserver.kinds.reading import at, items_at, text_at
from drayman.apiserver.kinds.rules import StatusRules
from drayman.apiserver.kinds.services import NO_PROXY
from drayman.apiserver.kinds.tables import CREATED_AT, NAME, NAME_AND_AGE
from drayman.apiserver.served.acting import Gap, Part, by, data, nobody
from drayman.apiserver.served.resources import (
    ALL_VERBS,
    ApiResource,
    GroupVersionKind,
    Subresource,
)
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.subresources import (
    ATTACH,
    BINDING,
    BINDINGS,
    EVICTION,
    EXEC,
    LOG,
    PORT_FORWARD,
    PROXY,
)
from drayman.apiserver.verbs.deleting_namespaces import delete_namespace

V1: Final = ("v1",)
ENDPOINTS_DEPRECATED: Final = (
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
)
CORE_EVENT_KIND: Final = GroupVersionKind("", "v1", "Event")


def _text(*path: str) -> Callable[[Object], str]:
    return lambda obj: text_at(obj, *path)


def _flag(*path: str) -> Callable[[Object], str]:
    return lambda obj: "true" if at(obj, *path) else "false"


def _first_address(obj: Object) -> str:
    return text_at(next(iter(items_at(obj, "status", "podIPs")), None), "ip")


PODS: Final = ApiResource(
    group="",
    versions=V1,
    kind="Pod",
    plural="pods",
    acting=by(
        Part.SCHEDULER,
        Part.CONTROLLERS,
        Part.NODES,
        effect="gets a node, claims and devices, and runs in name only",
    ),
    namespaced=True,
    short_names=("po",),
    categories=("all",),
    strategy=PodStrategy(),
    columns=pod_table.COLUMNS,
    has_generation=True,
    answers_with_deleted_object=True,
    selectable={
        "spec.nodeName": _text("spec", "nodeName"),
        "spec.restartPolicy": _text("spec", "restartPolicy"),
        "spec.schedulerName": _text("spec", "schedulerName"),
        "spec.serviceAccountName": _text("spec", "serviceAccountName"),
        "spec.hostNetwork": _flag("spec", "hostNetwork"),
        "status.phase": _text("status", "phase"),
        "status.podIP": _first_address,
        "status.podIPs": _first_address,
        "status.nominatedNodeName": _text("status", "nominatedNodeName"),
    },
    subresources=(
        ATTACH,
        BINDING,
        Subresource(name="ephemeralcontainers", strategy=EphemeralContainersStrategy()),
        EVICTION,
        EXEC,
        LOG,
        PORT_FORWARD,
        PROXY["pods"],
        Subresource(name="resize", strategy=ResizeStrategy()),
        Subresource(name="status", strategy=POD_STATUS),
    ),
)
NODES: Final = ApiResource(
    group="",
    versions=V1,
    kind="Node",
    plural="nodes",
    acting=by(
        Part.SCHEDULER,
        Part.CONTROLLERS,
        Part.NODES,
        effect="pods are placed on it; silent ones are tainted and emptied; simulated ones send heartbeats",
    ),
    namespaced=False,
    short_names=("no",),
    strategy=nodes.NODE,
    columns=core_tables.NODE,
    selectable={"spec.unschedulable": nodes.is_unschedulable},
    subresources=(PROXY["nodes"], Subresource(name="status", strategy=nodes.STATUS)),
)
NAMESPACES: Final = ApiResource(
    group="",
    versions=V1,
    kind="Namespace",
    plural="namespaces",
    acting=by(Part.CONTROLLERS, effect="a deleted one ends with everything in it"),
    namespaced=False,
    short_names=("ns",),
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    strategy=namespaces.NAMESPACE,
    columns=core_tables.NAMESPACE,
    selectable={"status.phase": _text("status", "phase")},
    delete_handler=delete_namespace,
    subresources=(
        Subresource(name="finalize", verbs=("update",), strategy=namespaces.FINALIZE),
        Subresource(name="status", strategy=namespaces.STATUS),
    ),
)
CONFIG_MAPS: Final = ApiResource(
    group="",
    versions=V1,
    kind="ConfigMap",
    plural="configmaps",
    acting=data("data for pods; simulated nodes do not read it"),
    namespaced=True,
    short_names=("cm",),
    strategy=config.CONFIG_MAP,
    columns=core_tables.CONFIG_MAP,
)
SECRETS: Final = ApiResource(
    group="",
    versions=V1,
    kind="Secret",
    plural="secrets",
    acting=data("data for pods; simulated nodes do not read it"),
    namespaced=True,
    strategy=config.SECRET,
    columns=core_tables.SECRET,
    selectable={"type": _text("type")},
)
SERVICES: Final = ApiResource(
    group="",
    versions=V1,
    kind="Service",
    plural="services",
    acting=by(
        Part.SERVER,
        effect="gets its address and ports",
        gap=Gap(
            Part.CONTROLLERS,
            "nothing serves it here: it gets no EndpointSlices, no name in DNS and no traffic",
        ),
    ),
    namespaced=True,
    short_names=("svc",),
    categories=("all",),
    strategy=services.SERVICE,
    columns=core_tables.SERVICE,
    creates_on_update=True,
    answers_with_deleted_object=True,
    selectable={
        "spec.clusterIP": _text("spec", "clusterIP"),
        "spec.type": _text("spec", "type"),
    },
    subresources=(PROXY["services"], Subresource(name="status", strategy=services.STATUS)),
)
EVENTS: Final = ApiResource(
    group="",
    versions=V1,
    kind="Event",
    plural="events",
    acting=data("what happened, for people to read"),
    namespaced=True,
    short_names=("ev",),
    strategy=events.CORE_EVENT,
    columns=core_tables.EVENT,
    creates_on_update=True,
    default_propagation="Unsupported",
    selectable=events.SELECTABLE,
)
EVENTS_IN_EVENTS_GROUP: Final = ApiResource(
    group="events.k8s.io",
    versions=V1,
    kind="Event",
    plural="events",
    acting=data("what happened, for people to read"),
    namespaced=True,
    short_names=("ev",),
    hub=CORE_EVENT_KIND,
    storage="events",
    strategy=events.EVENT,
    conversion=events.EventConversion(),
    columns=core_tables.EVENT,
    creates_on_update=True,
    default_propagation="Unsupported",
    selectable=events.SELECTABLE_IN_EVENTS,
)
PERSISTENT_VOLUME_CLAIMS: Final = ApiResource(
    group="",
    versions=V1,
    kind="PersistentVolumeClaim",
    plural="persistentvolumeclaims",
    acting=by(
        Part.SERVER,
        Part.SCHEDULER,
        Part.CONTROLLERS,
        effect="gets the default class; a volume is bound to it or simulated for it, and pods are placed where that can be reached",
    ),
    namespaced=True,
    short_names=("pvc",),
    strategy=storage.PERSISTENT_VOLUME_CLAIM,
    columns=core_tables.PERSISTENT_VOLUME_CLAIM,
    answers_with_deleted_object=True,
    subresources=(Subresource(name="status", strategy=storage.PERSISTENT_VOLUME_CLAIM_STATUS),),
)
PERSISTENT_VOLUMES: Final = ApiResource(
    group="",
    versions=V1,
    kind="PersistentVolume",
    plural="persistentvolumes",
    acting=by(
        Part.SCHEDULER,
        Part.CONTROLLERS,
        effect="is bound to a claim and reclaimed by its policy; pods are placed where it can be reached",
    ),
    namespaced=False,
    short_names=("pv",),
    strategy=storage.PERSISTENT_VOLUME,
    columns=core_tables.PERSISTENT_VOLUME,
    answers_with_deleted_object=True,
    subresources=(Subresource(name="status", strategy=storage.PERSISTENT_VOLUME_STATUS),),
)
RESOURCE_QUOTAS: Final = ApiResource(
    group="",
    versions=V1,
    kind="ResourceQuota",
    plural="resourcequotas",
    acting=nobody("nothing counts or enforces quotas here: it limits nothing"),
    namespaced=True,
    short_names=("quota",),
    strategy=RESOURCE_QUOTA,
    columns=core_tables.RESOURCE_QUOTA,
    answers_with_deleted_object=True,
    subresources=(Subresource(name="status", strategy=StatusRules()),),
)
LIMIT_RANGES: Final = ApiResource(
    group="",
    versions=V1,
    kind="LimitRange",
    plural="limitranges",
    acting=by(
        Part.SERVER, effect="what new pods and volume claims ask for is filled in and bounded"
    ),
    namespaced=True,
    short_names=("limits",),
    strategy=LIMIT_RANGE,
    columns=(NAME, CREATED_AT),
    creates_on_update=True,
)
ENDPOINTS_RESOURCE: Final = ApiResource(
    group="",
    versions=V1,
    kind="Endpoints",
    plural="endpoints",
    acting=nobody(NO_PROXY),
    singular="endpoints",
    namespaced=True,
    short_names=("ep",),
    strategy=ENDPOINTS,
    columns=core_tables.ENDPOINTS,
    creates_on_update=True,
    deprecations={"v1": ENDPOINTS_DEPRECATED},
)


def service_accounts(subresources: tuple[Subresource, ...]) -> ApiResource:
    """Service accounts, with the subresources that issue tokens."""
    return ApiResource(
        group="",
        versions=V1,
        kind="ServiceAccount",
        plural="serviceaccounts",
        acting=by(
            Part.SERVER,
            Part.CONTROLLERS,
            effect="tokens are issued for it; every namespace gets a default one",
        ),
        namespaced=True,
        short_names=("sa",),
        strategy=SERVICE_ACCOUNT,
        columns=NAME_AND_AGE,
        answers_with_deleted_object=True,
        subresources=subresources,
    )


RESOURCES: Final = (
    BINDINGS,
    CONFIG_MAPS,
    ENDPOINTS_RESOURCE,
    EVENTS,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
    EVENTS_IN_EVENTS_GROUP,
)
