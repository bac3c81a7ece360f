"""What changes between two objects that differ in a few parts only, found without looking at the rest.

The same parts are written to thousands of objects. Which fields a part brings where there was none goes by its structure, so that is
worked out once for each structure.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import EMPTY, Path, named_path
from drayman.apiserver.patching.list_items import item_element
from drayman.apiserver.patching.shapes import ListShape, MapShape, ScalarShape, Shape
from drayman.apiserver.patching.tracing import MISSING, Comparison, compare_at

_ADDITIONS_KEPT: Final = 1 << 10

_shapes: dict[tuple[str, Path], Shape] = {}
"""By kind and path: as many as there are parts that somebody writes."""
_additions: dict[Hashable, Comparison] = {}


def compare_parts(
    kind: str, shape: Shape, old: Mapping[str, Json], new: Mapping[str, Json], paths: Iterable[Path]
) -> Comparison:
    """What changes at the places that paths of field names lead to. What holds them is in both objects. Raises `ItemError`.

    `kind` names the shape, which must always be the same for it: for built-in kinds only.
    """
    removed = modified = added = EMPTY
    for path in paths:
        before, after = _at(old, path), _at(new, path)
        if before is MISSING and after is MISSING:
            continue
        change = _compare_part(kind, _shape_at(kind, shape, path), before, after, path)
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
    known = _shapes.get((kind, path))
    if known is None:
        for name in path:
            inner = None if shape.map is None else shape.map.member(name)
            if inner is None:
                raise LookupError(f"there is no field {name}")
            shape = inner
        known = _shapes[kind, path] = shape
    return known


def _compare_part(kind: str, shape: Shape, before: Json, after: Json, path: Path) -> Comparison:
    place = named_path(*path)
    if before is not MISSING:
        return compare_at(shape, before, after, place)
    key = (kind, path, _outline(shape, after))
    known = _additions.get(key)
    if known is None:
        if len(_additions) >= _ADDITIONS_KEPT:
            del _additions[next(iter(_additions))]
        known = _additions[key] = compare_at(shape, before, after, place)
    return known


def _outline(shape: Shape, value: Json) -> Hashable:
    """All that the fields of a value that was not there before depend on."""
    part = shape.part(value)
    if isinstance(part, ScalarShape) or part.atomic:
        return True
    if isinstance(part, MapShape):
        return _map_outline(part, value) if isinstance(value, dict) else False
    return _list_outline(part, value) if isinstance(value, list) else False


def _map_outline(shape: MapShape, value: dict[str, Json]) -> Hashable:
    found = []
    for name, member in value.items():
        inner = shape.member(name)
        if inner is not None:
            found.append((name, None if member is None else _outline(inner, member)))
    return tuple(found)


def _list_outline(shape: ListShape, value: list[Json]) -> Hashable:
    item = shape.item()
    return tuple([(item_element(shape, one), _outline(item, one)) for one in value])
