"""From results to bytes, in the form a client asked for.

The common case, a whole object as compact JSON in the version it is stored in, is the stored bytes and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.answers.lean import without_managed_fields
from drayman.apiserver.answers.tables import IncludeObject, partial_metadata, table
from drayman.apiserver.protocol.errors import StatusError, bad_request
from drayman.apiserver.protocol.exchange import PIECE, LongResponse, Query, Response
from drayman.apiserver.protocol.negotiation import META_GROUP, View
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.served.conversion import data_in, from_hub, is_kept_in
from drayman.apiserver.served.encoding import (
    decode,
    encode,
    encode_pretty,
    encode_yaml,
    indented,
    type_prefix,
)
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.reading import StoredPage
from drayman.apiserver.verbs.watching import BOOKMARK, ERROR, WatchEvent
from drayman.cluster.embedded.model import Stored

_INCLUDES: Final = ("", "Metadata", "Object", "None")
NEWLINE: Final = b"\n"
_COMMA: Final = b","
_CLOSING: Final = b"]}\n"


def answer(call: Call, result: Result, view: View) -> Response:
    """The response for one object, or for a value that is not stored."""
    stored = result.stored
    if stored is None:
        return respond(result.value, view, result.status)
    if view.shape == "object":
        if view.is_plain:
            return Response(result.status, data_in(call.resource, stored, call.version) + NEWLINE)
        return _shown_to_people(data_in(call.resource, stored, call.version), view, result.status)
    shown, hub = _shown(call, stored)
    if view.shape == "Table":
        metadata: Object = {"resourceVersion": shown["metadata"].get("resourceVersion", "")}
        include = _include(call)
        now = call.core.clock.now()
        value = table(call.resource, [(hub, shown)], metadata, view, now, include)
    elif view.shape == "PartialObjectMetadata":
        value = partial_metadata(shown, view)
    else:
        raise bad_request(
            "you requested PartialObjectMetadataList, but the requested object is not a list"
        )
    return respond(value, view, result.status)


def _shown(call: Call, stored: Stored) -> tuple[Object, Object]:
    """An object in the version asked for, and in its hub version."""
    hub = stored.value
    return from_hub(call.resource, hub, call.version), hub


def _include(call: Call) -> IncludeObject:
    query = call.request.query if call.request is not None else Query()
    include = query.text("includeObject")
    if include not in _INCLUDES:
        raise bad_request(f'unrecognized includeObject value: "{include}"')
    return include or "Metadata"  # type: ignore[return-value]


def answer_page(call: Call, page: StoredPage, view: View) -> Response | LongResponse:
    """The response for a list."""
    metadata: Object = {"resourceVersion": str(page.revision)}
    if page.continue_token or (call.resource.custom and view.shape == "object"):
        # Custom lists are made of maps, which also show empty members.
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    if view.is_plain:
        return _listed(call, page.items, metadata)
    if view.shape == "object":
        plain = _listed(call, page.items, metadata)
        whole = plain.whole() if isinstance(plain, LongResponse) else plain
        return _shown_to_people(whole.body, view)
    pairs = [_shown(call, stored) for stored in page.items]
    if view.shape == "Table":
        now = call.core.clock.now()
        objects = [(hub, shown) for shown, hub in pairs]
        value = table(call.resource, objects, metadata, view, now, _include(call))
    else:
        value = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"{META_GROUP}/{view.version}",
            "metadata": metadata,
            "items": [partial_metadata(shown, view) for shown, _ in pairs],
        }
    return respond(value, view)


def _listed(call: Call, items: Sequence[Stored], metadata: Object) -> Response | LongResponse:
    """A list assembled from the texts of its items. Items of built-in kinds omit kind and apiVersion."""
    resource = call.resource
    start, skipped = _trimming(call)
    opening = _opening(call, metadata)
    if not is_kept_in(resource, call.version):
        texts = [data_in(resource, stored, call.version) for stored in items]
    elif call.selection.omit_managed_fields:
        texts = [without_managed_fields(stored.data) for stored in items]
    else:
        texts = [stored.data for stored in items]
    pieces = _pieces(opening, texts, start, skipped)
    between = sum(map(len, texts)) + len(texts) * (len(start) + len(_COMMA) - skipped)
    length = len(opening) + max(between - len(_COMMA), 0) + len(_CLOSING)
    if length <= PIECE:
        return Response(200, b"".join(pieces))
    return LongResponse(pieces, length)


def _trimming(call: Call) -> tuple[bytes, int]:
    """How the text of an item begins in a list, and how much of its stored text that replaces."""
    if call.resource.custom:
        return b"", 0
    return b"{", len(type_prefix(call.resource.kind_in(call.version)))


def _opening(call: Call, metadata: Object) -> bytes:
    kind, name = call.resource.kind_in(call.version), call.resource.list_kind_name
    head = encode({"kind": name, "apiVersion": kind.api_version, "metadata": metadata})
    return head[:-1] + b',"items":['


def _pieces(opening: bytes, texts: Sequence[bytes], start: bytes, skipped: int) -> Iterator[bytes]:
    """The texts, each with its first bytes replaced by another start, in pieces that are neither small nor large."""
    gathered: list[bytes] = []
    size = 0
    before = opening + start
    for text in texts:
        gathered.append(text[skipped:])
        size += len(text)
        if size >= PIECE:
            yield before + (_COMMA + start).join(gathered)
            before = _COMMA + start
            gathered.clear()
            size = 0
    if gathered:
        yield before + (_COMMA + start).join(gathered) + _CLOSING
    else:
        yield (_CLOSING if texts else opening + _CLOSING)


def _shown_to_people(data: bytes, view: View, status: int = 200) -> Response:
    """The response for a JSON text in another notation."""
    if view.encoding == "yaml":
        return respond(decode(data), view, status)
    return Response(status, indented(data) + NEWLINE, view.content_type)


def respond(value: Json, view: View, status: int = 200) -> Response:
    """The response for a value."""
    if view.encoding == "yaml":
        return Response(status, encode_yaml(value), view.content_type)
    body = encode_pretty(value) if view.pretty else encode(value)
    return Response(status, body + NEWLINE, view.content_type)


def answer_error(error: StatusError, view: View) -> Response:
    """The response for a refusal."""
    response = respond(error.to_json(), view, error.code)
    response.headers.update(error.headers)
    response.warnings = error.warnings
    return response


class EventEncoder:
    """Encodes the events of one watch. Tables carry their column definitions in the first event only."""

    def __init__(self, call: Call, view: View) -> None:
        self._call = call
        self._view = view
        self._first = True
        self._is_plain = view.shape == "object"

    def __call__(self, event: WatchEvent) -> bytes:
        if event.stored is not None and self._is_plain:
            data = data_in(self._call.resource, event.stored, self._call.version)
        else:
            data = encode(self._object(event))
        return b"".join((b'{"type":"', event.type.encode(), b'","object":', data, b"}\n"))

    def _object(self, event: WatchEvent) -> Json:
        if event.stored is None and (event.type == ERROR or self._view.shape == "object"):
            return event.value
        if event.stored is not None:
            shown, hub = _shown(self._call, event.stored)
        else:
            assert event.value is not None
            shown = hub = event.value
        if self._view.shape == "Table":
            return self._table(event, shown, hub)
        return partial_metadata(shown, self._view)

    def _table(self, event: WatchEvent, shown: Object, hub: Object) -> Object:
        metadata: Object = {"resourceVersion": shown["metadata"].get("resourceVersion", "")}
        definitions, self._first = self._first, False
        now: datetime = self._call.core.clock.now()
        include = "Metadata" if event.type == BOOKMARK else _include(self._call)
        return table(
            self._call.resource,
            [(hub, shown)],
            metadata,
            self._view,
            now,
            include,
            definitions=definitions,
        )
