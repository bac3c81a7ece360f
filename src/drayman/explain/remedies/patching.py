"""Changes of objects as JSON patches.

A remedy is reported as patches, so it is tried with them too: the search uses what the patch makes of the object, never something built
separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from drayman.api.codec import convert, to_dict
from drayman.api.struct import ApiStruct, Json
from drayman.explain.answer import Operation

Step = Mapping[str, object]
Patch = tuple[Step, ...]
T = TypeVar("T", bound=ApiStruct)


def pointer(*parts: str | int) -> str:
    """The path of a JSON patch."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def put(value: object, *path: str | int) -> Step:
    """Set a member of an object, whether or not it is there."""
    return {"op": "add", "path": pointer(*path), "value": value}


def cut(*path: str | int) -> Step:
    """Remove something that exists."""
    return {"op": "remove", "path": pointer(*path)}


def under(prefix: str, patch: Patch) -> Patch:
    """The same changes for something that is part of a larger object."""
    return tuple({**step, "path": f"{prefix}{step['path']}"} for step in patch)


def patched(target: T, patch: Patch) -> T:
    """What a patch of `put` and `cut` makes of an object."""
    content = to_dict(target)
    for step in patch:
        _apply(content, step)
    return convert(type(target), content)


def patch_of(kind: str, name: str, patch: Patch, namespace: str = "") -> Operation:
    return Operation(verb="patch", kind=kind, name=name, namespace=namespace, patch=patch)


def _apply(content: Json, step: Step) -> None:
    *parents, last = [
        part.replace("~1", "/").replace("~0", "~") for part in str(step["path"]).split("/")[1:]
    ]
    for part in parents:
        content = content[int(part)] if isinstance(content, list) else content[part]
    if step["op"] == "remove":
        del content[int(last) if isinstance(content, list) else last]
    elif isinstance(content, list):
        content.insert(len(content) if last == "-" else int(last), step["value"])
    else:
        content[last] = step["value"]
