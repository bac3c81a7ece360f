"""How long others wait while a user with `edit` rights sends hostile requests and objects.

    hostile.py [--only ROW]... [--list] [--table FILE]

For each row of the table, another user gets a small object every 20 ms. One JSON line per row: the longest wait of that user, the
memory the server took beyond what it had at rest, what the hostile requests were answered, and whether the server is itself again
afterwards and after a restart. The first row does nothing: it shows the jitter of the machine. The exit status is 1 if a bar is
missed.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from hostile_rows import LEFTOVERS, OPTIONS, ROWS, SETUP, Attacker
from measure import report

BAR_MS = 250.0
BAR_MIB = 256.0
EVERY_S = 0.02
AT_REST_S = 1.0
LIMIT_S = 60.0
READY_S = 60.0
CPUS = ("--profile", "cpu=1")
"""The nodes of rows that state no others."""
RECOVERY_S = 30.0


@dataclass(slots=True)
class Server:
    """A server in a process of its own."""

    folder: Path
    process: asyncio.subprocess.Process
    url: str
    token: str
    tls: ssl.SSLContext
    options: tuple[str, ...]
    """Those of `drayman up`."""

    @property
    def memory(self) -> int:
        """The bytes it has in memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    async def stop(self) -> bool:
        """Whether it ended when asked to, in good time."""
        self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), READY_S)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
            return False
        return True


async def start(folder: Path, options: tuple[str, ...]) -> Server:
    """Start a server on a folder, and wait until it is ready. Raises TimeoutError."""
    program = Path(sys.executable).with_name("drayman")
    config = folder / "config"
    config.unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(
        program, "up", "--data-dir", folder / "data", "--port", "0", "--kubeconfig", config,
        "--no-color", *options,
        stdout=asyncio.subprocess.DEVNULL, stderr=(folder / "log").open("ab"),
    )  # fmt: skip
    try:
        return await _ready(folder, process, config, options)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise


async def _ready(
    folder: Path, process: asyncio.subprocess.Process, config: Path, options: tuple[str, ...]
) -> Server:
    async with asyncio.timeout(READY_S):
        while not config.exists():
            await asyncio.sleep(0.05)
        content = json.loads(config.read_bytes())
        cluster = content["clusters"][0]["cluster"]
        pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
        token = content["users"][0]["user"]["token"]
        tls = ssl.create_default_context(cadata=pem)
        server = Server(folder, process, cluster["server"], token, tls, options)
        async with session(server, token) as client:
            while not await is_ready(client, server.url):
                await asyncio.sleep(0.1)
    return server


