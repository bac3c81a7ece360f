"""Containers: their names, images and ports, and the rules for each of the three kinds of container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    too_many,
)
from drayman.api.validation.names import required_dns_label
from drayman.apiserver.kinds.checks import one_of, port_name, port_number, supported
from drayman.apiserver.kinds.pods.defaults import PROBES
from drayman.apiserver.kinds.pods.environment import check_environment
from drayman.apiserver.kinds.pods.mounts import Volumes, check_mounts
from drayman.apiserver.kinds.pods.probes import check_lifecycle, no_lifecycle
from drayman.apiserver.kinds.pods.resources import COMPUTE, container_resources
from drayman.apiserver.kinds.pods.security import check_container_security
from drayman.apiserver.kinds.reading import at, each_at, items_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS: Final = ("Restart", "RestartAllContainers")
_EXIT_CODE_OPERATORS: Final = ("In", "NotIn")
_MOST_RULES: Final = 20
_MOST_EXIT_CODES: Final = 255
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
_EPHEMERAL_FORBIDDEN: Final = (
    "ports",
    "lifecycle",
    *PROBES,
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
)
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"


@dataclass(frozen=True, slots=True)
class ContainerContext:
    """What the containers of a pod have in common."""

    volumes: Volumes
    all_volumes: list[Json]
    grace: int | None
    restart_policy: Json
    host_users: bool
    os: str
    is_pod: bool


def check_containers(spec: Object, volumes: Volumes, path: str, *, is_pod: bool) -> Errors:
    """All containers of a pod, which has these valid volumes, or of a template."""
    pod = ContainerContext(
        volumes,
        items_at(spec, "volumes"),
        spec.get("terminationGracePeriodSeconds"),
        spec.get("restartPolicy"),
        spec.get("hostUsers") is not False,
        text_at(spec, "os", "name"),
        is_pod,
    )
    containers = list(each_at(spec, path, "containers"))
    if not containers:
        yield required(f"{path}.containers")
    names: set[str] = set()
    for where, container in containers:
        yield from _common(container, pod, where)
        yield from _unique_name(container, names, where)
        yield from check_lifecycle(container, pod.grace, pod.os, where)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            yield from _restarts(container, where)
    yield from _host_port_conflicts(containers)
    if spec.get("initContainers"):
        yield from _init_containers(spec, pod, names, path)
    if spec.get("ephemeralContainers"):
        yield from _ephemeral_containers(spec, pod, names, path)


def _init_containers(spec: Object, pod: ContainerContext, names: set[str], path: str) -> Errors:
    for where, container in each_at(spec, path, "initContainers"):
        yield from _common(container, pod, where)
        yield from _restarts(container, where)
        yield from _unique_name(container, names, where)
        # Each separately, as they do not run together; upstream counts each as the first.
        yield from _host_port_conflicts([(f"{path}.initContainers[0]", container)])
        if container.get("restartPolicy") == "Always":
            yield from check_lifecycle(container, pod.grace, pod.os, where)
        else:
            yield from no_lifecycle(container, where)
            for place, policy in each_at(container, where, "resizePolicy"):
                if policy.get("restartPolicy") == "RestartContainer":
                    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                    yield invalid(f"{place}.restartPolicy", "RestartContainer", detail)


def _unique_name(container: Object, names: set[str], path: str) -> Errors:
    name = text_at(container, "name")
    if name in names:
        yield duplicate(f"{path}.name", name)
    elif name:
        names.add(name)


def _common(container: Object, pod: ContainerContext, path: str) -> Errors:
    yield from required_dns_label(text_at(container, "name"), f"{path}.name")
    image = text_at(container, "image")
    if not image:
        yield required(f"{path}.image")
    elif pod.is_pod and image != image.strip():
        # A template may name an image that something else will replace.
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    policy = container.get("terminationMessagePolicy")
    yield from one_of(policy, f"{path}.terminationMessagePolicy", MESSAGE_POLICIES)
    if container.get("ports"):
        yield from _ports(container, path)
    if container.get("env") or container.get("envFrom"):
        yield from check_environment(container, pod.all_volumes, path)
    if container.get("volumeMounts") or container.get("volumeDevices"):
        yield from check_mounts(container, pod.volumes, path)
    yield from one_of(container.get("imagePullPolicy"), f"{path}.imagePullPolicy", PULL_POLICIES)
    if container.get("resources"):
        yield from container_resources(container["resources"], f"{path}.resources")
    if container.get("resizePolicy"):
        yield from _resizing(container, pod.restart_policy, f"{path}.resizePolicy")
    if context := container.get("securityContext"):
        place = f"{path}.securityContext"
        yield from check_container_security(context, place, host_users=pod.host_users)


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


def _restarts(container: Object, path: str) -> Errors:
    """Whether a container starts again when it ends, and for which exit codes."""
    policy = container.get("restartPolicy")
    rules = items_at(container, "restartPolicyRules")
    if policy is None and rules:
        detail = "must specify restartPolicy when restart rules are used"
        yield required(f"{path}.restartPolicy", detail)
    yield from supported(policy, f"{path}.restartPolicy", RESTART_POLICIES)
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES)
    for where, rule in each_at(container, path, "restartPolicyRules"):
        action, codes = text_at(rule, "action"), rule.get("exitCodes")
        yield from supported(action, f"{where}.action", _RESTART_ACTIONS)
        if codes is None:
            yield required(f"{where}.exitCodes", "must be specified")
            continue
        operator, values = text_at(codes, "operator"), items_at(codes, "values")
        yield from supported(operator, f"{where}.exitCodes.operator", _EXIT_CODE_OPERATORS)
        if len(values) > _MOST_EXIT_CODES:
            yield too_many(f"{where}.exitCodes.values", len(values), _MOST_EXIT_CODES)


def _resizing(container: Object, restart_policy: Json, path: str) -> Errors:
    seen: set[str] = set()
    for index, item in enumerate(items_at(container, "resizePolicy")):
        resource, policy = text_at(item, "resourceName"), text_at(item, "restartPolicy")
        if resource in seen:
            yield duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        yield from one_of(resource, path, COMPUTE)
        yield from one_of(policy, path, _RESIZE_POLICIES)
        if restart_policy == "Never" and policy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(path, policy, detail)


def _ephemeral_containers(
    spec: Object, pod: ContainerContext, names: set[str], path: str
) -> Errors:
    others = frozenset(names)
    for where, container in each_at(spec, path, "ephemeralContainers"):
        yield from _common(container, pod, where)
        yield from _unique_name(container, names, where)
        target = text_at(container, "targetContainerName")
        if target and target not in others:
            yield not_found(f"{where}.targetContainerName", target)
        for name in _EPHEMERAL_FORBIDDEN:
            if container.get(name):
                yield forbidden(f"{where}.{name}", _NOT_EPHEMERAL)
        if any((container.get("resources") or {}).values()):
            yield forbidden(f"{where}.resources", _NOT_EPHEMERAL)
        for place, mount in each_at(container, where, "volumeMounts"):
            for name in ("subPath", "subPathExpr"):
                if at(mount, name):
                    yield forbidden(f"{place}.{name}", _NOT_EPHEMERAL)
