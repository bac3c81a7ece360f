"""Services, with the addresses and node ports that the server hands out.

Nothing routes to these addresses here. They are handed out so that clients see what they would see elsewhere, and so that no
two services have the same.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from drayman.api.formats import dns_label_problems
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    required,
)
from drayman.apiserver.errors import internal_error
from drayman.apiserver.kinds.checks import (
    IMMUTABLE,
    one_of,
    port_number,
    port_number_or_name,
)
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, member, set_default, text_at
from drayman.apiserver.kinds.rules import Errors, Rules, StatusRules
from drayman.apiserver.strategy import Context, Object, restore

TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
SERVICE_NETWORK: Final = ipaddress.IPv4Network("10.96.0.0/16")
RESERVED: Final = 2
"""The first addresses are the network's own and that of the API itself."""
FIRST_NODE_PORT: Final = 30000
NODE_PORTS: Final = 2768
HEADLESS: Final = "None"
_AFFINITIES: Final = ("ClientIP", "None")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_STICKY_S: Final = 10800


def _needs_address(spec: Object) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def _needs_node_ports(spec: Object) -> bool:
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def _default(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    set_default(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = member(member(spec, "sessionAffinityConfig"), "clientIP")
        client.setdefault("timeoutSeconds", _STICKY_S)
    set_default(spec, "type", "ClusterIP")
    for _, port in each_at(spec, "", "ports"):
        set_default(port, "protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    reachable = spec["type"] in ("NodePort", "LoadBalancer") or spec.get("externalIPs")
    if reachable:
        set_default(spec, "externalTrafficPolicy", "Cluster")
    if _needs_address(spec):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _allocate(obj: Object, context: Context) -> None:
    """Hand out what the service needs and has not asked for itself."""
    spec = member(obj, "spec")
    if not _needs_address(spec):
        return
    others = [
        other
        for other in context.objects.list("services")
        if other["metadata"].get("uid") != obj["metadata"].get("uid")
    ]
    addresses = items_at(spec, "clusterIPs")
    if not spec.get("clusterIP"):
        spec["clusterIP"] = addresses[0] if addresses else _free_address(others, context)
    if not addresses:
        spec["clusterIPs"] = [spec["clusterIP"]]
    _set_families(spec)
    if _needs_node_ports(spec):
        _set_node_ports(spec, others, context)


def _set_families(spec: Object) -> None:
    """One family of addresses, except where there is no address and nothing selected: then both may come."""
    both = spec["clusterIP"] == HEADLESS and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        families = items_at(spec, "ipFamilies")
        dual = both and not families
        spec["ipFamilyPolicy"] = "RequireDualStack" if dual else "SingleStack"
    if not spec.get("ipFamilies"):
        dual = spec["ipFamilyPolicy"] != "SingleStack" and both
        spec["ipFamilies"] = ["IPv4", "IPv6"] if dual else ["IPv4"]


def _start(context: Context, size: int) -> int:
    """Where to begin to look: at random, so that an address is not given to another service right after its first one went."""
    return int(context.ids.uid().replace("-", ""), 16) % size


def _free_address(others: list[Object], context: Context) -> str:
    taken = {address for other in others for address in items_at(other, "spec", "clusterIPs")}
    size = SERVICE_NETWORK.num_addresses - RESERVED - 1
    first = _start(context, size)
    for offset in range(size):
        address = str(SERVICE_NETWORK[RESERVED + (first + offset) % size])
        if address not in taken:
            return address
    raise internal_error("failed to allocate a serviceIP: range is full")


def _set_node_ports(spec: Object, others: list[Object], context: Context) -> None:
    taken = {
        port.get("nodePort")
        for service in (*others, {"spec": spec})
        for port in items_at(service, "spec", "ports")
    }
    first = _start(context, NODE_PORTS)
    numbers = (FIRST_NODE_PORT + (first + offset) % NODE_PORTS for offset in range(NODE_PORTS))
    for _, port in each_at(spec, "", "ports"):
        if not port.get("nodePort"):
            port["nodePort"] = next((number for number in numbers if number not in taken), 0)
            if not port["nodePort"]:
                raise internal_error("failed to allocate a nodePort: range is full")


class ServiceRules(Rules):
    """Services by way of the object itself. What was handed out stays while it is needed."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")
        spec, before = member(new, "spec"), map_at(old, "spec")
        if _needs_address(spec) and _needs_address(before):
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(name):
                    restore(spec, before, name)
        elif _needs_address(before):
            _give_back(spec, before)
        _keep_node_ports(spec, before)
        _allocate(new, context)


def _give_back(spec: Object, before: Object) -> None:
    for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name) == before.get(name):
            spec.pop(name, None)


def _keep_node_ports(spec: Object, before: Object) -> None:
    known = {
        (port.get("protocol"), port.get("port")): port.get("nodePort")
        for port in items_at(before, "ports")
    }
    for _, port in each_at(spec, "", "ports"):
        node_port = known.get((port.get("protocol"), port.get("port")))
        if _needs_node_ports(spec):
            if node_port and not port.get("nodePort"):
                port["nodePort"] = node_port
        elif port.get("nodePort") == node_port:
            port.pop("nodePort", None)


def _check(obj: Object, _context: Context) -> Errors:
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
    yield from one_of(spec.get("sessionAffinity"), "spec.sessionAffinity", _AFFINITIES)
    yield from _ports(spec)
    yield from _addresses(spec)


def _external(spec: Object) -> Errors:
    if spec.get("clusterIP"):
        detail = "may not be set when type is ExternalName"
        yield forbidden("spec.clusterIPs", detail)
    if not text_at(spec, "externalName"):
        yield required("spec.externalName")


def _addresses(spec: Object) -> Errors:
    for index, address in enumerate(items_at(spec, "clusterIPs")):
        if address != HEADLESS and not _is_address(address):
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid(f"spec.clusterIPs[{index}]", address, detail)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _ports(spec: Object) -> Errors:
    names: set[str] = set()
    seen: set[tuple[Json, Json]] = set()
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
        if (
            port.get("nodePort")
            and not _needs_node_ports(spec)
            and spec.get("type") != "LoadBalancer"
        ):
            detail = f"may not be used when `type` is '{spec.get('type')}'"
            yield forbidden(f"{where}.nodePort", detail)
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            yield duplicate(where, {"protocol": key[0], "port": key[1]})
        seen.add(key)


def _port_name(name: str, names: set[str], path: str) -> Errors:
    for problem in dns_label_problems(name):
        yield invalid(path, name, problem)
    if name in names:
        yield duplicate(path, name)
    names.add(name)


def _check_update(new: Object, old: Object, _context: Context) -> Errors:
    after, before = map_at(new, "spec"), map_at(old, "spec")
    if not (_needs_address(after) and _needs_address(before)):
        return
    if before.get("clusterIP") and after.get("clusterIP") != before["clusterIP"]:
        yield invalid("spec.clusterIPs[0]", items_at(after, "clusterIPs"), IMMUTABLE)


SERVICE: Final = ServiceRules(
    name_problems=dns_label_problems,
    defaults=_default,
    prepare=_allocate,
    checks=_check,
    update_checks=_check_update,
)
STATUS: Final = StatusRules()
