"""The migration of a set of files: read all, survey all, rewrite each object, and put the files together again.

Text goes in and text comes out, so the same input gives the same output wherever it is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.api.documents import path_segments
from drayman.api.struct import Json
from drayman.api.syntax.yaml_builder import Segments
from drayman.migrate import alpha2, gangs, leftovers, pods, versions
from drayman.migrate.model import MigratedFile, Migration, Remark, Scope
from drayman.migrate.shapes import Object, text
from drayman.migrate.survey import Survey, survey
from drayman.migrate.text.files import Document, DocumentEdit, read_documents, write_documents

_RULES: Final = (alpha2.rewrite, versions.to_v1, pods.rewrite, gangs.rewrite, leftovers.rewrite)
_LIST: Final = "List"
_ANEW: Final = (
    "rewritten without its comments: what changes is also used by an alias, or laid out in a"
    " way that cannot be edited"
)


@dataclass(slots=True)
class _Unit:
    """An object that is passed through the rules. `within` is its place in its document."""

    within: Segments
    value: Object
    scope: Scope

    def rewrite(self) -> None:
        for rule in _RULES:
            if not self.scope.is_removed:
                self.value = rule(self.value, self.scope)

    @property
    def result(self) -> list[Json]:
        """What replaces the object."""
        return [*self.scope.created, *(() if self.scope.is_removed else (self.value,))]


@dataclass(slots=True)
class _Page:
    """A document with the objects in it."""

    document: Document
    units: list[_Unit]

    def change(self) -> DocumentEdit:
        value = self.document.value
        if not self.units:
            return DocumentEdit(value)
        if self.units[0].within:
            assert isinstance(value, dict)
            return DocumentEdit(
                {**value, "items": [item for unit in self.units for item in unit.result]}
            )
        (unit,) = self.units
        return DocumentEdit(unit.value, tuple(unit.scope.created), unit.scope.is_removed)


def migrate(files: Iterable[tuple[str, str]], *, with_pod_groups: bool = False) -> Migration:
    """Rewrite files, given as pairs of a name and a text.

    Raises DocumentError for a file that is neither YAML nor JSON.
    """
    read = [(name, content, read_documents(name, content)) for name, content in files]
    values = [value for _, _, found in read for each in found for _, value in _objects_in(each)]
    known = survey(values, with_pod_groups=with_pod_groups)
    books = [[_page(document, known) for document in found] for _, _, found in read]
    units = [unit for book in books for page in book for unit in page.units]
    # What refers to parameters goes first: only then is it known which of them are still needed.
    for unit in sorted(units, key=lambda unit: alpha2.is_parameters(unit.value)):
        unit.rewrite()
    migrated: list[MigratedFile] = []
    remarks: list[Remark] = []
    for (name, content, _), book in zip(read, books, strict=True):
        done, said = _closed(name, content, book)
        migrated.append(done)
        remarks.extend(said)
    return Migration(migrated, remarks)


def _page(document: Document, known: Survey) -> _Page:
    return _Page(document, [_unit(within, value, known) for within, value in _objects_in(document)])


def _objects_in(document: Document) -> Iterator[tuple[Segments, Object]]:
    """The objects of a document, which is one itself or a list of them, with their places."""
    value = document.value
    if not isinstance(value, dict):
        return
    items = value.get("items")
    if text(value, "kind") != _LIST or not isinstance(items, list):
        yield (), value
        return
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            return
        yield ("items", str(place)), item


def _unit(within: Segments, value: Object, known: Survey) -> _Unit:
    kind = text(value, "kind")
    name = text(value, "metadata", "name") or text(value, "metadata", "generateName").rstrip("-")
    scope = Scope(known, kind, text(value, "metadata", "namespace"), name)
    return _Unit(within, value, scope)


def _closed(name: str, content: str, book: Sequence[_Page]) -> tuple[MigratedFile, list[Remark]]:
    """A file put together again, and the remarks about it, in the order of its lines."""
    documents = [page.document for page in book]
    written, rewritten = write_documents(content, documents, [page.change() for page in book])
    remarks = [
        Remark(
            name,
            page.document.line_of((*unit.within, *path_segments(path))),
            _title(unit.scope),
            path,
            message,
            lost,
        )
        for page in book
        for unit in page.units
        for path, message, lost in unit.scope.said
    ]
    remarks += [
        Remark(
            name,
            book[number].document.line_of(()),
            _title(book[number].units[0].scope),
            "",
            _ANEW,
            True,
        )
        for number in rewritten
    ]
    return MigratedFile(name, content, written), sorted(remarks, key=lambda remark: remark.line)


def _title(scope: Scope) -> str:
    return " ".join(part for part in (scope.kind or "object", scope.name) if part)
