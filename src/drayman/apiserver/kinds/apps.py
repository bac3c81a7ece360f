"""Deployments, ReplicaSets, DaemonSets and ControllerRevisions."""

from __future__ import annotations

from typing import ClassVar, Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import forbidden, invalid, not_supported, required
from drayman.apiserver.kinds.checks import (
    at_most_whole,
    count_or_percentage,
    immutable,
    is_zero,
    not_negative,
)
from drayman.apiserver.kinds.pods.defaults import default_template
from drayman.apiserver.kinds.pods.spec import check_template
from drayman.apiserver.kinds.pods.strategy import pod_warnings
from drayman.apiserver.kinds.reading import at, map_at, member, set_default, text_at
from drayman.apiserver.kinds.rules import Errors, Rules, StatusRules
from drayman.apiserver.kinds.workloads import (
    check_numbers,
    check_running_template,
    check_selector,
    named_template_warnings,
    template_warnings,
)
from drayman.apiserver.served.strategy import Context, Object, restore

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_UPDATE_TYPES: Final = ("RollingUpdate", "OnDelete")
_STATUS_COUNTS: Final = tuple(
    "observedGeneration replicas fullyLabeledReplicas updatedReplicas currentReplicas readyReplicas availableReplicas"
    " unavailableReplicas collisionCount".split()
)
_SAME_SELECTOR: Final = immutable("spec", "selector")
_PARTS: Final = ("updatedReplicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas")


