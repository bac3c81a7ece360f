"""StatefulSets: pods with their own names and volumes."""

from __future__ import annotations

from typing import Final

from drayman.api.formats import dns_label_problems
from drayman.api.validation import FieldError
from drayman.api.validation.field_errors import forbidden, invalid
from drayman.api.validation.names import dns_label
from drayman.apiserver.kinds.checks import one_of
from drayman.apiserver.kinds.pods.defaults import default_template
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, member, set_default, text_at
from drayman.apiserver.kinds.rules import Errors, Rules
from drayman.apiserver.kinds.storage import check_claim_spec
from drayman.apiserver.kinds.workloads import (
    check_numbers,
    check_running_template,
    check_selector,
    template_warnings,
)
from drayman.apiserver.served.strategy import Context, Object

_UPDATE_TYPES: Final = ("RollingUpdate", "OnDelete")
_RETENTION: Final = ("Retain", "Delete")
_CHANGEABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _default_stateful_set(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    spec.setdefault("replicas", 1)
    set_default(spec, "podManagementPolicy", "OrderedReady")
    strategy = member(spec, "updateStrategy")
    set_default(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        member(strategy, "rollingUpdate").setdefault("partition", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    retention = member(spec, "persistentVolumeClaimRetentionPolicy")
    set_default(retention, "whenDeleted", "Retain")
    set_default(retention, "whenScaled", "Retain")
    default_template(member(spec, "template"))
    for _, claim in each_at(spec, "", "volumeClaimTemplates"):
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
        member(claim, "spec").setdefault("volumeMode", "Filesystem")
        set_default(member(claim, "status"), "phase", "Pending")


class StatefulSetRules(Rules):
    """StatefulSets. What cannot change is not checked again."""

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        errors = super().validate(obj, context)
        for where, claim in each_at(obj, "", "spec", "volumeClaimTemplates"):
            errors += check_claim_spec(map_at(claim, "spec"), f"{where}.spec")
        return errors


def _check_stateful_set(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", policy, detail)
    yield from _set_strategy(map_at(spec, "updateStrategy"))
    for name, choice in map_at(spec, "persistentVolumeClaimRetentionPolicy").items():
        path = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
        yield from one_of(choice, path, _RETENTION)
    yield from check_numbers(spec, "spec", "replicas", "minReadySeconds")
    yield from check_numbers(map_at(spec, "ordinals"), "spec.ordinals", "start")
    if service := text_at(spec, "serviceName"):
        yield from dns_label(service, "spec.serviceName")
    yield from check_selector(spec, "statefulset")
    yield from check_running_template(_with_claimed_volumes(spec), "StatefulSet")


def _set_strategy(strategy: Object) -> Errors:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in _UPDATE_TYPES:
        detail = "must be 'RollingUpdate' or 'OnDelete'"
        yield invalid("spec.updateStrategy", strategy, detail)
    elif kind == "OnDelete" and rolling is not None:
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        yield invalid("spec.updateStrategy.rollingUpdate", rolling, detail)
    elif kind == "RollingUpdate":
        yield from check_numbers(rolling, "spec.updateStrategy.rollingUpdate", "partition")


def _with_claimed_volumes(spec: Object) -> Object:
    """The spec with the volumes that its pods get for their own claims."""
    claims = items_at(spec, "volumeClaimTemplates")
    if not claims:
        return spec
    template = map_at(spec, "template")
    pod = map_at(template, "spec")
    names = [text_at(claim, "metadata", "name") for claim in claims]
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names]
    claimed = set(names)
    volumes += [v for v in items_at(pod, "volumes") if text_at(v, "name") not in claimed]
    return {**spec, "template": {**template, "spec": {**pod, "volumes": volumes}}}


def _check_stateful_set_update(new: Object, old: Object, _context: Context) -> Errors:
    after, before = map_at(new, "spec"), map_at(old, "spec")
    names = (after.keys() | before.keys()) - set(_CHANGEABLE)
    if any(after.get(name) != before.get(name) for name in names):
        detail = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
            " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        yield forbidden("spec", detail)


STATEFUL_SET: Final = StatefulSetRules(
    name_problems=dns_label_problems,
    defaults=_default_stateful_set,
    checks=_check_stateful_set,
    update_checks=_check_stateful_set_update,
    warns=template_warnings,
)
