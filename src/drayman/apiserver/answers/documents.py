"""What the server returns to clients in the same process: stored objects as they are, or in another version.

The objects of a batch get their revisions only when it is written, after each of them was decided and its answer built. `final_documents`
inserts the real ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from drayman.api.struct import Json
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.conversion import data_in, from_hub
from drayman.apiserver.served.encoding import encode
from drayman.apiserver.verbs.reading import StoredPage
from drayman.cluster import backend as protocol
from drayman.cluster.embedded.model import Key, Stored

T = TypeVar("T")


class Value(msgspec.Struct, frozen=True):
    """A document that is not a stored object: a Status, a Scale, an object in another version."""

    value: Mapping[str, Json]

    @property
    def data(self) -> bytes:
        return encode(self.value)

    @property
    def is_status(self) -> bool:
        return self.value.get("kind") == "Status" and self.value.get("apiVersion") == "v1"

    def read(self, reader: protocol.Reader[T]) -> T:
        return reader.decode(self.data)


class Converted(msgspec.Struct, frozen=True):
    """A stored object in a version other than the stored one."""

    call: Call
    stored: Stored

    @property
    def data(self) -> bytes:
        return data_in(self.call.resource, self.stored, self.call.version)

    @property
    def value(self) -> Mapping[str, Json]:
        return from_hub(self.call.resource, self.stored.value, self.call.version)

    @property
    def is_status(self) -> bool:
        return False

    def read(self, reader: protocol.Reader[T]) -> T:
        return reader.decode(self.data)


def document_of(call: Call, stored: Stored) -> protocol.Document:
    """An object in the version of a call."""
    if call.resource.kind_in(call.version) == call.resource.hub_kind:
        return stored
    return Converted(call, stored)


def page_of(call: Call, page: StoredPage) -> protocol.DocumentPage:
    """A page of objects in the version of a call."""
    return protocol.DocumentPage(
        [document_of(call, stored) for stored in page.items],
        str(page.revision),
        page.continue_token,
        page.remaining,
    )


class Decided(msgspec.Struct, frozen=True):
    """The answer to a write of a batch, before its revision is known."""

    document: protocol.Document
    dry_run: bool
    operations: int
    """The number of operations in the batch up to and including this write."""


def final_documents(
    decided: Sequence[Decided], results: Sequence[Stored]
) -> list[protocol.Document]:
    """The documents of a batch with their real revisions, known once it was written."""
    found: list[protocol.Document] = []
    newest: dict[Key, Stored] = {}
    before = 0
    for one in decided:
        newest.update((stored.key, stored) for stored in results[before : one.operations])
        before = one.operations
        found.append(one.document if one.dry_run else _as_written(one.document, newest))
    return found


def _as_written(document: protocol.Document, newest: Mapping[Key, Stored]) -> protocol.Document:
    # Also if the write itself changed nothing: an earlier one in the batch may have.
    if isinstance(document, Stored):
        return newest.get(document.key, document)
    if isinstance(document, Converted):
        stored = document.stored
        return Converted(document.call, newest.get(stored.key, stored))
    return document
