"""What changes between two objects that differ only in a few parts, found without looking at the rest.

For `drayman.apiserver.verbs.quick_parts`, which says what that gains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import EMPTY, Path, element_order, named_path
from drayman.apiserver.patching.list_items import item_element
from drayman.apiserver.patching.shapes import ListShape, MapShape, ScalarShape, Shape
from drayman.apiserver.patching.tracing import MISSING, Comparison, compare_at

FieldsV1 = dict[str, Json]

_places: dict[tuple[str, Path], Shape] = {}
"""Shapes by kind and path: one for each part that is ever written."""


def compare_parts(
    kind: str, shape: Shape, old: Mapping[str, Json], new: Mapping[str, Json], paths: Iterable[Path]
) -> Comparison:
    """What changes at some paths of field names. Their parents are in both objects. Raises `ItemError`.

    `kind` names the shape, which must always be the same for a kind: only for built-in kinds.
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


def added_fields(kind: str, shape: Shape, path: Path, value: Json) -> FieldsV1:
    """What a manager owns after setting a part that was absent, in FieldsV1 form: what `compare_parts` would find.

    Written directly, since most writes of parts are of this form: without it, the server needs 12 % more function calls for a pod that
    is scheduled. Raises `ItemError`.
    """
    return _with_self(_fields(_shape_at(kind, shape, path), value))


def _with_self(below: FieldsV1) -> FieldsV1:
    """A field that is owned itself, and what is owned below it."""
    return {".": {}, **below} if below else below


def _fields(shape: Shape, value: Json) -> FieldsV1:
    part = shape.part(value)
    if isinstance(part, ScalarShape) or part.atomic or not value:
        return {}
    if isinstance(part, MapShape):
        return _member_fields(part, value) if isinstance(value, dict) else {}
    return _item_fields(part, value) if isinstance(value, list) else {}


def _member_fields(shape: MapShape, value: dict[str, Json]) -> FieldsV1:
    found: FieldsV1 = {}
    for name in sorted(value):
        inner = shape.member(name)
        if inner is not None:
            found[f"f:{name}"] = _with_self(_fields(inner, value[name]))
    return found


def _item_fields(shape: ListShape, value: list[Json]) -> FieldsV1:
    item = shape.item()
    found: FieldsV1 = {}
    for one in value:
        element = item_element(shape, one)
        # The fields of items with the same keys cannot be owned.
        found[element] = {} if element in found else _with_self(_fields(item, one))
    if len(found) < 2:
        return found
    return {element: found[element] for element in sorted(found, key=element_order)}
