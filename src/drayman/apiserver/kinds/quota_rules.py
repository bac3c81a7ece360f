"""Limit ranges and quotas as objects: which amounts they may name, and how these have to be consistent."""

from __future__ import annotations

from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    required,
)
from drayman.api.validation.metadata import IMMUTABLE
from drayman.api.validation.names import label_key
from drayman.apiserver.kinds.pods.pod_level import Amounts
from drayman.apiserver.kinds.pods.resources import (
    QUOTA_RESOURCES,
    can_overcommit,
    container_resource_name,
    is_quota_huge_pages,
    parse_amounts,
    quantity_value,
    resource_name_problems,
)
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, member, text_at
from drayman.apiserver.kinds.rules import Errors, Rules
from drayman.apiserver.served.strategy import Context, Object

_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_DEFAULTS: Final = ("default", "defaultRequest")
_STANDARD_POD_SCOPES: Final = ("NotBestEffort", "Terminating", "NotTerminating", "PriorityClass")
_POD_SCOPES: Final = (*_STANDARD_POD_SCOPES, "CrossNamespacePodAffinity")
_SCOPES: Final = ("BestEffort", *_STANDARD_POD_SCOPES, "VolumeAttributesClass")
_OPPOSITES: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_COMPUTE: Final = tuple(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")
)


def _default_limits(obj: Object, _context: Context) -> None:
    """Missing amounts for containers follow from the others: a limit from the maximum, a request from the limit."""
    for _, item in each_at(obj, "", "spec", "limits"):
        if item.get("type") != "Container":
            continue
        limits, requests = member(item, "default"), member(item, "defaultRequest")
        for source, target in (
            (item.get("max"), limits),
            (limits, requests),
            (item.get("min"), requests),
        ):
            for name, amount in (source or {}).items():
                target.setdefault(name, amount)


def _check_limit_range(obj: Object, _context: Context) -> Errors:
    seen: set[str] = set()
    for where, item in each_at(obj, "", "spec", "limits"):
        kind = text_at(item, "type")
        yield from label_key(kind, f"{where}.type")
        if "/" not in kind and kind not in _TYPES:
            detail = "must be a standard limit type or fully qualified"
            yield invalid(f"{where}.type", kind, detail)
        if kind in seen:
            yield duplicate(f"{where}.type", kind)
        seen.add(kind)
        yield from _limits(item, kind, where)


def _limits(item: Object, kind: str, path: str) -> Errors:
    amounts = {
        name: parse_amounts(map_at(item, name))
        for name in ("max", "min", *_DEFAULTS, "maxLimitRequestRatio")
    }
    if kind == "Pod":
        for name in _DEFAULTS:
            if amounts.pop(name):
                yield forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'")
    for name, resources in amounts.items():
        for resource in resources:
            yield from _limited_name(kind, resource, f"{path}.{name}[{resource}]")
    if kind == "PersistentVolumeClaim" and not any(
        "storage" in amounts[name] for name in ("min", "max")
    ):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", detail)
    for resource in sorted({resource for found in amounts.values() for resource in found}):
        yield from _order(amounts, resource, path)
        yield from _ratio(amounts, resource, f"{path}.maxLimitRequestRatio[{resource}]")


def _limited_name(kind: str, name: str, path: str) -> Errors:
    if kind in ("Pod", "Container"):
        yield from container_resource_name(name, path)
    else:
        yield from invalid_each(path, name, resource_name_problems(name))


def _order(amounts: dict[str, Amounts], resource: str, path: str) -> Errors:
    """Minimum, default request, default and maximum must be in ascending order."""
    least, most = amounts["min"].get(resource), amounts["max"].get(resource)
    limit = amounts.get("default", {}).get(resource)
    request = amounts.get("defaultRequest", {}).get(resource)
    for field, low, high, words in (
        ("min", least, most, ("min value", "max value")),
        ("defaultRequest", least, request, ("min value", "default request value")),
        ("defaultRequest", request, most, ("default request value", "max value")),
        ("defaultRequest", request, limit, ("default request value", "default limit value")),
        ("default", least, limit, ("min value", "default value")),
        ("default", limit, most, ("default value", "max value")),
    ):
        if low is not None and high is not None and low > high:
            detail = f"{words[0]} {low} is greater than {words[1]} {high}"
            yield invalid(f"{path}.{field}[{resource}]", str(low), detail)
    agree = limit is None or request is None or limit == request
    if not agree and not can_overcommit(resource):
        detail = f"default value {limit} must equal to defaultRequest value {request} in {resource}"
        yield invalid(f"{path}.defaultRequest[{resource}]", str(request), detail)


def _ratio(amounts: dict[str, Amounts], resource: str, path: str) -> Errors:
    ratio = amounts["maxLimitRequestRatio"].get(resource)
    least, most = amounts["min"].get(resource), amounts["max"].get(resource)
    if ratio is None:
        return
    if ratio < Quantity(1):
        yield invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if least is not None and most is not None and least.milli():
        widest = most.milli() / least.milli()
        if ratio.milli() / 1000 > widest:
            yield invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {widest:f}")


def _check_quota(obj: Object, _context: Context) -> Errors:
    hard = parse_amounts(map_at(obj, "spec", "hard"))
    for name, amount in hard.items():
        path = f"spec.hard[{name}]"
        yield from invalid_each(path, name, resource_name_problems(name))
        if "/" not in name and name not in QUOTA_RESOURCES and not is_quota_huge_pages(name):
            yield invalid(path, name, "must be a standard resource for quota")
        yield from quantity_value(name, amount, path)
    scopes = items_at(obj, "spec", "scopes")
    standard = [name for name in hard if name in QUOTA_RESOURCES]
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
        for name in standard:
            if not _is_valid_for(scope, name):
                yield invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    for pair in _OPPOSITES:
        if pair <= set(scopes):
            yield invalid("spec.scopes", scopes, "conflicting scopes")


def _is_valid_for(scope: str, resource: str) -> bool:
    """Scopes select pods by their properties, so they only apply to pods and their resources."""
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    if scope == "BestEffort":
        return resource == "pods"
    return scope not in _POD_SCOPES or resource == "pods" or resource in _COMPUTE


def _check_quota_update(new: Object, old: Object, _context: Context) -> Errors:
    scopes = items_at(new, "spec", "scopes")
    if set(scopes) != set(items_at(old, "spec", "scopes")):
        yield invalid("spec.scopes", scopes, IMMUTABLE)


RESOURCE_QUOTA: Final = Rules(checks=_check_quota, update_checks=_check_quota_update)
LIMIT_RANGE: Final = Rules(defaults=_default_limits, checks=_check_limit_range)
