"""Values from the events of a YAML parser, one by one and without recursion.

What Kubernetes' conversion to JSON refuses is refused: numbers that JSON does not have, lists as keys, endless nesting, aliases that
unfold to far more than the text holds. Some things that it lets through can be refused too: duplicate keys, keys that are not texts, and
tags. A `Dialect` says what is refused, and in which words.

Values are built from events rather than from the parser's tree of nodes, whose construction recurses in C, and the same events give the
line of every field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from drayman.api.struct import Json
from drayman.api.syntax.values import MAX_DEPTH
from drayman.api.syntax.yaml_scalars import plain_value

if TYPE_CHECKING:
    from yaml.events import Event

MAX_ALIASED_NODES: Final = 100_000
"""Most values that aliases may stand for in one text."""

Segments = tuple[str, ...]
"""Where a value lies: field names, map keys and list positions."""

_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_COLLECTION_TAGS: Final = frozenset({None, "!", f"{_TAG_PREFIX}map", f"{_TAG_PREFIX}seq"})
_TEXT_TAGS: Final = frozenset({"!", f"{_TAG_PREFIX}str"})
_BINARY_TAG: Final = f"{_TAG_PREFIX}binary"
_MERGE: Final = "<<"


class Problem(Enum):
    """What may be wrong with YAML that parses."""

    TOO_DEEP = auto()
    TOO_MANY_VALUES = auto()
    TOO_MANY_ALIASED = auto()
    UNKNOWN_ALIAS = auto()
    NOT_MERGEABLE = auto()
    NOT_JSON_NUMBER = auto()
    COLLECTION_AS_KEY = auto()
    NULL_AS_KEY = auto()
    ALIAS_AS_KEY = auto()
    NOT_TEXT_AS_KEY = auto()
    DUPLICATE_KEY = auto()
    TAG = auto()


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text is read: what is refused and in which words, how numbers are kept, and how many values there may be.

    Some problems are let through where there are no words for them. Words may contain the `line` and what it is `about`.
    """

    words: Mapping[Problem, str]
    number: Callable[[int | float], Json] = lambda value: value
    max_values: int | None = None


