"""A file of manifests as its documents, and the file again when some of them changed.

Documents are split at their separator lines, which YAML allows nowhere else. Each is read on its own, so changing one leaves the bytes of
the others alone. A JSON file is a stream of objects; it has no comments, so the objects that change are rewritten, indented as they were.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from drayman.api.errors import DocumentError, JsonError
from drayman.api.struct import Json
from drayman.api.syntax.json_text import parse_stream
from drayman.api.syntax.yaml_builder import Segments
from drayman.api.syntax.yaml_text import parse_yaml
from drayman.migrate.text.aligning import canonical
from drayman.migrate.text.patching import Object, lists_indented, patched
from drayman.migrate.text.rendering import block_lines, json_text
from drayman.migrate.text.tree import Text, parse_tree

_SEPARATOR: Final = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)[^\n]*\n?", re.MULTILINE)
_CONTENT_AFTER: Final = re.compile(r"---[ \t]+[^#\s]")
_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class DocumentEdit:
    """The result for a document: a value, objects that come before it, and whether it stays at all."""

    value: Json
    before: Sequence[Object] = ()
    is_removed: bool = False


@dataclass(frozen=True)
class Document:
    """A document of a file. `separator` is the line above it, `start` the number of its own first line, from 1."""

    text: str
    separator: str
    start: int
    value: Json
    is_json: bool = False

    @cached_property
    def tree(self) -> Text | None:
        """The positions of its values; None for a document without content and for JSON that is not YAML."""
        if self.value is None:
            return None
        if self.is_json and "\t" in self.text:  # no indentation in YAML
            return None
        return parse_tree(self.text)

    def line_of(self, segments: Segments) -> int:
        """The line of a field in the file, counted from 1."""
        return self.start + (self.tree.line_of(segments) if self.tree else 0)


def read_documents(file: str, text: str) -> list[Document]:
    """The documents of a file, those without content included. Raises DocumentError."""
    text = text.removeprefix(_MARK).replace("\r\n", "\n")
    if text.lstrip().startswith(("{", "[")) and (found := _read_json(text)) is not None:
        return found
    documents = []
    for separator, body, start in _split(text):
        value = None if _is_directives(body) else _value(file, body, start)
        documents.append(Document(body, separator, start, value))
    return documents


def write_documents(
    original: str, documents: Sequence[Document], changes: Sequence[DocumentEdit]
) -> tuple[str, list[int]]:
    """The text of a file after changes to its documents, and which of them had to be rewritten without comments."""
    if not any(_is_change(each, change) for each, change in zip(documents, changes, strict=True)):
        return original, []
    rewritten: list[int] = []
    if documents[0].is_json:
        written = _write_json(documents, changes)
    else:
        written = _write_yaml(documents, changes, rewritten)
    if original.startswith(_MARK):
        written = _MARK + written
    return (written.replace("\n", "\r\n") if "\r\n" in original else written), rewritten


def _write_yaml(
    documents: Sequence[Document], changes: Sequence[DocumentEdit], rewritten: list[int]
) -> str:
    parts: list[str] = []
    for index, (document, change) in enumerate(zip(documents, changes, strict=True)):
        body, is_faithful = _body(document, change)
        if not is_faithful:
            rewritten.append(index)
        parts.append(_joined(document, change, body, is_first=index == 0))
    return "".join(parts)


def _is_change(document: Document, change: DocumentEdit) -> bool:
    return bool(
        change.is_removed or change.before or canonical(document.value) != canonical(change.value)
    )


def _split(text: str) -> list[tuple[str, str, int]]:
    """(separator, body, line of the body) of each document."""
    found: list[tuple[str, str, int]] = []
    separator, start, line = "", 0, 1
    for match in _SEPARATOR.finditer(text):
        body = text[start : match.start()]
        found.append((separator, body, line))
        line += body.count("\n")
        if _CONTENT_AFTER.match(match.group()):  # the document starts on the line of its separator
            separator, start = "---", match.start() + 3
        else:
            separator, start = match.group(), match.end()
            line += separator.count("\n")
    found.append((separator, text[start:], line))
    return found


def _is_directives(body: str) -> bool:
    """Whether there are only directives, such as the YAML version, which belong to the document below."""
    lines = [
        line for line in body.split("\n") if line.strip() and not line.lstrip().startswith("#")
    ]
    return bool(lines) and all(line.startswith("%") for line in lines)


def _value(file: str, body: str, start: int) -> Json:
    try:
        return next((each.value for each in parse_yaml(file, body)), None)
    except DocumentError as error:
        line = error.line + start - 1 if error.line else start
        raise DocumentError(file, line, error.message) from error


def _read_json(text: str) -> list[Document] | None:
    """The objects of a JSON stream; None where it is YAML that starts with a brace."""
    try:
        values = list(parse_stream(text))
    except JsonError:
        return None
    lines = text.split("\n")
    ends = [line - 1 for line, _ in values[1:]] + [len(lines)]
    return [
        Document("\n".join(lines[line - 1 : end]), "", line, value, is_json=True)
        for (line, value), end in zip(values, ends, strict=True)
    ]


def _write_json(documents: Sequence[Document], changes: Sequence[DocumentEdit]) -> str:
    like = documents[0].text
    objects = [
        value
        for change in changes
        for value in (*change.before, *(() if change.is_removed else (change.value,)))
    ]
    if len(documents) == 1 and len(objects) > 1:
        objects = [{"apiVersion": "v1", "kind": "List", "items": objects}]
    return "".join(f"{json_text(value, like)}\n" for value in objects)


def _body(document: Document, change: DocumentEdit) -> tuple[str, bool]:
    """The text of a document after a change, and whether everything unchanged was kept."""
    tree = document.tree
    if tree is None:
        return document.text, True
    if change.is_removed:
        comments = tree.comments(0, len(tree.lines) - 1)
        return "".join(f"{each}\n" for each in comments), True
    body = patched(tree, document.value, change.value)
    if _says(body, change.value):
        return body, True
    # Anchors whose other uses must not change, or that are gone, or a layout that is not handled.
    return "\n".join(block_lines(change.value)) + "\n", False


def _says(body: str, value: Json) -> bool:
    """Whether this text parses to this value."""
    try:
        return canonical(_value("", body, 1)) == canonical(value)
    except DocumentError:  # an alias is left whose anchor was in what has changed
        return False


def _joined(document: Document, change: DocumentEdit, body: str, *, is_first: bool) -> str:
    separator = document.separator
    if change.is_removed:
        return body if is_first or not body else f"{separator}{body}"
    if not change.before:
        return separator + body
    header, own = _file_header(body) if is_first else ("", body)
    new = "".join(
        "\n".join(block_lines(value, lists_indented=_indented(body))) + "\n---\n"
        for value in change.before
    )
    if separator and not separator.endswith("\n"):
        separator += "\n"
    return f"{separator}{header}{new}{own.removeprefix(chr(10))}"


def _file_header(body: str) -> tuple[str, str]:
    """The comments at the top of a file that are about the file: everything up to a blank line before the object."""
    lines = body.split("\n")
    top = next(
        (n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), 0
    )
    blank = max((n for n in range(top) if not lines[n].strip()), default=-1)
    return "".join(f"{line}\n" for line in lines[: blank + 1]), "\n".join(lines[blank + 1 :])


def _indented(body: str) -> bool:
    tree = parse_tree(body)
    return tree is not None and lists_indented(tree)
