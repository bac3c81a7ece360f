"""Which fields a value has, and which differ between two values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import FieldSet, FieldSetBuilder, Path
from drayman.apiserver.patching.list_items import item_element
from drayman.apiserver.patching.shapes import ListShape, MapShape, ScalarShape, Shape


class Missing(Enum):
    """The value of an absent member, which is not the same as null."""

    MISSING = 0


MISSING: Final[Literal[Missing.MISSING]] = Missing.MISSING


def fields_of(shape: Shape, value: Json) -> FieldSet:
    """Every leaf and every list item of a value. Raises `ItemError` for a list whose items cannot be identified."""
    builder = FieldSetBuilder()
    _trace(shape, value, (), builder)
    return builder.build()


def _trace(shape: Shape, value: Json, path: Path, into: FieldSetBuilder) -> None:
    part = shape.part(value)
    if isinstance(part, ScalarShape) or part.atomic:
        into.add(path)
    elif isinstance(part, MapShape):
        if isinstance(value, dict):
            _trace_map(part, value, path, into)
    elif isinstance(value, list):
        _trace_list(part, value, path, into)


def _trace_map(shape: MapShape, value: dict[str, Json], path: Path, into: FieldSetBuilder) -> None:
    declared = shape.fields()
    for name, member in value.items():
        inner = shape.member(name)
        if inner is None:
            continue
        place = (*path, f"f:{name}")
        _trace(inner, member, place, into)
        if member is None or member == {} or name not in declared:
            into.add(place)


def _trace_list(shape: ListShape, value: list[Json], path: Path, into: FieldSetBuilder) -> None:
    for element, items in _by_element(shape, value).items():
        place = (*path, element)
        into.add(place)
        if len(items) == 1:
            # The fields of items with the same keys cannot be owned.
            _trace(shape.item(), items[0], place, into)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The paths that only one of two values has, and those that both have with different content."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def changed(self) -> FieldSet:
        return self.modified | self.added

    def ignoring(self, fields: FieldSet) -> Comparison:
        """The same without some fields and everything below them."""
        return Comparison(
            self.removed.without_trees(fields),
            self.modified.without_trees(fields),
            self.added.without_trees(fields),
        )


def compare(shape: Shape, old: Json, new: Json) -> Comparison:
    """What changes from one value to another. Raises `ItemError` as `fields_of` does."""
    return compare_at(shape, old, new, ())


def compare_at(shape: Shape, old: Json, new: Json, path: Path) -> Comparison:
    """The same for values at some place of an object. One of them may be MISSING."""
    comparer = _Comparer()
    comparer.visit(shape, old, new, path)
    return Comparison(comparer.removed.build(), comparer.modified.build(), comparer.added.build())


class _Comparer:
    """A walk through two values at once. `old` and `new` may be MISSING, never both."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.removed = FieldSetBuilder()
        self.modified = FieldSetBuilder()
        self.added = FieldSetBuilder()

    def visit(self, shape: Shape, old: Json, new: Json, path: Path) -> None:
        if old is new or (old is not MISSING and new is not MISSING and _equal(old, new)):
            return
        if new is MISSING:
            is_leaf = self._visit_part(shape.part(old), old, new, path)
        else:
            part = shape.part(new)
            before = part if old is MISSING else shape.part(old)
            if before is not part:
                # A value that changes its kind loses what it was and gains what it is.
                self._visit_part(before, old, new, path)
            is_leaf = self._visit_part(part, old, new, path)
        if not is_leaf:
            self._mark_presence(old, new, path)

    def _mark_presence(self, old: Json, new: Json, path: Path) -> None:
        if old is MISSING:
            self.added.add(path)
        elif new is MISSING:
            self.removed.add(path)

    def _visit_part(
        self, part: ScalarShape | ListShape | MapShape, old: Json, new: Json, path: Path
    ) -> bool:
        """Compare as one kind of value; returns whether the value is a leaf there."""
        if isinstance(part, ScalarShape):
            self._visit_leaf(old, new, path)
            return True
        container = dict if isinstance(part, MapShape) else list
        before: Json = old if isinstance(old, container) else container()
        after: Json = new if isinstance(new, container) else container()
        # Two empty ones, or an empty one and null, are compared as leaves: the difference must not get lost.
        if part.atomic or not (before or after):
            self._visit_leaf(old, new, path)
            return True
        if isinstance(part, MapShape):
            self._visit_members(part, before, after, path)
        else:
            self._visit_items(part, before, after, path)
        return False

    def _visit_leaf(self, old: Json, new: Json, path: Path) -> None:
        self._mark_presence(old, new, path)
        if old is not MISSING and new is not MISSING and not _equal(old, new):
            self.modified.add(path)

    def _visit_members(
        self, shape: MapShape, old: dict[str, Json], new: dict[str, Json], path: Path
    ) -> None:
        for name in {**old, **new}:
            before, after = old.get(name, MISSING), new.get(name, MISSING)
            if before is after:
                continue
            inner = shape.member(name)
            if inner is not None:
                self.visit(inner, before, after, (*path, f"f:{name}"))

    def _visit_items(self, shape: ListShape, old: list[Json], new: list[Json], path: Path) -> None:
        before = _by_element(shape, old)
        after = _by_element(shape, new)
        item_shape = shape.item()
        for element in {**before, **after}:
            olds, news = before.get(element, []), after.get(element, [])
            place = (*path, element)
            if len(olds) <= 1 and len(news) <= 1:
                first = olds[0] if olds else MISSING
                self.visit(item_shape, first, news[0] if news else MISSING, place)
            else:
                self._visit_duplicates(item_shape, olds, news, place)

    def _visit_duplicates(
        self, shape: Shape, olds: list[Json], news: list[Json], path: Path
    ) -> None:
        """Items with the same keys count as one leaf."""
        if len(olds) > 1 and len(news) > 1:
            if not _equal(olds, news):
                self.modified.add(path)
        elif len(olds) > 1:
            if news:
                self.visit(shape, MISSING, news[0], path)
            self.removed.add(path)
        else:
            if olds:
                self.visit(shape, olds[0], MISSING, path)
            self.added.add(path)


def _by_element(shape: ListShape, items: list[Json]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for item in items:
        found.setdefault(item_element(shape, item), []).append(item)
    return found


def _equal(left: Json, right: Json) -> bool:
    """Equality of JSON values: true is not 1, unlike in Python."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)
