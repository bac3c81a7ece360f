"""What a Service must be like to be accepted."""

from __future__ import annotations

import ipaddress
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import duplicate, forbidden, invalid, required
from drayman.api.validation.metadata import IMMUTABLE, check_labels
from drayman.api.validation.names import dns_label, dns_subdomain, label_key
from drayman.apiserver.kinds.checks import (
    NOT_A_CIDR,
    ip_address,
    one_of,
    port_number,
    port_number_or_name,
    required_name,
    supported,
)
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Context, Object

TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
HEADLESS: Final = "None"
_AFFINITIES: Final = ("ClientIP", "None")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_REACH: Final = ("Cluster", "Local")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_STICKY_S: Final = 86400


def needs_address(spec: Object) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def is_reachable(spec: Object) -> bool:
    """Whether the service can be reached from outside of the cluster."""
    return spec.get("type") in ("NodePort", "LoadBalancer") or bool(spec.get("externalIPs"))


def check_service(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    kind = spec.get("type")
    headless = spec.get("clusterIP") == HEADLESS
    yield from one_of(kind, "spec.type", TYPES)
    if kind == "ExternalName":
        yield from _external(spec)
    elif not headless and not items_at(spec, "ports"):
        yield required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and headless:
        detail = f"may not be set to 'None' for {kind} services"
        yield invalid("spec.clusterIPs[0]", HEADLESS, detail)
    yield from check_labels(map_at(spec, "selector"), "spec.selector")
    yield from _affinity(spec)
    yield from _ports(spec)
    yield from _addresses(spec)
    yield from _traffic(spec)


def _affinity(spec: Object) -> Errors:
    """Whether a client keeps being sent to the same pod, and for how long."""
    yield from one_of(spec.get("sessionAffinity"), "spec.sessionAffinity", _AFFINITIES)
    seconds = at(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds")
    if spec.get("sessionAffinity") != "ClientIP" or seconds is None:
        return
    if not 0 < seconds <= _LONGEST_STICKY_S:
        detail = f"must be greater than 0 and less than {_LONGEST_STICKY_S}"
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        yield invalid(path, seconds, detail)


def _traffic(spec: Object) -> Errors:
    """Where external and internal requests may be routed."""
    outside, inside = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    if is_reachable(spec):
        yield from one_of(outside, "spec.externalTrafficPolicy", _REACH)
    elif outside:
        detail = "may only be set for externally-accessible services"
        yield invalid("spec.externalTrafficPolicy", outside, detail)
    yield from supported(inside, "spec.internalTrafficPolicy", _REACH)
    spread = spec.get("trafficDistribution")
    yield from supported(spread, "spec.trafficDistribution", _DISTRIBUTIONS)
    balanced = spec.get("type") == "LoadBalancer"
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        detail = "may only be used when `type` is 'LoadBalancer'"
        yield forbidden("spec.allocateLoadBalancerNodePorts", detail)
    ranges = items_at(spec, "loadBalancerSourceRanges")
    path = "spec.LoadBalancerSourceRanges"
    if ranges and not balanced:
        yield forbidden(path, "may only be used when `type` is 'LoadBalancer'")
    for index, text in enumerate(ranges):
        try:
            ipaddress.ip_network(text.strip(), strict=False)
        except ValueError:
            yield invalid(f"{path}[{index}]", text.strip(), NOT_A_CIDR)


def _external(spec: Object) -> Errors:
    if spec.get("clusterIP"):
        detail = "may not be set when type is ExternalName"
        yield forbidden("spec.clusterIPs", detail)
    name = text_at(spec, "externalName").removesuffix(".")
    yield from required_name(name, "spec.externalName", dns_subdomain)


def _addresses(spec: Object) -> Errors:
    for index, address in enumerate(items_at(spec, "clusterIPs")):
        if address != HEADLESS:
            yield from ip_address(address, f"spec.clusterIPs[{index}]")
    for index, address in enumerate(items_at(spec, "externalIPs")):
        problems = list(ip_address(address, f"spec.externalIPs[{index}]"))
        yield from problems or _outside(address, f"spec.externalIPs[{index}]")


def _outside(text: str, path: str) -> Errors:
    """An externally reachable address."""
    address = ipaddress.ip_address(text)
    for is_special, words in (
        (address.is_unspecified, "unspecified"),
        (address.is_loopback, "in the loopback range (127.0.0.0/8, ::1/128)"),
        (address.is_link_local, "in the link-local range (169.254.0.0/16, fe80::/10)"),
    ):
        if is_special:
            yield invalid(path, text, f"may not be {words}")


def _ports(spec: Object) -> Errors:
    names: set[str] = set()
    seen: set[tuple[Json, Json]] = set()
    node_ports: set[tuple[Json, Json]] = set()
    several = len(items_at(spec, "ports")) > 1
    for where, port in each_at(spec, "spec", "ports"):
        name = text_at(port, "name")
        if several and not name:
            yield required(f"{where}.name")
        elif name:
            yield from _port_name(name, names, f"{where}.name")
        yield from port_number(port.get("port", 0), f"{where}.port")
        yield from one_of(port.get("protocol"), f"{where}.protocol", _PROTOCOLS)
        yield from port_number_or_name(port.get("targetPort"), f"{where}.targetPort")
        if (protocol := port.get("appProtocol")) is not None:
            yield from label_key(protocol, f"{where}.appProtocol")
        yield from _node_port(port, spec, node_ports, where)
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            yield duplicate(where, {"protocol": key[0], "port": key[1]})
        seen.add(key)


def _node_port(port: Object, spec: Object, taken: set[tuple[Json, Json]], path: str) -> Errors:
    number = port.get("nodePort")
    if not number:
        return
    if spec.get("type") == "ClusterIP":
        yield forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'")
    key = (port.get("protocol"), number)
    if key in taken:
        yield duplicate(f"{path}.nodePort", number)
    taken.add(key)


def _port_name(name: str, names: set[str], path: str) -> Errors:
    yield from dns_label(name, path)
    if name in names:
        yield duplicate(path, name)
    names.add(name)


def check_service_update(new: Object, old: Object, _context: Context) -> Errors:
    after, before = map_at(new, "spec"), map_at(old, "spec")
    if not (needs_address(after) and needs_address(before)):
        return
    if before.get("clusterIP") and after.get("clusterIP") != before["clusterIP"]:
        yield invalid("spec.clusterIPs[0]", items_at(after, "clusterIPs"), IMMUTABLE)
