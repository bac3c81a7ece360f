"""Applying the change of a value to its text.

The old value, the new one and the tree of the old text are walked together. Entries that stay are copied with the comments above
them. Entries that moved one level deeper or higher, as the fields of a request do between versions, are copied too, shifted. What
is new is rendered. What is removed leaves its comments behind, because only the author knows whether they still apply.

Lines are built with the columns they have in the document. The first line of a list item is the exception: what precedes the item on it,
one or more dashes, is put back when the item is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, cast

from drayman.api.struct import Json
from drayman.migrate.text.aligning import align, canonical
from drayman.migrate.text.moving import Moving
from drayman.migrate.text.rendering import block_lines, flow_text, scalar_text
from drayman.migrate.text.tree import Mapping, MappingEntry, Node, Scalar, Sequence, Text, start_of

Object = dict[str, Json]
_Lines = list[str]
_REFERRING: Final = ("&", "*", "!", "<<")
"""Signs in a flow collection that may refer to another place, so that its parts do not stand alone."""
_MERGE: Final = "<<"
"""Merges the entries of another mapping; it is not a field, so it is there before and after."""


def patched(text: Text, old: Json, new: Json) -> str:
    """The text of a document whose value changes. `old` is its value now."""
    if canonical(old) == canonical(new):
        return text.text
    return "\n".join(_Patch(text).document(old, new))


class _Patch:
    """One document in the making."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._lists_indented = lists_indented(text)

    def document(self, old: Json, new: Json) -> _Lines:
        root = self._text.root
        first, last = self._text.first_line(root), self._text.last_line(root)
        lines = self._text.lines
        return [*lines[:first], *self._node(root, old, new), *lines[last + 1 :]]

    def _node(self, node: Node, old: Json, new: Json) -> _Lines:
        """The lines of a node that is a document or a list item, so nothing else is at the start of its first line."""
        column = self._text.column(start_of(node))
        if self._is_block(node) and _same_shape(old, new) and new:
            return self._collection(node, old, new)
        first, last = self._text.first_line(node), self._text.last_line(node)
        if first == last and _fits_in_line(node, new):
            return [self._replaced_in_line(node, column, old, new)]
        notes = [f"{' ' * column}{each}" for each in self._text.comments(first, last)]
        if isinstance(node, Scalar) or not self._is_block(node):
            return [*notes, f"{' ' * column}{self._flow(node, old, new)}"]
        return [*notes, *self._shifted(self._render(new), column)]

    def _collection(self, node: Node, old: Json, new: Json) -> _Lines:
        if isinstance(node, Mapping):
            return list(self._mapping(node, cast(Object, old), cast(Object, new)))
        assert isinstance(node, Sequence)
        return list(self._sequence(node, cast(list[Json], old), cast(list[Json], new)))

    def _mapping(self, node: Mapping, old: Object, new: Object) -> Iterator[str]:
        column = self._text.column(start_of(node))
        kept = {*new, _MERGE}
        removed = [entry for entry in node.entries if entry.key.text not in kept]
        moving = Moving(self._text, node, removed, old)
        added = _added_after(old, new)
        arrivals = {
            after: [*self._arrivals(keys, new, column, moving)] for after, keys in added.items()
        }
        waiting = arrivals.get("", [])
        for entry in node.entries:
            key = entry.key.text
            if key not in kept:
                yield from self._left_behind(entry, column, moving)
                continue
            yield from waiting
            yield from moving.gap(entry)
            yield from self._entry(entry, column, old.get(key), new.get(key))
            waiting = arrivals.get(key, [])
        yield from waiting

    def _arrivals(
        self, keys: Iterable[str], new: Object, column: int, moving: Moving
    ) -> Iterator[str]:
        """The lines of new keys."""
        for key in keys:
            value = new[key]
            if (lines := moving.take(key, value, column)) is not None:
                yield from lines
            elif isinstance(value, dict) and value and moving.has_any(value):
                yield f"{' ' * column}{flow_text(key)}:"
                for inner, item in value.items():
                    copied = moving.take(inner, item, column + 2)
                    yield from copied or self._shifted(self._render({inner: item}), column + 2)
            elif (lines := moving.take_renamed(key, value, column)) is not None:
                yield from lines
            else:
                yield from self._shifted(self._render({key: value}), column)

    def _left_behind(self, entry: MappingEntry, column: int, moving: Moving) -> Iterator[str]:
        """What stays of a removed entry: the comments, unless they moved with it."""
        if moving.is_taken(entry):
            return
        yield from moving.gap(entry)
        for comment in moving.remaining_comments(entry):
            yield f"{' ' * column}{comment}"

    def _entry(self, entry: MappingEntry, column: int, old: Json, new: Json) -> _Lines:
        text = self._text
        first, last = text.first_line(entry), text.last_line(entry)
        if entry.key.text == _MERGE or canonical(old) == canonical(new):
            return [self._from(first, column), *text.lines[first + 1 : last + 1]]
        value = entry.value
        if self._is_block(value) and _same_shape(old, new) and new:
            start = text.first_line(value)
            header = [self._from(first, column), *text.lines[first + 1 : start]]
            return [*header, *self._collection(value, old, new)]
        return self._rendered_entry(entry, column, old, new)

    def _rendered_entry(self, entry: MappingEntry, column: int, old: Json, new: Json) -> _Lines:
        text, value = self._text, entry.value
        first, last = text.first_line(entry), text.last_line(entry)
        if first == last and _fits_in_line(value, new):
            return [self._replaced_in_line(value, column, old, new)]
        notes = [f"{' ' * column}{each}" for each in text.comments(first, last)]
        if isinstance(value, Mapping | Sequence) and value.is_flow:
            key = self._source(entry.key)
            return [*notes, f"{' ' * column}{key}: {self._flow(value, old, new)}"]
        return [*notes, *self._shifted(self._render({entry.key.text: new}), column)]

    def _replaced_in_line(self, node: Node, column: int, old: Json, new: Json) -> str:
        """The line of a scalar or flow collection with another value in it."""
        line = self._text.lines[self._text.first_line(node)]
        start = self._text.column(node.start)
        written = self._flow(node, old, new)
        space = "" if start == 0 or line[start - 1] in " [{," else " "
        return f"{' ' * column}{line[column:start]}{space}{written}{line[start + node.end - node.start :]}"

    def _flow(self, node: Node, old: Json, new: Json) -> str:
        """A scalar or a flow collection on one line: what has not changed in it is copied, with its quotes."""
        source = self._source(node)
        if isinstance(node, Scalar):
            is_same = canonical(old) == canonical(new) and not node.is_alias and "\n" not in source
            return source if is_same else scalar_text(new, node.style)
        if not node.is_flow or any(sign in source for sign in _REFERRING):
            return flow_text(new)
        if isinstance(node, Mapping) and isinstance(old, dict) and isinstance(new, dict):
            return _like(source, self._flow_entries(node, old, new))
        if isinstance(node, Sequence) and isinstance(old, list) and isinstance(new, list):
            return _like(source, self._flow_items(node, old, new))
        return flow_text(new)

    def _flow_entries(self, node: Mapping, old: Object, new: Object) -> Iterator[str]:
        added = _added_after(old, new)
        for after in ("", *(entry.key.text for entry in node.entries)):
            entry = node.entry(after)
            if entry is not None and after in new:
                value = self._flow(entry.value, old.get(after), new[after])
                yield f"{self._source(entry.key)}: {value}"
            for key in added.get(after, ()):
                yield f"{flow_text(key)}: {flow_text(new[key])}"

    def _flow_items(self, node: Sequence, old: list[Json], new: list[Json]) -> Iterator[str]:
        for before, after in align(old, new):
            if after is not None and before is not None:
                yield self._flow(node.items[before], old[before], new[after])
            elif after is not None:
                yield flow_text(new[after])

    def _source(self, node: Node) -> str:
        return self._text.text[node.start : node.end]

    def _sequence(self, node: Sequence, old: list[Json], new: list[Json]) -> Iterator[str]:
        text = self._text
        dash = text.column(node.start)
        above = text.first_line(node)
        for before, after in align(old, new):
            if before is None:
                assert after is not None
                yield from self._shifted(self._render([new[after]]), dash)
                continue
            item = node.items[before]
            first, last = self._dash_line(above, item), text.last_line(item)
            gap, above = text.lines[above:first], last + 1
            yield from gap
            if after is None:
                yield from (f"{' ' * dash}{each}" for each in text.comments(first, last))
            elif canonical(old[before]) == canonical(new[after]):
                yield self._from(first, dash)
                yield from text.lines[first + 1 : last + 1]
            else:
                yield from self._item(item, first, dash, self._node(item, old[before], new[after]))

    def _item(self, item: Node, dash_line: int, dash: int, lines: _Lines) -> _Lines:
        """The lines of an item with the dash put before them."""
        text = self._text
        start = text.first_line(item)
        if start > dash_line:  # the dash is alone, and its line is not part of the item
            header = [self._from(dash_line, dash), *text.lines[dash_line + 1 : start]]
            return [*header, *lines]
        column = text.column(start_of(item))
        content = [*_without_blank_start(lines)]
        head = self._from(dash_line, dash)[:column]
        return [head + content[0].lstrip(" "), *content[1:]]

    def _dash_line(self, above: int, item: Node) -> int:
        """The line with an item's dash: the first that is neither blank nor a comment."""
        start = self._text.first_line(item)
        for line in range(above, start):
            content = self._text.lines[line].lstrip()
            if content and not content.startswith("#"):
                return line
        return start

    def _from(self, line: int, column: int) -> str:
        """A line from a column on; what precedes it is put back by the caller it belongs to."""
        return f"{' ' * column}{self._text.lines[line][column:]}"

    def _is_block(self, node: Node) -> bool:
        return not isinstance(node, Scalar) and not node.is_flow

    def _render(self, value: Json) -> _Lines:
        return block_lines(value, lists_indented=self._lists_indented)

    def _shifted(self, lines: _Lines, column: int) -> _Lines:
        return [f"{' ' * column}{line}" if line else line for line in lines]


