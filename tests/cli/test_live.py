"""The live status of `drayman up`: right numbers, 80 columns, and an orderly end."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from drayman.apiserver.backend import ServerBackend
from drayman.apiserver.instance import Folder, Options, start
from drayman.cli.cluster.live import LiveStatus, Rate, uptime
from drayman.cli.cluster.tallies import (
    Tally,
    claim_allocation,
    node_readiness,
    pod_phase,
    slice_devices,
)
from drayman.cluster.backend import Target
from drayman.cluster.embedded import Delete, Key, Put, Retention, Store
from drayman.cluster.options import WriteOptions

PATIENCE_S = 30.0
PHASES = ["Pending", "Running", "Succeeded", None]


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([*PHASES, "gone"])), max_size=40),
    st.integers(1, 50),
    st.integers(1, 7),
)
def test_a_tally_is_what_a_count_would_be(
    steps: list[tuple[str, str | None]], retained: int, every: int
) -> None:
    """After any history, looked at as often as you like, and also where history was too short to follow."""

    async def scenario() -> None:
        with Store.open(None, retention=Retention(changes=retained)) as store:
            tally = Tally(store, "pods", pod_phase)
            there: dict[str, str] = {}
            for number, (name, phase) in enumerate(steps):
                key = Key("pods", "ns", name)
                if phase != "gone":
                    there[name] = phase or "Unknown"
                    data = encoded({"status": {"phase": phase} if phase else {}})
                    await store.write([Put(key, lambda _, data=data: data)])
                elif there.pop(name, None) is not None:
                    await store.write([Delete(key, lambda _: b"{}")])
                if number % every == 0:
                    assert tally.refresh() == counts(there)
            assert tally.refresh() == counts(there)
            assert tally.total == len(there)

    asyncio.run(scenario())


def counts(there: dict[str, str]) -> dict[str, int]:
    phases = list(there.values())
    return {phase: phases.count(phase) for phase in set(phases)}


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (node_readiness, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, 1),
        (node_readiness, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, 0),
        (node_readiness, {}, 0),
        (claim_allocation, {"status": {"allocation": {"devices": {}}}}, 1),
        (claim_allocation, {"status": {}}, 0),
        (slice_devices, {"spec": {"devices": [{"name": "a"}, {"name": "b"}]}}, 2),
        (slice_devices, {"spec": {}}, 0),
    ],
)
def test_what_is_read_from_objects(read: Any, value: Any, expected: int) -> None:
    """Readiness of nodes, allocation of claims, devices of slices."""
    assert sum(read(encoded(value)).values()) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0:00:00"), (61.9, "0:01:01"), (86_399, "23:59:59"), (2 * 86_400 + 5, "2 d 0:00:05")],
)
def test_uptime(seconds: float, expected: str) -> None:
    """As clocks show it."""
    assert uptime(seconds) == expected


def test_a_rate_is_about_the_time_since_the_last_look() -> None:
    """And no time at all gives no rate."""
    times = iter([0.0, 2.0, 2.0, 3.0])
    rate = Rate(100, clock=lambda: next(times))
    assert [rate.per_second(n) for n in (110, 200, 201)] == [5.0, 0.0, 1.0]


def test_the_status_fits_a_terminal_of_80_columns(tmp_path: Path) -> None:
    """Also with long paths and large numbers; closing it lets go of what it follows."""

    async def scenario() -> str:
        folder = Folder(tmp_path / ("long-name-" * 10))
        instance = await start(Options(folder, control_plane=None))
        try:
            backend = ServerBackend(instance.server.core)
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
            await backend.create(Target("", "v1", "nodes"), body, WriteOptions())
            before = instance.store.watchers
            status = LiveStatus(instance)
            drawn = StringIO()
            Console(file=drawn, width=80).print(status.render())
            status.close()
            assert instance.store.watchers == before
            assert instance.server.observers == []
            return drawn.getvalue()
        finally:
            await instance.stop()

    text = asyncio.run(scenario())
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"^nodes +1 *$", text, re.MULTILINE)
    assert re.search(r"^namespaces +4 *$", text, re.MULTILINE)
    assert "".join(text.split()).count("long-name-" * 10) == 3


def on_a_terminal(tmp_path: Path, *options: str) -> tuple[subprocess.Popen[bytes], int]:
    """`drayman up` on a terminal of its own."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    words = ["up", "--ephemeral", "--port", "0", "--kubeconfig", str(tmp_path / "config"), *options]
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [sys.executable, "-m", "drayman", *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environment, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(slave)
    return process, master


def read_until(terminal: int, condition: Any, text: str = "") -> str:
    """What a terminal shows, until that is enough or its other end is closed."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition(text):
        assert time.monotonic() < deadline, f"the terminal shows only {text!r}"
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                text += os.read(terminal, 65536).decode()
            except OSError:  # the other end is closed
                return text
    return text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_the_status_is_redrawn_and_ends_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """It is drawn again and again in its place; a signal ends it with status 0, the cursor back and a last word."""
    process, terminal = on_a_terminal(tmp_path)
    try:
        text = read_until(terminal, lambda text: text.count("requests/s") >= 3)
        process.send_signal(number)
        text = read_until(terminal, lambda _: False, text)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert "\x1b[1A" in text  # up a line, to draw over the last picture
    assert text.rstrip().endswith("\x1b[?25hstopped")
    assert "Traceback" not in text


def test_a_terminal_that_is_held_up_holds_up_nobody_else(tmp_path: Path) -> None:
    """After Ctrl-S the API goes on answering, and a signal still ends it; Ctrl-Q shows the rest."""
    process, terminal = on_a_terminal(tmp_path)
    unchecked = ssl._create_unverified_context()
    try:
        text = read_until(terminal, lambda text: text.count("requests/s") >= 1)
        (url,) = re.findall(r"https://[0-9.:]+", text)[:1]
        os.write(terminal, b"\x13")
        for _ in range(4):
            time.sleep(0.5)  # the next picture is due in between
            with urllib.request.urlopen(f"{url}/healthz", context=unchecked, timeout=10) as answer:
                assert answer.read() == b"ok"
        process.send_signal(signal.SIGTERM)
        wait_until_nobody_listens(url)
        os.write(terminal, b"\x11")
        text = read_until(terminal, lambda _: False, text)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert text.rstrip().endswith("stopped")


def wait_until_nobody_listens(url: str) -> None:
    host, _, port = url.removeprefix("https://").rpartition(":")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=PATIENCE_S).close()
        except ConnectionRefusedError:
            return
        assert time.monotonic() < deadline, f"{url} is still served"
        time.sleep(0.05)


def test_plain_lines_on_request(tmp_path: Path) -> None:
    """With --no-color nothing is redrawn and there are no control sequences."""
    process, terminal = on_a_terminal(tmp_path, "--no-color")
    try:
        text = read_until(terminal, lambda text: "try " in text)
        process.send_signal(signal.SIGTERM)
        text = read_until(terminal, lambda _: False, text)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert "\x1b" not in text
    assert text.startswith("Kubernetes API")
