"""Nodes. Agents that report on a node write much of it, so little is refused."""

from __future__ import annotations

import ipaddress
from typing import Final

from drayman.api.validation.field_errors import duplicate, forbidden, invalid
from drayman.apiserver.kinds.checks import NOT_A_CIDR
from drayman.apiserver.kinds.pods.resources import parse_amounts, quantity_value
from drayman.apiserver.kinds.pods.scheduling import check_taints
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, member, text_at
from drayman.apiserver.kinds.rules import Errors, Rules, StatusRules
from drayman.apiserver.served.strategy import Context, Object


def _default(obj: Object, _context: Context) -> None:
    status = obj.get("status")
    if isinstance(status, dict) and status.get("capacity") and status.get("allocatable") is None:
        status["allocatable"] = dict(status["capacity"])
    spec = obj.get("spec")
    if isinstance(spec, dict) and spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif isinstance(spec, dict) and spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]


def _check(obj: Object, _context: Context) -> Errors:
    # Upstream reports taints under the metadata.
    yield from check_taints(at(obj, "spec", "taints"), "metadata.taints")
    yield from _amounts(obj)
    ranges = items_at(obj, "spec", "podCIDRs")
    families = set()
    for index, text in enumerate(ranges):
        try:
            families.add(ipaddress.ip_network(text, strict=False).version)
        except ValueError:
            yield invalid(f"spec.podCIDRs[{index}]", text, NOT_A_CIDR)
    if len(ranges) > 1 and len(families) != len(ranges):
        detail = "may specify no more than one CIDR for each IP family"
        yield invalid("spec.podCIDRs", ranges, detail)


def _amounts(obj: Object) -> Errors:
    for name in ("capacity", "allocatable"):
        for resource, amount in parse_amounts(map_at(obj, "status", name)).items():
            yield from quantity_value(resource, amount, f"status.{name}[{resource}]")


def _check_update(new: Object, old: Object, _context: Context) -> Errors:
    yield from _amounts(new)
    seen = set()
    for where, address in each_at(new, "", "status", "addresses"):
        identity = (text_at(address, "type"), text_at(address, "address"))
        if identity in seen:
            yield duplicate(where, address)
        seen.add(identity)
    before = items_at(old, "spec", "podCIDRs")
    if before and items_at(new, "spec", "podCIDRs") != before:
        detail = 'node updates may not change podCIDR except from "" to valid'
        yield forbidden("spec.podCIDRs", detail)
    provider = text_at(old, "spec", "providerID")
    if provider and text_at(new, "spec", "providerID") != provider:
        detail = 'node updates may not change providerID except from "" to valid'
        yield forbidden("spec.providerID", detail)
    yield from check_taints(at(new, "spec", "taints"), "metadata.taints")


class NodeRules(Rules):
    """Nodes through the main endpoint. Unlike other kinds, they may be created with their status."""

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        member(obj, "spec")


NODE: Final = NodeRules(
    namespaced=False, defaults=_default, checks=_check, update_checks=_check_update, rechecks=False
)
STATUS: Final = StatusRules(defaults=_default, update_checks=_check_update)
