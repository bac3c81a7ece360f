"""Answers to requests for OpenAPI: which document, in which form, and whether the client has it already.

Documents are made when first asked for. Their hashes are of what they are made from, so that the index, which has all of them and
which kubectl reads before anything else, costs nothing. The caller that serves the pages says what is served and what time it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec

from drayman.api.schema.openapi.documents import (
    Document,
    encode_document,
    openapi_v2,
    openapi_v3,
    openapi_v3_index,
)
from drayman.api.schema.openapi.gnostic import MEDIA_TYPE, encode_gnostic
from drayman.api.schema.openapi.resources import ServedResource

Served = Mapping[tuple[str, str], Sequence[ServedResource]]
"""What is served in each group version."""

INDEX_PATH: Final = "/openapi/v3"
VERSION_2_PATH: Final = "/openapi/v2"

_JSON: Final = "application/json"
_LIFETIME: Final = timedelta(days=365)
_NOT_CACHED: Final = "no-cache, private"


@dataclass(frozen=True, slots=True)
class PublishedPage:
    """An answer: status, headers and body."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks for: the path, the hash it names, and the headers that matter here."""

    path: str
    hash: str | None = None
    accept: str = ""
    if_none_match: str = ""


@dataclass(slots=True)
class _Entry:
    """A group version, with its document once it has been asked for."""

    group: str
    version: str
    resources: tuple[ServedResource, ...]
    hash: str
    document: Document | None = None
    encoded: bytes | None = None


@dataclass(slots=True)
class Publication:
    """The documents of a server. `release` is the version of the API that they name."""

    release: str
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _version_2: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def update(self, served: Served) -> None:
        """Set what is served from now on. What has not changed is not made again."""
        entries = {}
        for (group, version), resources in served.items():
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            hash_ = _fingerprint(group, version, self.release, resources)
            entry = self._entries.get(path)
            if entry is None or entry.hash != hash_:
                entry = _Entry(group, version, tuple(resources), hash_)
            entries[path] = entry
        self._entries = entries
        self._version_2.clear()

    def is_made(self, asked: Asked) -> bool:
        """Whether an answer is quick, because its document has been made before."""
        path = asked.path.rstrip("/")
        if path == VERSION_2_PATH:
            return any(form == _form(asked.accept) for _, form in self._version_2)
        entry = self._entries.get(path.removeprefix(f"{INDEX_PATH}/"))
        return entry is None or entry.encoded is not None

    def answer(self, asked: Asked, now: datetime) -> PublishedPage | None:
        """The answer to a request, or None if it is about something else."""
        path = asked.path.rstrip("/")
        if path == VERSION_2_PATH:
            return self._answer_version_2(asked)
        if path == INDEX_PATH:
            return self._answer_index(asked)
        if not path.startswith(f"{INDEX_PATH}/"):
            return None
        entry = self._entries.get(path.removeprefix(f"{INDEX_PATH}/"))
        if entry is None:
            return PublishedPage(404, {"Cache-Control": _NOT_CACHED})
        return self._answer_document(path, entry, asked, now)

    def _answer_index(self, asked: Asked) -> PublishedPage:
        hashes = {path: entry.hash for path, entry in self._entries.items()}
        tag = f'"{_digest(sorted(hashes.items()))}"'
        headers = {"Cache-Control": _NOT_CACHED, "Etag": tag}
        if _names_tag(asked.if_none_match, tag):
            return PublishedPage(304, headers)
        body = encode_document(openapi_v3_index(hashes))
        return PublishedPage(200, {**headers, "Content-Type": _JSON}, body)

    def _answer_document(
        self, path: str, entry: _Entry, asked: Asked, now: datetime
    ) -> PublishedPage:
        tag = f'"{entry.hash}"'
        headers = {"Cache-Control": _NOT_CACHED, "Etag": tag, "Vary": "Accept"}
        if not _accepts(asked.accept, _JSON):
            return PublishedPage(406, headers)
        if asked.hash:
            if asked.hash != entry.hash:
                return PublishedPage(301, {**headers, "Location": f"{path}?hash={entry.hash}"})
            expires = f"{now + _LIFETIME:%a, %d %b %Y %H:%M:%S} UTC"
            headers |= {"Cache-Control": "public, immutable", "Expires": expires}
        if _names_tag(asked.if_none_match, tag):
            return PublishedPage(304, headers)
        if entry.encoded is None:
            entry.encoded = encode_document(self._document(entry))
        return PublishedPage(200, {**headers, "Content-Type": _JSON}, entry.encoded)

    def _answer_version_2(self, asked: Asked) -> PublishedPage:
        tag = f'"{_digest(sorted(entry.hash for entry in self._entries.values()))}"'
        headers = {"Cache-Control": _NOT_CACHED, "Vary": "Accept"}
        form = _form(asked.accept)
        if form is None:
            return PublishedPage(406, headers)
        headers["Etag"] = tag
        if _names_tag(asked.if_none_match, tag):
            return PublishedPage(304, headers)
        body = self._version_2.get((tag, form))
        if body is None:
            documents = [self._document(entry) for entry in self._entries.values()]
            document = openapi_v2(documents, release=self.release)
            body = encode_gnostic(document) if form == MEDIA_TYPE else encode_document(document)
            self._version_2[tag, form] = body
        return PublishedPage(200, {**headers, "Content-Type": form.replace("@", ".")}, body)

    def _document(self, entry: _Entry) -> Document:
        if entry.document is None:
            entry.document = openapi_v3(
                entry.group, entry.version, entry.resources, release=self.release
            )
        return entry.document


def _fingerprint(
    group: str, version: str, release: str, resources: Sequence[ServedResource]
) -> str:
    parts: list[object] = [group, version, release]
    for resource in resources:
        subresources = [
            (part.name, part.group, part.version, part.kind, sorted(part.verbs))
            for part in resource.subresources
        ]
        plain = (resource.name, resource.kind, resource.namespaced, sorted(resource.verbs))
        parts.append((plain, subresources, resource.schema))
    return _digest(parts)


def _digest(value: object) -> str:
    return hashlib.sha512(msgspec.json.encode(value)).hexdigest().upper()


def _names(accept: str, media_type: str) -> bool:
    """Whether a client asks for exactly this type."""
    return any(part.partition(";")[0].strip() == media_type for part in accept.split(","))


def _accepts(accept: str, media_type: str) -> bool:
    wildcards = ("*/*", "application/*")
    return not accept or any(_names(accept, each) for each in (media_type, *wildcards))


def _form(accept: str) -> str | None:
    """The form of the second version that a client accepts; None if there is no such form."""
    named = next((form for form in (MEDIA_TYPE, _JSON) if _names(accept, form)), None)
    return _JSON if named is None and _accepts(accept, _JSON) else named


def _names_tag(if_none_match: str, tag: str) -> bool:
    return any(part.strip() in (tag, "*") for part in if_none_match.split(",") if part.strip())
