"""Merging of an applied value into the live one, and removal of fields."""

from __future__ import annotations

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import FieldSet
from drayman.apiserver.patching.list_items import item_element
from drayman.apiserver.patching.shapes import ListShape, MapShape, ScalarShape, Shape


def merge(shape: Shape, live: Json, applied: Json) -> Json:
    """The live value with every applied field. Nothing is removed; leaves are replaced."""
    part = shape.part(applied)
    if isinstance(part, ScalarShape) or part.atomic:
        return applied
    if isinstance(part, MapShape):
        return _merge_maps(part, live, applied)
    return _merge_lists(part, live, applied)


def _merge_maps(shape: MapShape, live: Json, applied: Json) -> Json:
    old = live if isinstance(live, dict) else {}
    new = applied if isinstance(applied, dict) else {}
    if not old and not new:
        return applied
    result = dict(old)
    for name, value in new.items():
        inner = shape.member(name)
        if inner is None or name not in old:
            result[name] = value
        else:
            result[name] = merge(inner, old[name], value)
    return result


def _merge_lists(shape: ListShape, live: Json, applied: Json) -> Json:
    old = live if isinstance(live, list) else []
    new = applied if isinstance(applied, list) else []
    if not old or not new:
        return new or old or applied
    return _ItemMerge(shape, old, new).run()


class _ItemMerge:
    """Merging of two lists whose items are identified by keys or values.

    The result follows the order of the applied list; items that only the live list has stay after the item they followed. If both
    lists have the same items in a different order, those that come early in the live list are put off until their turn.
    """

    def __init__(self, shape: ListShape, old: list[Json], new: list[Json]) -> None:
        self._item_shape = shape.item()
        self._old = old
        self._old_elements = [item_element(shape, item) for item in old]
        self._new_elements = [item_element(shape, item) for item in new]
        self._new_items = dict(zip(self._new_elements, new, strict=True))
        self._old_items: dict[str, Json] = {}
        for element, item in zip(self._old_elements, old, strict=True):
            # Items with the same keys cannot be merged with; the applied one replaces them.
            self._old_items[element] = None if element in self._old_items else item
        shared = [element for element in self._new_elements if element in self._old_items]
        self._shared = iter(shared)
        self._next_shared = next(self._shared, None)
        self._merged: set[str] = set()
        self._result: list[Json] = []

    def run(self) -> list[Json]:
        old_index = new_index = 0
        while old_index < len(self._old_elements) or new_index < len(self._new_elements):
            if old_index < len(self._old_elements):
                old = self._old_elements[old_index]
                if old not in self._new_items:
                    self._result.append(self._old[old_index])
                    old_index += 1
                    continue
                if self._waits(old, new_index):
                    old_index += 1
                    continue
                if old in self._merged:
                    old_index += 1
            if new_index < len(self._new_elements):
                new = self._new_elements[new_index]
                self._take(new)
                new_index += 1
                if old_index < len(self._old_elements) and self._old_elements[old_index] == new:
                    old_index += 1
        return self._result

    def _waits(self, element: str, new_index: int) -> bool:
        """Whether to skip a shared item here, because another shared one comes first in the applied list."""
        return (
            new_index < len(self._new_elements)
            and self._next_shared is not None
            and element != self._next_shared
        )

    def _take(self, element: str) -> None:
        self._merged.add(element)
        item, before = self._new_items[element], self._old_items.get(element)
        self._result.append(item if before is None else merge(self._item_shape, before, item))
        if element == self._next_shared:
            self._next_shared = next(self._shared, None)


def remove(shape: Shape, value: Json, fields: FieldSet) -> Json:
    """The value without some of its fields. A container that loses everything becomes null."""
    part = shape.part(value)
    if isinstance(part, ScalarShape):
        return value
    if part.atomic or not value:
        return None
    if isinstance(part, MapShape):
        return _remove_members(part, value, fields) if isinstance(value, dict) else None
    return _remove_items(part, value, fields) if isinstance(value, list) else None


def _remove_members(shape: MapShape, value: dict[str, Json], fields: FieldSet) -> Json:
    result = {}
    for name, member in value.items():
        element = f"f:{name}"
        if element in fields.members:
            continue
        below, inner = fields.below(element), shape.member(name)
        result[name] = remove(inner, member, below) if below and inner is not None else member
    return result or None


def _remove_items(shape: ListShape, value: list[Json], fields: FieldSet) -> Json:
    result = []
    for item in value:
        element = item_element(shape, item)
        if element in fields.members:
            continue
        below = fields.below(element)
        result.append(remove(shape.item(), item, below) if below else item)
    return result or None
