"""One user sends as much as possible; another one is served all the same."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from robustness.hostile import CONFIG_MAP, CONFIG_MAPS, JSON, config_map
from robustness.raw import PATIENCE_S, Connection, Listening, get, listening, until

from drayman.apiserver.protocol.access import ADMIN, User
from drayman.apiserver.protocol.exchange import Query, Request
from drayman.apiserver.protocol.limits import SMALL_BODY
from drayman.apiserver.protocol.shares import Shares
from drayman.apiserver.requests.beside import ON_BEHALF_OF, beside

LARGE = 2 * SMALL_BODY


class Named:
    """Takes a token for the name of its user. A request without one is the administrator's."""

    async def authenticate(self, request: Request) -> User:
        token = request.header("authorization").removeprefix("Bearer ")
        return User(token) if token else ADMIN


@asynccontextmanager
async def shared() -> AsyncIterator[Listening]:
    async with listening() as server:
        server.target.server.authenticator = Named()
        yield server


def of(user: str) -> bytes:
    return f"Authorization: Bearer {user}".encode()


async def status(connection: Connection) -> int:
    line = await asyncio.wait_for(connection[0].readline(), PATIENCE_S)
    return int(line.split()[1])


async def half_sent(server: Listening, user: str) -> Connection:
    """A large body of which one byte is sent."""
    reader, writer = await server.connect()
    head = (
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: {LARGE}"
    )
    writer.write(b"\r\n".join((head.encode(), of(user), b"", b"{")))
    return reader, writer


async def write_large(server: Listening, user: str) -> int:
    body = json.dumps(config_map(f"of-{user or ADMIN.name}", key="x" * LARGE)).encode()
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}"
    reader, writer = await server.connect()
    writer.write(b"\r\n".join((head.encode(), of(user), b"", body)))
    return await status((reader, writer))


async def test_half_sent_bodies_leave_room_for_large_bodies_of_others() -> None:
    """Their sender is refused more of them; another user and the administrator are not."""
    async with shared() as server:
        limits = server.target.server.limits
        limits.body_bytes = Shares(16 * LARGE, reserve=4 * LARGE)
        for _ in range(6):
            await half_sent(server, "mallory")
        await until(lambda: limits.body_bytes.taken == 6 * LARGE, "the reading of the bodies")
        assert await status(await half_sent(server, "mallory")) == 429
        assert await write_large(server, "alice") == 201
        assert await write_large(server, "") == 201


async def test_watches_leave_room_for_watches_of_others() -> None:
    """The user who has most of them is the one who is refused."""
    async with shared() as server:
        server.target.server.limits.watches = Shares(8)
        found = []
        for user in ("mallory",) * 5 + ("alice",) * 2:
            reader, writer = await server.connect()
            writer.write(get(f"{CONFIG_MAPS}?watch=1", of(user)))
            found.append(await status((reader, writer)))
        assert found == [200, 200, 200, 200, 429, 200, 200]


async def test_large_answers_count_too() -> None:
    """A user who has taken too much is not sent a large object; others are."""
    async with shared() as server:
        limits = server.target.server.limits
        assert await write_large(server, "alice") == 201
        limits.body_bytes = Shares(8 * LARGE)
        for _ in range(4):
            await half_sent(server, "mallory")
        await until(lambda: limits.body_bytes.taken == 4 * LARGE, "the reading of the bodies")
        path = f"{CONFIG_MAPS}/of-alice"
        assert b" 429 " in await server.ask(get(path, of("mallory")))
        assert b" 200 " in await server.ask(get(path, of("bob")))
        assert b" 200 " in await server.ask(get(CONFIG_MAP, of("mallory")))


async def test_health_can_be_asked_for_during_a_flood() -> None:
    """Probes are not counted."""
    async with shared() as server:
        limits = server.target.server.limits
        usual, limits.requests = limits.requests, Shares(0)
        assert b" 429 " in await server.ask(get(CONFIG_MAP))
        assert b" 200 " in await server.ask(get("/readyz"))
        limits.requests = usual


def test_the_sender_of_a_request_is_the_one_who_pays() -> None:
    """Not the user that it acts as."""
    alice, mallory = User("alice"), User("mallory")
    assert Request("GET", "/", user=alice).sender == alice
    assert Request("GET", "/", user=alice, impersonator=mallory).sender == mallory


async def test_large_work_of_users_is_done_in_turn() -> None:
    """A large body of a user waits for one of another user, not for fifty."""
    free = threading.Event()
    done: list[str] = []

    async def work(user: str) -> None:
        ON_BEHALF_OF.set(user)
        await beside(lambda: done.append(user))

    async with asyncio.TaskGroup() as group:
        group.create_task(beside(free.wait))  # type: ignore[arg-type]
        for user in ("mallory",) * 50 + ("alice", "bob"):
            group.create_task(work(user))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        free.set()
    assert done[:4] == ["mallory", "alice", "bob", "mallory"]
    assert len(done) == 52


async def test_large_work_that_is_given_up_is_not_done() -> None:
    """Its turn goes to the next one."""
    free = threading.Event()
    done: list[str] = []

    async def work(name: str) -> None:
        await beside(lambda: done.append(name))

    first = asyncio.create_task(beside(free.wait))  # type: ignore[arg-type]
    tasks = [asyncio.create_task(work(name)) for name in ("given up", "wanted")]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    free.set()
    await asyncio.wait([first, *tasks])
    assert done == ["wanted"]


async def test_large_answers_are_compressed_in_turn() -> None:
    """An answer to a user waits for one to another user, not for all of them."""
    free = threading.Event()
    done: list[str] = []
    async with shared() as server:
        api = server.target.server
        assert await write_large(server, "alice") == 201

        async def read(user: str) -> None:
            headers = {"authorization": f"Bearer {user}", "accept-encoding": "gzip"}
            answer = await api.handle(Request("GET", f"{CONFIG_MAPS}/of-alice", Query(), headers))
            assert answer.headers["Content-Encoding"] == "gzip"
            done.append(user)

        async with asyncio.TaskGroup() as group:
            group.create_task(beside(free.wait))  # type: ignore[arg-type]
            for user in ("mallory", "mallory", "mallory", "alice"):
                group.create_task(read(user))
            await until(lambda: api.limits.requests.taken == 4, "the reading of four answers")
            assert not done
            free.set()
    assert done == ["mallory", "alice", "mallory", "mallory"]
