"""What changes between two objects that differ in a few parts only, found without looking at the rest.

For `drayman.apiserver.verbs.quick_parts`, which says what that gains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import EMPTY, Path, named_path
from drayman.apiserver.patching.shapes import Shape
from drayman.apiserver.patching.tracing import MISSING, Comparison, compare_at

_places: dict[tuple[str, Path], Shape] = {}
"""Shapes by kind and path: as many as there are parts that somebody writes."""


def compare_parts(
    kind: str, shape: Shape, old: Mapping[str, Json], new: Mapping[str, Json], paths: Iterable[Path]
) -> Comparison:
    """What changes at the places that paths of field names lead to. What holds them is in both objects. Raises `ItemError`.

    `kind` names the shape, which must always be the same for it: for built-in kinds only.
    """
    removed = modified = added = EMPTY
    for path in paths:
        before, after = _at(old, path), _at(new, path)
        change = compare_at(_shape_at(kind, shape, path), before, after, named_path(*path))
        removed |= change.removed
        modified |= change.modified
        added |= change.added
    return Comparison(removed, modified, added)


def _at(obj: Json, path: Path) -> Json:
    for name in path:
        if name not in obj:
            return MISSING
        obj = obj[name]
    return obj


def _shape_at(kind: str, shape: Shape, path: Path) -> Shape:
    known = _places.get((kind, path))
    if known is None:
        for name in path:
            inner = None if shape.map is None else shape.map.member(name)
            if inner is None:
                raise LookupError(f"there is no field {name}")
            shape = inner
        known = _places[kind, path] = shape
    return known
