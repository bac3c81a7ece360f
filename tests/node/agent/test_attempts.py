"""Containers as processes: how they end, what they leave, and that nobody starts one twice."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from drayman.node.agent.processes import attempts, roots, shim
from drayman.node.agent.processes.attempts import (
    PROGRAM,
    Attempt,
    Bind,
    DeviceFile,
    Launch,
    may_mount,
)
from drayman.node.agent.processes.executing import run_inside
from node.agent.world import alive, attempted
from patience import PATIENCE_S

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


async def test_a_signal_is_for_the_first_process(tmp_path: Path) -> None:
    """As with container runtimes: what it tells its children is its own business."""
    child = "trap 'echo told' TERM; trap over=1 USR1; echo up; until [ $over ]; do sleep 0.02; done"
    script = 'sh -c "$CHILD" & trap "kill -USR1 $!; wait; echo over; exit 4" TERM; wait'
    launch = Launch(argv=("sh", "-c", script), env={**ENV, "CHILD": child})
    async with asyncio.timeout(PATIENCE_S), attempted(tmp_path / "0", launch) as attempt:
        await until(lambda: attempt.log.exists() and attempt.log.read_text())
        attempt.signal(signal.SIGTERM)
        ended = await attempt.wait()
    assert ended.code == 4
    assert lines(attempt) == ["stdout F up", "stdout F over"]


async def test_nothing_is_left_of_a_start_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not count as an attempt when it is tried again."""
    folder = tmp_path / "main"
    monkeypatch.setattr(attempts, "PROGRAM", (str(tmp_path / "none"),))
    with pytest.raises(FileNotFoundError):
        Attempt(folder / "0").start(Launch(argv=("true",), env=ENV))
    assert attempts.attempts_of(folder) == []


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
    subprocess.run((*PROGRAM, str(folder)), check=True, timeout=PATIENCE_S)
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


