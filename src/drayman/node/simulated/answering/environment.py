"""The variables that the specification of a container sets."""

from __future__ import annotations

from typing import Any

from drayman.cluster.resources import JsonObject


def variables_of(pod: JsonObject, container: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Values by name, and the names whose values are in other objects."""
    spec = pod["spec"]
    known: dict[str, str] = {}
    unknown: list[str] = []
    for each in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        if each["name"] != container:
            continue
        for entry in each.get("env") or ():
            value = _value(pod, entry)
            if value is None:
                unknown.append(entry["name"])
            else:
                known[entry["name"]] = value
        for source in each.get("envFrom") or ():
            named = source.get("configMapRef") or source.get("secretRef") or {}
            unknown.append(f"{source.get('prefix', '')}* of {named.get('name', '')}")
    return known, tuple(unknown)


def _value(pod: JsonObject, entry: dict[str, Any]) -> str | None:
    """None if it comes from elsewhere."""
    source = entry.get("valueFrom")
    if source is None:
        return str(entry.get("value", ""))
    path = (source.get("fieldRef") or {}).get("fieldPath")
    if path is None:
        return None
    meta = pod["metadata"]
    for prefix, sort in (
        ("metadata.labels['", "labels"),
        ("metadata.annotations['", "annotations"),
    ):
        if path.startswith(prefix):
            return str((meta.get(sort) or {}).get(path.removeprefix(prefix).removesuffix("']"), ""))
    parts: Any = pod
    for step in path.split("."):
        parts = parts.get(step) if isinstance(parts, dict) else None
    return None if parts is None else str(parts)
