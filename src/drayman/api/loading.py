"""Documents to objects: any served version, as v1, with what was wrong on the way.

Everything that reads files goes through here, so that bad input is reported the same way everywhere: with its file, line,
object and field, and never as a traceback.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Final

from msgspec.structs import replace

from drayman.api import codec, versions
from drayman.api.carrying import Carried, unknown_fields
from drayman.api.catalog import Kind, kind_of
from drayman.api.documents import Document, SourcePlace, read_documents
from drayman.api.errors import DecodeError, DocumentError
from drayman.api.meta import ObjectMeta
from drayman.api.resource import GROUP
from drayman.api.struct import ApiStruct, Json
from drayman.api.validation.field_errors import FieldError, elided

DEFAULT_NAMESPACE: Final = "default"
LONGEST_NAME: Final = 300
"""Names and paths are cut to this many characters in messages; the longest valid ones just fit."""
LONGEST_MESSAGE: Final = 4_000
_UNTYPED_METADATA: Final = ("metadata.managedFields", "metadata.selfLink")
"""Fields that every object may have and that are not read here."""
_OTHER_RESOURCE_KINDS: Final = frozenset({"ResourcePoolStatusRequest"})
"""Kinds of the group that have nothing to do with allocation."""
_OLDER_VERSIONS: Final = frozenset({"v1alpha1", "v1alpha2", "v1alpha3"})
"""Of the group, with kinds and shapes that no API server has today."""
_MIGRATING: Final = "`drayman migrate` rewrites manifests of older versions"


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class LoadFinding:
    """Something to say about a place in a file. `object` names the object, or is empty where there is none yet."""

    severity: Severity
    file: str
    line: int
    object: str
    path: str
    message: str
    error: FieldError | None = None
    """The broken rule, where it is one of the API's."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        subject = ": ".join(part for part in (self.object, self.path) if part)
        prefix = "warning: " if self.severity is Severity.WARNING else ""
        return (
            f"{place}: {prefix}{subject}: {self.message}"
            if subject
            else f"{place}: {prefix}{self.message}"
        )


def found(
    severity: Severity,
    file: str,
    line: int,
    title: str,
    path: str,
    message: str,
    error: FieldError | None = None,
) -> LoadFinding:
    """A finding whose parts are cut to a readable length: files may hold names of any length."""
    path, message = elided(path, LONGEST_NAME), elided(message, LONGEST_MESSAGE)
    return LoadFinding(severity, file, line, title, path, message, error)