@contextmanager
def full_disk() -> Iterator[None]:
    """Nothing can be written to files, as if there were no room for it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_an_end_that_cannot_be_written_down(tmp_path: Path) -> None:
    """It is known all the same, so that a pod can end when the disk is full; who asks later, writes it down."""
    attempt = await started(tmp_path, "echo up; sleep 1002")
    os.kill(int((attempt.folder / "shim").read_text()), signal.SIGKILL)
    found = None
    while found is None:
        with full_disk():
            found = attempt.settle()
        await asyncio.sleep(0.01)
    assert found.code == 137
    assert sorted(each.name for each in attempt.folder.glob("*exit*")) == []
    ended = await attempt.wait()
    assert ended.code == 137
    assert (attempt.folder / "exit").exists()


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of its own, which can be filled."""
    folder.mkdir()
    mounted = subprocess.run(
        ("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)),
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("this machine permits no mounts")
    try:
        yield
    finally:
        subprocess.run(("umount", "-l", str(folder)), check=True)


def fill(path: Path) -> None:
    """Leave no room where a file is made."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(1024)):
            pass
    assert os.statvfs(path.parent).f_bfree == 0


async def test_an_end_while_the_disk_is_full(tmp_path: Path) -> None:
    """It is told as it was: the room for it was kept from the start."""
    disk = tmp_path / "disk"
    script = f"echo up; until [ -e {tmp_path}/go ]; do sleep 0.02; done; exit 3"
    with small_disk(disk):
        attempt = await started(disk, script)
        fill(disk / "filler")
        (tmp_path / "go").touch()
        async with asyncio.timeout(PATIENCE_S):
            ended = await attempt.wait()
        assert (ended.code, ended.signal, ended.failure) == (3, 0, "")
        assert Attempt(attempt.folder).settle() == ended


async def test_an_end_with_a_long_reason(tmp_path: Path) -> None:
    """Longer than the room that is kept for it, it is told all the same."""
    program = "/" + "/".join(["é" * 100] * 10)
    attempt = Attempt(tmp_path / "0")
    attempt.start(Launch(argv=(program,), env=ENV))
    ended = await attempt.wait()
    assert len((attempt.folder / "exit").read_bytes()) > shim.END_BYTES
    assert ended.failure == f"{program}: No such file or directory"


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
            binds=(Bind(str(volume), where, read_only=True),),
            devices=(
                DeviceFile("/dev/given", "/dev/null"),
                DeviceFile("/none-on-the-host/given", "/dev/null"),
            ),
        )
    )
    try:
        await until(lambda: attempt.log.exists() and "F zero" in attempt.log.read_text())
        said = [line.partition(" F ")[2] for line in lines(attempt) if line.startswith("stdout")]
        assert said[0] == "content"
        assert "refused" in said
        assert "/dev/given" in said
        assert set(said[said.index("/dev/given") + 1 :]) <= {
            *roots.USUAL_DEVICES,
            *roots.DEVICE_LINKS,
            *("pts", "shm", "given"),
        }
        assert not Path("/nowhere-on-the-host").exists()
        assert not Path("/none-on-the-host").exists()
        inside = await run_inside(attempt, ("cat", f"{where}/file"))
        assert (inside.code, inside.text) == (0, "content")
    finally:
        attempt.signal(signal.SIGKILL)
        await attempt.wait()


async def test_a_container_is_followed_again_when_that_is_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A node that has no descriptors left for a moment does not lose its containers; it says so once."""
    calls = 0

    def refuses(pid: int) -> int:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return really(pid)

    really = os.pidfd_open
    monkeypatch.setattr(os, "pidfd_open", refuses)
    monkeypatch.setattr(attempts, "_LOOK_AGAIN_S", 0.01)
    attempt = Attempt(tmp_path / "0")
    attempt.start(Launch(argv=("sh", "-c", "exit 7"), env=ENV))
    assert (await attempt.wait()).code == 7
    assert [each.getMessage() for each in caplog.records] == [
        f"{tmp_path}/0 cannot be followed for a moment: [Errno 24] Too many open files"
    ]


@pytest.mark.parametrize("is_inherited", [True, False])
def test_a_container_that_never_began_is_lost_to_a_later_agent_alone(
    tmp_path: Path, is_inherited: bool
) -> None:
    """The agent that has made it may have reported how it ended, and nobody can take that back."""
    attempt = Attempt(tmp_path)
    first = attempt.settle(is_inherited=is_inherited)
    assert first is not None
    assert (first.code, first.began, first.is_lost) == (137, "", is_inherited)
    assert Attempt(tmp_path).settle(is_inherited=True) == first


async def test_a_container_whose_folder_is_gone_counts_as_killed(tmp_path: Path) -> None:
    """Nobody can tell what became of it, and its pod must be able to end."""
    ended = await Attempt(tmp_path / "0").wait()
    assert (ended.code, ended.failure) == (137, f"{tmp_path}/0 is gone")


def may_make_devices() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "null")
        try:
            os.mknod(made, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            made.write_text("")
        except OSError:
            return False
    return True


@pytest.mark.skipif(not may_make_devices(), reason="device files cannot be made and used here")
@pytest.mark.parametrize("has_image", [False, True])
async def test_a_container_uses_the_devices_that_it_is_given_alone(
    tmp_path: Path, has_image: bool
) -> None:
    """Also one that makes a device file itself, as NVIDIA's libraries do for root; one that is not on the host is made for it."""
    usable = "(: > {0}) 2>/dev/null && echo {0} is usable"
    script = "; ".join(
        (
            "mknod /dev/made c 1 3 && test -c /dev/made",
            *(usable.format(path) for path in ("/dev/made", "/dev/given", "/dev/null")),
            "stat -c %a,%t,%T /dev/given",
        )
    )
    image = tmp_path / "image"
    for name in ("usr", "lib", "lib64", "bin"):
        (image / name).mkdir(parents=True)
    binds = [Bind(f"/{name}", f"/{name}") for name in ("usr", "lib", "lib64", "bin")]
    given = DeviceFile("/dev/given", "/dev/none-on-the-host", major=1, minor=3, mode=0o606)
    attempt = Attempt(tmp_path / "0")
    attempt.start(
        Launch(
            argv=("sh", "-c", script),
            env=ENV,
            own_root=True,
            binds=tuple(binds) if has_image else (),
            devices=(given,),
            image_root=str(image) if has_image else "",
            is_writable=has_image,
        )
    )
    ended = await attempt.wait()
    assert [line.partition(" F ")[2] for line in lines(attempt)] == [
        "/dev/given is usable",
        "/dev/null is usable",
        "606,1,3",
    ]
    assert ended.code == 0


@pytest.mark.skipif(not may_make_devices(), reason="device files cannot be made and used here")
async def test_a_device_belongs_to_whom_its_driver_says(tmp_path: Path) -> None:
    """Also one that is on the host, where it stays as it is, and one in a folder that is mounted anew."""
    mine = DeviceFile("/dev/mine", "/dev/null", "c", 1, 3, 0o600, uid=1000, gid=1001)
    shared = DeviceFile("/dev/shm/shared", "/dev/none-on-the-host", "c", 1, 3)
    script = "stat -c %a,%u,%g,%t,%T /dev/mine /dev/null /dev/shm/shared; ls -A /dev/shm"
    attempt = Attempt(tmp_path / "0")
    argv = ("sh", "-c", script)
    attempt.start(Launch(argv=argv, env=ENV, own_root=True, devices=(mine, shared)))
    await attempt.wait()
    assert [line.partition(" F ")[2] for line in lines(attempt)] == [
        "600,1000,1001,1,3",
        "666,0,0,1,3",
        "666,0,0,1,3",
        "shared",
    ]


@pytest.mark.skipif(
    os.geteuid() != 0 or not may_mount(), reason="only root has folders of other users"
)
async def test_a_folder_with_a_mount_below_it_is_as_it_was(tmp_path: Path) -> None:
    """Its mode and its owner, though it is put together anew."""
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o1777)
    os.chown(home, 1000, 1001)
    bind = Bind(str(tmp_path), f"{home}/new")
    attempt = Attempt(tmp_path / "0")
    attempt.start(
        Launch(argv=("stat", "-c", "%a,%u,%g", str(home)), env=ENV, own_root=True, binds=(bind,))
    )
    await attempt.wait()
    assert lines(attempt) == ["stdout F 1777,1000,1001"]


@pytest.mark.skipif(not may_mount(), reason="mount namespaces are not permitted")
async def test_what_the_kernel_does_not_have_cannot_be_covered(tmp_path: Path) -> None:
    """A mount below /proc that covers nothing is refused by its name: the folders there change while they would be copied."""
    attempt = Attempt(tmp_path / "0")
    binds = (Bind(str(tmp_path), "/proc/driver/none/params", read_only=True),)
    attempt.start(Launch(argv=("true",), env=ENV, own_root=True, binds=binds))
    ended = await attempt.wait()
    assert ended.code == shim.START_ERROR
    assert ended.failure == (
        "/proc/driver/none/params: only what is there can be covered by a mount"
    )
