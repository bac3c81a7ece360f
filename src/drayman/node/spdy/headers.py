"""Blocks of headers: names and values, compressed by zlib with a dictionary of usual words.

The blocks of one direction are one compressed stream, so that a block can only be read after all blocks before it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Final

from drayman.node.spdy.errors import SpdyError

MOST_BYTES: Final = 32 * 1024
"""Of a block once it is decompressed: a few bytes can become very many."""
MOST_HEADERS: Final = 64
_WINDOW_BITS: Final = 11
_MEMORY_LEVEL: Final = 1
"""Compressing takes 10 KiB for each connection. By default it takes 256 KiB, for headers of a hundred bytes."""

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length content-location "
    "content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match "
    "if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range "
    "referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get "
    "status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin"
)
_TEXT: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _counted(word: bytes) -> bytes:
    return struct.pack(">I", len(word)) + word


DICTIONARY: Final = (
    b"".join(_counted(word.replace("_", " ").encode()) for word in _WORDS.split()) + _TEXT.encode()
)
"""That of version 3, in which each word stands with its length, as in a block."""


class HeaderWriter:
    """The blocks that one end sends."""

    def __init__(self) -> None:
        self._compressing = zlib.compressobj(
            zlib.Z_BEST_COMPRESSION, wbits=_WINDOW_BITS, memLevel=_MEMORY_LEVEL, zdict=DICTIONARY
        )

    def block(self, headers: Mapping[str, str]) -> bytes:
        """Names are written in lower case."""
        pairs = b"".join(
            _counted(name.lower().encode()) + _counted(value.encode())
            for name, value in headers.items()
        )
        whole = struct.pack(">I", len(headers)) + pairs
        return self._compressing.compress(whole) + self._compressing.flush(zlib.Z_SYNC_FLUSH)


class HeaderReader:
    """The blocks that one end receives."""

    def __init__(self) -> None:
        self._decompressing = zlib.decompressobj(zdict=DICTIONARY)

    def headers(self, block: bytes) -> dict[str, str]:
        """Raises SpdyError, after which nothing more can be read."""
        try:
            whole = self._decompressing.decompress(block, MOST_BYTES + 1)
        except zlib.error as error:
            raise SpdyError(f"headers cannot be decompressed: {error}") from None
        if len(whole) > MOST_BYTES:
            raise SpdyError(f"headers have more than {MOST_BYTES} bytes")
        if self._decompressing.unconsumed_tail or self._decompressing.eof:
            raise SpdyError("headers end in the middle of a block")
        return _parsed(whole)


def _parsed(whole: bytes) -> dict[str, str]:
    try:
        (count,) = struct.unpack_from(">I", whole)
        if count > MOST_HEADERS:
            raise SpdyError(f"there are {count} headers: at most {MOST_HEADERS} are accepted")
        found: dict[str, str] = {}
        at = 4
        for _ in range(count):
            name, at = _word(whole, at)
            value, at = _word(whole, at)
            if not name or name != name.lower() or name in found:
                raise SpdyError(f"a header has the name {name!r}")
            found[name] = value
    except struct.error:
        raise SpdyError("headers are cut off") from None
    if at != len(whole):
        raise SpdyError(f"{len(whole) - at} bytes follow the headers")
    return found


def _word(whole: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">I", whole, at)
    start, end = at + 4, at + 4 + length
    if end > len(whole):
        raise SpdyError("headers are cut off")
    return whole[start:end].decode("utf-8", "replace"), end
