"""Every answer is recorded once, with the status that the client gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from robustness.hostile import CONFIG_MAP, CONFIG_MAPS, JSON, config_map
from robustness.raw import PATIENCE_S, Listening, get, listening

from drayman.apiserver.protocol.access import Attributes
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
