"""HorizontalPodAutoscalers: how many pods a workload may have, and the metrics that decide it."""

from __future__ import annotations

from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.api.validation.field_errors import invalid, required
from drayman.apiserver.kinds.autoscaling_metrics import check_metrics, check_reference
from drayman.apiserver.kinds.checks import NOT_NEGATIVE, positive, supported
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, member, text_at
from drayman.apiserver.kinds.rules import Errors, Rules, StatusRules
from drayman.apiserver.kinds.workloads import check_numbers
from drayman.apiserver.served.strategy import Context, Object

_LONGEST_WINDOW_S: Final = 3600
_LONGEST_PERIOD_S: Final = 1800
_POLICIES: Final = ("Percent", "Pods")
_SELECTIONS: Final = ("Disabled", "Max", "Min")
_TARGET: Final = "spec.scaleTargetRef"


def _cpu() -> Object:
    target = {"type": "Utilization", "averageUtilization": 80}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _up() -> Object:
    return {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    }


def _down() -> Object:
    policy = {"type": "Percent", "value": 100, "periodSeconds": 15}
    return {"selectPolicy": "Max", "policies": [policy]}


def _default(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    spec.setdefault("minReplicas", 1)
    if not items_at(spec, "metrics"):
        spec["metrics"] = [_cpu()]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        for name, rules in (("scaleUp", _up()), ("scaleDown", _down())):
            given = {
                key: value for key, value in map_at(behavior, name).items() if value is not None
            }
            behavior[name] = {**rules, **given}


def _check(obj: Object, old: Object | None) -> Errors:
    spec = map_at(obj, "spec")
    yield from _check_numbers(spec, lowest=0 if at(old, "spec", "minReplicas") == 0 else 1)
    target = map_at(spec, "scaleTargetRef")
    before = map_at(old, "spec", "scaleTargetRef")
    same = old is not None and all(target.get(n) == before.get(n) for n in ("apiVersion", "kind"))
    yield from check_reference(
        target,
        _TARGET,
        # The only kind of the core group that can be scaled.
        needs_group=text_at(target, "kind") != "ReplicationController",
        any_version=same,
    )
    stale = any(
        text_at(m, "object", "describedObject", "apiVersion").count("/") > 1
        for m in items_at(old, "spec", "metrics")
    )
    yield from check_metrics(spec, any_version=stale)
    for name in ("scaleUp", "scaleDown"):
        yield from _check_rules(at(spec, "behavior", name), f"spec.behavior.{name}")


def _check_numbers(spec: Object, lowest: int) -> Errors:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < lowest:
        yield invalid("spec.minReplicas", least, f"must be greater than or equal to {lowest}")
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _check_rules(rules: Json, path: str) -> Errors:
    if not isinstance(rules, dict):
        return
    window = rules.get("stabilizationWindowSeconds")
    where = f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        yield invalid(where, window, "must be greater than or equal to zero")
    if window is not None and window > _LONGEST_WINDOW_S:
        yield invalid(where, window, f"must be less than or equal to {_LONGEST_WINDOW_S}")
    yield from supported(rules.get("selectPolicy"), f"{path}.selectPolicy", _SELECTIONS)
    if not items_at(rules, "policies"):
        yield required(f"{path}.policies", "must specify at least one Policy")
    for place, policy in each_at(rules, path, "policies"):
        yield from _check_policy(policy, place)
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(str(tolerance)) < Quantity(0):
        yield invalid(f"{path}.tolerance", tolerance, NOT_NEGATIVE)


def _check_policy(policy: dict[str, Json], path: str) -> Errors:
    yield from supported(text_at(policy, "type"), f"{path}.type", _POLICIES)
    yield from positive(policy.get("value"), f"{path}.value")
    period = policy.get("periodSeconds")
    yield from positive(period, f"{path}.periodSeconds")
    if isinstance(period, int) and period > _LONGEST_PERIOD_S:
        detail = f"must be less than or equal to {_LONGEST_PERIOD_S}"
        yield invalid(f"{path}.periodSeconds", period, detail)


def _check_status(new: Object, _old: Object, _context: Context) -> Errors:
    yield from check_numbers(map_at(new, "status"), "status", "currentReplicas", "desiredReplicas")


AUTOSCALER: Final = Rules(
    defaults=_default,
    checks=lambda obj, _context: _check(obj, None),
    update_checks=lambda new, old, _context: _check(new, old),
    rechecks=False,
)
AUTOSCALER_STATUS: Final = StatusRules(update_checks=_check_status)
