"""Files of objects: a stream of documents in YAML or JSON, lists taken apart.

A document knows its file and, when somebody asks because something is wrong with it, the line of each of its fields. Lines are
found by parsing once more, so that the good case does not pay for them.
"""

from __future__ import annotations

import json
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

_SEGMENT: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_WHITESPACE: Final = re.compile(r"[ \t\r\n]*")


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
        """For each document the line of each field. JSON is read as the YAML it is."""
        try:
            return tuple(doc.lines for doc in parse_yaml(self.file, self._text, with_lines=True))
        except DocumentError:
            # JSON that is no YAML, such as several objects in a row: lines are then unknown.
            return ()


@dataclass(frozen=True, slots=True)
class Document:
    """One object as it stands in a file. `index` counts the objects of the file from 0."""

    file: str
    index: int
    value: dict[str, Json]
    _source: Source = field(repr=False, compare=False)
    _place: tuple[int, Segments] = field(repr=False, compare=False)

    @property
    def line(self) -> int:
        """The line the object starts at, counted from 1."""
        return self.line_of("")

    def line_of(self, path: str) -> int:
        """The line of a field, or of what is nearest above it; 0 where lines are unknown."""
        number, prefix = self._place
        if number >= len(self._source.lines):
            return 0
        lines = self._source.lines[number]
        segments = prefix + path_segments(path)
        while segments not in lines and segments:
            segments = segments[:-1]
        return lines.get(segments, 0)


def read_documents(file: str, data: bytes) -> Iterator[Document]:
    """The objects in a file's bytes. Raises DocumentError; what came before the error has been handed out by then."""
    text = _decode(file, data)
    source = Source(file, text)
    index = 0
    for number, (line, value) in enumerate(_values(file, text)):
        for prefix, item in _objects(file, line, value, ()):
            yield Document(file, index, item, source, (number, prefix))
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
    except DocumentError as error:
        values = list(_flow_yaml(file, text, error))
    yield from values


def _flow_yaml(file: str, text: str, json_error: DocumentError) -> Iterator[tuple[int, Json]]:
    """YAML may start with a brace too. Where it is not that either, the complaint about JSON is the helpful one."""
    if json_error.line == 0:
        raise json_error
    try:
        documents = list(parse_yaml(file, text))
    except DocumentError as error:
        raise (json_error if "not valid YAML" in error.message else error) from error
    yield from ((document.line, document.value) for document in documents)


def _json_values(file: str, text: str) -> Iterator[tuple[int, Json]]:
    decoder = json.JSONDecoder(object_pairs_hook=_unique_object, parse_constant=_no_constant)
    position = _skip_whitespace(text, 0)
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise DocumentError(file, error.lineno, f"not valid JSON: {error.msg}") from error
        except RecursionError as error:
            raise DocumentError(file, 0, "nested too deeply") from error
        except ValueError as error:
            raise DocumentError(file, line, f"not valid JSON: {error}") from error
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


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a number in JSON")


def _objects(
    file: str, line: int, value: Json, prefix: Segments
) -> Iterator[tuple[Segments, dict[str, Json]]]:
    """The objects in a value: itself, or the items of a list of them."""
    if not isinstance(value, dict):
        raise DocumentError(file, line, "expected an object with apiVersion and kind")
    kind = value.get("kind")
    items = value.get("items")
    is_list = isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)
    if not is_list:
        yield prefix, value
        return
    assert isinstance(items, list)
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise DocumentError(file, line, f"items[{index}] is not an object")
        yield (*prefix, "items", str(index)), item
