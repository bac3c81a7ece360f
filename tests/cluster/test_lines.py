"""Events are cut out of a stream however the network delivers it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cluster.errors import ExpiredError, ProtocolError
from drayman.cluster.kube.lines import events, lines
from drayman.cluster.resources import CONFIG_MAPS
from drayman.cluster.watching import Bookmark, Change


async def stream(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def all_lines(pieces: Sequence[bytes], longest: int = 1000) -> list[bytes]:
    return [line async for line in lines(stream(pieces), longest)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """A text in pieces, some of them empty."""
    ends = sorted(min(place, len(data)) for place in places)
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


@given(
    st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)),
    st.lists(st.integers(0, 200), max_size=20),
)
def test_pieces_do_not_matter(texts: list[bytes], places: list[int]) -> None:
    """The lines of a stream are the same wherever it is cut."""
    data = b"".join(text + b"\n" for text in texts)
    assert asyncio.run(all_lines(cut(data, places))) == texts


async def test_a_stream_that_ends_within_a_line_was_cut() -> None:
    """Half an event is not the end that the server meant."""
    cut_off = lines(stream([b"one\ntw"]))
    assert await anext(cut_off) == b"one"
    with pytest.raises(ProtocolError, match="ended within an event"):
        await anext(cut_off)


async def test_a_line_has_a_bound() -> None:
    """A server that never ends its line cannot fill the memory."""
    with pytest.raises(ProtocolError, match="more than 1000 bytes"):
        await all_lines([b"x" * 400] * 3)


async def collect(data: bytes) -> list[object]:
    return [event async for event in events(CONFIG_MAPS, stream([data]))]


async def test_changes_and_bookmarks() -> None:
    """Each line is an event; empty lines are none."""
    data = (
        b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"3"}}}\n\n'
        b'{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"9",'
        b'"creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
        b'{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"10"}}}\n'
    )
    value = {"metadata": {"name": "a", "resourceVersion": "3"}}
    assert await collect(data) == [Change("ADDED", value, "3"), Bookmark("9"), Bookmark("10")]


async def test_an_error_event_is_raised() -> None:
    """A version that is too old comes as an event, and leaves as an exception."""
    data = b'{"type":"ERROR","object":{"kind":"Status","reason":"Expired","code":410,"message":"too old"}}\n'
    with pytest.raises(ExpiredError, match="too old"):
        await collect(data)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":[]}',
        b'{"type":"NEW","object":{}}',
        b"\xff",
    ],
)
async def test_a_line_that_is_no_event_is_a_protocol_error(line: bytes) -> None:
    """What cannot be an event is not passed over."""
    with pytest.raises(ProtocolError):
        await collect(line + b"\n")