class YamlProblemError(Exception):
    """Something is wrong with YAML that parses."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a stream: its value, the line it starts at, and the line of each field if asked for.

    The last of duplicate keys counts, where the dialect does not refuse them; `duplicates` has them with their lines.
    """

    value: Json
    line: int
    lines: dict[Segments, int]
    duplicates: tuple[tuple[int, str], ...] = ()

    def line_of(self, path: Segments) -> int:
        """The line of a field, or of the nearest one around it that has a line of its own."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, self.line)


def documents(text: str, dialect: Dialect, *, with_lines: bool = False) -> Iterator[YamlDocument]:
    """The documents of a stream. Raises YamlProblemError and yaml.YAMLError."""
    import yaml  # Here, because it takes a while and JSON does not need it.

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(dialect, with_lines)
    for event in yaml.parse(text, Loader=loader):
        if (document := builder.feed(event)) is not None:
            yield document


@dataclass(slots=True)
class _Frame:
    """A mapping or list under construction. `size` counts the values in it and `height` its levels, aliases unfolded."""

    value: dict[str, Json] | list[Json]
    segments: Segments
    anchor: str | None
    size: int = 1
    height: int = 1
    key: str | None = None
    merged: list[dict[str, Json]] = field(default_factory=list)


class _Found(NamedTuple):
    """A finished value, for which an alias may stand."""

    value: Json
    size: int = 1
    height: int = 0


class _Builder:
    """Takes events one by one and hands out a document at the end of each."""

    def __init__(self, dialect: Dialect, with_lines: bool) -> None:
        self._dialect = dialect
        self._with_lines = with_lines
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Found] = {}
        self._root: Json = None
        self._aliased = 0
        self._values = 0
        self._line = 1
        self._lines: dict[Segments, int] = {}
        self._duplicates: list[tuple[int, str]] = []

    def feed(self, event: Event) -> YamlDocument | None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        self._count(line)
        match type(event).__name__:
            case "ScalarEvent":
                self._scalar(event, line)
            case "MappingStartEvent":
                self._open(event, {}, line)
            case "SequenceStartEvent":
                self._open(event, [], line)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._close(line)
            case "AliasEvent":
                self._alias(event, line)
            case "DocumentStartEvent":
                self._root, self._anchors, self._lines, self._duplicates = None, {}, {}, []
            case "DocumentEndEvent":
                duplicates = tuple(self._duplicates)
                return YamlDocument(self._root, self._line, self._lines, duplicates)
        return None

    def _count(self, line: int) -> None:
        self._values += 1
        most = self._dialect.max_values
        if most is not None and self._values > most:
            raise self._refusal(Problem.TOO_MANY_VALUES, line)

    def _refusal(self, problem: Problem, line: int, about: str = "") -> YamlProblemError:
        text = self._dialect.words[problem]
        return YamlProblemError(line, text.format(line=line, about=about))

    def _doubt(self, problem: Problem, line: int, about: str = "") -> None:
        """Raises YamlProblemError, unless the problem is let through."""
        if problem in self._dialect.words:
            raise self._refusal(problem, line, about)

    def _open(self, event: Any, value: dict[str, Json] | list[Json], line: int) -> None:
        if event.tag not in _COLLECTION_TAGS:
            self._doubt(Problem.TAG, line, event.tag)
        if len(self._stack) >= MAX_DEPTH:
            raise self._refusal(Problem.TOO_DEEP, line)
        if self._expects_key():
            raise self._refusal(Problem.COLLECTION_AS_KEY, line)
        self._stack.append(_Frame(value, self._place(line), event.anchor))

    def _close(self, line: int) -> None:
        frame = self._stack.pop()
        if isinstance(frame.value, dict):
            for merged in frame.merged:
                for key, value in merged.items():
                    frame.value.setdefault(key, value)
        found = _Found(frame.value, frame.size, frame.height)
        self._remember(frame.anchor, found)
        self._attach(found, line)

    def _scalar(self, event: Any, line: int) -> None:
        value = self._resolve(event, line)
        if self._expects_key():
            self._key(self._key_text(event, value, line), line)
            return
        self._place(line)
        found = _Found(value)
        self._remember(event.anchor, found)
        self._attach(found, line)

    def _alias(self, event: Any, line: int) -> None:
        is_key = self._expects_key()
        if is_key:
            self._doubt(Problem.ALIAS_AS_KEY, line)
        found = self._anchors.get(event.anchor)
        if found is None:
            raise self._refusal(Problem.UNKNOWN_ALIAS, line, event.anchor)
        self._aliased += found.size
        if self._aliased > MAX_ALIASED_NODES:
            raise self._refusal(Problem.TOO_MANY_ALIASED, line)
        if len(self._stack) + found.height > MAX_DEPTH:
            raise self._refusal(Problem.TOO_DEEP, line)
        if is_key:
            self._key(str(found.value), line)
            return
        self._place(line)
        self._attach(found, line)

    def _remember(self, anchor: str | None, found: _Found) -> None:
        if anchor is not None:
            self._anchors[anchor] = found

    def _expects_key(self) -> bool:
        top = self._stack[-1] if self._stack else None
        return top is not None and isinstance(top.value, dict) and top.key is None

    def _key_text(self, event: Any, value: Json, line: int) -> str:
        """Keys that are not texts become texts, where that is let through: JSON has no others."""
        if isinstance(value, str):
            return str(value)
        self._doubt(Problem.NOT_TEXT_AS_KEY, line, event.value or "null")
        if value is None:
            raise self._refusal(Problem.NULL_AS_KEY, line)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _key(self, key: str, line: int) -> None:
        frame = self._stack[-1]
        if key in frame.value and key != _MERGE:
            self._doubt(Problem.DUPLICATE_KEY, line, repr(key))
            self._duplicates.append((line, key))
        if self._with_lines:
            self._lines[(*frame.segments, key)] = line
        frame.key = key

    def _place(self, line: int) -> Segments:
        """Where the value about to be added lies. The line of a mapping's value is that of its key, known already."""
        if not self._stack:
            self._line = line
            self._lines[()] = line
            return ()
        if not self._with_lines:
            return ()
        frame = self._stack[-1]
        if isinstance(frame.value, dict):
            return (*frame.segments, frame.key or "")
        segments = (*frame.segments, str(len(frame.value)))
        self._lines[segments] = line
        return segments

    def _attach(self, found: _Found, line: int) -> None:
        if not self._stack:
            self._root = found.value
            return
        frame = self._stack[-1]
        frame.size += found.size
        frame.height = max(frame.height, found.height + 1)
        if isinstance(frame.value, list):
            frame.value.append(found.value)
        elif frame.key == _MERGE:
            frame.merged.extend(self._mergeable(found.value, line))
        else:
            frame.value[str(frame.key)] = found.value
        frame.key = None

    def _mergeable(self, value: Json, line: int) -> list[dict[str, Json]]:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._refusal(Problem.NOT_MERGEABLE, line)
        return sources

    def _resolve(self, event: Any, line: int) -> Json:
        """What a scalar stands for."""
        tag, text = event.tag, event.value
        if tag in _TEXT_TAGS or (tag is None and not event.implicit[0]):
            return text
        if tag is not None:
            self._doubt(Problem.TAG, line, tag)
        if tag == _BINARY_TAG:
            return text
        try:
            value = plain_value(text)
        except ValueError as error:
            raise self._refusal(Problem.NOT_JSON_NUMBER, line, text) from error
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._dialect.number(value)
        return value
