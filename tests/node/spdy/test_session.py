"""Two ends of a SPDY connection, or one end and somebody who does not keep to the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.node.spdy import session
from drayman.node.spdy.errors import SpdyError
from drayman.node.spdy.frames import (
    INITIAL_WINDOW,
    Data,
    Frame,
    FrameReader,
    GoAway,
    Ping,
    RstStream,
    Settings,
    SynStream,
    WindowUpdate,
    encoded,
)
from drayman.node.spdy.headers import HeaderWriter
from drayman.node.spdy.session import (
    MOST_STREAMS,
    WINDOW,
    Accepted,
    Broken,
    Ended,
    Opened,
    Received,
    Session,
)


def pair() -> tuple[Session, Session]:
    """Two ends that have heard of each other's windows."""
    client, server = Session(is_client=True), Session(is_client=False)
    server.receive(client.take())
    client.receive(server.take())
    return client, server


def test_a_stream_from_its_opening_to_its_end() -> None:
    """Both directions end on their own, and nothing is left."""
    client, server = pair()
    number = client.open({"streamType": "data"})
    assert server.receive(client.take()) == [Opened(number, {"streamtype": "data"})]
    server.accept(number)
    server.send(number, b"hello")
    server.end(number)
    assert client.receive(server.take()) == [Accepted(1), Received(1, b"hello"), Ended(1)]
    client.send(number, b"bye")
    client.end(number)
    assert server.receive(client.take()) == [Received(1, b"bye"), Ended(1)]
    assert (len(client), len(server)) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 4), st.binary(min_size=1, max_size=40_000)), max_size=30))
def test_everything_that_is_sent_arrives_in_order(pieces: list[tuple[int, bytes]]) -> None:
    """On every stream, within its window, if what arrives is consumed."""
    client, server = pair()
    numbers = [client.open({}) for _ in range(5)]
    server.receive(client.take())
    wanted, got = dict.fromkeys(numbers, b""), dict.fromkeys(numbers, b"")
    for index, piece in pieces:
        number, rest = numbers[index], piece
        wanted[number] += piece
        while rest:
            room = client.room(number)
            assert room > 0
            client.send(number, rest[:room])
            rest = rest[room:]
            for event in server.receive(client.take()):
                assert isinstance(event, Received)
                got[event.stream] += event.data
                server.consumed(event.stream, len(event.data))
            client.receive(server.take())
    assert got == wanted


def test_what_is_not_consumed_stops_the_sender() -> None:
    """Also on other streams, once the window of the connection is used up."""
    client, _ = pair()
    first, second = client.open({}), client.open({})
    client.send(first, bytes(WINDOW - 1))
    assert (client.room(first), client.room(second)) == (1, 1)
    client.receive(encoded(WindowUpdate(first, 500)))
    assert client.room(first) == 1
    client.receive(encoded(WindowUpdate(0, 1000)))
    assert (client.room(first), client.room(second)) == (501, 1001)
    client.receive(encoded(Settings(((INITIAL_WINDOW, 10),))))
    assert (client.room(first), client.room(second)) == (0, 10)


def test_an_end_that_knows_no_windows_is_not_waited_for() -> None:
    """Kubernetes' own implementation never enlarges one."""
    client = Session(is_client=True)
    number = client.open({})
    for _ in range(10):
        client.send(number, bytes(client.room(number)))
    assert client.room(number) == WINDOW


def test_pings_are_answered_once() -> None:
    """Those of the other end; an answer is not."""
    server = Session(is_client=False)
    server.take()
    server.receive(encoded(Ping(1)) + encoded(Ping(2)))
    assert FrameReader().feed(server.take()) == [Ping(1)]


def opening(writer: HeaderWriter, number: int) -> bytes:
    return encoded(SynStream(number, writer.block({"a": "b"})))


def test_streams_beyond_the_limit_are_refused() -> None:
    """One by one; the others go on."""
    server, writer = Session(is_client=False), HeaderWriter()
    server.take()
    wire = b"".join(opening(writer, 2 * number + 1) for number in range(MOST_STREAMS + 2))
    assert len(server.receive(wire)) == len(server) == MOST_STREAMS
    refused = [RstStream(2 * MOST_STREAMS + each, session.REFUSED_STREAM) for each in (1, 3)]
    assert FrameReader().feed(server.take()) == refused
    server.reset(1)
    assert server.receive(opening(writer, 2 * MOST_STREAMS + 5)) != []


ANSWERED: dict[str, tuple[list[Frame], list[Frame], list[object]]] = {
    "data of a stream that never was": ([Data(7, b"x")], [RstStream(7, 2)], []),
    "data after the end": (
        [Data(1, b"", True), Data(1, b"x")],
        [RstStream(1, 9)],
        [Ended(1), Broken(1, 9)],
    ),
    "data after a reset": ([RstStream(1, 5), Data(1, b"x")], [], [Broken(1, 5)]),
    "two resets": ([RstStream(1, 5), RstStream(1, 5)], [], [Broken(1, 5)]),
    "a window that is too large": (
        [WindowUpdate(1, 2**31 - 1)],
        [RstStream(1, 7)],
        [Broken(1, 7)],
    ),
    "room on a stream that never was": ([WindowUpdate(9, 5)], [], []),
    "a farewell": ([GoAway(0, 0)], [], []),
}


@pytest.mark.parametrize(("sent", "answers", "events"), ANSWERED.values(), ids=ANSWERED)
def test_strange_frames_concern_their_stream_alone(
    sent: list[Frame], answers: list[Frame], events: list[object]
) -> None:
    """They are answered, and the connection goes on."""
    server = Session(is_client=False)
    server.receive(opening(HeaderWriter(), 1))
    server.take()
    assert server.receive(b"".join(map(encoded, sent))) == events
    assert FrameReader().feed(server.take()) == answers


FATAL = {
    "a stream of this end": lambda writer: opening(writer, 2),
    "the same stream twice": lambda writer: opening(writer, 1) + opening(writer, 1),
    "an older stream": lambda writer: opening(writer, 5) + opening(writer, 3),
    "stream 0": lambda writer: opening(writer, 0),
    "a window of the connection that is too large": lambda _: encoded(WindowUpdate(0, 2**31 - 1)),
    "a large initial window": lambda _: encoded(Settings(((INITIAL_WINDOW, 2**31),))),
    "headers that are none": lambda _: encoded(SynStream(1, b"junk")),
}


@pytest.mark.parametrize("wire", FATAL.values(), ids=FATAL)
def test_what_breaks_the_connection_is_an_error(wire) -> None:  # type: ignore[no-untyped-def]
    """Nothing that follows could be understood."""
    with pytest.raises(SpdyError):
        Session(is_client=False).receive(wire(HeaderWriter()))


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_events_or_an_error(data: bytes, is_client: bool) -> None:
    """Never anything else."""
    try:
        Session(is_client=is_client).receive(data)
    except SpdyError:
        pass


def test_a_session_that_is_over_holds_nothing() -> None:
    """Neither what waits to be sent nor half a frame that has arrived: objects in circles are collected much later."""
    session = Session(is_client=True)
    number = session.open({"streamtype": "stdin"})
    session.send(number, b"x" * 1000)
    session.receive(b"\x80")
    session.release()
    assert (session.pending, len(session), session.take()) == (0, 0, b"")
