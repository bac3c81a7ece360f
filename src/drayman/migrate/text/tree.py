"""The positions of everything in a YAML document.

Built from the parser's events, without recursion. Positions are offsets into the text, and lines are what lies between newline
characters: the parser itself counts more kinds of line breaks than editors do.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from drayman.api.syntax.yaml_builder import Segments

if TYPE_CHECKING:
    from yaml.events import Event

_BLOCK_STYLES: Final = ("|", ">")
_FIRST_DASH: Final = re.compile(r"\n[ ]*-")


@dataclass(slots=True)
class Scalar:
    """A string, number, boolean or null. An alias is one too: it is a word in the text."""

    start: int
    end: int
    text: str
    style: str = ""
    """The quote, or `|` or `>`; empty for a plain one."""
    is_alias: bool = False


@dataclass(slots=True)
class MappingEntry:
    """A key and its value."""

    key: Scalar
    value: Node

    @property
    def start(self) -> int:
        return self.key.start

    @property
    def end(self) -> int:
        return self.value.end


@dataclass(slots=True)
class Mapping:
    """Keys with values. `is_flow` means braces."""

    start: int
    is_flow: bool
    end: int = 0
    entries: list[MappingEntry] = field(default_factory=list)

    def entry(self, key: str) -> MappingEntry | None:
        """The entry of a key."""
        return next((each for each in self.entries if each.key.text == key), None)


@dataclass(slots=True)
class Sequence:
    """A list. `is_flow` means brackets."""

    start: int
    is_flow: bool
    end: int = 0
    items: list[Node] = field(default_factory=list)


Node = Scalar | Mapping | Sequence


class Text:
    """A document's text with its tree. Lines are numbered from 0 and have no newline."""

    def __init__(self, text: str, root: Node) -> None:
        self.text = text
        self.root = root
        self.lines = text.split("\n")
        self._starts = [0]
        for line in self.lines[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._scalars = sorted(_covered(root, text))

    def line(self, position: int) -> int:
        """The line a position is in."""
        return bisect_right(self._starts, position) - 1

    def column(self, position: int) -> int:
        """How far a position is from the start of its line."""
        return position - self._starts[self.line(position)]

    def first_line(self, node: Node | MappingEntry) -> int:
        """The line that a node starts on. A block starts with its first key or item, not with an anchor before it."""
        return self.line(start_of(node))

    def last_line(self, node: Node | MappingEntry) -> int:
        """The line that a node's last character is on."""
        return self.line(max(node.end - 1, node.start))

    def comment(self, line: int) -> str:
        """The comment on a line, with its `#`; empty where there is none."""
        content = self.lines[line]
        position = content.find("#")
        while position >= 0:
            is_apart = position == 0 or content[position - 1] in " \t"
            if is_apart and not self._is_in_scalar(self._starts[line] + position):
                return content[position:]
            position = content.find("#", position + 1)
        return ""

    def comments(self, first: int, last: int) -> list[str]:
        """The comments in some lines, the last one included."""
        return [found for line in range(first, last + 1) if (found := self.comment(line))]

    def line_of(self, segments: Segments) -> int:
        """The line of a field, or of what is nearest above it."""
        node: Node = self.root
        line = self.first_line(node)
        for segment in segments:
            if isinstance(node, Mapping):
                entry = node.entry(segment)
                if entry is None:
                    break
                line, node = self.line(entry.start), entry.value
            elif (
                isinstance(node, Sequence) and segment.isdigit() and int(segment) < len(node.items)
            ):
                node = node.items[int(segment)]
                line = self.first_line(node)
            else:
                break
        return line

    def _is_in_scalar(self, position: int) -> bool:
        index = bisect_right(self._scalars, (position, len(self.text))) - 1
        return index >= 0 and position < self._scalars[index][1]


def start_of(node: Node | MappingEntry) -> int:
    """Where a node's own content starts, after an anchor or a tag."""
    if isinstance(node, Mapping) and not node.is_flow and node.entries:
        return node.entries[0].start
    return node.start


def parse_tree(text: str) -> Text | None:
    """The tree of a text's one document; None for a text without any. Expects text that is known to parse."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(text)
    for event in yaml.parse(text, Loader=loader):
        builder.feed(event)
    return None if builder.root is None else Text(text, builder.root)


class _Builder:
    """Takes events one by one. A key is held until its value is complete."""

    def __init__(self, text: str) -> None:
        self.root: Node | None = None
        self._text = text
        self._open: list[Mapping | Sequence] = []
        self._keys: list[Scalar | None] = []

    def feed(self, event: Event) -> None:
        match type(event).__name__:
            case "ScalarEvent":
                self._attach(self._scalar(event))
            case "AliasEvent":
                start, end = _span(event)
                self._attach(Scalar(start, end, self._text[start:end], is_alias=True))
            case "MappingStartEvent":
                self._push(Mapping(_span(event)[0], _is_flow(event)))
            case "SequenceStartEvent":
                self._push(Sequence(self._list_start(event), _is_flow(event)))
            case "MappingEndEvent" | "SequenceEndEvent":
                self._close(event)

    def _scalar(self, event: Any) -> Scalar:
        start, end = _span(event)
        style = event.style or ""
        if style in _BLOCK_STYLES:
            header = self._text[start:end].partition("\n")[0].partition("#")[0]
            if "+" not in header:  # the blank lines below it are not part of it
                end = start + len(self._text[start:end].rstrip())
        return Scalar(start, end, event.value, style)

    def _list_start(self, event: Event) -> int:
        """Where a list's first dash or its bracket is, after an anchor or a tag."""
        start, _ = _span(event)
        if self._text[start] in "&!" and (found := _FIRST_DASH.search(self._text, start)):
            return found.end() - 1
        return start

    def _push(self, node: Mapping | Sequence) -> None:
        self._open.append(node)
        self._keys.append(None)

    def _close(self, event: Event) -> None:
        node = self._open.pop()
        self._keys.pop()
        children: list[MappingEntry] | list[Node] = (
            node.entries if isinstance(node, Mapping) else node.items
        )
        # The parser ends a block where the next node starts, after comments that may belong to that node.
        node.end = _span(event)[1] if node.is_flow or not children else children[-1].end
        self._attach(node)

    def _attach(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        top = self._open[-1]
        if isinstance(top, Sequence):
            top.items.append(node)
            return
        key = self._keys[-1]
        if key is None:
            assert isinstance(node, Scalar)  # strict reading has refused any other key
            self._keys[-1] = node
            return
        top.entries.append(MappingEntry(key, node))
        self._keys[-1] = None


def _span(event: Event) -> tuple[int, int]:
    assert event.start_mark is not None
    assert event.end_mark is not None
    return event.start_mark.index, event.end_mark.index


def _is_flow(event: Any) -> bool:
    return bool(event.flow_style)


def _covered(root: Node, text: str) -> Iterator[tuple[int, int]]:
    """The ranges of text in which a `#` does not start a comment: those of scalars, except for the header line of a block."""
    pending: list[Node] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Scalar):
            header = text.find("\n", node.start) if node.style in _BLOCK_STYLES else node.start
            yield (header if header >= 0 else node.end), node.end
        elif isinstance(node, Mapping):
            for entry in node.entries:
                pending.extend((entry.key, entry.value))
        else:
            pending.extend(node.items)
