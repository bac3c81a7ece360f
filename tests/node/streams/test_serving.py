"""The streams of a command in the messages of a WebSocket."""

from __future__ import annotations

import asyncio
import json

import pytest

from drayman.node.streams.channels import ended, exit_code, refused
from drayman.node.streams.model import NodeApiError, StreamOptions, Streams, WindowSize
from drayman.node.streams.serving import MOST_INPUT, serve
from node.streams.talking import FakeSocket

ALL = StreamOptions(stdin=True, stdout=True, stderr=True)


async def echo(streams: Streams) -> int:
    while data := await streams.read():
        await streams.write(data)
    await streams.write_error(b"done")
    return 3


async def test_a_session_has_a_beginning_streams_and_an_end() -> None:
    """An empty message first; then output; at the end the exit code as the cause of a Status, and a normal close."""
    socket = FakeSocket()
    for message in (b"\x00one ", b"\x00two", b"\xff\x00", b"\x00ignored"):
        socket.incoming.put_nowait(message)
    await serve(socket, ALL, echo)
    assert socket.sent[0] == b"\x01"
    assert (socket.on(1), socket.on(2), socket.closed) == (b"one two", b"done", 1000)
    status = json.loads(socket.on(3))
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


@pytest.mark.parametrize(
    ("options", "first", "output", "errors"),
    [
        (StreamOptions(stdout=True), b"\x01", b"out", b""),
        (StreamOptions(stderr=True), b"\x02", b"", b"err"),
        (StreamOptions(stdin=True), b"\x03", b"", b""),
        (StreamOptions(stdout=True, stderr=True, tty=True), b"\x01", b"outerr", b""),
    ],
    ids=["output", "errors", "input", "terminal"],
)
async def test_only_what_is_asked_for_is_sent(
    options: StreamOptions, first: bytes, output: bytes, errors: bytes
) -> None:
    """A terminal has one stream, so that errors are output there."""

    async def work(streams: Streams) -> int:
        await streams.write(b"out")
        await streams.write_error(b"err")
        return 0

    socket = FakeSocket()
    await serve(socket, options, work)
    assert (socket.sent[0], socket.on(1), socket.on(2)) == (first, output, errors)
    assert json.loads(socket.on(3)) == {"metadata": {}, "status": "Success"}


async def test_the_last_size_of_a_terminal_counts() -> None:
    """Sizes that are not understood are left out."""
    sizes: list[WindowSize] = []

    async def work(streams: Streams) -> int:
        await streams.read()
        sizes.append(await streams.resized())
        return 0

    socket = FakeSocket()
    for message in (
        b"\x04nonsense",
        b'\x04{"Width":80,"Height":24}',
        b'\x04{"Width":9,"Height":5}',
        b"\x00x",
    ):
        socket.incoming.put_nowait(message)
    await serve(socket, ALL, work)
    assert sizes == [WindowSize(9, 5)]


async def test_a_client_that_closes_its_socket_ends_the_command() -> None:
    """The command is cancelled, and no Status is sent to nobody."""
    is_cancelled = False

    async def work(_: Streams) -> int:
        nonlocal is_cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_cancelled = True
            raise
        return 0

    socket = FakeSocket()
    socket.incoming.put_nowait(None)
    await serve(socket, ALL, work)
    assert is_cancelled
    assert socket.on(3) == b""


async def test_a_session_in_which_nothing_happens_ends() -> None:
    """With a Status that says why."""

    async def work(_: Streams) -> int:
        await asyncio.Event().wait()
        return 0

    socket = FakeSocket()
    await serve(socket, ALL, work, idle_s=0.01)
    assert "nothing happened" in json.loads(socket.on(3))["message"]


async def test_a_refusal_is_an_internal_error() -> None:
    """As the real server words it."""

    async def work(_: Streams) -> int:
        raise NodeApiError(404, "unable to upgrade connection: no")

    socket = FakeSocket()
    await serve(socket, ALL, work)
    assert json.loads(socket.on(3)) == {
        "metadata": {},
        "status": "Failure",
        "message": "Internal error occurred: unable to upgrade connection: no",
        "reason": "InternalError",
        "details": {"causes": [{"message": "unable to upgrade connection: no"}]},
        "code": 500,
    }


@pytest.mark.parametrize("code", [0, 1, 127, 255])
def test_an_exit_code_survives_its_status(code: int) -> None:
    """What one end writes, the other one reads."""
    assert exit_code(ended(code)) == code


@pytest.mark.parametrize("status", [refused("no"), b"{", b"{}"])
def test_a_status_without_an_exit_code_is_an_error(status: bytes) -> None:
    """Whatever else it says."""
    with pytest.raises(NodeApiError):
        exit_code(status)


@pytest.mark.parametrize(
    ("code", "shown"),
    [(400, "it does not run"), (500, "Internal error occurred: it does not run")],
)
def test_a_refusal_is_passed_on_as_it_was(code: int, shown: str) -> None:
    """However many pass it on, it is called an internal error at most once."""
    status = refused("it does not run", code)
    with pytest.raises(NodeApiError) as refusal:
        exit_code(status)
    assert refused(str(refusal.value), refusal.value.code) == status
    assert json.loads(status)["message"] == shown


async def test_input_that_a_command_does_not_read_is_not_read_from_its_client_either() -> None:
    """A message beyond the limit is the last one that is taken: hundreds of sessions would fill the memory otherwise."""
    never = asyncio.Event()

    async def work(_: Streams) -> int:
        await never.wait()
        return 0

    socket = FakeSocket()
    for _ in range(50):
        socket.incoming.put_nowait(bytes(2 + MOST_INPUT))
    serving = asyncio.create_task(serve(socket, ALL, work))
    for _ in range(200):
        await asyncio.sleep(0)
    assert socket.incoming.qsize() == 49
    never.set()
    await serving


async def test_input_goes_on_as_soon_as_the_command_reads() -> None:
    """Nothing is lost, and it arrives in order."""
    sent = [bytes([number]) * MOST_INPUT for number in range(20)]
    socket = FakeSocket()
    for data in sent:
        socket.incoming.put_nowait(b"\x00" + data)
    socket.incoming.put_nowait(b"\xff\x00")
    await serve(socket, ALL, echo)
    assert socket.on(1) == b"".join(sent)
