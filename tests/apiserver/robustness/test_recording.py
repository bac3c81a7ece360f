"""Every answer is recorded once, with the status that the client gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from robustness.hostile import CONFIG_MAP, CONFIG_MAPS, JSON, config_map
from robustness.raw import PATIENCE_S, Listening, get, listening

from drayman.apiserver.protocol.access import Attributes, Authenticator, User
from drayman.apiserver.protocol.exchange import Request
from drayman.apiserver.protocol.limits import BODY_LIMIT, SMALL_BODY
from drayman.apiserver.protocol.shares import Shares

LARGE = 2 * SMALL_BODY


class Recorded(list[tuple[str, str, int]]):
    """Verb, resource and status of each request."""

    def finished(self, request: Request, attributes: Attributes, code: int, seconds: float) -> None:
        self.append((attributes.verb, attributes.resource, code))


async def status_of(server: Listening, request: bytes) -> int:
    reader, writer = await server.connect()
    writer.write(request)
    return int((await asyncio.wait_for(reader.readline(), PATIENCE_S)).split()[1])


def post(length: int, body: bytes = b"{") -> bytes:
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: {length}\r\n\r\n"
    return head.encode() + body


def no_room(server: Listening) -> None:
    server.target.server.limits.body_bytes = Shares(0)


def no_time(server: Listening) -> None:
    server.target.server.limits.body_s = 0.05


def as_usual(server: Listening) -> None:
    """Nothing is different."""


BODIES = {
    "small and too slow": (no_time, post(100), 408),
    "large and too slow": (no_time, post(LARGE), 408),
    "too large": (as_usual, post(BODY_LIMIT + 1, b" " * (BODY_LIMIT + 1)), 413),
    "too many at a time": (no_room, post(LARGE), 429),
    "fine": (as_usual, post(2, b"{}"), 422),
}


@pytest.mark.parametrize(("given", "request_", "code"), BODIES.values(), ids=BODIES)
async def test_a_body_that_is_not_read(
    given: Callable[[Listening], None], request_: bytes, code: int
) -> None:
    """It is recorded like one that is."""
    async with listening() as server:
        given(server)
        recorded = Recorded()
        server.target.server.observers.append(recorded)
        assert await status_of(server, request_) == code
        assert recorded == [("create", "configmaps", code)]
        metrics = server.target.server.metrics.answer().body.decode()
        assert f'code="{code}"' in metrics


@pytest.mark.parametrize("accepted", [b"gzip", b"identity"])
async def test_a_large_answer_that_is_not_sent(accepted: bytes) -> None:
    """What is recorded is the refusal."""
    async with listening() as server:
        text = json.dumps(config_map("large", key="".join(map(str, range(LARGE))))).encode()
        assert await status_of(server, post(len(text), text)) == 201
        recorded = Recorded()
        server.target.server.observers.append(recorded)
        large = get(f"{CONFIG_MAPS}/large", b"Accept-Encoding: " + accepted)
        assert await status_of(server, large) == 200
        usual = server.target.server.limits.body_bytes
        no_room(server)
        assert await status_of(server, large) == 429
        server.target.server.limits.body_bytes = usual
        assert await status_of(server, get(CONFIG_MAP)) == 200
        assert [code for _, _, code in recorded] == [200, 429, 200]


class Gate:
    """Lets a request in when the test says so."""

    def __init__(self, behind: Authenticator) -> None:
        self._behind = behind
        self.arrived, self.open = asyncio.Event(), asyncio.Event()

    async def authenticate(self, request: Request) -> User:
        self.arrived.set()
        await self.open.wait()
        return await self._behind.authenticate(request)


async def test_a_client_that_leaves_before_its_watch_begins() -> None:
    """The request is recorded once, and counted, although nothing of its answer was sent."""
    async with listening() as server:
        api = server.target.server
        recorded = Recorded()
        api.observers.append(recorded)
        gate = Gate(api.authenticator)
        api.authenticator = gate
        _, writer = await server.connect()
        writer.write(get(f"{CONFIG_MAPS}?watch=1"))
        async with asyncio.timeout(PATIENCE_S):
            await gate.arrived.wait()
            writer.transport.abort()
            while len(server.running.connections):
                await asyncio.sleep(0.01)
            gate.open.set()
            while not recorded:
                await asyncio.sleep(0.01)
        assert recorded == [("watch", "configmaps", 200)]
        assert 'verb="WATCH"' in api.metrics.answer().body.decode()
        assert server.watches == (0, 0)
