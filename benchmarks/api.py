"""How fast the API server is, over HTTP, with a client on the same machine and every write on disk.

One JSON line per figure. The server is a process of its own, so that on two cores it has one and the client has the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

CONNECTIONS = 16
CREATES = 6_000
GETS = 12_000
LISTED = 5_000
WATCHERS = 1_000
BUSY_WRITES = 50
PACED_WRITES = 1_500
WRITES_PER_SECOND = 500
PODS = "/api/v1/namespaces/bench/pods"
CONFIGS = "/api/v1/namespaces/bench/configmaps"


def pod(name: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench", "part": "x"}},
        "spec": {"containers": [container]},
    }


class Connection:
    """One kept-alive connection. Does no more than the figures need, so that they are about the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 26))

    async def send(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The body of the answer, which must be a success."""
        self._writer.write(request(method, path, body))
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise RuntimeError(f"{method} {path}: {head[:40]!r} {answer[:300]!r}")
        return answer

    async def events(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """The events of a watch."""
        self._writer.write(request("GET", path))
        await self._reader.readuntil(b"\r\n\r\n")
        pending = b""
        while size := int((await self._reader.readuntil(b"\r\n")).strip() or b"0", 16):
            pending += (await self._reader.readexactly(size + 2))[:-2]
            *lines, pending = pending.split(b"\n")
            for line in lines:
                yield json.loads(line)

    def close(self) -> None:
        self._writer.close()


def request(method: str, path: str, body: bytes = b"") -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def report(figure: str, value: float, unit: str, **more: object) -> None:
    print(
        json.dumps({"figure": figure, "value": round(value, 3), "unit": unit, **more}), flush=True
    )


async def rate(
    port: int, count: int, work: Callable[[Connection, int], Awaitable[object]]
) -> float:
    """How many times a second some work is done by all connections together."""
    connections = [await Connection.open(port) for _ in range(CONNECTIONS)]

    async def share(index: int, connection: Connection) -> None:
        for number in range(index, count, CONNECTIONS):
            await work(connection, number)

    started = time.perf_counter()
    await asyncio.gather(*(share(i, connection) for i, connection in enumerate(connections)))
    elapsed = time.perf_counter() - started
    for connection in connections:
        connection.close()
    return count / elapsed


async def create_and_read(port: int) -> None:
    async def create(connection: Connection, number: int) -> None:
        await connection.send("POST", PODS, json.dumps(pod(f"p{number}")).encode())

    async def get(connection: Connection, number: int) -> None:
        await connection.send("GET", f"{PODS}/p{number % CREATES}")

    report("durable creates of a pod", await rate(port, CREATES, create), "1/s", wanted=1_500)
    report("gets of a pod", await rate(port, GETS, get), "1/s", wanted=4_000)
    connection = await Connection.open(port)
    started = time.perf_counter()
    data = await connection.send("GET", f"{PODS}?limit={LISTED}")
    elapsed = time.perf_counter() - started
    connection.close()
    found = len(json.loads(data)["items"])
    report(f"list of {found} pods", elapsed, "s", bytes=len(data), wanted_below=1.0)


async def watch_many(port: int) -> None:
    """Every watcher must see every event, in order."""
    connection = await Connection.open(port)
    listing = json.loads(await connection.send("GET", CONFIGS))
    since = listing["metadata"]["resourceVersion"]
    path = f"{CONFIGS}?watch=1&resourceVersion={since}&timeoutSeconds=300"

    async def follow() -> list[str]:
        own = await Connection.open(port)
        names = []
        async for event in own.events(path):
            names.append(event["object"]["metadata"]["name"])
            if len(names) == BUSY_WRITES:
                break
        own.close()
        return names

    followers = [asyncio.create_task(follow()) for _ in range(WATCHERS)]
    await asyncio.sleep(2)
    started = time.perf_counter()
    wanted = [f"w{number}" for number in range(BUSY_WRITES)]
    for name in wanted:
        body = json.dumps({"metadata": {"name": name}, "data": {"k": "v"}}).encode()
        await connection.send("POST", CONFIGS, body)
    seen = await asyncio.gather(*followers)
    elapsed = time.perf_counter() - started
    connection.close()
    lost = sum(names != wanted for names in seen)
    report(
        "events to 1,000 watchers", WATCHERS * BUSY_WRITES / elapsed, "1/s", watchers_with_loss=lost
    )


async def watch_latency(port: int) -> None:
    """From the moment a write is sent to the moment a watcher has it, at a steady rate of writes."""
    writer = [await Connection.open(port) for _ in range(CONNECTIONS)]
    listing = json.loads(await writer[0].send("GET", CONFIGS))
    since = listing["metadata"]["resourceVersion"]
    sent: dict[str, float] = {}
    latencies: list[float] = []
    watcher = await Connection.open(port)

    async def follow() -> None:
        path = f"{CONFIGS}?watch=1&resourceVersion={since}&timeoutSeconds=300"
        async for event in watcher.events(path):
            name = event["object"]["metadata"]["name"]
            latencies.append(time.perf_counter() - sent[name])
            if len(latencies) == PACED_WRITES:
                return

    follower = asyncio.create_task(follow())
    idle: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in writer:
        idle.put_nowait(connection)

    async def write(number: int) -> None:
        name = f"l{number}"
        body = json.dumps({"metadata": {"name": name}, "data": {"k": "v"}}).encode()
        connection = await idle.get()
        sent[name] = time.perf_counter()
        await connection.send("POST", CONFIGS, body)
        idle.put_nowait(connection)

    started = time.perf_counter()
    tasks = []
    for number in range(PACED_WRITES):
        await asyncio.sleep(max(0.0, started + number / WRITES_PER_SECOND - time.perf_counter()))
        tasks.append(asyncio.create_task(write(number)))
    await asyncio.gather(*tasks, follower)
    achieved = PACED_WRITES / (time.perf_counter() - started)
    latencies.sort()
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        value = latencies[int(len(latencies) * share)] * 1000
        report(f"{name} watch latency", value, "ms", writes_per_second=round(achieved))


@contextlib.asynccontextmanager
async def server(folder: Path) -> AsyncIterator[int]:
    """A server over a store in a folder, as a process of its own; gives its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        "--serve",
        str(folder / "store.db"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        yield int(await process.stdout.readline())
    finally:
        process.terminate()
        await process.wait()


async def serve(path: str) -> None:
    from drayman.apiserver.serving.assembly import make_server
    from drayman.apiserver.serving.http import Listener, start
    from drayman.cluster.embedded.store import Store

    running = await start(make_server(Store.open(path)), Listener())
    print(running.port, flush=True)
    await asyncio.Event().wait()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with server(Path(folder)) as port:
            connection = await Connection.open(port)
            body = json.dumps({"metadata": {"name": "bench"}}).encode()
            await connection.send("POST", "/api/v1/namespaces", body)
            connection.close()
            await create_and_read(port)
            await watch_latency(port)
            await watch_many(port)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(sys.argv[2]))
    else:
        asyncio.run(main())