def _default_deployment(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    spec.setdefault("replicas", 1)
    strategy = member(spec, "strategy")
    set_default(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = member(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    default_template(member(spec, "template"))


def _check_deployment(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    yield from check_selector(spec, "deployment")
    yield from check_running_template(spec, "ReplicaSet")
    yield from _deployment_strategy(map_at(spec, "strategy"))
    yield from check_numbers(
        spec,
        "spec",
        "replicas",
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    )
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        detail = "must be greater than minReadySeconds"
        yield invalid("spec.progressDeadlineSeconds", deadline, detail)


def _deployment_strategy(strategy: Object) -> Errors:
    path = "spec.strategy"
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                detail = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden(f"{path}.rollingUpdate", detail)
        case "RollingUpdate":
            yield from _rolling(rolling, f"{path}.rollingUpdate")
        case _:
            yield not_supported(path, strategy, ("Recreate", "RollingUpdate"))


def _rolling(rolling: Json, path: str) -> Errors:
    unavailable, surge = at(rolling, "maxUnavailable"), at(rolling, "maxSurge")
    yield from count_or_percentage(unavailable, f"{path}.maxUnavailable")
    yield from count_or_percentage(surge, f"{path}.maxSurge")
    if is_zero(unavailable) and is_zero(surge):
        detail = "may not be 0 when `maxSurge` is 0"
        yield invalid(f"{path}.maxUnavailable", unavailable, detail)
    yield from at_most_whole(unavailable, f"{path}.maxUnavailable")


def _check_replica_status(new: Object, old: Object, _context: Context) -> Errors:
    status = map_at(new, "status")
    yield from check_numbers(status, "status", *_STATUS_COUNTS)
    total = status.get("replicas") or 0
    for name in _PARTS:
        if (status.get(name) or 0) > total:
            yield invalid(f"status.{name}", status[name], "cannot be greater than status.replicas")
    available, ready = status.get("availableReplicas") or 0, status.get("readyReplicas") or 0
    if available > ready:
        detail = "cannot be greater than readyReplicas"
        yield invalid("status.availableReplicas", available, detail)
    collisions = status.get("collisionCount") or 0
    if collisions < (at(old, "status", "collisionCount") or 0):
        yield invalid("status.collisionCount", collisions, "cannot be decremented")


class DeploymentStatusRules(StatusRules):
    """The status of deployments: annotations can be written with it, labels cannot."""

    reset_fields: ClassVar = (("spec",), ("metadata", "labels"))
    keeps_metadata: ClassVar = ("labels",)


def _default_replica_set(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    spec.setdefault("replicas", 1)
    default_template(member(spec, "template"))


def _check_replica_set(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    yield from check_numbers(spec, "spec", "replicas", "minReadySeconds")
    yield from check_selector(spec, "deployment")
    yield from check_running_template(spec, "ReplicaSet")


def _default_daemon_set(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    strategy = member(spec, "updateStrategy")
    set_default(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = member(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    default_template(member(spec, "template"))


def _check_daemon_set(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    yield from check_selector(spec, "daemonset", needed=False)
    yield from check_running_template(spec, "DaemonSet")
    yield from check_numbers(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    strategy = map_at(spec, "updateStrategy")
    if strategy.get("type") not in _UPDATE_TYPES:
        yield not_supported("spec.updateStrategy", strategy, _UPDATE_TYPES)
    elif strategy["type"] == "RollingUpdate":
        yield from _daemon_rolling(strategy.get("rollingUpdate"))


def _daemon_rolling(rolling: Json) -> Errors:
    path = "spec.updateStrategy.rollingUpdate"
    unavailable, surge = at(rolling, "maxUnavailable"), at(rolling, "maxSurge")
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        yield from count_or_percentage(value, f"{path}.{name}")
        yield from at_most_whole(value, f"{path}.{name}")
    if not is_zero(unavailable) and not is_zero(surge):
        yield invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif is_zero(unavailable) and is_zero(surge):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


class DaemonSetRules(Rules):
    """DaemonSets count the changes of their template in an annotation, for old clients."""

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        super().prepare_for_create(obj, context)
        member(obj["metadata"], "annotations")[TEMPLATE_GENERATION] = "1"

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")
        count = int(text_at(old, "metadata", "annotations", TEMPLATE_GENERATION) or "0")
        if at(new, "spec", "template") != at(old, "spec", "template"):
            count += 1
        member(new["metadata"], "annotations")[TEMPLATE_GENERATION] = str(count)


class DaemonSetStatusRules(StatusRules):
    """The annotation is part of the spec in all but its form, so the status endpoint does not change it."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        if count := text_at(old, "metadata", "annotations", TEMPLATE_GENERATION):
            member(new["metadata"], "annotations")[TEMPLATE_GENERATION] = count


def _pod_template_warnings(new: Object, old: Object | None, _context: Context) -> list[str]:
    spec = map_at(new, "template", "spec")
    if old is not None and at(old, "template", "spec") == spec:
        return []
    return pod_warnings(spec, "template.spec")


POD_TEMPLATE: Final = Rules(
    defaults=lambda obj, _context: default_template(member(obj, "template")),
    checks=lambda obj, _context: check_template(obj.get("template"), "template"),
    warns=_pod_template_warnings,
)
DEPLOYMENT: Final = Rules(
    defaults=_default_deployment,
    checks=_check_deployment,
    update_checks=_SAME_SELECTOR,
    warns=named_template_warnings,
)
DEPLOYMENT_STATUS: Final = DeploymentStatusRules(update_checks=_check_replica_status)
REPLICA_SET: Final = Rules(
    defaults=_default_replica_set,
    checks=_check_replica_set,
    update_checks=_SAME_SELECTOR,
    warns=named_template_warnings,
)
REPLICA_STATUS: Final = StatusRules(update_checks=_check_replica_status)
DAEMON_SET: Final = DaemonSetRules(
    defaults=_default_daemon_set,
    checks=_check_daemon_set,
    update_checks=_SAME_SELECTOR,
    warns=template_warnings,
)
DAEMON_SET_STATUS: Final = DaemonSetStatusRules()
CONTROLLER_REVISION: Final = Rules(
    checks=lambda obj, _context: not_negative(obj.get("revision"), "revision"),
    update_checks=immutable("data"),
)
