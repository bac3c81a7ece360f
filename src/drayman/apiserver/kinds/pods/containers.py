"""Containers: names, images, ports, environment, mounts and probes."""

from __future__ import annotations

import re
from typing import Final

from drayman.api import formats
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    not_found,
    required,
)
from drayman.apiserver.kinds.checks import (
    not_negative,
    one_of,
    port_name,
    port_number,
    port_number_or_name,
)
from drayman.apiserver.kinds.pods.defaults import PROBES
from drayman.apiserver.kinds.pods.resources import container_resources
from drayman.apiserver.kinds.reading import at, each_at, items_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.strategy import Object

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_VALUE_SOURCES: Final = (
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
)
_ENVIRONMENT_NAME: Final = re.compile(r"[ -<>-~]+")
_EPHEMERAL_FORBIDDEN: Final = ("ports", "lifecycle", *PROBES)


def check_containers(spec: Object, path: str) -> Errors:
    """All containers of a pod."""
    volumes = {text_at(volume, "name") for volume in items_at(spec, "volumes")}
    containers = list(each_at(spec, path, "containers"))
    if not containers:
        yield required(f"{path}.containers")
    names: set[str] = set()
    for where, container in containers:
        yield from _common(container, volumes, where)
        yield from _unique_name(container, names, where)
        yield from _lifecycle(container, where)
    yield from _host_port_conflicts(containers)
    for where, container in each_at(spec, path, "initContainers"):
        yield from _common(container, volumes, where)
        yield from _unique_name(container, names, where)
        yield from _host_port_conflicts([(where, container)])
        yield from _init_lifecycle(container, where)
    for where, container in each_at(spec, path, "ephemeralContainers"):
        yield from _common(container, volumes, where)
        yield from _unique_name(container, names, where)
        yield from _ephemeral(container, where)


def _unique_name(container: Object, names: set[str], path: str) -> Errors:
    name = text_at(container, "name")
    if name in names:
        yield duplicate(f"{path}.name", name)
    elif name:
        names.add(name)


def _common(container: Object, volumes: set[str], path: str) -> Errors:
    name = text_at(container, "name")
    if name:
        yield from invalid_each(f"{path}.name", name, formats.dns_label_problems(name))
    else:
        yield required(f"{path}.name")
    if not text_at(container, "image"):
        yield required(f"{path}.image")
    policy = container.get("terminationMessagePolicy")
    yield from one_of(policy, f"{path}.terminationMessagePolicy", MESSAGE_POLICIES)
    yield from _ports(container, path)
    yield from _environment(container, path)
    yield from _mounts(container, volumes, path)
    yield from one_of(container.get("imagePullPolicy"), f"{path}.imagePullPolicy", PULL_POLICIES)
    yield from container_resources(container.get("resources"), f"{path}.resources")


def _ports(container: Object, path: str) -> Errors:
    names: set[str] = set()
    for where, port in each_at(container, path, "ports"):
        if name := text_at(port, "name"):
            problems = list(port_name(name, f"{where}.name"))
            yield from problems
            if not problems and name in names:
                yield duplicate(f"{where}.name", name)
            names.add(name)
        if port.get("containerPort"):
            yield from port_number(port["containerPort"], f"{where}.containerPort")
        else:
            yield required(f"{where}.containerPort")
        if port.get("hostPort"):
            yield from port_number(port["hostPort"], f"{where}.hostPort")
        yield from one_of(port.get("protocol"), f"{where}.protocol", PROTOCOLS)


def _host_port_conflicts(containers: list[tuple[str, Object]]) -> Errors:
    taken: set[str] = set()
    for path, container in containers:
        for where, port in each_at(container, path, "ports"):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in taken:
                yield duplicate(f"{where}.hostPort", key)
            taken.add(key)


def _environment(container: Object, path: str) -> Errors:
    for where, variable in each_at(container, path, "env"):
        name = text_at(variable, "name")
        if not name:
            yield required(f"{where}.name")
        elif not _ENVIRONMENT_NAME.fullmatch(name):
            detail = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            yield invalid(f"{where}.name", name, detail)
        if isinstance(source := variable.get("valueFrom"), dict):
            yield from _value_source(source, text_at(variable, "value"), f"{where}.valueFrom")


def _value_source(source: Object, value: str, path: str) -> Errors:
    given = [name for name in _VALUE_SOURCES if source.get(name) is not None]
    if not given:
        names = ", ".join(f"`{name}`" for name in _VALUE_SOURCES[:-1])
        yield invalid(path, "", f"must specify one of: {names} or `{_VALUE_SOURCES[-1]}`")
    elif value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in given and not text_at(source, name, "key"):
            yield required(f"{path}.{name}.key")
    if "fieldRef" in given and not text_at(source, "fieldRef", "fieldPath"):
        yield required(f"{path}.fieldRef.fieldPath")


def _mounts(container: Object, volumes: set[str], path: str) -> Errors:
    taken: set[str] = set()
    for where, mount in each_at(container, path, "volumeMounts"):
        name, place = text_at(mount, "name"), text_at(mount, "mountPath")
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield not_found(f"{where}.name", name)
        if not place:
            yield required(f"{where}.mountPath")
        if place in taken:
            yield invalid(f"{where}.mountPath", place, "must be unique")
        taken.add(place)


def _lifecycle(container: Object, path: str) -> Errors:
    for hook in ("postStart", "preStop"):
        if isinstance(handler := at(container, "lifecycle", hook), dict):
            yield from _handler(handler, f"{path}.lifecycle.{hook}")
    for name in PROBES:
        if isinstance(probe := container.get(name), dict):
            yield from _probe(probe, f"{path}.{name}", repeats=name == "readinessProbe")


def _init_lifecycle(container: Object, path: str) -> Errors:
    if container.get("restartPolicy") == "Always":
        yield from _lifecycle(container, path)
        return
    for name in ("lifecycle", *PROBES):
        if container.get(name) is not None:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield forbidden(f"{path}.{name}", detail)


def _ephemeral(container: Object, path: str) -> Errors:
    for name in _EPHEMERAL_FORBIDDEN:
        if container.get(name):
            yield forbidden(f"{path}.{name}", "cannot be set for an Ephemeral Container")
    if any((container.get("resources") or {}).values()):
        yield forbidden(f"{path}.resources", "cannot be set for an Ephemeral Container")


def _probe(probe: Object, path: str, *, repeats: bool) -> Errors:
    yield from _handler(probe, path)
    for name in _PROBE_NUMBERS:
        yield from not_negative(probe.get(name), f"{path}.{name}")
    if not repeats and probe.get("successThreshold") != 1:
        yield invalid(f"{path}.successThreshold", probe.get("successThreshold"), "must be 1")


def _handler(handler: Object, path: str) -> Errors:
    given = [name for name in _HANDLERS if handler.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
    for name in given[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    for name in given[:1]:
        yield from _action(name, handler[name], f"{path}.{name}")


def _action(name: str, action: Json, path: str) -> Errors:
    match name:
        case "exec":
            if not items_at(action, "command"):
                yield required(f"{path}.command")
        case "httpGet" | "tcpSocket":
            yield from port_number_or_name(at(action, "port") or 0, f"{path}.port")
        case "grpc":
            yield from port_number(at(action, "port") or 0, f"{path}.port")
