"""HorizontalPodAutoscalers in autoscaling/v1: one target for CPU, and everything else in annotations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from drayman.api.errors import BodyError
from drayman.api.schema import decode_strict
from drayman.api.schema.normal import normalise
from drayman.api.struct import Json
from drayman.api.syntax.json_text import parse_embedded
from drayman.apiserver.kinds.reading import at, map_at, member, text_at
from drayman.apiserver.served.resources import Conversion, GroupVersionKind
from drayman.apiserver.served.shaping import message_at, message_of
from drayman.apiserver.served.strategy import Object

_KIND: Final = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
_HUB: Final = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
_PREFIX: Final = "autoscaling.alpha.kubernetes.io"
METRICS: Final = f"{_PREFIX}/metrics"
CURRENT: Final = f"{_PREFIX}/current-metrics"
BEHAVIOR: Final = f"{_PREFIX}/behavior"
CONDITIONS: Final = f"{_PREFIX}/conditions"
_CPU_TARGET: Final = "targetCPUUtilizationPercentage"
_CPU_NOW: Final = "currentCPUUtilizationPercentage"

_Shape = Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]
"""By the member of a metric: names in the older form, and their places in the newer one."""
_NAME: Final = ("metric", "name")
_SELECTOR: Final = ("metric", "selector")


def _shape(word: str, values: str) -> _Shape:
    """The shape of targets, or of current values."""
    share = (f"{word}AverageUtilization", (values, "averageUtilization"))
    average = (f"{word}AverageValue", (values, "averageValue"))
    whole = (f"{word}Value", (values, "value"))
    return {
        "object": (
            ("target", ("describedObject",)),
            ("metricName", _NAME),
            whole,
            ("selector", _SELECTOR),
            ("averageValue", (values, "averageValue")),
        ),
        "pods": (("metricName", _NAME), average, ("selector", _SELECTOR)),
        "resource": (("name", ("name",)), share, average),
        "containerResource": (
            ("name", ("name",)),
            share,
            average,
            ("container", ("container",)),
        ),
        "external": (("metricName", _NAME), ("metricSelector", _SELECTOR), whole, average),
    }


_TARGETS: Final = _shape("target", "target")
_MEASURED: Final = _shape("current", "current")


class AutoscalerConversion(Conversion):
    """Between the two versions. What has no field in the older one is kept in annotations."""

    def to_hub(self, obj: Object, version: str) -> Object:
        spec = member(obj, "spec")
        annotations = _taken(obj)
        metrics = [_with_target_type(_newer(m, _TARGETS)) for m in _read_list(annotations, METRICS)]
        metrics = _understood("spec", "metrics", metrics) or []
        target = spec.pop(_CPU_TARGET, None)
        if target is not None:
            metrics.append(_cpu("target", type="Utilization", averageUtilization=target))
        if metrics:
            spec["metrics"] = metrics
        found = _renamed(_read(annotations, BEHAVIOR), lambda name: name[0].lower() + name[1:])
        if behavior := _understood("spec", "behavior", found):
            spec["behavior"] = behavior
        self._status_to_hub(obj, annotations)
        return obj

    @staticmethod
    def _status_to_hub(obj: Object, annotations: Mapping[str, str]) -> None:
        status = obj.get("status")
        if not isinstance(status, dict):
            return
        share = status.pop(_CPU_NOW, None)
        if share is not None:
            status["currentMetrics"] = [_cpu("current", averageUtilization=share)]
        found = [_newer(m, _MEASURED) for m in _read_list(annotations, CURRENT)]
        if current := _understood("status", "currentMetrics", found):
            status["currentMetrics"] = current
        said = _read_list(annotations, CONDITIONS)
        if conditions := _understood("status", "conditions", said):
            status["conditions"] = conditions

    def from_hub(self, obj: Object, version: str) -> Object:
        metadata = {**obj["metadata"], "annotations": {**map_at(obj, "metadata", "annotations")}}
        shown: Object = {**obj, "metadata": metadata}
        _taken(shown)
        spec, status = {**map_at(obj, "spec")}, {**map_at(obj, "status")}
        metrics, current = spec.pop("metrics", None) or [], status.pop("currentMetrics", None) or []
        if (wanted := next(_shares(metrics, "target"), None)) is not None:
            spec[_CPU_TARGET] = wanted
        for share in _shares(current, "current"):
            status[_CPU_NOW] = share
        kept: dict[str, Json] = {
            METRICS: [_older(m, _TARGETS) for m in metrics if not list(_shares([m], "target"))],
            CURRENT: [_older(m, _MEASURED) for m in current],
            BEHAVIOR: _behavior(spec.pop("behavior", None)),
            CONDITIONS: status.pop("conditions", None) or [],
        }
        written = {name: _compact(value) for name, value in kept.items() if value}
        if written:
            member(metadata, "annotations").update(written)
        return normalise(message_of(_KIND), {**shown, "spec": spec, "status": status})


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def _taken(obj: Object) -> dict[str, str]:
    """The annotations that carry fields, removed from an object."""
    annotations = map_at(obj, "metadata", "annotations")
    names = (METRICS, CURRENT, BEHAVIOR, CONDITIONS)
    found = {name: str(annotations.pop(name)) for name in names if name in annotations}
    if found and not annotations:
        del obj["metadata"]["annotations"]
    return found


def _shares(metrics: Sequence[Json], values: str) -> Iterator[int]:
    """The CPU utilisation values among metrics."""
    for metric in metrics:
        share = at(metric, "resource", values, "averageUtilization")
        is_cpu = text_at(metric, "resource", "name") == "cpu"
        if is_cpu and text_at(metric, "type") == "Resource" and share is not None:
            yield share


def _cpu(values: str, **amounts: Json) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", values: amounts}}


def _older(metric: Object, shape: _Shape) -> Object:
    found: Object = {"type": text_at(metric, "type")}
    for name, fields in shape.items():
        if metric.get(name) is not None:
            values = {older: at(metric[name], *newer) for older, newer in fields}
            found[name] = {older: value for older, value in values.items() if value is not None}
    return found


def _newer(metric: Object, shape: _Shape) -> Object:
    found: Object = {"type": metric.get("type")}
    for name, fields in shape.items():
        if isinstance(metric.get(name), dict):
            source: Object = {}
            for older, newer in fields:
                if (value := metric[name].get(older)) is not None:
                    place = source
                    for step in newer[:-1]:
                        place = member(place, step)
                    place[newer[-1]] = value
            found[name] = source
    return found


def _with_target_type(metric: Object) -> Object:
    """A metric with the type of its target, which the older form omits."""
    for name in _TARGETS:
        if isinstance(metric.get(name), dict):
            target = member(metric[name], "target")
            if "averageUtilization" in target:
                target["type"] = "Utilization"
            elif "value" in target and (name == "external" or "averageValue" not in target):
                target["type"] = "Value"
            else:
                target["type"] = "AverageValue"
    return metric


def _behavior(behavior: Json) -> Json:
    """The behavior with the names and nulls of the annotation."""
    if not isinstance(behavior, dict):
        return None
    rules = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
    return _renamed(
        {
            name: None if behavior.get(name) is None else {r: behavior[name].get(r) for r in rules}
            for name in ("scaleUp", "scaleDown")
        },
        lambda name: name[0].upper() + name[1:],
    )


def _renamed(value: Json, rename: Callable[[str], str]) -> Json:
    if isinstance(value, dict):
        return {rename(name): _renamed(inner, rename) for name, inner in value.items()}
    return [_renamed(item, rename) for item in value] if isinstance(value, list) else value


def _read(annotations: Mapping[str, str], name: str) -> Json:
    """The value of an annotation; None if it cannot be read, as if it were absent."""
    try:
        return parse_embedded(annotations[name].encode()) if name in annotations else None
    except BodyError:
        return None


def _read_list(annotations: Mapping[str, str], name: str) -> list[Object]:
    found = _read(annotations, name)
    is_list = isinstance(found, list) and all(isinstance(item, dict) for item in found)
    return found if is_list else []


def _understood(part: str, name: str, value: Json) -> Json:
    """The value of a field in an annotation; None if the field cannot have that value."""
    try:
        return decode_strict(message_at(message_of(_HUB), part), {name: value}).value.get(name)
    except BodyError:
        return None
