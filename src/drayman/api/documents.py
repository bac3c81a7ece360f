"""Files of objects: a stream of documents in YAML or JSON, lists taken apart.

A document knows its file and, when asked because something is wrong with it, the line of each of its fields. Lines are
found by parsing again, so that the good case does not pay for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from drayman.api.errors import DocumentError, JsonError
from drayman.api.struct import Json
from drayman.api.syntax import json_text
from drayman.api.syntax.yaml_builder import Segments, YamlDocument
from drayman.api.syntax.yaml_text import parse_yaml

MAX_BYTES: Final = 512 * 1024 * 1024
"""Largest file that is read. A cluster of a thousand large nodes takes a fifth of that."""

MAX_LINED_LENGTH: Final = 16 * 1024 * 1024
"""Longest text whose fields are given lines. Finding them takes a while, and larger files are not read by line."""

_SEGMENT: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_LIST: Final = "List"


def path_segments(path: str) -> Segments:
    """The parts of a field path such as `spec.devices[0].capacity[memory]`."""
    return tuple(key or name for key, name in _SEGMENT.findall(path))


class Source:
    """A file's text, and the lines of what is in it, found on demand and only as far as needed."""

    def __init__(self, file: str, text: str) -> None:
        short = len(text) <= MAX_LINED_LENGTH
        self._found: list[YamlDocument] = []
        self._ahead = parse_yaml(file, text, with_lines=True) if short else iter(())

    def document(self, number: int) -> YamlDocument | None:
        """A document with the line of each field, or None where those are unknown. JSON is read as the YAML it is."""
        while len(self._found) <= number:
            try:
                self._found.append(next(self._ahead))
            except (StopIteration, DocumentError):
                # Either reading has reported this already, or it is JSON that is not YAML, such as several objects in a row.
                return None
        return self._found[number]


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where an object is. `index` counts the objects of the file from 0; `start` is the line of what holds the object."""

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
        document = self._source.document(number)
        return self.start if document is None else document.line_of(prefix + path_segments(path))


@dataclass(frozen=True, slots=True)
class Document(SourcePlace):
    """One object as it stands in a file."""

    value: dict[str, Json]

    @property
    def place(self) -> SourcePlace:
        """Where it is, without its content: for callers that have decoded it and need no second copy."""
        return SourcePlace(self.file, self.index, self.start, self._source, self._within)


def read_documents(file: str, data: bytes) -> Iterator[Document]:
    """The objects in a file's bytes. Raises DocumentError; what came before the error has been yielded by then."""
    text = text_of(file, data)
    source = Source(file, text)
    index = 0
    for number, (line, value) in enumerate(_values(file, text)):
        for prefix, item in _objects(file, line, value):
            yield Document(file, index, line, source, (number, prefix), item)
            index += 1


def text_of(file: str, data: bytes) -> str:
    """The text in a file's bytes. Raises DocumentError."""
    if len(data) > MAX_BYTES:
        raise DocumentError(file, 0, f"larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        return json_text.decode_text(data)
    except JsonError as error:
        raise DocumentError(file, error.line, error.reason) from error


def _values(file: str, text: str) -> Iterator[tuple[int, Json]]:
    """The values in a text, each with its first line."""
    if not text.lstrip().startswith(("{", "[")):
        yield from ((document.line, document.value) for document in parse_yaml(file, text))
        return
    try:
        values = list(json_text.parse_stream(text))
    except JsonError as error:
        refusal = DocumentError(file, error.line, error.reason)
        if not error.is_syntax:
            raise refusal from error
        values = list(_flow_yaml(file, text, refusal))
    yield from values


def _flow_yaml(file: str, text: str, json_error: DocumentError) -> Iterator[tuple[int, Json]]:
    """YAML may start with a brace too. If it is not YAML either, the error about JSON is the helpful one."""
    try:
        documents = list(parse_yaml(file, text))
    except DocumentError as error:
        raise json_error from error
    yield from ((document.line, document.value) for document in documents)


def _objects(file: str, line: int, value: Json) -> Iterator[tuple[Segments, dict[str, Json]]]:
    """The objects in a value: itself, or the items of a list of them, which may be lists again."""
    if not isinstance(value, dict):
        raise DocumentError(file, line, "expected an object with apiVersion and kind")
    pending: list[tuple[Segments, dict[str, Json]]] = [((), value)]
    while pending:
        within, found = pending.pop()
        if not _is_list(found):
            yield within, found
            continue
        items = list(_items(file, line, within, found))
        pending.extend(reversed(items))


def _is_list(value: dict[str, Json]) -> bool:
    """Whether this is a list of objects. Users' own kinds may end in List too; only `items` distinguishes those."""
    kind = value.get("kind")
    is_typed = (
        isinstance(kind, str) and kind.endswith(_LIST) and isinstance(value.get("items"), list)
    )
    return is_typed or kind == _LIST


def _items(
    file: str, line: int, within: Segments, parent: dict[str, Json]
) -> Iterator[tuple[Segments, dict[str, Json]]]:
    items = parent.get("items", "absent")  # null is how the API server writes none
    prefix = "".join(f"items[{position}]." for position in within[1::2])
    if not isinstance(items, list | None):
        raise DocumentError(file, line, f"{prefix}items is not a list")
    for index, item in enumerate(items or ()):
        if not isinstance(item, dict):
            raise DocumentError(file, line, f"{prefix}items[{index}] is not an object")
        yield (*within, "items", str(index)), _named_by_list(parent, item)


def _named_by_list(parent: dict[str, Json], item: dict[str, Json]) -> dict[str, Json]:
    """The API server leaves apiVersion and kind out of the items of a list of one kind."""
    kind = str(parent["kind"]).removesuffix(_LIST)
    if not kind or "kind" in item:
        return item
    return {"apiVersion": parent.get("apiVersion"), "kind": kind, **item}
