"""Workloads and PodGroups: pods that are to be scheduled together, or not at all."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Final

from drayman.api import formats
from drayman.api.codec import convert
from drayman.api.meta import Condition
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    duplicate,
    invalid,
    invalid_each,
    required,
    too_many,
)
from drayman.api.validation.metadata import IMMUTABLE, check_conditions
from drayman.apiserver.kinds.checks import one_of
from drayman.apiserver.kinds.reading import (
    at,
    each_at,
    items_at,
    map_at,
    member,
    set_default,
    text_at,
)
from drayman.apiserver.kinds.rules import BareStatusRules, Errors, Rules
from drayman.apiserver.kinds.tables import NONE
from drayman.apiserver.served.strategy import Context, Object, restore

PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
_MODES: Final = ("Pod", "PodGroup")
_MOST_TEMPLATES: Final = 8
_MOST_TOPOLOGIES: Final = 1
_MOST_CLAIMS: Final = 4
_UNION: Final = "must specify one of: `basic`, `gang`"


def _default_group(spec: Object) -> None:
    set_default(spec, "disruptionMode", "Pod")


def _default_pod_group(obj: Object, _context: Context) -> None:
    _default_group(member(obj, "spec"))


def _default_workload(obj: Object, _context: Context) -> None:
    for _, template in each_at(obj, "", "spec", "podGroupTemplates"):
        _default_group(template)


def _prepare_pod_group(obj: Object, _context: Context) -> None:
    metadata = obj["metadata"]
    if PROTECTION not in items_at(metadata, "finalizers"):
        metadata["finalizers"] = [*items_at(metadata, "finalizers"), PROTECTION]


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
        key = text_at(topology, "key")
        if key:
            yield from invalid_each(f"{where}.key", key, formats.label_key_problems(key))
        else:
            yield required(f"{where}.key")
    yield from _claims(spec, path)
    yield from one_of(spec.get("disruptionMode"), f"{path}.disruptionMode", _MODES, needed=False)


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
            yield from invalid_each(f"{where}.name", name, formats.dns_label_problems(name))
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


def _check_immutable(new: Object, old: Object, _context: Context) -> Errors:
    if new.get("spec") != old.get("spec"):
        yield invalid("spec", new.get("spec"), IMMUTABLE)


def _check_workload(obj: Object, _context: Context) -> Errors:
    templates = items_at(obj, "spec", "podGroupTemplates")
    if not templates:
        yield required("spec.podGroupTemplates")
    if len(templates) > _MOST_TEMPLATES:
        yield too_many("spec.podGroupTemplates", len(templates), _MOST_TEMPLATES)
        return
    seen: set[str] = set()
    for where, template in each_at(obj, "", "spec", "podGroupTemplates"):
        name = text_at(template, "name")
        if not name:
            yield required(f"{where}.name")
        else:
            yield from invalid_each(f"{where}.name", name, formats.dns_label_problems(name))
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
    conditions = items_at(new, "status", "conditions")
    yield from check_conditions(
        tuple(convert(Condition, condition) for condition in conditions), "status.conditions"
    )
    known = {text_at(claim, "name") for claim in items_at(new, "spec", "resourceClaims")}
    for where, status in each_at(new, "", "status", "resourceClaimStatuses"):
        if text_at(status, "name") not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(f"{where}.name", text_at(status, "name"), detail)


class PodGroupRules(Rules):
    """PodGroups through the main endpoint."""

    reset_fields: ClassVar = (("status",),)

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")


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
POD_GROUP: Final = PodGroupRules(
    defaults=_default_pod_group,
    prepare=_prepare_pod_group,
    checks=_check_pod_group,
    update_checks=_check_immutable,
    rechecks=False,
)
POD_GROUP_STATUS: Final = BareStatusRules(update_checks=_check_pod_group_status)


def is_gang(group: Object) -> bool:
    """Whether the pods of a group are to be placed together or not at all."""
    policy: Json = (group.get("spec") or {}).get("schedulingPolicy") or {}
    return bool(policy.get("gang"))
