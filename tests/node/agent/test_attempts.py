"""Containers as processes: how they end, what they leave, and that nobody starts one twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from drayman.node.agent import shim
from drayman.node.agent.attempts import PROGRAM, Attempt, DeviceFile, Launch, may_mount
from drayman.node.agent.executing import run_inside

ENV = {"PATH": "/usr/bin:/bin", "WORD": "hello"}


@dataclass(frozen=True)
class Case:
    says: str
    argv: tuple[str, ...]
    code: int
    out: tuple[str, ...] = ()
    failure: str = ""


CASES = [
    Case("an exit code is kept", ("sh", "-c", "exit 7"), 7),
    Case(
        "both streams are in the log, each line with its stream",
        ("sh", "-c", "echo $WORD; echo bad >&2"),
        0,
        ("stdout F hello", "stderr F bad"),
    ),
    Case("a line without an end is marked", ("printf", "x"), 0, ("stdout P x",)),
    Case("a signal counts from 128", ("sh", "-c", "kill -KILL $$"), 137),
    Case(
        "a program that is not there is named",
        ("no-such-program",),
        128,
        failure="no-such-program: No such file or directory",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
async def test_ends(case: Case, tmp_path: Path) -> None:
    """Each case says what holds."""
    attempt = Attempt(tmp_path / "0")
    attempt.start(Launch(argv=case.argv, env=ENV))
    ended = await attempt.wait()
    assert (ended.code, ended.failure) == (case.code, case.failure)
    assert sorted(lines(attempt)) == sorted(case.out)


def lines(attempt: Attempt) -> list[str]:
    """The log without its times."""
    return [line.partition(" ")[2] for line in attempt.log.read_text().splitlines()]


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


async def started(folder: Path, script: str) -> Attempt:
    """A container that has said something."""
    attempt = Attempt(folder / "0")
    attempt.start(Launch(argv=("sh", "-c", script), env=ENV))
    await until(lambda: attempt.log.exists() and attempt.log.read_text())
    return attempt


async def test_is_found_again(tmp_path: Path) -> None:
    """Somebody who did not start a container can see that it runs, stop it, and learn how it ended."""
    await started(tmp_path, "echo up; sleep 1000")
    found = Attempt(tmp_path / "0")
    assert found.settle() is None
    found.signal(signal.SIGTERM)
    ended = await found.wait()
    assert (ended.code, ended.signal) == (143, 15)
    assert found.settle() == ended


async def test_nothing_outlives_the_first_process(tmp_path: Path) -> None:
    """What a container starts ends with it, even what has left its session."""
    attempt = await started(tmp_path, "setsid sleep 1001 & echo $!; sleep 0.1")
    await attempt.wait()
    pid = int(lines(attempt)[0].split()[-1])
    assert not Path(f"/proc/{pid}").exists()


async def test_given_up_before_its_shim_came(tmp_path: Path) -> None:
    """A shim that comes after an attempt was settled starts nothing."""
    folder = tmp_path / "0"
    (folder / "root").mkdir(parents=True)
    attempt = Attempt(folder)
    ended = attempt.settle()
    assert ended is not None
    assert ended.began == ""
    subprocess.run((*PROGRAM, str(folder)), check=True, timeout=20)
    assert not (folder / "child").exists()


async def test_a_killed_shim_takes_its_container_with_it(tmp_path: Path) -> None:
    """When the shim is killed, whoever asks next ends what is left."""
    attempt = await started(tmp_path, "echo up; sleep 1002")
    pid = attempt.pid
    assert pid is not None
    os.kill(int((attempt.folder / "shim").read_text()), signal.SIGKILL)
    ended = await attempt.wait()
    assert ended.code == 137
    await until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not may_mount(), reason="this machine permits no mount namespaces")
async def test_own_root(tmp_path: Path) -> None:
    """Mounts appear where they are wanted, /dev has what belongs to the container, and the host sees none of it."""
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "file").write_text("content\n")
    where = "/nowhere-on-the-host/deep"
    script = f"cat {where}/file; echo more > {where}/new || echo refused; ls /dev/given; ls /dev; sleep 1003"
    attempt = Attempt(tmp_path / "0")
    attempt.start(
        Launch(
            argv=("sh", "-c", script),
            env=ENV,
            own_root=True,
            binds=((str(volume), where, True),),
            devices=(DeviceFile("/dev/given", "/dev/null"),),
        )
    )
    await until(lambda: attempt.log.exists() and "F zero" in attempt.log.read_text())
    said = [line.partition(" F ")[2] for line in lines(attempt) if line.startswith("stdout")]
    assert said[0] == "content"
    assert "refused" in said
    assert "/dev/given" in said
    assert set(said[said.index("/dev/given") + 1 :]) <= {
        *shim.USUAL_DEVICES,
        *shim.DEVICE_LINKS,
        *("shm", "given"),
    }
    assert not Path("/nowhere-on-the-host").exists()
    inside = await run_inside(attempt, ("cat", f"{where}/file"))
    assert (inside.code, inside.text) == (0, "content")
    attempt.signal(signal.SIGKILL)
    await attempt.wait()
