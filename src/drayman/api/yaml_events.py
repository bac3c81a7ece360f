"""YAML to JSON values, strictly and without recursion.

Values are what Kubernetes' own conversion makes of YAML 1.1: `yes` and `on` are booleans, `0x10` and `010` numbers, dates and
`12:30` just texts. Refused is what that conversion refuses or lets through to nobody's benefit: duplicate keys, keys that are
no text, tags, numbers JSON does not have, nesting without end, aliases that unfold to far more than the file holds.

Values are built from the parser's events rather than its node tree, whose construction recurses in C, and the same events tell
the line of every field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from drayman.api.errors import DocumentError
from drayman.api.strict_json import MAX_DEPTH
from drayman.api.struct import Json

if TYPE_CHECKING:
    from yaml.events import Event

MAX_ALIASED_NODES: Final = 100_000
"""Most values that aliases may stand for in one file."""

Segments = tuple[str, ...]
"""Where a value lies: field names, map keys and list positions."""

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"})
_FALSE: Final = frozenset(
    {"n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"}
)
_NOT_JSON: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[0-9]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES: Final = {"0x": 16, "0o": 8, "0b": 2}
_LONGEST_NUMBER: Final = 400
_OCTAL_DIGITS: Final = frozenset("01234567")
_LARGEST_WRITTEN_OUT: Final = 1e21
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_COLLECTION_TAGS: Final = frozenset({None, "!", f"{_TAG_PREFIX}map", f"{_TAG_PREFIX}seq"})
_MERGE: Final = "<<"


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a stream: its value, the line it starts at, and the line of each field if asked for."""

    value: Json
    line: int
    lines: dict[Segments, int]


@dataclass(slots=True)
class _Frame:
    """A mapping or list under construction. `size` counts the values in it, aliases unfolded."""

    value: dict[str, Json] | list[Json]
    segments: Segments
    anchor: str | None
    size: int = 1
    key: str | None = None
    merged: list[dict[str, Json]] = field(default_factory=list)


def parse_yaml(file: str, text: str, *, with_lines: bool = False) -> Iterator[YamlDocument]:
    """The documents of a YAML stream, empty ones left out. Raises DocumentError."""
    import yaml  # Here, because it takes a while and JSON does not need it.

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(file, with_lines)
    try:
        for event in yaml.parse(text, Loader=loader):
            if (document := builder.feed(event)) is not None:
                yield document
    except yaml.YAMLError as error:
        raise _syntax_error(file, text, error) from error


def _syntax_error(file: str, text: str, error: Exception) -> DocumentError:
    return DocumentError(file, *syntax_problem(text, error))


def syntax_problem(text: str, error: Exception) -> tuple[int, str]:
    """The line in which YAML is wrong, or 0 if that cannot be told, and a sentence."""
    mark = getattr(error, "problem_mark", None)
    position = getattr(error, "position", None)  # of a character that no YAML may have
    line = 0
    if mark is not None:
        # The parser may find what is missing only beyond the last line.
        line = min(mark.line, text.count("\n") - text.endswith("\n")) + 1
    elif isinstance(position, int):
        line = text.count("\n", 0, position) + 1
    message = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return line, f"not valid YAML: {message}"


