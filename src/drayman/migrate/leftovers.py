"""Requests for devices outside of pods and claims: quotas, and kinds that are not Kubernetes' own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.struct import Json
from drayman.migrate.model import Scope
from drayman.migrate.plugin_resources import device_for, is_of_plugin
from drayman.migrate.pod_specs import pod_spec_of
from drayman.migrate.shapes import Object, child, renamed, text

_REQUESTS: Final = "requests."
_AMOUNTS: Final = frozenset({"limits", "requests"})


def rewrite(value: Object, scope: Scope) -> Object:
    """Quotas count the devices of a class instead of a resource; other kinds are only searched."""
    if text(value, "kind") == "ResourceQuota" and text(value, "apiVersion") == "v1":
        return _quota(value, scope)
    if pod_spec_of(value) is None and text(value, "kind") != "Node":
        for path in _asking(value, ""):
            scope.lost(path, "left as it is: how this kind makes pods is not known here")
    return value


def _quota(value: Object, scope: Scope) -> Object:
    hard = child(value, "spec", "hard")
    for name in list(hard):
        resource = name.removeprefix(_REQUESTS)
        device = device_for(resource)
        if device is None or not name.startswith(_REQUESTS):
            continue
        path = f"spec.hard[{name}]"
        if device.selector:
            scope.lost(path, f"quotas count all devices of {device.class_name}; left as it is")
            continue
        counted = f"{device.class_name}.deviceclass.resource.k8s.io/devices"
        scope.note(path, f"now {counted}")
        hard = renamed(hard, name, counted, hard[name])
    return {**value, "spec": {**child(value, "spec"), "hard": hard}} if hard else value


def _asking(value: Json, path: str) -> Iterator[str]:
    """The paths of amounts of resources that are known to stand for devices."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _asking(item, f"{path}[{place}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}[{key}]" if "." in key or "/" in key else f"{path}.{key}"
            if key in _AMOUNTS and isinstance(item, dict):
                yield from (f"{inner}[{name}]".lstrip(".") for name in item if is_of_plugin(name))
            else:
                yield from _asking(item, inner)
