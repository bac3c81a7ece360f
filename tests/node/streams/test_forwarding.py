"""Streams of a port-forward by SPDY, without a network: clients that change their minds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from drayman.node.streams.channels import NORMAL_CLOSURE
from drayman.node.streams.finishing import cancelled
from drayman.node.streams.forwarding import MOST_PAIRS, Dial, serve_channels, serve_spdy
from drayman.node.streams.model import Connection, NodeApiError
from drayman.node.streams.multiplexing import Multiplexer, Stream, multiplexed
from node.streams.talking import FakeSocket
from patience import PATIENCE_S


@dataclass(slots=True)
class End:
    """One end of a pipe of messages."""

    incoming: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    other: End | None = None

    async def receive(self) -> bytes | None:
        return await self.incoming.get()

    async def send(self, message: bytes) -> None:
        assert self.other is not None
        self.other.incoming.put_nowait(message)

    async def close(self, _code: int) -> None:
        assert self.other is not None
        self.other.incoming.put_nowait(None)


@asynccontextmanager
async def forwarding(dial: Dial) -> AsyncIterator[Multiplexer]:
    """A client of somebody who forwards ports."""
    near, far = End(), End()
    near.other, far.other = far, near
    serving = asyncio.create_task(serve_spdy(far, dial))
    try:
        async with asyncio.timeout(PATIENCE_S), multiplexed(near, is_client=True) as streams:
            yield streams
    finally:
        await cancelled(serving)


async def pair(streams: Multiplexer, request: str) -> tuple[Stream, Stream]:
    about = {"port": "80", "requestid": request}
    error = await streams.open({"streamtype": "error", **about})
    return error, await streams.open({"streamtype": "data", **about})


async def refuses(port: int) -> Connection:
    raise NodeApiError(500, f"nobody listens on {port}")


@pytest.mark.parametrize("kind", ["error", "data"])
async def test_a_stream_that_is_reset_waits_for_nobody(kind: str) -> None:
    """The next pair of the same number is served, as if it had never been there."""
    async with forwarding(refuses) as streams:
        for _ in range(3):
            alone = await streams.open({"streamtype": kind, "port": "80", "requestid": "1"})
            await alone.close()
        error, _ = await pair(streams, "1")
        assert await error.read() == b"nobody listens on 80"


async def test_pairs_that_were_reset_do_not_pile_up() -> None:
    """Of those that are dialed there are no more than could be open; when they are done, others are served."""
    dialed: list[int] = []
    may_answer = asyncio.Event()

    async def slow(port: int) -> Connection:
        dialed.append(port)
        await may_answer.wait()
        return await refuses(port)

    async with forwarding(slow) as streams:
        for number in range(MOST_PAIRS):
            for stream in await pair(streams, str(number)):
                await stream.close()
        error, _ = await pair(streams, "one more")
        with pytest.raises(ConnectionResetError):
            await error.read()
        assert len(dialed) == MOST_PAIRS
        may_answer.set()
        while True:  # until those that wait are done
            error, _ = await pair(streams, "another")
            try:
                assert await error.read() == b"nobody listens on 80"
            except ConnectionResetError:
                continue
            return


async def test_a_bug_does_not_pass_for_the_end_of_a_client() -> None:
    """Whoever serves hears of it, once the client is told that it is over."""

    async def breaks(_port: int) -> Connection:
        raise KeyError("a bug")

    socket = FakeSocket()
    with pytest.raises(KeyError, match="a bug"):
        await serve_channels(socket, [80], breaks)
    assert socket.closed == NORMAL_CLOSURE