def _like(source: str, parts: Iterable[str]) -> str:
    """The parts of a flow collection between its brackets, with the blanks that it has inside of them."""
    blank = " " if source[1:2] == " " else ""
    return f"{source[0]}{blank}{', '.join(parts)}{blank}{source[-1]}"


def _added_after(old: Object, new: Object) -> dict[str, list[str]]:
    """The new keys, by the old key that they follow; those before all old keys under the empty string."""
    added: dict[str, list[str]] = {}
    after = ""
    for key in new:
        if key in old:
            after = key
        else:
            added.setdefault(after, []).append(key)
    return added


def _same_shape(old: Json, new: Json) -> bool:
    return (isinstance(old, dict) and isinstance(new, dict)) or (
        isinstance(old, list) and isinstance(new, list)
    )


def _fits_in_line(value: Node, new: Json) -> bool:
    """Whether a new value can replace the old one in the middle of a line."""
    if isinstance(value, Scalar):
        is_long = isinstance(new, str) and "\n" in new
        return not isinstance(new, dict | list) and not is_long and not value.is_alias
    return value.is_flow and isinstance(new, dict | list)


def _without_blank_start(lines: _Lines) -> Iterator[str]:
    started = False
    for line in lines:
        started = started or bool(line.strip())
        if started:
            yield line


def lists_indented(text: Text) -> bool:
    """Whether dashes are indented below their key, judging by the first list."""
    pending: list[Node] = [text.root]
    while pending:
        node = pending.pop()
        if isinstance(node, Sequence):
            pending.extend(node.items)
        elif isinstance(node, Mapping) and not node.is_flow:
            column = text.column(start_of(node))
            for entry in node.entries:
                value = entry.value
                if isinstance(value, Sequence) and not value.is_flow:
                    return text.column(value.start) > column
                pending.append(value)
    return False