@dataclass(frozen=True, slots=True)
class LoadedObject:
    """An object from a file. `carried` is None for kinds Drayman does not know, for which `raw` has a canonical text."""

    document: SourcePlace
    api_version: str
    kind_name: str
    metadata: ObjectMeta
    kind: Kind | None = None
    carried: Carried[ApiStruct] | None = None
    version: str = ""
    raw: str = ""

    @property
    def namespace(self) -> str:
        """The namespace the object ends up in; empty for kinds that are in none."""
        if self.kind is not None and not self.kind.namespaced:
            return ""
        return self.metadata.namespace or (DEFAULT_NAMESPACE if self.kind is not None else "")

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Group, kind, namespace and name: what two objects must not have in common."""
        group = self.api_version.rpartition("/")[0]
        return group, self.kind_name, self.namespace, self.metadata.name

    @property
    def title(self) -> str:
        """What messages call the object."""
        metadata = self.metadata
        return _title(
            self.kind_name, metadata.namespace, metadata.name or f"{metadata.generate_name}*"
        )

    def same_content(self, other: LoadedObject) -> bool:
        """Whether two objects say the same, in whatever order and version."""
        return self._content() == other._content()

    def _content(self) -> Carried[ApiStruct] | str:
        if self.carried is None:
            return self.raw
        metadata = replace(self.metadata, namespace=self.namespace)
        return self.carried.replace(replace(self.carried.object, metadata=metadata))

    def finding(
        self,
        path: str,
        message: str,
        *,
        severity: Severity = Severity.ERROR,
        error: FieldError | None = None,
    ) -> LoadFinding:
        """A finding about a field of this object, in the terms of v1."""
        source = path
        if self.kind is not None and self.version:
            source = versions.source_path(self.kind.name, self.version, path)
        line = self.document.line_of(source)
        return found(severity, self.document.file, line, self.title, path, message, error)

    def unknown_field(self, path: str) -> LoadFinding:
        """A warning about a field at a path of the document itself."""
        file, line = self.document.file, self.document.line_of(path)
        return found(Severity.WARNING, file, line, self.title, path, "unknown field")


def load_files(inputs: Iterable[tuple[str, bytes]]) -> Iterator[LoadedObject | LoadFinding]:
    """The objects in files, given as names and bytes, with findings where something is not an object."""
    for file, data in inputs:
        try:
            for document in read_documents(file, data):
                yield from load_document(document)
        except DocumentError as error:
            yield found(Severity.ERROR, error.file, error.line, "", "", error.message)


def load_document(document: Document) -> Iterator[LoadedObject | LoadFinding]:
    """The object in a document, and findings about it: errors where it cannot be decoded, unknown fields as warnings."""
    value = document.value
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name), str) or not value[name]:
            yield _unreadable(document, name, "a text is required")
            return
    kind = kind_of(value["apiVersion"], value["kind"])
    try:
        if kind is None:
            yield from _load_unknown(document)
        elif kind.group == GROUP:
            yield from _load_versioned(document, kind)
        else:
            yield from _load(document, kind, value, "", ())
    except DecodeError as error:
        yield _unreadable(document, error.path, error.message, kind)


def _load_versioned(document: Document, kind: Kind) -> Iterator[LoadedObject | LoadFinding]:
    converted = versions.to_v1(document.value)
    yield from _load(document, kind, converted.value, converted.version, converted.ignored)


def _load(
    document: Document, kind: Kind, value: Json, version: str, ignored: tuple[str, ...]
) -> Iterator[LoadedObject | LoadFinding]:
    carried: Carried[ApiStruct] = Carried.convert(kind.type, value)
    loaded = LoadedObject(
        document.place,
        document.value["apiVersion"],
        kind.name,
        carried.object.metadata,  # type: ignore[attr-defined]
        kind,
        carried,
        version,
    )
    yield loaded
    unknown = unknown_fields(kind.type, value) if kind.complete and carried.remainder else ()
    for path in (*ignored, *(versions.source_path(kind.name, version, path) for path in unknown)):
        if path not in _UNTYPED_METADATA:
            yield loaded.unknown_field(path)


def _load_unknown(document: Document) -> Iterator[LoadedObject | LoadFinding]:
    value = document.value
    api_version, kind = value["apiVersion"], value["kind"]
    if (objection := _impossible_kind(api_version, kind)) is not None:
        yield _unreadable(document, *objection)
        return
    try:
        metadata = codec.convert(ObjectMeta, value.get("metadata") or {})
    except DecodeError as error:
        raise error.under("metadata") from error
    raw = json.dumps(value, sort_keys=True)
    yield LoadedObject(document.place, api_version, kind, metadata, raw=raw)


def _impossible_kind(api_version: str, kind: str) -> tuple[str, str] | None:
    """The field and what is wrong with it, where no API server can know the kind."""
    group, slash, version = api_version.partition("/")
    if "/" in version or (slash and not (group and version)):
        return "apiVersion", "expected GROUP/VERSION, or v1"
    if kind in versions.VERSIONS and group in (GROUP, api_version):
        choices = ", ".join(f"{GROUP}/{known}" for known in versions.VERSIONS[kind])
        older = f"; {_MIGRATING}" if version in _OLDER_VERSIONS else ""
        return "apiVersion", f"there is no {kind} in {api_version}; it is in {choices}{older}"
    if group == GROUP and kind not in _OTHER_RESOURCE_KINDS:
        if version in _OLDER_VERSIONS:
            return "kind", f"{GROUP} has no such kind any more; {_MIGRATING}"
        closest = get_close_matches(kind[:LONGEST_NAME], versions.VERSIONS, 1)
        hint = f"; did you mean {closest[0]}?" if closest else ""
        return "kind", f"{GROUP} has no such kind{hint}"
    if not slash and api_version != "v1":
        return "apiVersion", "expected GROUP/VERSION, or v1"
    return None


def _unreadable(
    document: Document, path: str, message: str, kind: Kind | None = None
) -> LoadFinding:
    source = path
    version = str(document.value.get("apiVersion")).rpartition("/")[2]
    if kind is not None and kind.group == GROUP:
        source = versions.source_path(kind.name, version, path)
    title, line = title_of(document.value), document.line_of(source)
    return found(Severity.ERROR, document.file, line, title, path, message)


def title_of(value: Mapping[str, Json]) -> str:
    """What messages call an object that is not decoded: as much of it as can be read."""
    metadata = value.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    name = _text(fields, "name")
    if not name and (prefix := _text(fields, "generateName")):
        name = f"{prefix}*"
    return _title(_text(value, "kind"), _text(fields, "namespace"), name)


def _title(kind: str, namespace: str, name: str) -> str:
    """The kind and the name as the file has it: like kubectl's, without a namespace that only the command adds."""
    shown = "/".join(elided(part, LONGEST_NAME) for part in (namespace, name) if part)
    return " ".join(part for part in (elided(kind, LONGEST_NAME), shown) if part)


def _text(fields: Mapping[str, Json], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
