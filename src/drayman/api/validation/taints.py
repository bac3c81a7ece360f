"""Taints, tolerations and the DeviceTaintRule."""

from __future__ import annotations

from typing import Final

from drayman.api.resource import DeviceTaint, DeviceTaintRule, DeviceTaintSelector, DeviceToleration
from drayman.api.validation.containers import Errors
from drayman.api.validation.field_errors import (
    FieldError,
    invalid,
    not_supported,
    required,
    too_many,
)
from drayman.api.validation.metadata import check_conditions, check_metadata, check_metadata_update
from drayman.api.validation.names import dns_label, driver_name, label_key, label_value, pool_name

EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
OPERATORS: Final = ("Equal", "Exists")
MAX_RULE_CONDITIONS: Final = 8


def check_taint(taint: DeviceTaint, path: str, *, old: DeviceTaint | None = None) -> Errors:
    """A taint. An effect that did not change is not questioned again."""
    yield from label_key(taint.key, f"{path}.key")
    if taint.value:
        yield from label_value(taint.value, f"{path}.value")
    if old is not None and old.effect == taint.effect:
        return
    if not taint.effect:
        yield required(f"{path}.effect")
    elif taint.effect not in EFFECTS:
        yield not_supported(f"{path}.effect", taint.effect, EFFECTS)


def check_toleration(toleration: DeviceToleration, path: str) -> Errors:
    if toleration.key:
        yield from label_key(toleration.key, f"{path}.key")
    match toleration.operator:
        case "Exists":
            if toleration.value:
                detail = "must be empty for operator `Exists`"
                yield invalid(f"{path}.value", toleration.value, detail)
        case "Equal":
            yield from label_value(toleration.value, f"{path}.value")
        case "":
            yield required(f"{path}.operator")
        case _:
            yield not_supported(f"{path}.operator", toleration.operator, OPERATORS)
    if toleration.effect and toleration.effect not in EFFECTS:
        yield not_supported(f"{path}.effect", toleration.effect, EFFECTS)


def check_tolerations(tolerations: tuple[DeviceToleration, ...], path: str) -> Errors:
    """Each toleration. The documented limit on their number is not enforced, as upstream does not."""
    for index, toleration in enumerate(tolerations):
        yield from check_toleration(toleration, f"{path}[{index}]")


def validate_rule(rule: DeviceTaintRule) -> list[FieldError]:
    """The errors of a rule about to be created."""
    return [*check_metadata(rule.metadata, namespaced=False), *_spec(rule, None)]


def validate_rule_update(new: DeviceTaintRule, old: DeviceTaintRule) -> list[FieldError]:
    return [*check_metadata_update(new.metadata, old.metadata), *_spec(new, old)]


def validate_rule_status(new: DeviceTaintRule, old: DeviceTaintRule) -> list[FieldError]:
    return [
        *check_metadata_update(new.metadata, old.metadata),
        *check_rule_conditions(new, "status.conditions"),
    ]


def check_rule_conditions(rule: DeviceTaintRule, path: str) -> Errors:
    conditions = rule.status.conditions
    yield from check_conditions(conditions, path)
    if len(conditions) > MAX_RULE_CONDITIONS:
        yield too_many(path, len(conditions), MAX_RULE_CONDITIONS)


def _spec(new: DeviceTaintRule, old: DeviceTaintRule | None) -> Errors:
    if new.spec.device_selector is not None:
        yield from _selector(new.spec.device_selector, "spec.deviceSelector")
    yield from check_taint(new.spec.taint, "spec.taint", old=old.spec.taint if old else None)


def _selector(selector: DeviceTaintSelector, path: str) -> Errors:
    if selector.driver is not None:
        yield from driver_name(selector.driver, f"{path}.driver")
    if selector.pool is not None:
        yield from pool_name(selector.pool, f"{path}.pool")
    if selector.device is not None:
        yield from dns_label(selector.device, f"{path}.device")
