"""Lists without managedFields, for clients that ask the same of a large cluster again and again.

Who owns which field is almost half of the text of a pod or a claim, and matters only to who writes. A client that reads everything to
answer a question says `omitManagedFields=true`; servers that do not know the word send all the same.

Between one question and the next few objects change, so the texts of neighbours in a list are kept put together, and compressed: as
objects of one kind are alike, they take a tenth of the bytes. A compressed list is then put together from compressed parts, which is
possible in the format that HTTP calls deflate: parts that refer to nothing outside of them follow each other, and the checksum at the end
can be worked out from theirs.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from drayman.apiserver.protocol.exchange import PIECE
from drayman.apiserver.served.encoding import decode, encode
from drayman.cluster.embedded.model import Stored

ENCODING: Final = "deflate"
RUN_BYTES: Final = 48 * 1024
"""About so many bytes of text are one part: little to do again when an object changes."""
_SMALLEST: Final = RUN_BYTES // 2
"""Smaller parts only where there are no neighbours."""
KEPT_BYTES: Final = 32 * 2**20
"""Of compressed text: ten times more than the pods, claims and slices of 5,000 nodes have together."""

_MANAGED: Final = b',"managedFields":[{'
_METADATA: Final = b'"metadata":{'
_END: Final = b"}]"
_QUOTE, _ESCAPED_QUOTE, _ESCAPED_BACKSLASH = b'"', b'\\"', b"\\\\"

_LEVEL: Final = 1  # others take longer and hardly find more
_RAW: Final = -zlib.MAX_WBITS
_HEADER: Final = b"\x78\x01"
_LAST_BLOCK: Final = b"\x03\x00"
_ADLER_BASE: Final = 65_521


class Packed(msgspec.Struct, frozen=True, gc=False):
    """A compressed text that can be part of another: `size` and `checksum` are those of the text itself."""

    data: bytes
    size: int
    checksum: int

    @classmethod
    def of(cls, text: bytes) -> Packed:
        packing = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
        data = packing.compress(text) + packing.flush(zlib.Z_FULL_FLUSH)
        return cls(data, len(text), zlib.adler32(text))


_COMMA: Final = Packed.of(b",")


class _Run(msgspec.Struct, frozen=True, gc=False):
    """Neighbours in a list, and their text with commas in between."""

    items: tuple[Stored, ...]
    packed: Packed


class LeanLists:
    """The texts of runs of neighbours, by the revision of the first. The least recently used are forgotten."""

    __slots__ = ("_bytes", "_limit", "_runs")

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._runs: OrderedDict[int, _Run] = OrderedDict()
        self._bytes = 0
        self._limit = limit

    def packed(
        self, opening: bytes, items: Sequence[Stored], start: bytes, skipped: int, closing: bytes
    ) -> list[bytes]:
        """A list in pieces, compressed. Each object has `start` in place of its first `skipped` bytes."""
        parts = [Packed.of(opening)]
        for run in self._runs_of(items, start, skipped):
            parts += (run, _COMMA)
        if items:
            parts.pop()
        parts.append(Packed.of(closing))
        return list(_pieces(parts))

    def _runs_of(self, items: Sequence[Stored], start: bytes, skipped: int) -> Iterator[Packed]:
        position = 0
        while position < len(items):
            run = self._known(items, position)
            if run is not None:
                self._runs.move_to_end(run.items[0].revision)
                position += len(run.items)
                yield run.packed
                continue
            texts = self._unknown_texts(items, position, start, skipped)
            for run in self._new_runs(items[position : position + len(texts)], texts):
                position += len(run.items)
                yield run.packed

    def _known(self, items: Sequence[Stored], position: int) -> _Run | None:
        """The run that the list goes on with."""
        run = self._runs.get(items[position].revision)
        if run is None or tuple(items[position : position + len(run.items)]) != run.items:
            return None
        return run

    def _unknown_texts(
        self, items: Sequence[Stored], begin: int, start: bytes, skipped: int
    ) -> list[bytes]:
        """Up to the next known run. One behind only a few objects is done again together with them."""
        texts: list[bytes] = []
        size, again = 0, 0
        for place in range(begin, len(items)):
            if not again and (run := self._known(items, place)) is not None:
                if size >= _SMALLEST:
                    break
                again = len(run.items)
            text = start + without_managed_fields(items[place].data)[skipped:]
            texts.append(text)
            size += len(text)
            again = max(again - 1, 0)
        return texts

    def _new_runs(self, items: Sequence[Stored], texts: Sequence[bytes]) -> Iterator[_Run]:
        left = sum(map(len, texts))
        begin, size = 0, 0
        for place, text in enumerate(texts):
            size += len(text)
            left -= len(text)
            if not left or (size >= RUN_BYTES and left >= _SMALLEST):
                end = place + 1
                run = _Run(tuple(items[begin:end]), Packed.of(b",".join(texts[begin:end])))
                self._keep(run)
                yield run
                begin, size = end, 0

    def _keep(self, run: _Run) -> None:
        revision = run.items[0].revision
        before = self._runs.pop(revision, None)
        self._bytes += len(run.packed.data) - (0 if before is None else len(before.packed.data))
        self._runs[revision] = run
        while self._bytes > self._limit and len(self._runs) > 1:
            _, forgotten = self._runs.popitem(last=False)
            self._bytes -= len(forgotten.packed.data)


def _pieces(parts: Iterable[Packed]) -> Iterator[bytes]:
    """The stream that parts make up, in pieces that are neither small nor large."""
    gathered, length, checksum = [_HEADER], 0, 1
    for part in parts:
        checksum = _joined(checksum, part)
        gathered.append(part.data)
        length += len(part.data)
        if length >= PIECE:
            yield b"".join(gathered)
            gathered, length = [], 0
    yield b"".join([*gathered, _LAST_BLOCK, checksum.to_bytes(4, "big")])


def _joined(checksum: int, part: Packed) -> int:
    """The Adler-32 of a text that goes on with a part: the sum of its bytes, and the sum of all the sums on the way."""
    low, high = checksum & 0xFFFF, checksum >> 16
    part_low, part_high = part.checksum & 0xFFFF, part.checksum >> 16
    # Both begin with 1, which counts once; and all of the part is added to what was there before.
    high = (high + part_high + (low - 1) * part.size) % _ADLER_BASE
    low = (low + part_low - 1) % _ADLER_BASE
    return high << 16 | low


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
