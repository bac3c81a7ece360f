"""Entries of a mapping that move elsewhere: their lines are copied, with their comments, instead of rendered again."""

from __future__ import annotations

from collections.abc import Iterable

from drayman.api.struct import Json
from drayman.migrate.text.aligning import canonical
from drayman.migrate.text.rendering import flow_text
from drayman.migrate.text.tree import Mapping, MappingEntry, Scalar, Text

Object = dict[str, Json]


class Moving:
    """What a mapping loses, and where it reappears: one level deeper or higher, or under another name."""

    def __init__(
        self, text: Text, node: Mapping, removed: Iterable[MappingEntry], old: Object
    ) -> None:
        self._text = text
        self._gaps = _gaps(text, node, text.first_line(node))
        self._on_offer: dict[tuple[str, str], MappingEntry] = {}
        self._by_value: dict[str, MappingEntry] = {}
        self._taken: list[MappingEntry] = []
        for entry in removed:
            value = old.get(entry.key.text)
            self._on_offer.setdefault((entry.key.text, canonical(value)), entry)
            if isinstance(entry.value, Scalar) and value is not None:
                self._by_value.setdefault(canonical(value), entry)
            if isinstance(entry.value, Mapping) and not entry.value.is_flow:
                self._offer_inner(entry, entry.value, value if isinstance(value, dict) else {})

    def _offer_inner(self, holder: MappingEntry, node: Mapping, old: Object) -> None:
        self._gaps |= _gaps(self._text, node, self._text.first_line(holder) + 1)
        for entry in node.entries:
            value = old.get(entry.key.text)
            self._on_offer.setdefault((entry.key.text, canonical(value)), entry)

    def gap(self, entry: MappingEntry) -> list[str]:
        """The blank lines and comments above an entry."""
        return self._text.lines[self._gaps[entry.start] : self._text.first_line(entry)]

    def has_any(self, value: Object) -> bool:
        """Whether a field of a new mapping is one that can be copied."""
        return any((key, canonical(item)) in self._on_offer for key, item in value.items())

    def take(self, key: str, value: Json, column: int) -> list[str] | None:
        """The lines of an entry that moves to a column; None where no such entry is leaving."""
        entry = self._on_offer.get((key, canonical(value)))
        return None if entry is None else self._copied(entry, key, column)

    def take_renamed(self, key: str, value: Json, column: int) -> list[str] | None:
        """The same for an entry of another name that has this value and is not taken yet."""
        entry = self._by_value.get(canonical(value))
        if entry is None or self.is_taken(entry):
            return None
        return self._copied(entry, flow_text(key), column)

    def _copied(self, entry: MappingEntry, key: str, column: int) -> list[str]:
        self._taken.append(entry)
        text = self._text
        first, last = text.first_line(entry), text.last_line(entry)
        own = text.column(entry.start)
        after = text.lines[first][own + entry.key.end - entry.key.start :]
        same = key == entry.key.text
        written = text.text[entry.key.start : entry.key.end] if same else key
        head = f"{' ' * own}{written}{after}"
        return _moved([*self.gap(entry), head, *text.lines[first + 1 : last + 1]], column - own)

    def is_taken(self, entry: MappingEntry) -> bool:
        """Whether an entry was moved as a whole."""
        return any(entry is each for each in self._taken)

    def remaining_comments(self, entry: MappingEntry) -> list[str]:
        """The comments of an entry that did not move with a part of it."""
        text = self._text
        inside = [each for each in self._taken if entry.start <= each.start < entry.end]
        gone = {
            line
            for each in inside
            for line in range(self._gaps[each.start], text.last_line(each) + 1)
        }
        span = range(text.first_line(entry), text.last_line(entry) + 1)
        return [text.comment(line) for line in span if line not in gone and text.comment(line)]


def _gaps(text: Text, node: Mapping, above: int) -> dict[int, int]:
    """For each entry, by its start, the first line after the entry before it."""
    gaps: dict[int, int] = {}
    for entry in node.entries:
        gaps[entry.start] = min(above, text.first_line(entry))
        above = text.last_line(entry) + 1
    return gaps


def _moved(lines: list[str], by: int) -> list[str]:
    """Lines shifted to the right, or to the left as far as they have blanks."""
    if by >= 0:
        return [f"{' ' * by}{line}" if line else line for line in lines]
    return [line[min(-by, len(line) - len(line.lstrip(" "))) :] for line in lines]
