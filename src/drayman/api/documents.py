"""Files of objects: a stream of documents in YAML or JSON, lists taken apart.

A document knows its file and, when somebody asks because something is wrong with it, the line of each of its fields. Lines are
found by parsing once more, so that the good case does not pay for them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from drayman.api.errors import DocumentError
from drayman.api.struct import Json
from drayman.api.yaml_events import Segments, parse_yaml

MAX_BYTES: Final = 512 * 1024 * 1024
"""Largest file that is read. A cluster of a thousand large nodes takes a fifth of that."""

MAX_LINED_LENGTH: Final = 16 * 1024 * 1024
"""Longest text whose fields are given lines. Finding them takes a while, and nobody looks into larger files by line."""

_SEGMENT: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_INTEGER: Final = 400
_WHITESPACE: Final = re.compile(r"[ \t\r\n]*")


class _JsonSyntaxError(DocumentError):
    """Text that is no JSON and might still be YAML."""


def path_segments(path: str) -> Segments:
    """The parts of a field path such as `spec.devices[0].capacity[memory]`."""
    return tuple(key or name for key, name in _SEGMENT.findall(path))


class Source:
    """A file's text, and the lines of what is in it, found on first use."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._text = text

    @cached_property
    def lines(self) -> tuple[dict[Segments, int], ...]:
        """For each document the line of each field, as far as known. JSON is read as the YAML it is."""
        found: list[dict[Segments, int]] = []
        if len(self._text) > MAX_LINED_LENGTH:
            return ()
        try:
            found.extend(doc.lines for doc in parse_yaml(self.file, self._text, with_lines=True))
        except DocumentError:
            # Either reading has reported this already, or it is JSON that is no YAML, such as several objects in a row.
            return tuple(found)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object stands. `index` counts the objects of the file from 0; `start` is the line of what holds the object."""

    file: str
    index: int
    start: int
    _source: Source = field(repr=False, compare=False)
    _within: tuple[int, Segments] = field(repr=False, compare=False)

    @property
    def line(self) -> int:
        """The line the object starts at, counted from 1."""
        return self.line_of("")

    def line_of(self, path: str) -> int:
        """The line of a field, or of what is nearest above it."""
        number, prefix = self._within
        if number >= len(self._source.lines):
            return self.start
        lines = self._source.lines[number]
        segments = prefix + path_segments(path)
        while segments not in lines and segments:
            segments = segments[:-1]
        return lines.get(segments, self.start)


@dataclass(frozen=True, slots=True)
class Document(Place):
    """One object as it stands in a file."""

    value: dict[str, Json]

    @property
    def place(self) -> Place:
        """Where it stands, without it: for whoever has made an object of it and needs no second copy."""
        return Place(self.file, self.index, self.start, self._source, self._within)


def read_documents(file: str, data: bytes) -> Iterator[Document]:
    """The objects in a file's bytes. Raises DocumentError; what came before the error has been handed out by then."""
    text = _decode(file, data)
    source = Source(file, text)
    index = 0
    for number, (line, value) in enumerate(_values(file, text)):
        for prefix, item in _objects(file, line, value):
            yield Document(file, index, line, source, (number, prefix), item)
            index += 1


def _decode(file: str, data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise DocumentError(file, 0, f"larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(file, line, "not valid UTF-8") from error


def _values(file: str, text: str) -> Iterator[tuple[int, Json]]:
    """The values in a text, each with its first line."""
    if not text.lstrip().startswith(("{", "[")):
        yield from ((document.line, document.value) for document in parse_yaml(file, text))
        return
    try:
        values = list(_json_values(file, text))
    except _JsonSyntaxError as error:
        values = list(_flow_yaml(file, text, error))
    yield from values


def _flow_yaml(file: str, text: str, json_error: DocumentError) -> Iterator[tuple[int, Json]]:
    """YAML may start with a brace too. Where it is not that either, the complaint about JSON is the helpful one."""
    try:
        documents = list(parse_yaml(file, text))
    except DocumentError as error:
        raise json_error from error
    yield from ((document.line, document.value) for document in documents)


def _json_values(file: str, text: str) -> Iterator[tuple[int, Json]]:
    decoder = json.JSONDecoder(
        object_pairs_hook=_unique_object,
        parse_float=_bounded_float,
        parse_int=_bounded_integer,
        parse_constant=_no_constant,
    )
    position = _skip_whitespace(text, 0)
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise _JsonSyntaxError(file, error.lineno, f"not valid JSON: {error.msg}") from error
        except RecursionError as error:
            raise DocumentError(file, 0, "nested too deeply") from error
        except ValueError as error:
            raise DocumentError(file, line, f"not valid JSON: {error}") from error
        if _SURROGATE_ESCAPE.search(text, position, end) and _has_lone_surrogate(value):
            raise DocumentError(file, line, "not valid JSON: half of a surrogate pair in a text")
        yield line, value
        position = _skip_whitespace(text, end)


def _skip_whitespace(text: str, position: int) -> int:
    match = _WHITESPACE.match(text, position)
    return match.end() if match else position


def _unique_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} is there twice")
    return value


def _has_lone_surrogate(value: Json) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _bounded_float(text: str) -> float | str:
    """A number too large to hold remains a text, and is refused where it is used, with the name of the field."""
    number = float(text)
    return number if math.isfinite(number) else text


def _bounded_integer(text: str) -> int | str:
    return int(text) if len(text) <= _LONGEST_INTEGER else text


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a number in JSON")


def _objects(file: str, line: int, value: Json) -> Iterator[tuple[Segments, dict[str, Json]]]:
    """The objects in a value: itself, or the items of a list of them."""
    if not isinstance(value, dict):
        raise DocumentError(file, line, "expected an object with apiVersion and kind")
    kind = value.get("kind")
    items = value.get("items")
    is_list = isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)
    if not is_list:
        yield (), value
        return
    assert isinstance(items, list)
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise DocumentError(file, line, f"items[{index}] is not an object")
        yield ("items", str(index)), _named_by_list(value, item)


def _named_by_list(parent: dict[str, Json], item: dict[str, Json]) -> dict[str, Json]:
    """The API server leaves apiVersion and kind out of the items of a list of one kind."""
    kind = str(parent["kind"]).removesuffix("List")
    if not kind or "kind" in item:
        return item
    return {"apiVersion": parent.get("apiVersion"), "kind": kind, **item}
