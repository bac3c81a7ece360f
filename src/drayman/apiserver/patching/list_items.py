"""How the items of a list are identified: by their key fields, or by their value."""

from __future__ import annotations

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import key_element, value_element
from drayman.apiserver.patching.shapes import ListShape


class ItemError(ValueError):
    """A list item that cannot be identified."""


def item_element(shape: ListShape, item: Json) -> str:
    """The path element of an item. Raises `ItemError`."""
    if shape.keys:
        return _keyed_element(shape, item)
    if isinstance(item, dict):
        raise ItemError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ItemError("not supported: associative list with lists as elements")
    if item is None:
        raise ItemError("associative list without keys has an element that's an explicit null")
    return value_element(item)


def _keyed_element(shape: ListShape, item: Json) -> str:
    if item is None:
        raise ItemError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ItemError("associative list with keys may not have non-map elements")
    keys = {}
    for name in shape.keys:
        if name in item:
            keys[name] = item[name]
        elif (default := _key_default(shape, name)) is not None:
            keys[name] = default
        # A key that is neither given nor has a default is omitted: its absence also distinguishes items.
    if not keys:
        names = " ".join(f'"{name}"' for name in shape.keys)
        raise ItemError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(keys)


def _key_default(shape: ListShape, name: str) -> Json:
    item = shape.item()
    field = None if item.map is None else item.map.fields().get(name)
    return None if field is None else field.default
