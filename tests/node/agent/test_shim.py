"""The process that looks after a container: what it is made of, and what it leaves when it is killed."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import drayman
from drayman.node.agent.processes import window_sizes
from drayman.node.agent.processes.attempts import KILLED, PROGRAM, Attempt, Launch
from node.agent.world import marked
from patience import PATIENCE_S
from rounds import rounds

SOURCE = Path(drayman.__file__).parents[1]
ENV = {"PATH": "/usr/bin:/bin"}


def forever(mark: str) -> Launch:
    """A container that can be told by a mark from everything else that runs."""
    return Launch(argv=("sh", "-c", "echo up; exec sleep 1005"), env={**ENV, "MARK": mark})


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def mark(tmp_path: Path) -> str:
    return f"{tmp_path.name}-{secrets.token_hex(4)}"


def test_it_imports_nothing_but_the_standard_library() -> None:
    """There is one for each container, so it is small; of its package it has the modules beside it."""
    listing = f"import sys; sys.path.append({str(SOURCE)!r}); sys.argv[1:] = ['--check']\n"
    listing += f"import runpy; runpy.run_path({PROGRAM[-1]!r}); print(*sys.modules)"
    done = subprocess.run(
        (*PROGRAM[:-1], "-c", listing), capture_output=True, text=True, check=True
    )
    found = {name for name in done.stdout.split() if not name.startswith("__")}
    beside = "drayman.node.agent.processes"
    foreign = {
        name
        for name in found
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not name.startswith(f"{beside}.")
        and not beside.startswith(name)
    }
    assert f"{beside}.attaching" in found
    assert foreign == set()


def test_sizes_that_cannot_be() -> None:
    """They are not passed on, and others arrive as they are."""
    assert window_sizes.packed(0, 24) is None
    assert window_sizes.packed(80, 0x10000) is None
    assert window_sizes.PACKED.unpack(window_sizes.packed(80, 24) or b"") == (24, 80)


async def test_a_shim_that_ends_before_it_says_whom_it_started(tmp_path: Path, mark: str) -> None:
    """No container is left that nobody knows, and the attempt counts as one that never began."""
    folder = tmp_path / "0"
    (folder / "root").mkdir(parents=True)
    (folder / "start.json").write_bytes(msgspec.json.encode(forever(mark)))
    (folder / "child.new").mkdir()  # so that `child` cannot be written
    try:
        done = subprocess.run(
            (*PROGRAM, str(folder)), capture_output=True, check=False, timeout=PATIENCE_S
        )
        assert b"IsADirectoryError" in done.stderr
        ended = await Attempt(folder).wait()
        assert (ended.code, ended.began) == (KILLED, "")
        await until(lambda: not marked(folder, mark))
    finally:
        for pid in marked(folder, mark):
            os.kill(pid, signal.SIGKILL)


async def test_a_shim_that_is_killed_at_any_moment(tmp_path: Path, mark: str) -> None:
    """Whoever asks next learns that it has ended, and nothing of the container runs on."""
    chance = random.Random(29)
    for number in range(rounds(10)):
        attempt = Attempt(tmp_path / str(number))
        attempt.start(forever(mark))
        moment = chance.choice(("lock", "shim", "attach", "child", "log"))
        await until((attempt.folder / moment).exists)
        (shim,) = [pid for pid in marked(attempt.folder, mark) if parent(pid) == os.getpid()]
        os.kill(shim, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            ended = await attempt.wait()
        assert ended.code == KILLED
        await until(lambda: not marked(attempt.folder, mark))  # noqa: B023


async def test_a_lock_that_is_held_a_moment_longer(tmp_path: Path) -> None:
    """Whoever waits for the end of an attempt keeps nobody else waiting, though its shim has ended."""
    gone = subprocess.Popen(("true",))
    gone.wait()
    (tmp_path / "shim").write_text(str(gone.pid))
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    waiting = asyncio.create_task(Attempt(tmp_path).wait())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    os.close(lock)
    async with asyncio.timeout(PATIENCE_S):
        assert (await waiting).code == KILLED


_TRACER = """
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) < 0:
    sys.exit("not permitted")
print("traced", flush=True)
time.sleep(1000)
"""
"""Attaches to a process (PTRACE_SEIZE) and never looks at it again, so that its parent does not learn of its end."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may trace what it has not started")
async def test_a_stray_that_a_debugger_holds(tmp_path: Path, mark: str) -> None:
    """A container ends although a process that it has left behind cannot be reaped; the log of its shim says so."""
    attempt = Attempt(tmp_path / "0")
    script = "setsid sleep 1005 & echo $! > $FILE; while [ ! -e $FILE.go ]; do sleep 0.01; done"
    file = tmp_path / "stray"
    env = {**ENV, "MARK": mark, "FILE": str(file)}
    attempt.start(Launch(argv=("sh", "-c", script), env=env))
    await until(lambda: file.exists() and file.read_text().endswith("\n"))
    stray = int(file.read_text())
    tracer = subprocess.Popen(
        [sys.executable, "-c", _TRACER, str(stray)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == "traced\n"
        Path(f"{file}.go").touch()
        async with asyncio.timeout(PATIENCE_S):
            ended = await attempt.wait()
    finally:
        tracer.kill()
        tracer.communicate()
    assert (ended.code, ended.failure) == (0, "")
    assert f"left behind: [{stray}]" in (attempt.folder / "shim-errors").read_text()
