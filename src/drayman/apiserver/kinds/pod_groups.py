"""Workloads and PodGroups: pods that are to be scheduled together, or not at all."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drayman.api.validation.field_errors import duplicate, invalid, required, too_many
from drayman.api.validation.metadata import IMMUTABLE
from drayman.api.validation.names import (
    dns_label,
    dns_subdomain,
    label_key,
    path_segment,
    required_dns_label,
)
from drayman.apiserver.kinds.checks import immutable, one_of, required_name, status_conditions
from drayman.apiserver.kinds.reading import (
    at,
    each_at,
    items_at,
    map_at,
    member,
    set_default,
    text_at,
)
from drayman.apiserver.kinds.rules import BareStatusRules, Errors, Rules, add_finalizer
from drayman.apiserver.kinds.tables import NONE
from drayman.apiserver.served.strategy import Context, Object

PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
_MODES: Final = ("Pod", "PodGroup")
_MOST_TEMPLATES: Final = 8
_MOST_TOPOLOGIES: Final = 1
_MOST_CLAIMS: Final = 4
_UNION: Final = "must specify one of: `basic`, `gang`"


def _default_pod_group(obj: Object, _context: Context) -> None:
    set_default(member(obj, "spec"), "disruptionMode", "Pod")


def _default_workload(obj: Object, _context: Context) -> None:
    for _, template in each_at(obj, "", "spec", "podGroupTemplates"):
        set_default(template, "disruptionMode", "Pod")


def _group(spec: Object, path: str) -> Errors:
    policy = map_at(spec, "schedulingPolicy")
    given = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if len(given) != 1:
        shown = f"{{{', '.join(given)}}}" if given else ""
        yield invalid(f"{path}.schedulingPolicy", shown, _UNION)
    if "gang" in given and (at(policy, "gang", "minCount") or 0) < 1:
        count = at(policy, "gang", "minCount") or 0
        where = f"{path}.schedulingPolicy.gang.minCount"
        yield (
            required(where)
            if not count
            else invalid(where, count, "must be greater than or equal to 1")
        )
    topologies = items_at(spec, "schedulingConstraints", "topology")
    if len(topologies) > _MOST_TOPOLOGIES:
        where = f"{path}.schedulingConstraints.topology"
        yield too_many(where, len(topologies), _MOST_TOPOLOGIES)
    for where, topology in each_at(spec, path, "schedulingConstraints", "topology"):
        yield from required_name(text_at(topology, "key"), f"{where}.key", label_key)
    yield from _claims(spec, path)
    yield from one_of(spec.get("disruptionMode"), f"{path}.disruptionMode", _MODES, needed=False)
    if name := text_at(spec, "priorityClassName"):
        yield from dns_subdomain(name, f"{path}.priorityClassName")


def _claims(spec: Object, path: str) -> Errors:
    claims = items_at(spec, "resourceClaims")
    if len(claims) > _MOST_CLAIMS:
        yield too_many(f"{path}.resourceClaims", len(claims), _MOST_CLAIMS)
        return
    seen: set[str] = set()
    for where, claim in each_at(spec, path, "resourceClaims"):
        name = text_at(claim, "name")
        if not name:
            yield required(f"{where}.name")
        elif name in seen:
            yield duplicate(where, name)
        else:
            yield from dns_label(name, f"{where}.name")
        seen.add(name)
        given = [n for n in ("resourceClaimName", "resourceClaimTemplateName") if n in claim]
        if len(given) != 1:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid(where, "", detail)


def _check_pod_group(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    yield from _group(spec, "spec")
    if isinstance(reference := spec.get("podGroupTemplateRef"), dict):
        for name in ("workloadName", "podGroupTemplateName"):
            if not text_at(reference, "workload", name):
                yield required(f"spec.podGroupTemplateRef.workload.{name}")


def _controller(spec: Object) -> Errors:
    reference = spec.get("controllerRef")
    if not isinstance(reference, dict):
        return
    if group := text_at(reference, "apiGroup"):
        yield from dns_subdomain(group, "spec.controllerRef.apiGroup")
    for name in ("kind", "name"):
        path = f"spec.controllerRef.{name}"
        yield from required_name(text_at(reference, name), path, path_segment)


def _check_workload(obj: Object, _context: Context) -> Errors:
    yield from _controller(map_at(obj, "spec"))
    templates = items_at(obj, "spec", "podGroupTemplates")
    if not templates:
        yield required("spec.podGroupTemplates")
    if len(templates) > _MOST_TEMPLATES:
        yield too_many("spec.podGroupTemplates", len(templates), _MOST_TEMPLATES)
        return
    seen: set[str] = set()
    for where, template in each_at(obj, "", "spec", "podGroupTemplates"):
        name = text_at(template, "name")
        yield from required_dns_label(name, f"{where}.name")
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)
        yield from _group(template, where)


def _check_workload_update(new: Object, old: Object, _context: Context) -> Errors:
    before = items_at(old, "spec", "podGroupTemplates")
    if items_at(new, "spec", "podGroupTemplates") != before:
        yield invalid(
            "spec.podGroupTemplates", items_at(new, "spec", "podGroupTemplates"), IMMUTABLE
        )
    owner = at(old, "spec", "controllerRef")
    if owner is not None and at(new, "spec", "controllerRef") != owner:
        yield invalid("spec.controllerRef", at(new, "spec", "controllerRef"), IMMUTABLE)


def _check_pod_group_status(new: Object, _old: Object, _context: Context) -> Errors:
    yield from status_conditions(new)
    known = {text_at(claim, "name") for claim in items_at(new, "spec", "resourceClaims")}
    for where, status in each_at(new, "", "status", "resourceClaimStatuses"):
        if text_at(status, "name") not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(f"{where}.name", text_at(status, "name"), detail)


def policy_of(group: Object, _now: datetime) -> str:
    return "Gang" if at(group, "spec", "schedulingPolicy", "gang") is not None else "Basic"


def workload_of(group: Object, _now: datetime) -> str:
    return text_at(group, "spec", "podGroupTemplateRef", "workload", "workloadName") or NONE


def status_of(group: Object, _now: datetime) -> str:
    """The state of a group, in one word."""
    found = {text_at(c, "type"): c for c in items_at(group, "status", "conditions")}
    if "DisruptionTarget" in found:
        return text_at(found["DisruptionTarget"], "reason")
    if "PodGroupScheduled" in found:
        scheduled = text_at(found["PodGroupScheduled"], "status") == "True"
        return "Scheduled" if scheduled else "Unschedulable"
    return "Pending"


WORKLOAD: Final = Rules(
    defaults=_default_workload, checks=_check_workload, update_checks=_check_workload_update
)
POD_GROUP: Final = Rules(
    defaults=_default_pod_group,
    prepare=lambda obj, _context: add_finalizer(obj, PROTECTION),
    checks=_check_pod_group,
    update_checks=immutable("spec"),
    rechecks=False,
)
POD_GROUP_STATUS: Final = BareStatusRules(update_checks=_check_pod_group_status)
