"""The metrics of a HorizontalPodAutoscaler: which it may use, and how a table shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api import formats
from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    forbidden,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from drayman.api.validation.names import dns_label
from drayman.apiserver.kinds.checks import required_name
from drayman.apiserver.kinds.pods.resources import resource_name_problems
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors

_MEMBERS: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""The member that holds the details of a metric of each type, in the order in which they are checked."""
_TYPES: Final = tuple(sorted(_MEMBERS))
_NAMED: Final = ("object", "external", "pods")
_TARGETS: Final = ("Utilization", "Value", "AverageValue")
_NO_VALUE: Final = {
    "object": "must set either a target value or averageValue",
    "external": "must set either a target value for metric or a per-pod target",
}
_MOST_SHOWN: Final = 2
_UNKNOWN: Final = "<unknown>"


def check_metrics(spec: Json, *, any_version: bool) -> Errors:
    """All metrics of a spec. With `any_version`, objects may be named in invalid versions."""
    kinds = set()
    for where, metric in each_at(spec, "spec", "metrics"):
        kinds.add(text_at(metric, "type"))
        yield from _check_metric(metric, where, any_version=any_version)
    if at(spec, "minReplicas") == 0 and not kinds & {"Object", "External"}:
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", detail)


def _check_metric(metric: dict[str, Json], path: str, *, any_version: bool) -> Errors:
    kind = text_at(metric, "type")
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    if kind not in _MEMBERS:
        yield not_supported(f"{path}.type", kind, _TYPES)
    present = [name for name in _MEMBERS.values() if metric.get(name) is not None]
    for name in present[:1]:
        yield from _check_source(metric[name], f"{path}.{name}", name, any_version=any_version)
    expected = _MEMBERS.get(kind)
    if expected is not None and expected not in present:
        detail = "must populate information for the given metric source"
        yield required(f"{path}.{expected}", detail)
    if len(present) != 1:
        for name in present:
            if name != expected:
                detail = "must populate the given metric source only"
                yield forbidden(f"{path}.{name}", detail)


def _check_source(source: Json, path: str, name: str, *, any_version: bool) -> Errors:
    if name == "object":
        described = map_at(source, "describedObject")
        yield from check_reference(
            described, f"{path}.describedObject", needs_group=False, any_version=any_version
        )
    if name in _NAMED:
        yield from _segment(text_at(source, "metric", "name"), f"{path}.metric.name", "must specify a metric name")  # fmt: skip
    elif resource := text_at(source, "name"):
        if name == "containerResource":
            problems = resource_name_problems(resource)
            yield from invalid_each(f"{path}.name", resource, problems)
    else:
        yield required(f"{path}.name", "must specify a resource name")
    if name == "containerResource":
        container = text_at(source, "container")
        detail = "must specify a container"
        yield from required_name(container, f"{path}.container", dns_label, detail)
    yield from _check_target(map_at(source, "target"), f"{path}.target", name)


def _check_target(target: dict[str, Json], path: str, name: str) -> Errors:
    kind = text_at(target, "type")
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in _TARGETS:
        yield invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for member in ("value", "averageValue"):
        amount = target.get(member)
        if amount is not None and Quantity.parse(str(amount)) <= Quantity(0):
            yield invalid(f"{path}.{member}", amount, "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield invalid(f"{path}.averageUtilization", share, "must be greater than 0")
    yield from _choice(target, path, name)


def _choice(target: dict[str, Json], path: str, name: str) -> Errors:
    """Which amounts a metric of a type needs, and which exclude each other."""
    whole, average = target.get("value"), target.get("averageValue")
    share = target.get("averageUtilization")
    if name in ("resource", "containerResource"):
        if share is None and average is None:
            detail = "must set either a target raw value or a target utilization"
            yield required(f"{path}.averageUtilization", detail)
        elif share is not None and average is not None:
            detail = "may not set both a target raw value and a target utilization"
            yield forbidden(f"{path}.averageValue", detail)
    elif name == "pods":
        if average is None:
            yield required(f"{path}.averageValue", "must specify a positive target averageValue")
    elif whole is None and average is None:
        yield required(f"{path}.averageValue", _NO_VALUE[name])
    elif name == "external" and whole is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        yield forbidden(f"{path}.value", detail)


def check_reference(
    reference: Json, path: str, *, needs_group: bool, any_version: bool = False
) -> Errors:
    """The name of an object of another group."""
    for name in ("kind", "name"):
        yield from _segment(text_at(reference, name), f"{path}.{name}")
    version = text_at(reference, "apiVersion")
    if any_version:
        return
    if version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
        yield invalid(f"{path}.apiVersion", version, detail)
    elif needs_group and "/" not in version:
        yield invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _segment(text: str, path: str, detail: str = "") -> Errors:
    if not text:
        yield required(path, detail)
    yield from invalid_each(path, text, formats.path_segment_problems(text))


def metrics_text(obj: Json) -> str:
    """The metrics it uses, as in `cpu: <unknown>/80%`."""
    shown = list(_shown(obj))
    if not shown:
        return "<none>"
    text = ", ".join(shown[:_MOST_SHOWN])
    more = len(shown) - _MOST_SHOWN
    return f"{text} + {more} more..." if more > 0 else text


def _shown(obj: Json) -> Iterator[str]:
    now = items_at(obj, "status", "currentMetrics")
    for index, metric in enumerate(items_at(obj, "spec", "metrics")):
        name = _MEMBERS.get(text_at(metric, "type"))
        if name is None:
            yield "<unknown type>"
            continue
        target = map_at(metric, name, "target")
        current = map_at(now[index] if index < len(now) else None, name, "current")
        title = "" if name in _NAMED else f"{text_at(metric, name, 'name')}: "
        if target.get("averageValue") is not None:
            note = " (avg)" if name in ("object", "external") else ""
            found = current.get("averageValue", _UNKNOWN)
            yield f"{title}{found}/{target['averageValue']}{note}"
        elif title:
            share = current.get("averageUtilization")
            wanted = target.get("averageUtilization")
            found = _UNKNOWN if share is None else f"{share}%"
            yield f"{title}{found}/{'<auto>' if wanted is None else f'{wanted}%'}"
        else:
            yield f"{current.get('value', _UNKNOWN)}/{target.get('value')}"