async def is_ready(client: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with client.get(f"{url}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


def session(server: Server, token: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {token}"},
        connector=aiohttp.TCPConnector(ssl=server.tls, limit=0),
        timeout=aiohttp.ClientTimeout(total=LIMIT_S),
    )


@dataclass(slots=True)
class Waits:
    """How long another user waits, in milliseconds."""

    found: list[float] = field(default_factory=list)
    failed: int = 0

    @property
    def longest(self) -> float:
        return max(self.found, default=0.0)


@asynccontextmanager
async def another_user(server: Server) -> AsyncIterator[Waits]:
    """Another user, in a process of its own, who gets a small object every 20 ms."""
    waits = Waits()
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, f"--watch={server.url} {server.token}",
        stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield waits
    finally:
        output, _ = await process.communicate(b"end\n")
        for line in output.splitlines():
            wait = float(line)
            if wait < 0:
                waits.failed += 1
            waits.found.append(abs(wait))


async def watch(url: str, token: str) -> None:
    """What the other user does: print how long each get took, negative if it failed, until standard input says to end."""
    loop = asyncio.get_running_loop()
    ended = loop.run_in_executor(None, sys.stdin.readline)
    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as client:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while not ended.done():
            begun = time.perf_counter()
            try:
                async with client.get(f"{url}/api/v1/namespaces/default") as answer:
                    await answer.read()
                    is_good = answer.status == 200
            except aiohttp.ClientError:
                is_good = False
            took = (time.perf_counter() - begun) * 1000
            sys.stdout.write(f"{took if is_good else -took}\n")
            await asyncio.sleep(max(0.0, EVERY_S - took / 1000))


async def prepare(server: Server) -> str:
    """Make the namespaces, the hostile user and what the rows need. The token of the hostile user."""
    async with session(server, server.token) as admin:
        for path, body in SETUP:
            async with admin.post(f"{server.url}{path}", json=body) as answer:
                assert answer.status in (201, 409), await answer.text()
        path = "/api/v1/namespaces/hostile/serviceaccounts/mallory/token"
        body = {"spec": {"expirationSeconds": 86_400}}
        async with admin.post(f"{server.url}{path}", json=body) as answer:
            return str((await answer.json())["status"]["token"])


async def restarted(server: Server) -> Server | None:
    """The server after a restart; None if it does not become ready."""
    try:
        return await start(server.folder, server.options)
    except TimeoutError:
        return None


async def run_row(server: Server, token: str, name: str) -> tuple[dict[str, Any], Server | None]:
    """Carry out one row. Its figures, and the server that runs after it, if one does."""
    rest = peak = server.memory
    answers: Counter[str] = Counter()
    is_after = False

    async def measure() -> None:
        nonlocal peak
        while True:
            peak = max(peak, server.memory)
            await asyncio.sleep(0.05)

    async with another_user(server) as waits, session(server, token) as client:
        measuring = asyncio.create_task(measure())
        attacker = Attacker(client, server.url, token, server.tls, answers)
        try:
            async with asyncio.timeout(LIMIT_S):
                await ROWS[name](attacker)
        except TimeoutError:
            answers["unfinished"] += 1
        await asyncio.sleep(AT_REST_S)
        measuring.cancel()
    again = await is_itself(server)
    stopped = await server.stop()
    after = await restarted(server)
    if after is not None:
        is_after = await is_itself(after)
        await clear(after)
    figures = {
        "row": name,
        "longest_wait_ms": waits.longest,
        "failed_gets": waits.failed,
        "memory_mib": (peak - rest) / 2**20,
        "answers": dict(sorted(answers.items())),
        "itself_again": again,
        "after_restart": stopped and is_after,
    }
    met = waits.longest <= BAR_MS and not waits.failed and again and stopped and is_after
    return {**figures, "met": met and figures["memory_mib"] <= BAR_MIB}, after


async def is_itself(server: Server) -> bool:
    """Whether a pod that another user creates runs within some seconds. It is more important than pods that may fill the node."""
    pods = f"{server.url}/api/v1/namespaces/kube-system/pods"
    containers = [{"name": "c", "image": "host", "command": ["sleep", "60"]}]
    spec = {"priorityClassName": "system-cluster-critical", "containers": containers}
    try:
        async with session(server, server.token) as client, asyncio.timeout(RECOVERY_S):
            async with client.post(
                pods, json={"metadata": {"generateName": "p-"}, "spec": spec}
            ) as made:
                name = (await made.json())["metadata"]["name"]
            while True:
                async with client.get(f"{pods}/{name}") as answer:
                    if (await answer.json())["status"].get("phase") == "Running":
                        break
                await asyncio.sleep(0.05)
            async with client.delete(f"{pods}/{name}") as answer:
                return answer.status == 200
    except (TimeoutError, aiohttp.ClientError, KeyError):
        return False


async def clear(server: Server) -> None:
    """Remove what a row has left, as far as that takes no longer than a row may."""
    async with session(server, server.token) as admin:
        for path in LEFTOVERS:
            try:
                async with admin.delete(f"{server.url}{path}?gracePeriodSeconds=0") as answer:
                    await answer.read()
            except TimeoutError:
                sys.stderr.write(f"{path} is not empty after {LIMIT_S:.0f} s\n")


def table(lines: list[str]) -> str:
    """The lines of a run as a table for docs/security.md. Of several lines for a row, the last counts."""
    figures = {found["row"]: found for found in map(json.loads, lines)}
    shown = ["| sent | longest wait of another user | memory | answers |", "|---|---|---|---|"]
    for name in ROWS:
        if name in figures:
            found = figures[name]
            wait, memory = round(found["longest_wait_ms"]), round(found["memory_mib"])
            answers = ", ".join(sorted(found["answers"])) or "none"
            mark = "" if found["met"] else " (missed)"
            shown.append(f"| {name} | {wait} ms{mark} | {memory} MiB | {answers} |")
    return "\n".join(shown) + "\n"


async def main() -> int:
    parser = argparse.ArgumentParser(
        description="How long others wait while a user with edit rights is hostile: a JSON line for each row, and 1 if a bar is missed."
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ROW",
        help="only this row; may be given several times",
    )
    parser.add_argument("--list", action="store_true", help="show the names of all rows")
    parser.add_argument(
        "--table",
        type=argparse.FileType(),
        metavar="FILE",
        help="show the lines of an earlier run as a table",
    )
    parser.add_argument("--watch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watch:
        url, token = options.watch.split()  # one argument, since a token may begin with a dash
        await watch(url, token)
        return 0
    if options.table:
        sys.stdout.write(table(options.table.read().splitlines()))
        return 0
    names = options.only or list(ROWS)
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; --list shows them")
    if options.list:
        sys.stdout.write("\n".join(ROWS) + "\n")
        return 0
    all_met = True
    with tempfile.TemporaryDirectory(prefix="drayman-hostile-") as folder:
        server: Server | None = None
        try:
            for number, name in enumerate(names):
                options = OPTIONS.get(name, CPUS)
                if server is not None and server.options != options:
                    await server.stop()
                    server = None
                if server is None:
                    fresh = Path(folder) / str(number)
                    fresh.mkdir()
                    server = await start(fresh, options)
                    token = await prepare(server)
                if sys.stderr.isatty():
                    sys.stderr.write(f"{number + 1}/{len(names)} {name}\n")
                figures, server = await run_row(server, token, name)
                report(**figures)
                all_met = all_met and figures["met"]
        finally:
            if server is not None:
                await server.stop()
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
