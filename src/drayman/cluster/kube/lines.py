"""The events of a watch out of a stream of bytes.

A watch is a line of JSON per event. Lines are cut out of whatever pieces the network delivers, with a bound on their length, so that a
faulty server cannot fill our memory. A stream that ends within a line was cut off, and raises an error instead of ending normally.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, TypeVar, cast

import msgspec

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.cluster.errors import ProtocolError, error_from_value
from drayman.cluster.resources import Resource
from drayman.cluster.watching import (
    CHANGE_TYPES,
    Bookmark,
    Change,
    ChangeType,
    change_of,
    decode_bookmark,
)

T = TypeVar("T")

LONGEST_LINE: Final = 32 << 20
"""Bytes of one event. Ten times the largest request that an API server accepts."""


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decoder: Final = msgspec.json.Decoder(_Envelope)


async def lines(pieces: AsyncIterator[bytes], longest: int = LONGEST_LINE) -> AsyncIterator[bytes]:
    """The lines of a stream, without their ends. Raises ProtocolError on one that is cut off or too long."""
    pending = bytearray()
    async for piece in pieces:
        complete, newline, rest = piece.rpartition(b"\n")
        if newline:
            pending += complete
            for line in bytes(pending).split(b"\n"):
                yield line
            pending = bytearray(rest)
        else:
            pending += piece
        if len(pending) > longest:
            raise ProtocolError(f"an event of more than {longest} bytes")
    if pending.strip():
        raise ProtocolError(f"the stream ended within an event, after {len(pending)} bytes of it")


async def events(
    resource: Resource[T], pieces: AsyncIterator[bytes]
) -> AsyncIterator[Change[T] | Bookmark]:
    """The events of a watch. An ERROR event is raised as what its Status says."""
    async for line in lines(pieces):
        if line.strip():
            yield _event(resource, line)


def _event(resource: Resource[T], line: bytes) -> Change[T] | Bookmark:
    try:
        envelope = _decoder.decode(line)
        data = bytes(envelope.object)
        if envelope.type in CHANGE_TYPES:
            return change_of(resource, cast(ChangeType, envelope.type), resource.codec.decode(data))
        if envelope.type == "BOOKMARK":
            return decode_bookmark(data)
        problem = codec.parse_json(data)
    except (msgspec.DecodeError, DecodeError) as error:
        raise ProtocolError(f"watch of {resource.qualified}: {error}") from error
    if envelope.type == "ERROR":
        raise error_from_value(problem)
    raise ProtocolError(f"watch of {resource.qualified}: unknown event type {envelope.type!r}")
