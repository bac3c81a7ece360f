"""Services, with the addresses and node ports that the server allocates.

Nothing routes to these addresses here. They are allocated so that clients see what they would see elsewhere, and so that no
two services have the same address.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from drayman.api.formats import dns_label_problems
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, member, set_default
from drayman.apiserver.kinds.rules import Rules, StatusRules
from drayman.apiserver.kinds.service_checks import (
    HEADLESS,
    check_service,
    check_service_update,
    is_reachable,
    needs_address,
)
from drayman.apiserver.protocol.errors import internal_error
from drayman.apiserver.served.strategy import Context, Object, restore

SERVICE_NETWORK: Final = ipaddress.IPv4Network("10.96.0.0/16")
RESERVED: Final = 2
"""The first addresses are those of the network and of the API itself."""
FIRST_NODE_PORT: Final = 30000
NODE_PORTS: Final = 2768
_STICKY_S: Final = 10800
NO_PROXY: Final = "no proxy runs here: nothing is routed to its addresses"


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
    if is_reachable(spec):
        set_default(spec, "externalTrafficPolicy", "Cluster")
    if needs_address(spec):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _allocate(obj: Object, context: Context) -> None:
    """Allocate what the service needs and has not requested itself."""
    spec = member(obj, "spec")
    if not needs_address(spec):
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
    """One address family, except for a headless service without a selector, which may have both."""
    both = spec["clusterIP"] == HEADLESS and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        families = items_at(spec, "ipFamilies")
        dual = both and not families
        spec["ipFamilyPolicy"] = "RequireDualStack" if dual else "SingleStack"
    if not spec.get("ipFamilies"):
        dual = spec["ipFamilyPolicy"] != "SingleStack" and both
        spec["ipFamilies"] = ["IPv4", "IPv6"] if dual else ["IPv4"]


def _start(context: Context, size: int) -> int:
    """Where to start searching: at random, so that an address is not reused right after its service is deleted."""
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
    """Services through the main endpoint. Allocated values stay while they are needed."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")
        spec, before = member(new, "spec"), map_at(old, "spec")
        if needs_address(spec) and needs_address(before):
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(name):
                    restore(spec, before, name)
        elif needs_address(before):
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


SERVICE: Final = ServiceRules(
    name_problems=dns_label_problems,
    defaults=_default,
    prepare=_allocate,
    checks=check_service,
    update_checks=check_service_update,
)
STATUS: Final = StatusRules()
