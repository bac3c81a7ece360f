"""Frames: what a connection consists of.

Eight bytes come first. Those of a frame of control: a set bit, the version, the type, flags, and the length of the rest; those of data: the
stream, flags, and the length. Headers are kept compressed here, because their compression is the business of the whole connection.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from drayman.node.spdy.errors import SpdyError

VERSION: Final = 3
MOST_DATA: Final = 1024 * 1024
"""Bytes of data in a frame. Clients send at most 32 KiB at a time."""
MOST_CONTROL: Final = 64 * 1024
"""Bytes of any other frame."""
LAST_STREAM: Final = 0x7FFFFFFF
FIN: Final = 1
"""The sender of this frame sends nothing more on this stream."""
INITIAL_WINDOW: Final = 7
"""The setting of how many bytes may be sent on a stream before the first of them are acknowledged."""

_HEAD: Final = struct.Struct(">II")


class _Kind(IntEnum):
    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


@dataclass(frozen=True, slots=True)
class Data:
    stream: int
    data: bytes
    fin: bool = False


@dataclass(frozen=True, slots=True)
class SynStream:
    """A new stream."""

    stream: int
    block: bytes
    fin: bool = False


@dataclass(frozen=True, slots=True)
class SynReply:
    """The stream is wanted."""

    stream: int
    block: bytes
    fin: bool = False


@dataclass(frozen=True, slots=True)
class RstStream:
    """The stream is over in both directions."""

    stream: int
    status: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Numbers by their ids."""

    values: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Ping:
    id: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """No new streams."""

    last: int
    status: int


@dataclass(frozen=True, slots=True)
class Headers:
    """More headers of a stream."""

    stream: int
    block: bytes
    fin: bool = False


@dataclass(frozen=True, slots=True)
class WindowUpdate:
    """So many more bytes may be sent on the stream, or, if it is 0, on the connection."""

    stream: int
    delta: int


Frame = Data | SynStream | SynReply | RstStream | Settings | Ping | GoAway | Headers | WindowUpdate


def encoded(frame: Frame) -> bytes:
    match frame:
        case Data(stream, data, fin):
            return _HEAD.pack(stream, fin << 24 | len(data)) + data
        case SynStream(stream, block, fin):
            return _control(_Kind.SYN_STREAM, fin, struct.pack(">IIH", stream, 0, 0) + block)
        case SynReply(stream, block, fin):
            return _control(_Kind.SYN_REPLY, fin, struct.pack(">I", stream) + block)
        case Headers(stream, block, fin):
            return _control(_Kind.HEADERS, fin, struct.pack(">I", stream) + block)
        case RstStream(stream, status):
            return _control(_Kind.RST_STREAM, False, struct.pack(">II", stream, status))
        case Ping(number):
            return _control(_Kind.PING, False, struct.pack(">I", number))
        case GoAway(last, status):
            return _control(_Kind.GOAWAY, False, struct.pack(">II", last, status))
        case WindowUpdate(stream, delta):
            return _control(_Kind.WINDOW_UPDATE, False, struct.pack(">II", stream, delta))
        case Settings(values):
            pairs = b"".join(struct.pack(">II", id_, value) for id_, value in values)
            return _control(_Kind.SETTINGS, False, struct.pack(">I", len(values)) + pairs)


def _control(kind: int, fin: bool, rest: bytes) -> bytes:
    return _HEAD.pack(1 << 31 | VERSION << 16 | kind, fin << 24 | len(rest)) + rest


class FrameReader:
    """Frames out of bytes as they come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete now. Those of unknown types are left out. Raises SpdyError."""
        self._bytes += data
        found: list[Frame] = []
        start = 0
        while len(self._bytes) - start >= _HEAD.size:
            first, second = _HEAD.unpack_from(self._bytes, start)
            length = second & 0xFFFFFF
            _check_length(first, length)
            end = start + _HEAD.size + length
            if len(self._bytes) < end:
                break
            frame = _decoded(first, second >> 24, bytes(self._bytes[start + _HEAD.size : end]))
            if frame is not None:
                found.append(frame)
            start = end
        del self._bytes[:start]
        return found


def _check_length(first: int, length: int) -> None:
    most = MOST_CONTROL if first >> 31 else MOST_DATA
    if length > most:
        raise SpdyError(f"a frame has {length} bytes: at most {most} are accepted")


def _decoded(first: int, flags: int, rest: bytes) -> Frame | None:
    fin = bool(flags & FIN)
    if not first >> 31:
        if not first:
            raise SpdyError("data belongs to no stream")
        return Data(first, rest, fin)
    version = first >> 16 & 0x7FFF
    if version != VERSION:
        raise SpdyError(f"version {version} of SPDY is not known: {VERSION} is")
    try:
        return _decoded_control(first & 0xFFFF, fin, rest)
    except struct.error:
        raise SpdyError(f"a frame of type {first & 0xFFFF} is too short") from None


def _decoded_control(kind: int, fin: bool, rest: bytes) -> Frame | None:
    match kind:
        case _Kind.SYN_STREAM:
            stream, _, _ = struct.unpack_from(">IIH", rest)
            return SynStream(stream & LAST_STREAM, rest[10:], fin)
        case _Kind.SYN_REPLY:
            return SynReply(_word(rest) & LAST_STREAM, rest[4:], fin)
        case _Kind.HEADERS:
            return Headers(_word(rest) & LAST_STREAM, rest[4:], fin)
        case _Kind.RST_STREAM:
            return RstStream(_word(rest) & LAST_STREAM, _word(rest, 4))
        case _Kind.SETTINGS:
            return _decoded_settings(rest)
        case _Kind.PING:
            return Ping(_word(rest))
        case _Kind.GOAWAY:
            return GoAway(_word(rest) & LAST_STREAM, _word(rest, 4))
        case _Kind.WINDOW_UPDATE:
            return WindowUpdate(_word(rest) & LAST_STREAM, _word(rest, 4) & LAST_STREAM)
    return None


def _decoded_settings(rest: bytes) -> Settings:
    count = _word(rest)
    if len(rest) != 4 + 8 * count:
        raise SpdyError(f"{count} settings do not fit into {len(rest)} bytes")
    pairs = struct.iter_unpack(">II", rest[4:])
    return Settings(tuple((id_ & 0xFFFFFF, value) for id_, value in pairs))


def _word(rest: bytes, at: int = 0) -> int:
    number: int = struct.unpack_from(">I", rest, at)[0]
    return number
