"""Clients of watches that vanish, do not read, or are too many."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from robustness.hostile import CONFIG_MAPS, IS_LONG, config_map
from robustness.raw import PATIENCE_S, Connection, Listening, get, listening, until

from drayman.apiserver.protocol.shares import Shares

WATCHES = 3_000 if IS_LONG else 300
AT_ONCE = 100
LARGE = "x" * 200_000
MANY = 40
SMALL_BUFFER = 4_096
MOST_WAITING = 2 * 1024 * 1024
"""Bytes that may wait in the server for one client. What it is to be sent here is eight megabytes."""


async def write_many(server: Listening) -> None:
    for number in range(MANY):
        body = config_map(f"large{number}", key=LARGE)
        assert await server.target.send("POST", CONFIG_MAPS, body) == 201


async def read_events(reader: asyncio.StreamReader) -> list[Any]:
    """What a watch has to say until its end, as far as it comes."""
    text = b""
    while chunk := await asyncio.wait_for(reader.read(2**20), PATIENCE_S):
        text += chunk
        if text.endswith(b"0\r\n\r\n"):
            break
    _, _, body = text.partition(b"\r\n\r\n")
    return [json.loads(line) for line in unchunked(body).splitlines()]


def unchunked(body: bytes) -> bytes:
    """The content of a body that was sent in chunks."""
    content, rest = [], body
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        content.append(rest[:length])
        rest = rest[length + 2 :]
    return b"".join(content)


def waiting(server: Listening) -> int:
    """Bytes that wait in the server for clients of watches."""
    answers = server.running.connections._sending.values()
    transports = (answer.request.transport for answer in answers)
    return sum(t.get_write_buffer_size() for t in transports if t is not None)


async def drop(connection: Connection, how: str) -> None:
    _, writer = connection
    if how == "a reset":
        writer.transport.abort()
    else:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("how", ["a reset", "a proper end"])
async def test_a_client_that_vanishes_is_noticed_at_once(how: str) -> None:
    """Nothing needs to happen to the objects it watched."""
    async with listening() as server:
        status, connection = await server.watch(CONFIG_MAPS)
        assert (status, server.watches) == (200, (1, 1))
        before = server.target.server.core.store.revision
        await drop(connection, how)
        await until(lambda: server.watches == (0, 0), "the end of the watch")
        assert server.target.server.core.store.revision == before


async def test_watches_that_are_dropped_leave_nothing() -> None:
    """Clients by the hundred that open a watch and vanish without reading are forgotten, with nothing written meanwhile."""
    async with listening() as server:
        for _ in range(WATCHES // AT_ONCE):
            opened = await asyncio.gather(*(server.watch(CONFIG_MAPS) for _ in range(AT_ONCE)))
            assert {status for status, _ in opened} == {200}
            assert server.watches == (AT_ONCE, AT_ONCE)
            for _, connection in opened:
                await drop(connection, "a reset")
            await until(lambda: server.watches == (0, 0), "the end of all watches")
        assert len(server.running.connections) == 0


async def test_clients_that_vanish_before_the_answer_leave_nothing() -> None:
    """A request whose client is gone by the time of the answer is no watch."""
    async with listening() as server:
        for _ in range(AT_ONCE):
            _, writer = await server.connect()
            writer.write(get(f"{CONFIG_MAPS}?watch=1"))
            writer.transport.abort()
        assert b" 200 " in await server.ask(get("/version"))
        await until(lambda: server.watches == (0, 0), "the end of all watches")


async def test_a_client_that_does_not_read_is_cut_off() -> None:
    """Until then little waits for it in memory, and another watch gets every event."""
    async with listening(patience_s=1.0) as server, aiohttp.ClientSession() as session:
        status, _ = await server.watch(CONFIG_MAPS, SMALL_BUFFER)
        assert status == 200
        async with session.get(f"{server.running.url}{CONFIG_MAPS}?watch=1") as response:
            others = asyncio.create_task(read_names(response.content, MANY))
            await write_many(server)
            assert waiting(server) < MOST_WAITING
            seen = await asyncio.wait_for(others, PATIENCE_S)
            assert seen == [f"large{number}" for number in range(MANY)]
            await until(lambda: server.watches == (1, 1), "the end of the watch that is not read")


async def read_names(stream: aiohttp.StreamReader, count: int) -> list[str]:
    """The names of the first large objects that a watch tells of."""
    names: list[str] = []
    text = b""
    while len(names) < count:
        text += await stream.readany()
        *lines, text = text.split(b"\n")
        found = [json.loads(line)["object"]["metadata"]["name"] for line in lines]
        names += [name for name in found if name.startswith("large")]
    return names


async def test_a_watch_that_begins_with_much_is_sent_bit_by_bit() -> None:
    """What is there already does not wait in memory as a whole for a client that does not read it."""
    async with listening() as server:
        await write_many(server)
        status, _ = await server.watch(CONFIG_MAPS, SMALL_BUFFER)
        await until(lambda: waiting(server) > 0, "the beginning of the watch")
        assert status == 200
        assert waiting(server) < MOST_WAITING


async def test_a_client_that_history_has_passed_is_told_so() -> None:
    """One that reads again, but too late, gets 410 as its last event."""
    async with listening() as server:
        _, (reader, _) = await server.watch(CONFIG_MAPS, SMALL_BUFFER)
        await write_many(server)
        store = server.target.server.core.store
        store.compact(store.revision)
        events = await read_events(reader)
        assert (events[-1]["type"], events[-1]["object"]["code"]) == ("ERROR", 410)
        assert len(events) < MANY
        await until(lambda: server.watches == (0, 0), "the end of the watch")


async def test_a_large_answer_that_is_not_read_is_given_up() -> None:
    """Little of it waits in the server, and not for ever."""
    async with listening(patience_s=1.0) as server:
        await write_many(server)
        _, writer = await server.connect(SMALL_BUFFER)
        writer.write(get(CONFIG_MAPS))
        await until(lambda: len(server.running.connections) == 1, "the beginning of the answer")
        assert waiting(server) < MOST_WAITING
        await until(lambda: len(server.running.connections) == 0, "the end of the answer")


async def test_watches_beyond_the_limit_are_refused_until_one_ends() -> None:
    """However many one user asks for at once, no more than half are granted; a client that vanishes makes room."""
    async with listening() as server:
        server.target.server.limits.watches = Shares(20)
        opened = await asyncio.gather(*(server.watch(CONFIG_MAPS) for _ in range(30)))
        assert sorted(status for status, _ in opened) == [200] * 10 + [429] * 20
        for _, connection in opened:
            await drop(connection, "a reset")
        await until(lambda: server.watches == (0, 0), "the end of all watches")
        status, connection = await server.watch(CONFIG_MAPS)
        assert status == 200
        await drop(connection, "a reset")
