"""Lists without managedFields, for clients that ask the same of a large cluster again and again.

Who owns which field is almost half of the text of a pod or a claim, and matters only to who writes. A client that reads everything to
answer a question says `omitManagedFields=true`; servers that do not know the word send all the same. The texts of neighbours in a list
are kept put together, because between one question and the next few objects change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from drayman.apiserver.encoding import decode, encode
from drayman.cluster.embedded.model import Stored

RUN_BYTES: Final = 48 * 1024
"""About so many bytes are kept in one text: few writes for a list, and little to do again when an object changes."""
KEPT_BYTES: Final = 128 * 2**20
"""The pods, claims and slices of 5,000 nodes."""

_MANAGED: Final = b',"managedFields":[{'
_METADATA: Final = b'"metadata":{'
_END: Final = b"}]"
_QUOTE, _ESCAPED_QUOTE, _ESCAPED_BACKSLASH = b'"', b'\\"', b"\\\\"


class _Run(msgspec.Struct, frozen=True, gc=False):
    """Neighbours in a list, and their text with commas in between."""

    items: tuple[Stored, ...]
    text: bytes


class LeanLists:
    """The texts of runs of neighbours, by the revision of the first. The least recently used are forgotten."""

    __slots__ = ("_bytes", "_limit", "_runs")

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._runs: OrderedDict[int, _Run] = OrderedDict()
        self._bytes = 0
        self._limit = limit

    def texts(self, items: Sequence[Stored], start: bytes, skipped: int) -> Iterator[bytes]:
        """The texts of objects of one kind, many in one, each with `start` in place of its first `skipped` bytes."""
        position = 0
        while position < len(items):
            run = self._runs.get(items[position].revision)
            if run is None or not _begins_with(items, position, run):
                run = self._new_run(items, position, start, skipped)
            else:
                self._runs.move_to_end(items[position].revision)
            position += len(run.items)
            yield run.text

    def _new_run(self, items: Sequence[Stored], position: int, start: bytes, skipped: int) -> _Run:
        """From a position to where a known run begins, if that is not too near, or until it is enough."""
        texts: list[bytes] = []
        size = 0
        for place in range(position, len(items)):
            stored = items[place]
            if size >= RUN_BYTES or (size >= RUN_BYTES // 2 and stored.revision in self._runs):
                break
            text = start + without_managed_fields(stored.data)[skipped:]
            texts.append(text)
            size += len(text)
        run = _Run(tuple(items[position : position + len(texts)]), b",".join(texts))
        self._keep(run)
        return run

    def _keep(self, run: _Run) -> None:
        revision = run.items[0].revision
        before = self._runs.pop(revision, None)
        self._bytes += len(run.text) - (0 if before is None else len(before.text))
        self._runs[revision] = run
        while self._bytes > self._limit and len(self._runs) > 1:
            _, forgotten = self._runs.popitem(last=False)
            self._bytes -= len(forgotten.text)


def _begins_with(items: Sequence[Stored], position: int, run: _Run) -> bool:
    """Whether the list goes on with exactly the objects of a run."""
    return tuple(items[position : position + len(run.items)]) == run.items


def without_managed_fields(data: bytes) -> bytes:
    """The stored text of an object without its metadata.managedFields.

    Inside of strings quotes are escaped, so a name in quotes behind a comma is a name. Templates have metadata too, but behind that of
    the object itself. Entries hold no lists, so theirs ends with the first bracket that is not in a string.
    """
    start = data.find(_MANAGED)
    if start < 0 or data.count(_METADATA, 0, start) > 1:
        return data
    end = data.index(_END, start)
    while True:
        if data.find(_ESCAPED_BACKSLASH, start, end) >= 0:
            return _without_managed_fields(data)
        quotes = data.count(_QUOTE, start, end) - data.count(_ESCAPED_QUOTE, start, end)
        if quotes % 2 == 0:
            return data[:start] + data[end + len(_END) :]
        end = data.index(_END, end + 1)


def _without_managed_fields(data: bytes) -> bytes:
    """The same by understanding the text, for the few with escaped backslashes."""
    value = decode(data)
    value["metadata"].pop("managedFields", None)
    return encode(value)
