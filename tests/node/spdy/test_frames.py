"""Frames and headers of SPDY: what one end writes, the other one reads."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.node.spdy.errors import SpdyError
from drayman.node.spdy.frames import (
    MOST_CONTROL,
    MOST_DATA,
    Data,
    Frame,
    FrameReader,
    GoAway,
    Headers,
    Ping,
    RstStream,
    Settings,
    SynReply,
    SynStream,
    WindowUpdate,
    encoded,
)
from drayman.node.spdy.headers import (
    DICTIONARY,
    MOST_BYTES,
    MOST_HEADERS,
    HeaderReader,
    HeaderWriter,
)

streams = st.integers(1, 2**31 - 1)
words = st.integers(0, 2**32 - 1)
blocks = st.binary(max_size=300)
frames: st.SearchStrategy[Frame] = st.one_of(
    st.builds(Data, streams, blocks, st.booleans()),
    st.builds(SynStream, streams, blocks, st.booleans()),
    st.builds(SynReply, streams, blocks, st.booleans()),
    st.builds(Headers, streams, blocks, st.booleans()),
    st.builds(RstStream, streams, words),
    st.builds(Ping, words),
    st.builds(GoAway, streams, words),
    st.builds(WindowUpdate, streams, st.integers(0, 2**31 - 1)),
    st.builds(
        Settings, st.lists(st.tuples(st.integers(0, 2**24 - 1), words), max_size=5).map(tuple)
    ),
)


@given(st.lists(frames, max_size=8), st.data())
def test_frames_survive_the_wire(sent: list[Frame], data: st.DataObject) -> None:
    """However the bytes are cut into pieces."""
    wire = b"".join(map(encoded, sent))
    reader, received = FrameReader(), []
    while wire:
        cut = data.draw(st.integers(1, len(wire)))
        received += reader.feed(wire[:cut])
        wire = wire[cut:]
    assert received == sent


@given(st.binary(max_size=400))
def test_any_bytes_are_frames_or_an_error(data: bytes) -> None:
    """Never anything else."""
    try:
        FrameReader().feed(data)
    except SpdyError:
        pass


MALFORMED = {
    "data without a stream": struct.pack(">II", 0, 0),
    "much data": struct.pack(">II", 1, MOST_DATA + 1),
    "a long frame": struct.pack(">II", 1 << 31 | 3 << 16 | 1, MOST_CONTROL + 1),
    "version 2": struct.pack(">II", 1 << 31 | 2 << 16 | 6, 4) + bytes(4),
    "a short ping": struct.pack(">II", 1 << 31 | 3 << 16 | 6, 3) + bytes(3),
    "a short reset": struct.pack(">II", 1 << 31 | 3 << 16 | 3, 4) + bytes(4),
    "a short opening": struct.pack(">II", 1 << 31 | 3 << 16 | 1, 9) + bytes(9),
    "settings that are not there": struct.pack(">III", 1 << 31 | 3 << 16 | 4, 4, 2**31),
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_frame_is_an_error(data: bytes) -> None:
    """Before its length is waited for."""
    with pytest.raises(SpdyError):
        FrameReader().feed(data)


def test_frames_of_unknown_types_are_left_out() -> None:
    """So that later versions can have more."""
    unknown = struct.pack(">II", 1 << 31 | 3 << 16 | 77, 2) + b"xy"
    assert FrameReader().feed(unknown + encoded(Ping(1))) == [Ping(1)]


names = st.text(st.characters(codec="utf-8", exclude_categories=["Lu", "Lt"]), min_size=1, max_size=20).filter(
    lambda name: name == name.lower()
)  # fmt: skip
headers = st.dictionaries(names, st.text(st.characters(codec="utf-8"), max_size=50), max_size=10)


@given(st.lists(headers, max_size=5))
def test_headers_survive_compression(sent: list[dict[str, str]]) -> None:
    """Each block builds upon those before it."""
    writer, reader = HeaderWriter(), HeaderReader()
    assert [reader.headers(writer.block(each)) for each in sent] == sent


@given(st.binary(max_size=300))
def test_any_bytes_are_headers_or_an_error(data: bytes) -> None:
    """Compressed or not."""
    for block in (data, _compressed(data)):
        try:
            HeaderReader().headers(block)
        except SpdyError:
            pass


def test_the_dictionary_is_that_of_the_specification() -> None:
    """By its checksum, which stands at the beginning of every compressed stream."""
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


def _compressed(data: bytes) -> bytes:
    compressing = zlib.compressobj(zdict=DICTIONARY)
    return compressing.compress(data) + compressing.flush(zlib.Z_SYNC_FLUSH)


def _pair(name: bytes, value: bytes) -> bytes:
    return struct.pack(">I", len(name)) + name + struct.pack(">I", len(value)) + value


MALFORMED_HEADERS = {
    "a bomb": struct.pack(">I", 1) + _pair(b"a", bytes(50 * 1024 * 1024)),
    "a little too much": struct.pack(">I", 1) + _pair(b"a", bytes(MOST_BYTES)),
    "many": struct.pack(">I", MOST_HEADERS + 1),
    "twice the same": struct.pack(">I", 2) + _pair(b"a", b"") * 2,
    "capitals": struct.pack(">I", 1) + _pair(b"A", b""),
    "no name": struct.pack(">I", 1) + _pair(b"", b"x"),
    "fewer than said": struct.pack(">I", 2) + _pair(b"a", b"x"),
    "more than said": struct.pack(">I", 0) + _pair(b"a", b"x"),
    "a long name": struct.pack(">II", 1, 2**32 - 1) + b"abc",
}


@pytest.mark.parametrize("whole", MALFORMED_HEADERS.values(), ids=MALFORMED_HEADERS)
def test_what_are_no_headers_is_an_error(whole: bytes) -> None:
    """What is large when decompressed is not decompressed."""
    with pytest.raises(SpdyError):
        HeaderReader().headers(_compressed(whole))
