"""Columns of the core kinds other than pods."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.kinds.pods.table import has_condition
from drayman.apiserver.kinds.reading import at, items_at, map_at, number_at, text_at
from drayman.apiserver.kinds.tables import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    age_of,
    column,
    joined_labels,
    text,
)
from drayman.apiserver.served.resources import Column
from drayman.apiserver.served.strategy import Object

_ROLE: Final = "node-role.kubernetes.io/"
_OLD_ROLE: Final = "kubernetes.io/role"
_ACCESS: Final = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)
_SHOWN_ENDPOINTS: Final = 3


def _node_status(node: Object, _now: datetime) -> str:
    known = any(text_at(c, "type") == "Ready" for c in items_at(node, "status", "conditions"))
    ready = "Ready" if has_condition(node, "Ready") else "NotReady"
    words = [ready if known else "Unknown"]
    if at(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Object, _now: datetime) -> str:
    labels = map_at(node, "metadata", "labels")
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles.add(labels.get(_OLD_ROLE, ""))
    return ",".join(sorted(roles - {""})) or NONE


def _node_address(kind: str) -> Column:
    def cell(node: Object, _now: datetime) -> str:
        for address in items_at(node, "status", "addresses"):
            if text_at(address, "type") == kind:
                return text_at(address, "address")
        return NONE

    return column(f"{kind.removesuffix('IP')}-IP", cell, wide=True)


def _kernel(node: Object, _now: datetime) -> str:
    info = map_at(node, "status", "nodeInfo")
    architecture = text_at(info, "architecture")
    version = text_at(info, "kernelVersion") or UNKNOWN
    return f"{version} ({architecture})" if architecture else version


NODE: Final = (
    NAME,
    column("Status", _node_status),
    column("Roles", _node_roles),
    AGE,
    column("Version", text("status", "nodeInfo", "kubeletVersion")),
    _node_address("InternalIP"),
    _node_address("ExternalIP"),
    column("OS-Image", text("status", "nodeInfo", "osImage", missing=UNKNOWN), wide=True),
    column("Kernel-Version", _kernel, wide=True),
    column(
        "Container-Runtime",
        text("status", "nodeInfo", "containerRuntimeVersion", missing=UNKNOWN),
        wide=True,
    ),
)

NAMESPACE: Final = (NAME, column("Status", text("status", "phase")), AGE)


def _data_count(obj: Object, _now: datetime) -> int:
    return len(map_at(obj, "data")) + len(map_at(obj, "binaryData"))


CONFIG_MAP: Final = (NAME, column("Data", _data_count), AGE)
SECRET: Final = (NAME, column("Type", text("type")), column("Data", _data_count), AGE)


def _external_address(service: Object, _now: datetime) -> str:
    kind = text_at(service, "spec", "type")
    if kind == "ExternalName":
        return text_at(service, "spec", "externalName")
    own = items_at(service, "spec", "externalIPs")
    if kind != "LoadBalancer":
        return ",".join(own) or NONE
    ingress = items_at(service, "status", "loadBalancer", "ingress")
    given = [text_at(item, "ip") or text_at(item, "hostname") for item in ingress]
    return ",".join([*filter(None, given), *own]) or "<pending>"


def _service_ports(service: Object, _now: datetime) -> str:
    shown = []
    for port in items_at(service, "spec", "ports"):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port', 0)}{node}/{port.get('protocol', '')}")
    return ",".join(shown) or NONE


SERVICE: Final = (
    NAME,
    column("Type", text("spec", "type")),
    column("Cluster-IP", lambda obj, _now: next(iter(items_at(obj, "spec", "clusterIPs")), NONE)),
    column("External-IP", _external_address),
    column("Port(s)", _service_ports),
    AGE,
    column("Selector", lambda obj, _now: joined_labels(map_at(obj, "spec", "selector")), wide=True),
)


def _first_seen(event: Object, now: datetime) -> str:
    return age_of(event.get("firstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: Object, now: datetime) -> str:
    if isinstance(series := event.get("series"), dict):
        return age_of(series.get("lastObservedTime"), now)
    last = event.get("lastTimestamp")
    return age_of(last, now) if last else _first_seen(event, now)


def _event_count(event: Object, _now: datetime) -> int:
    if isinstance(series := event.get("series"), dict):
        return number_at(series, "count")
    return number_at(event, "count") or 1


def _event_object(event: Object, _now: datetime) -> str:
    kind, name = text_at(event, "involvedObject", "kind"), text_at(event, "involvedObject", "name")
    return f"{kind.lower()}/{name}" if name else kind.lower()


def _event_source(event: Object, _now: datetime) -> str:
    component = text_at(event, "source", "component") or text_at(event, "reportingComponent")
    host = text_at(event, "source", "host") or text_at(event, "reportingInstance")
    return f"{component}, {host}" if host else component


EVENT: Final = (
    column("Last Seen", _last_seen),
    column("Type", text("type")),
    column("Reason", text("reason")),
    column("Object", _event_object),
    column("Subobject", text("involvedObject", "fieldPath"), wide=True),
    column("Source", _event_source, wide=True),
    column("Message", lambda event, _now: text_at(event, "message").strip()),
    column("First Seen", _first_seen, wide=True),
    column("Count", _event_count, wide=True),
    Column(name="Name", cell=text("metadata", "name"), format="name", priority=1),
)


def _access_modes(modes: list[Json]) -> str:
    return ",".join(short for name, short in _ACCESS if name in modes)


def _phase(obj: Object, _now: datetime) -> str:
    if at(obj, "metadata", "deletionTimestamp") is not None:
        return "Terminating"
    return text_at(obj, "status", "phase")


def _bound(cell: str, *path: str) -> Column:
    def value(claim: Object, _now: datetime) -> str:
        if not text_at(claim, "spec", "volumeName"):
            return ""
        found = at(claim, *path)
        return _access_modes(found) if isinstance(found, list) else found or ""

    return column(cell, value)


_CLASS: Final = column("StorageClass", text("spec", "storageClassName"))
_ATTRIBUTES: Final = column(
    "VolumeAttributesClass", text("spec", "volumeAttributesClassName", missing=UNSET)
)
_MODE: Final = column("VolumeMode", text("spec", "volumeMode", missing=UNSET), wide=True)

PERSISTENT_VOLUME_CLAIM: Final = (
    NAME,
    column("Status", _phase),
    column("Volume", text("spec", "volumeName")),
    _bound("Capacity", "status", "capacity", "storage"),
    _bound("Access Modes", "status", "accessModes"),
    _CLASS,
    _ATTRIBUTES,
    AGE,
    _MODE,
)


def _claim_of(volume: Object, _now: datetime) -> str:
    claim = at(volume, "spec", "claimRef")
    return "" if claim is None else f"{text_at(claim, 'namespace')}/{text_at(claim, 'name')}"


PERSISTENT_VOLUME: Final = (
    NAME,
    column("Capacity", text("spec", "capacity", "storage", missing="0")),
    column("Access Modes", lambda obj, _now: _access_modes(items_at(obj, "spec", "accessModes"))),
    column("Reclaim Policy", text("spec", "persistentVolumeReclaimPolicy")),
    column("Status", _phase),
    column("Claim", _claim_of),
    _CLASS,
    _ATTRIBUTES,
    column("Reason", text("status", "reason")),
    AGE,
    _MODE,
)


def _quota(obj: Object, *, limits: bool) -> str:
    used = map_at(obj, "status", "used")
    return ", ".join(
        f"{name}: {used.get(name, '0')}/{hard}"
        for name, hard in sorted(map_at(obj, "status", "hard").items())
        if name.startswith("limits.") is limits
    )


RESOURCE_QUOTA: Final = (
    NAME,
    column("Request", lambda obj, _now: _quota(obj, limits=False)),
    column("Limit", lambda obj, _now: _quota(obj, limits=True)),
    AGE,
)


def shortened(items: Sequence[str], *, missing: str, total: int | None = None) -> str:
    """The first few of a list, and how many more there are. With `total`, of that many items only the first are given."""
    if not items:
        return missing
    text = ",".join(items[:_SHOWN_ENDPOINTS])
    more = (len(items) if total is None else total) - _SHOWN_ENDPOINTS
    return f"{text} + {more} more..." if more > 0 else text


def _endpoints(obj: Object, _now: datetime) -> str:
    if not items_at(obj, "subsets"):
        return NONE
    found: list[str] = []
    total = 0
    for subset in items_at(obj, "subsets"):
        addresses, ports = items_at(subset, "addresses"), items_at(subset, "ports")
        total += len(addresses) * max(len(ports), 1)
        # Every address has every port, and only a few of these pairs are shown.
        first = [text_at(address, "ip") for address in addresses[:_SHOWN_ENDPOINTS]]
        few = [number_at(port, "port") for port in ports[:_SHOWN_ENDPOINTS]]
        found += [f"{ip}:{port}" for port in few for ip in first] if ports else first
    return shortened(found, missing="", total=total)


ENDPOINTS: Final = (NAME, column("Endpoints", _endpoints), AGE)
