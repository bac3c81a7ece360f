"""Kinds with a handful of rules each: leases, endpoints and their slices, runtime classes."""

from __future__ import annotations

from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import duplicate, invalid, required
from drayman.api.validation.metadata import check_labels
from drayman.api.validation.names import required_dns_label
from drayman.apiserver.kinds.checks import immutable, not_negative, one_of
from drayman.apiserver.kinds.pods.resources import container_resources
from drayman.apiserver.kinds.pods.scheduling import check_tolerations, without_seconds
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, set_default, text_at
from drayman.apiserver.kinds.rules import Errors, Rules
from drayman.apiserver.served.strategy import Context, Object

_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")


def _check_lease(obj: Object, _context: Context) -> Errors:
    seconds = at(obj, "spec", "leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from not_negative(at(obj, "spec", "leaseTransitions"), "spec.leaseTransitions")


def _default_endpoints(obj: Object, _context: Context) -> None:
    for _, subset in each_at(obj, "", "subsets"):
        for _, port in each_at(subset, "", "ports"):
            set_default(port, "protocol", "TCP")


def _default_slice(obj: Object, _context: Context) -> None:
    for _, port in each_at(obj, "", "ports"):
        port.setdefault("name", "")
        set_default(port, "protocol", "TCP")


def _check_slice(obj: Object, _context: Context) -> Errors:
    yield from one_of(obj.get("addressType"), "addressType", _ADDRESS_TYPES)
    for where, endpoint in each_at(obj, "", "endpoints"):
        if not items_at(endpoint, "addresses"):
            yield required(f"{where}.addresses", "must contain at least 1 address")


def _check_runtime(obj: Object, _context: Context) -> Errors:
    yield from required_dns_label(text_at(obj, "handler"), "handler")
    if obj.get("overhead") is not None:
        yield from container_resources({"limits": overhead_of(obj)}, "overhead")
    scheduling = map_at(obj, "scheduling")
    yield from check_labels(map_at(scheduling, "nodeSelector"), "scheduling.nodeSelector")
    yield from check_tolerations(scheduling, "scheduling")
    seen: set[frozenset[tuple[str, Json]]] = set()
    for where, toleration in each_at(scheduling, "scheduling", "tolerations"):
        key = without_seconds(toleration)
        if key in seen:
            yield duplicate(where, toleration)
        seen.add(key)


def overhead_of(runtime: Object) -> Object:
    """What running a pod with this runtime class costs on top of the pod itself."""
    return map_at(runtime, "overhead", "podFixed")


LEASE: Final = Rules(checks=_check_lease)
ENDPOINTS: Final = Rules(defaults=_default_endpoints)
ENDPOINT_SLICE: Final = Rules(
    defaults=_default_slice, checks=_check_slice, update_checks=immutable("addressType")
)
RUNTIME_CLASS: Final = Rules(
    namespaced=False, checks=_check_runtime, update_checks=immutable("handler")
)