class _Builder:
    """Takes events one by one and hands out a document at the end of each."""

    def __init__(self, file: str, with_lines: bool) -> None:
        self._file = file
        self._with_lines = with_lines
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._root: Json = None
        self._aliased = 0
        self._line = 1
        self._lines: dict[Segments, int] = {}

    def feed(self, event: Event) -> YamlDocument | None:
        line = event.start_mark.line + 1 if event.start_mark else 0
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
                self._root, self._anchors, self._lines = None, {}, {}
            case "DocumentEndEvent":
                if self._root is not None:
                    return YamlDocument(self._root, self._line, self._lines)
        return None

    def _fail(self, line: int, message: str) -> DocumentError:
        return DocumentError(self._file, line, message)

    def _open(self, event: Any, value: dict[str, Json] | list[Json], line: int) -> None:
        if event.tag not in _COLLECTION_TAGS:
            raise self._fail(line, f"the tag {event.tag} is not supported")
        if len(self._stack) >= MAX_DEPTH:
            raise self._fail(line, f"nested more than {MAX_DEPTH} levels deep")
        if self._expects_key():
            raise self._fail(line, "a key must be a text")
        self._stack.append(_Frame(value, self._place(line), event.anchor))

    def _close(self, line: int) -> None:
        frame = self._stack.pop()
        if isinstance(frame.value, dict):
            for merged in frame.merged:
                for key, value in merged.items():
                    frame.value.setdefault(key, value)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (frame.value, frame.size)
        self._attach(frame.value, frame.size, line)

    def _scalar(self, event: Any, line: int) -> None:
        if self._expects_key():
            self._key(event, line)
            return
        value = self._resolve(event, line)
        self._place(line)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._attach(value, 1, line)

    def _alias(self, event: Any, line: int) -> None:
        if self._expects_key():
            raise self._fail(line, "a key must be a text, not an alias")
        if event.anchor not in self._anchors:
            raise self._fail(line, f"the alias *{event.anchor} is unknown or contains itself")
        value, size = self._anchors[event.anchor]
        self._aliased += size
        if self._aliased > MAX_ALIASED_NODES:
            raise self._fail(line, f"aliases stand for more than {MAX_ALIASED_NODES} values")
        self._place(line)
        self._attach(value, size, line)

    def _expects_key(self) -> bool:
        top = self._stack[-1] if self._stack else None
        return top is not None and isinstance(top.value, dict) and top.key is None

    def _key(self, event: Any, line: int) -> None:
        frame = self._stack[-1]
        key = self._resolve(event, line)
        if not isinstance(key, str):
            shown = event.value or "null"
            raise self._fail(line, f"the key {shown} is not a text; put it in quotes")
        assert isinstance(frame.value, dict)
        if key in frame.value and key != _MERGE:
            raise self._fail(line, f"the key {key!r} is there twice")
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

    def _attach(self, value: Json, size: int, line: int) -> None:
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        frame.size += size
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.key == _MERGE:
            frame.merged.extend(self._mergeable(value, line))
        else:
            frame.value[str(frame.key)] = value
        frame.key = None

    def _mergeable(self, value: Json, line: int) -> list[dict[str, Json]]:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._fail(line, "only mappings can be merged with <<")
        return sources

    def _resolve(self, event: Any, line: int) -> Json:
        tag, text = event.tag, event.value
        if tag in (None, "!") and not event.implicit[0]:
            return text
        if tag == f"{_TAG_PREFIX}str" or tag == "!":
            return text
        if tag is not None:
            raise self._fail(line, f"the tag {tag} is not supported")
        try:
            return plain_value(text)
        except ValueError as error:
            raise self._fail(line, str(error)) from error


def plain_value(text: str) -> Json:
    """What a text without quotes stands for. Raises ValueError for numbers that JSON does not have.

    A number that is too large for Kubernetes to hold remains a text, as it does there, and is refused where it is used.
    """
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "+-.0123456789":
        return text
    if _NOT_JSON.fullmatch(text):
        raise ValueError(f"{text} is not a number in JSON")
    digits = text.replace("_", "")
    if len(digits) > _LONGEST_NUMBER:
        return text
    number: float | None = _integer(digits) if _INTEGER.fullmatch(digits) else None
    if number is None and _FLOAT.fullmatch(digits):
        number = _finite(digits)
    return text if number is None else number


def _integer(digits: str) -> int | None:
    """A 64-bit integer in one of the notations of YAML 1.1, or None where it is larger or no octal number after all."""
    magnitude = digits.lstrip("+-")
    base = _BASES.get(magnitude[:2].lower())
    if base is not None:
        number = int(magnitude[2:], base)
    elif magnitude[0] == "0":
        if not set(magnitude) <= _OCTAL_DIGITS:
            return None
        number = int(magnitude, 8)
    else:
        number = int(magnitude)
    if number >= 2**64:
        return None
    return -number if digits[0] == "-" else number


def _finite(digits: str) -> float | None:
    """A floating point number; a whole one becomes an integer, because that is how it would be written in JSON."""
    number = float(digits)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < _LARGEST_WRITTEN_OUT else number
