"""JSON Merge Patch (RFC 7386): null takes a member away, objects merge, everything else replaces."""

from __future__ import annotations

from drayman.api.struct import Json
from drayman.apiserver.protocol.errors import bad_request


def apply_merge_patch(obj: Json, patch: Json) -> dict[str, Json]:
    """The merged object; neither argument is changed. A patch that is not an object is a 400."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        kind = {list: "array", str: "string", bool: "bool"}.get(type(patch), "number")
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type "
            "map[string]interface {}"
        )
    return _merged(obj, patch)


def _merged(target: Json, patch: dict[str, Json]) -> dict[str, Json]:
    result = dict(target) if isinstance(target, dict) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
            continue
        current = result.get(name)
        if isinstance(current, dict):
            result[name] = _merged(current, change) if isinstance(change, dict) else change
        else:
            result[name] = without_nulls(change)
    return result


def without_nulls(value: Json) -> Json:
    """A value that had nothing to merge with: nulls in its objects, including those in lists, mean absence."""
    if isinstance(value, dict):
        return {name: without_nulls(v) for name, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
