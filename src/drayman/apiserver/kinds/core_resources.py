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
from drayman.apiserver.kinds.leases import ENDPOINTS
from drayman.apiserver.kinds.pods import table as pod_table
from drayman.apiserver.kinds.pods.strategy import (
    POD_STATUS,
    EphemeralContainersStrategy,
    PodStrategy,
    ResizeStrategy,
)
from drayman.apiserver.kinds.quota_rules import LIMIT_RANGE, RESOURCE_QUOTA
from drayman.apiserver.kinds.reading import at, items_at, text_at, text_reader
from drayman.apiserver.kinds.rules import Rules, StatusRules
from drayman.apiserver.kinds.services import NO_PROXY
from drayman.apiserver.kinds.tables import CREATED_AT, NAME, NAME_AND_AGE
from drayman.apiserver.served.acting import Gap, Part, by, data, nothing_acts
from drayman.apiserver.served.resources import ALL_VERBS, ApiResource, GroupVersionKind, Subresource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.subresources.binding import BINDING, BINDINGS
from drayman.apiserver.subresources.connect import ATTACH, EXEC, PORT_FORWARD, PROXY
from drayman.apiserver.subresources.eviction import EVICTION
from drayman.apiserver.subresources.logs import LOG
from drayman.apiserver.verbs.deleting_namespaces import delete_namespace


def _flag(*path: str) -> Callable[[Object], str]:
    return lambda obj: "true" if at(obj, *path) else "false"


def _first_address(obj: Object) -> str:
    return text_at(next(iter(items_at(obj, "status", "podIPs")), None), "ip")


RESOURCES: Final = (
    BINDINGS,
    ApiResource(
        kind="ConfigMap",
        acting=data("data for pods; simulated nodes do not read it"),
        short_names=("cm",),
        strategy=config.CONFIG_MAP,
        columns=core_tables.CONFIG_MAP,
    ),
    ApiResource(
        kind="Endpoints",
        plural="endpoints",
        acting=nothing_acts(NO_PROXY),
        singular="endpoints",
        short_names=("ep",),
        strategy=ENDPOINTS,
        columns=core_tables.ENDPOINTS,
        creates_on_update=True,
        deprecations={
            "v1": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
        },
    ),
    ApiResource(
        kind="Event",
        acting=by(
            Part.CONTROLLERS, effect="what happened, for people to read; removed after an hour"
        ),
        short_names=("ev",),
        strategy=events.CORE_EVENT,
        columns=core_tables.EVENT,
        creates_on_update=True,
        default_propagation="Unsupported",
        selectable=events.SELECTABLE,
    ),
    ApiResource(
        kind="LimitRange",
        acting=by(
            Part.SERVER, effect="what new pods and volume claims ask for is filled in and bounded"
        ),
        short_names=("limits",),
        strategy=LIMIT_RANGE,
        columns=(NAME, CREATED_AT),
        creates_on_update=True,
    ),
    ApiResource(
        kind="Namespace",
        acting=by(Part.CONTROLLERS, effect="a deleted one ends with everything in it"),
        namespaced=False,
        short_names=("ns",),
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        strategy=namespaces.NAMESPACE,
        columns=core_tables.NAMESPACE,
        selectable={"status.phase": text_reader("status", "phase")},
        delete_handler=delete_namespace,
        subresources=(
            Subresource(name="finalize", verbs=("update",), strategy=namespaces.FINALIZE),
            Subresource(name="status", strategy=namespaces.STATUS),
        ),
    ),
    ApiResource(
        kind="Node",
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
        selectable={"spec.unschedulable": _flag("spec", "unschedulable")},
        subresources=(PROXY["nodes"], Subresource(name="status", strategy=nodes.STATUS)),
    ),
    ApiResource(
        kind="PersistentVolumeClaim",
        acting=by(
            Part.SERVER,
            Part.SCHEDULER,
            Part.CONTROLLERS,
            effect="gets the default class; a volume is bound to it or simulated for it, and pods are placed where that can be reached",
        ),
        short_names=("pvc",),
        strategy=storage.PERSISTENT_VOLUME_CLAIM,
        columns=core_tables.PERSISTENT_VOLUME_CLAIM,
        answers_with_deleted_object=True,
        subresources=(Subresource(name="status", strategy=storage.PERSISTENT_VOLUME_CLAIM_STATUS),),
    ),
    ApiResource(
        kind="PersistentVolume",
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
    ),
    ApiResource(
        kind="Pod",
        acting=by(
            Part.SCHEDULER,
            Part.CONTROLLERS,
            Part.NODES,
            effect="gets a node, claims and devices, and runs in name only",
        ),
        short_names=("po",),
        categories=("all",),
        strategy=PodStrategy(),
        columns=pod_table.COLUMNS,
        has_generation=True,
        answers_with_deleted_object=True,
        selectable={
            "spec.nodeName": text_reader("spec", "nodeName"),
            "spec.restartPolicy": text_reader("spec", "restartPolicy"),
            "spec.schedulerName": text_reader("spec", "schedulerName"),
            "spec.serviceAccountName": text_reader("spec", "serviceAccountName"),
            "spec.hostNetwork": _flag("spec", "hostNetwork"),
            "status.phase": text_reader("status", "phase"),
            "status.podIP": _first_address,
            "status.podIPs": _first_address,
            "status.nominatedNodeName": text_reader("status", "nominatedNodeName"),
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
    ),
    ApiResource(
        kind="ResourceQuota",
        acting=nothing_acts("nothing counts or enforces quotas here: it limits nothing"),
        short_names=("quota",),
        strategy=RESOURCE_QUOTA,
        columns=core_tables.RESOURCE_QUOTA,
        answers_with_deleted_object=True,
        subresources=(Subresource(name="status", strategy=StatusRules()),),
    ),
    ApiResource(
        kind="Secret",
        acting=data("data for pods; simulated nodes do not read it"),
        strategy=config.SECRET,
        columns=core_tables.SECRET,
        selectable={"type": text_reader("type")},
    ),
    ApiResource(
        kind="Service",
        acting=by(
            Part.SERVER,
            effect="gets its address and ports",
            gap=Gap(
                Part.CONTROLLERS,
                "nothing serves it here: it gets no EndpointSlices, no name in DNS and no traffic",
            ),
        ),
        short_names=("svc",),
        categories=("all",),
        strategy=services.SERVICE,
        columns=core_tables.SERVICE,
        creates_on_update=True,
        answers_with_deleted_object=True,
        selectable={
            "spec.clusterIP": text_reader("spec", "clusterIP"),
            "spec.type": text_reader("spec", "type"),
        },
        subresources=(PROXY["services"], Subresource(name="status", strategy=services.STATUS)),
    ),
    ApiResource(
        group="events.k8s.io",
        kind="Event",
        acting=by(
            Part.CONTROLLERS, effect="what happened, for people to read; removed after an hour"
        ),
        short_names=("ev",),
        hub=GroupVersionKind("", "v1", "Event"),
        storage="events",
        strategy=events.EVENT,
        conversion=events.EventConversion(),
        columns=core_tables.EVENT,
        creates_on_update=True,
        default_propagation="Unsupported",
        selectable=events.SELECTABLE_IN_EVENTS,
    ),
    ApiResource(
        kind="ServiceAccount",
        acting=by(
            Part.SERVER,
            Part.CONTROLLERS,
            effect="tokens are issued for it; every namespace gets a default one",
        ),
        short_names=("sa",),
        strategy=Rules(),
        columns=NAME_AND_AGE,
        answers_with_deleted_object=True,
    ),
)
