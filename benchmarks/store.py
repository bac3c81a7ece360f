"""The embedded store: durable writes, watch fan-out, start-up.

    store.py [--objects 100000] [--seconds 3]

Objects are 3 kB. Writes are measured beside what SQLite alone does on the same disk with one commit per write, so that a figure says
something about the store and not about the disk. Fan-out gives 1,000 watchers of one namespace every event of a steady stream of
writes, and measures from the moment a write is asked for to the moment a watcher has it. One JSON line per figure. The exit status
is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from drayman.cluster.embedded import Key, Put, Store, Subscription
from measure import percentile, report

OPEN_BAR_S = 2.0
LATENCY_BAR_MS = 50.0
WRITERS = (1, 16, 64)
WATCHERS = 1_000
STREAM_PER_S = 500
_BODY = b'{"metadata":{"resourceVersion":"%d"},"pad":"' + b"x" * 3_000 + b'"}'


def encode(revision: int) -> bytes:
    return _BODY % revision


def pod(name: str) -> Key:
    return Key("pods", "default", name)


def plain_commits_per_s(folder: Path, seconds: float) -> float:
    """SQLite with the same settings, one row and one commit at a time."""
    connection = sqlite3.connect(folder / "plain.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE log (revision INTEGER PRIMARY KEY, data BLOB)")
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        count += 1
        connection.execute("INSERT INTO log VALUES (?, ?)", (count, encode(count)))
    connection.close()
    return count / seconds


async def writes_per_s(store: Store, writers: int, seconds: float) -> tuple[float, list[float]]:
    """Writers that each wait for their write before the next, half creating and half updating; and each write's time in ms."""
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def write(writer: int) -> None:
        number = 0
        while (begun := time.perf_counter()) < end:
            await store.write([Put(pod(f"{writer}-{number // 2}"), encode)])
            times.append((time.perf_counter() - begun) * 1000)
            number += 1

    await asyncio.gather(*(write(n) for n in range(writers)))
    return len(times) / seconds, times


async def fan_out(store: Store, seconds: float) -> tuple[int, int, list[float]]:
    """Events written, events received by all watchers together, and the latencies in ms of one watcher in ten."""
    asked: dict[int, float] = {}
    received = [0] * WATCHERS
    latencies: list[float] = []
    since = store.revision

    async def watch(number: int, subscription: Subscription) -> None:
        async for events in subscription:
            received[number] += len(events)
            if number % 10 == 0:
                now = time.perf_counter()
                latencies.extend((now - asked[e.revision]) * 1000 for e in events)

    def encode_noting_time(revision: int) -> bytes:
        asked[revision] = time.perf_counter()
        return encode(revision)

    watchers = [
        asyncio.ensure_future(watch(n, store.watch("pods", "default", since=since)))
        for n in range(WATCHERS)
    ]
    begun, number, writes = time.perf_counter(), 0, set()
    while (elapsed := time.perf_counter() - begun) < seconds:
        while number < elapsed * STREAM_PER_S:
            put = Put(pod(f"fan-{number % 100}"), encode_noting_time)
            writes.add(asyncio.ensure_future(store.write([put])))
            number += 1
        await asyncio.sleep(0.001)
    await asyncio.gather(*writes)
    while sum(received) < number * WATCHERS and not any(w.done() for w in watchers):
        await asyncio.sleep(0.01)
    for watcher in watchers:
        watcher.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)
    return number, sum(received), latencies


async def fill(store: Store, objects: int) -> None:
    for begin in range(0, objects, 1_000):
        numbers = range(begin, min(begin + 1_000, objects))
        await store.write(
            [Put(Key("pods", f"ns-{n % 50}", f"pod-{n}"), encode, 0) for n in numbers]
        )


def measure_writes(folder: Path, seconds: float) -> None:
    plain = plain_commits_per_s(folder, seconds)
    report(figure="plain sqlite", per_s=plain)
    for writers in WRITERS:
        with Store.open(folder / f"writes-{writers}.db") as store:
            rate, times = asyncio.run(writes_per_s(store, writers, seconds))
        report(
            figure="durable writes",
            writers=writers,
            per_s=rate,
            to_plain=rate / plain,
            p50_ms=percentile(times, 0.5),
            p99_ms=percentile(times, 0.99),
        )


def measure_fan_out(folder: Path, seconds: float) -> bool:
    with Store.open(folder / "fan.db") as store:
        written, received, latencies = asyncio.run(fan_out(store, seconds))
    p99 = percentile(latencies, 0.99)
    report(
        figure="fan-out",
        watchers=WATCHERS,
        writes_per_s=written / seconds,
        deliveries=received,
        lost=written * WATCHERS - received,
        p50_ms=percentile(latencies, 0.5),
        p99_ms=p99,
    )
    return received == written * WATCHERS and p99 <= LATENCY_BAR_MS


def measure_opening(folder: Path, objects: int) -> bool:
    path = folder / "open.db"
    with Store.open(path) as store:
        asyncio.run(fill(store, objects))
    begun, cpu_begun = time.perf_counter(), time.thread_time()
    with Store.open(path) as store:
        opened, cpu = time.perf_counter() - begun, time.thread_time() - cpu_begun
        begun = time.perf_counter()
        listed = len(store.list("pods"))
        took = time.perf_counter() - begun
    report(figure="open", objects=listed, seconds=opened, cpu_s=cpu, list_ms=took * 1000)
    return cpu <= OPEN_BAR_S


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_writes(folder, arguments.seconds)
        passed = [
            measure_fan_out(folder, arguments.seconds),
            measure_opening(folder, arguments.objects),
        ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
