"""The status of a pod: what may be written, and how it reports the state of claims."""

from __future__ import annotations

import ipaddress
from typing import Final

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.api.validation.field_errors import forbidden, invalid, required
from drayman.api.validation.metadata import IMMUTABLE
from drayman.api.validation.names import dns_subdomain, label_key
from drayman.api.validation.pod import validate_pod_status
from drayman.apiserver.kinds.checks import ip_address
from drayman.apiserver.kinds.pods.resources import is_native_resource
from drayman.apiserver.kinds.pods.updating import check_annotation_changes
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Context, Object

_OWN_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")
_NOT_NEGATIVE: Final = "must be a non-negative integer"
_FAMILIES: Final = 2
_NODE_ALLOCATABLE: Final = "nodeAllocatableResourceClaimStatuses"
_REFERRED_TO: Final = ("resourceClaims", "containers", "initContainers")
"""Members of the spec that the status of claims is about."""


def check_pod_status(new: Object, old: Object, _context: Context) -> Errors:
    yield from check_annotation_changes(new, old)
    status = map_at(new, "status")
    if status.get("conditions"):
        yield from _conditions(status)
    if status.get("nominatedNodeName"):
        yield from _nominated_node(new, old)
    yield from _generation(status.get("observedGeneration"), "status.observedGeneration")
    quality, before = text_at(status, "qosClass"), text_at(old, "status", "qosClass")
    if quality != before:
        yield invalid("status.qosClass", quality, IMMUTABLE)
    yield from _state_changes(new, old)
    if status.get("resourceClaimStatuses") or status.get("extendedResourceClaimStatus"):
        spec = {name: new["spec"][name] for name in _REFERRED_TO if name in new["spec"]}
        yield from validate_pod_status(convert(Pod, {"spec": spec, "status": status}))
    if status.get(_NODE_ALLOCATABLE):
        claims = {
            at(claim, "resourceClaimName")
            for claim in (
                *items_at(new, "spec", "resourceClaims"),
                *items_at(status, "resourceClaimStatuses"),
            )
        }
        for where, item in each_at(status, "status", _NODE_ALLOCATABLE):
            yield from _node_allocatable(item, claims, where)
    if status.get("podIPs") or status.get("hostIPs"):
        yield from _addresses(status, map_at(old, "status"))


def _generation(value: Json, path: str) -> Errors:
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, _NOT_NEGATIVE)


def _conditions(status: Object) -> Errors:
    for where, condition in each_at(status, "status", "conditions"):
        yield from _generation(condition.get("observedGeneration"), f"{where}.observedGeneration")
        kind = text_at(condition, "type")
        if kind not in _OWN_CONDITIONS:
            # The capital letter is upstream's.
            yield from label_key(kind, f"{where}.Type")


def _nominated_node(new: Object, old: Object) -> Errors:
    path = "status.nominatedNodeName"
    name, before = text_at(new, "status", "nominatedNodeName"), text_at(old, *path.split("."))
    if not name or name == before:
        return
    yield from dns_subdomain(name, path)
    if text_at(old, "spec", "nodeName"):
        yield forbidden(path, "may not be set on pods that are already bound to a node")


def _state_changes(new: Object, old: Object) -> Errors:
    """A container that has terminated stays so, unless it may be restarted."""
    if not _ended(old):
        return
    spec = map_at(old, "spec")
    restarts_all = any(
        text_at(rule, "action") == "RestartAllContainers"
        for name in ("initContainers", "containers")
        for container in items_at(spec, name)
        for rule in items_at(container, "restartPolicyRules")
    )
    for name, statuses in (
        ("containers", "containerStatuses"),
        ("initContainers", "initContainerStatuses"),
        ("ephemeralContainers", "ephemeralContainerStatuses"),
    ):
        if restarts_all and name != "ephemeralContainers":
            continue
        now = {text_at(item, "name"): item for item in items_at(new, "status", statuses)}
        for where, before in each_at(old, "", "status", statuses):
            ended = at(before, "state", "terminated")
            after = now.get(text_at(before, "name"))
            if ended is None or after is None or at(after, "state", "terminated") is not None:
                continue
            if not _may_restart(spec, name, text_at(before, "name"), ended.get("exitCode") or 0):
                detail = "may not be transitioned to non-terminated state"
                yield forbidden(f"{where}.state", detail)


def _ended(pod: Object) -> bool:
    status = map_at(pod, "status")
    for name in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        if name in status and any(
            at(one, "state", "terminated") is not None for one in items_at(status, name)
        ):
            return True
    return False


def _may_restart(spec: Object, kind: str, name: str, code: int) -> bool:
    found = [item for item in items_at(spec, kind) if text_at(item, "name") == name]
    if kind == "ephemeralContainers" or not found:
        return False
    policy = found[0].get("restartPolicy")
    if policy is not None and any(
        (code in items_at(rule, "exitCodes", "values"))
        == (text_at(rule, "exitCodes", "operator") == "In")
        for rule in items_at(found[0], "restartPolicyRules")
    ):
        return True
    match policy or spec.get("restartPolicy"):
        case "Never":
            return False
        case "OnFailure":
            return code != 0
    return True


def _node_allocatable(item: Object, claims: set[Json], path: str) -> Errors:
    """Node resources that a claim uses. It must be one of the pod's claims."""
    name = text_at(item, "resourceClaimName")
    if not name:
        yield required(f"{path}.resourceClaimName", "must not be empty")
    if name not in claims:
        yield invalid(f"{path}.resourceClaimName", name, "no mapping found in pod reference")
    for member in ("containers", "resources"):
        if not item.get(member):
            yield required(f"{path}.{member}", "must not be empty")
    for resource, amount in map_at(item, "resources").items():
        place = f"{path}.resources[{resource}]"
        if not is_native_resource(resource):
            yield invalid(place, resource, "must be a node allocatable resource name")
        if Quantity.parse(str(amount)) < Quantity(0):
            yield invalid(place, str(amount), "must be non-negative")


def _addresses(status: Object, before: Object) -> Errors:
    """Addresses of the pod and of its host: at most one of each family. Addresses already present are not checked again."""
    hosts = items_at(status, "hostIPs")
    if hosts and text_at(hosts[0], "ip") != text_at(status, "hostIP"):
        detail = "must be equal to `hostIP`"
        yield invalid("status.hostIPs[0].ip", text_at(hosts[0], "ip"), detail)
    for name in ("podIPs", "hostIPs"):
        addresses = [text_at(item, "ip") for item in items_at(status, name)]
        known = {text_at(item, "ip") for item in items_at(before, name)}
        for index, address in enumerate(addresses):
            if address not in known:
                yield from ip_address(address, f"status.{name}[{index}]")
        if len(addresses) > 1 and not _is_a_pair(addresses):
            detail = "may specify no more than one IP for each IP family"
            yield invalid(f"status.{name}", status[name], detail)


def _is_a_pair(addresses: list[str]) -> bool:
    """Whether these are two addresses, one of each family."""
    try:
        versions = {ipaddress.ip_address(address).version for address in addresses}
    except ValueError:
        return False
    return len(versions) == _FAMILIES == len(addresses)
