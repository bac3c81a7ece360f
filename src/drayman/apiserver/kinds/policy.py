"""Disruption budgets and priority classes: what protects pods from eviction and preemption."""

from __future__ import annotations

from typing import Final

from drayman.api.validation.field_errors import forbidden, invalid
from drayman.apiserver.kinds.checks import (
    at_most_whole,
    count_or_percentage,
    label_selector,
    one_of,
    status_conditions,
    supported,
    unchanged,
)
from drayman.apiserver.kinds.pods.spec import PREEMPTION_POLICIES
from drayman.apiserver.kinds.reading import map_at, text_at
from drayman.apiserver.kinds.rules import Errors, Rules, StatusRules
from drayman.apiserver.kinds.workloads import check_numbers
from drayman.apiserver.served.strategy import Context, Object

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"
SYSTEM_CLASSES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
PREEMPT: Final = "PreemptLowerPriority"
_UNHEALTHY: Final = ("AlwaysAllow", "IfHealthyBudget")


def _check_budget(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        yield from count_or_percentage(value, f"spec.{name}")
        yield from at_most_whole(value, f"spec.{name}")
    yield from label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    yield from supported(policy, "spec.unhealthyPodEvictionPolicy", _UNHEALTHY)


def _check_budget_status(new: Object, _old: Object, _context: Context) -> Errors:
    yield from status_conditions(new)
    yield from check_numbers(
        map_at(new, "status"),
        "status",
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    )


def _default_class(obj: Object, _context: Context) -> None:
    obj.setdefault("preemptionPolicy", PREEMPT)


def _check_class(obj: Object, _context: Context) -> Errors:
    name, value = text_at(obj, "metadata", "name"), obj.get("value") or 0
    if name.startswith(SYSTEM_PREFIX):
        if SYSTEM_CLASSES.get(name) != value or obj.get("globalDefault"):
            detail = (
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only."
                f" error: {name} is not a known system priority class"
            )
            yield forbidden("metadata.name", detail)
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield forbidden("value", detail)
    yield from one_of(obj.get("preemptionPolicy"), "preemptionPolicy", PREEMPTION_POLICIES)


def _check_class_update(new: Object, old: Object, _context: Context) -> Errors:
    if (new.get("value") or 0) != (old.get("value") or 0):
        yield forbidden("value", "may not be changed in an update.")
    yield from unchanged(new, old, "preemptionPolicy")


BUDGET: Final = Rules(checks=_check_budget)
BUDGET_STATUS: Final = StatusRules(update_checks=_check_budget_status)
PRIORITY_CLASS: Final = Rules(
    namespaced=False,
    defaults=_default_class,
    checks=_check_class,
    update_checks=_check_class_update,
    rechecks=False,
)
