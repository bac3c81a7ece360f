"""Commands in a container: they are what the container is, and whoever gives them up ends them."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drayman.node.agent.processes.attempts import Attempt, Launch, may_mount
from drayman.node.agent.processes.conversing import run_on_pipes
from drayman.node.agent.processes.executing import Result, command_inside, run_inside
from node.agent.world import attempted, marked
from node.streams.talking import Collected
from patience import PATIENCE_S

ENV = {"PATH": "/usr/bin:/bin"}
FOREVER = ("sh", "-c", "id -G; exec sleep 1006")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@asynccontextmanager
async def living(folder: Path, launch: Launch) -> AsyncIterator[Attempt]:
    """A container that has said which groups it is in, and runs until the context is left."""
    async with attempted(folder, launch) as attempt, asyncio.timeout(PATIENCE_S):
        while not (attempt.log.exists() and attempt.log.read_text()):
            await asyncio.sleep(0.01)
        yield attempt


@dataclass(frozen=True)
class Case:
    says: str
    want: set[int]
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    agent: list[int] = field(default_factory=lambda: [0, 4720])
    """The groups of the agent."""


GROUPS = [
    Case("the agent's, where nothing is said", {0, 4720}),
    Case("another user has none of the agent's", {0}, user=4712),
    Case("another group has none of the agent's", {4713}, group=4713),
    Case("its own", {4713, 4711}, user=4712, group=4713, groups=(4711,)),
    Case("more groups, for the same user", {0, 4711}, groups=(4711,)),
]


@pytest.fixture
def agent_groups() -> Iterator[None]:
    before = os.getgroups()
    yield
    os.setgroups(before)


@needs_root
@pytest.mark.usefixtures("agent_groups")
@pytest.mark.parametrize("case", GROUPS, ids=lambda case: case.says)
async def test_groups(case: Case, tmp_path: Path) -> None:
    """Each case says which groups a container is in, and a command in it is in the same."""
    os.setgroups(case.agent)
    launch = Launch(argv=FOREVER, env=ENV, user=case.user, group=case.group, groups=case.groups)
    async with living(tmp_path / "0", launch) as attempt:
        said = attempt.log.read_text().split(" ", 3)[3]
        inside = await run_inside(attempt, ("id", "-G"))
    assert {int(word) for word in said.split()} == case.want
    assert {int(word) for word in inside.text.split()} == case.want


async def test_the_environment_is_the_commands_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No variable of a container means anything to the process that takes a command inside, which is the agent's."""
    said = {
        "DRAYMAN_TERMINAL": "x",
        "DRAYMAN_USER": "1",
        "LD_LIBRARY_PATH": "/nowhere",
        "PYTHONHOME": "/nowhere",
    }
    for name in said:
        monkeypatch.delenv(name, raising=False)  # machines with GPUs may have the one for libraries
    async with living(tmp_path / "0", Launch(argv=FOREVER, env={**ENV, **said})) as attempt:
        _, outside = command_inside(attempt, ("true",))
        inside = await run_inside(attempt, ("env",))
    assert not said.keys() & outside.keys()
    assert inside.code == 0
    assert set(inside.text.splitlines()) >= {f"{name}={value}" for name, value in said.items()}


async def test_a_command_with_process_groups_of_its_own(tmp_path: Path) -> None:
    """Whoever gives it up gets away, and everything that it has started ends."""
    mark = tmp_path.name
    script = "timeout 1007 sleep 1007; echo never"
    async with (
        asyncio.timeout(PATIENCE_S),
        living(tmp_path / "0", Launch(argv=FOREVER, env={**ENV, "MARK": mark})) as attempt,
    ):
        alone = set(marked(attempt.folder, mark))
        command = asyncio.create_task(run_inside(attempt, ("sh", "-c", script)))
        while not any(_runs_sleep(pid) for pid in set(marked(attempt.folder, mark)) - alone):
            await asyncio.sleep(0.01)
        command.cancel()
        await asyncio.wait((command,))
        assert command.cancelled()
        assert set(marked(attempt.folder, mark)) == alone


def _runs_sleep(pid: int) -> bool:
    path = Path(f"/proc/{pid}/cmdline")
    return path.exists() and path.read_bytes().startswith(b"sleep\0")


async def test_what_goes_on_in_the_background(tmp_path: Path) -> None:
    """A command has ended when its first process has, whoever still has its output open."""
    async with (
        asyncio.timeout(PATIENCE_S),
        living(tmp_path / "0", Launch(argv=FOREVER, env=ENV)) as attempt,
    ):
        done = await run_inside(attempt, ("sh", "-c", "sleep 1008 & echo $!"))
        assert done.code == 0
        os.kill(int(done.text), 9)


async def test_a_client_that_leaves(tmp_path: Path) -> None:
    """It is let go, though something has left the session of its command and has its streams."""
    script = "setsid sh -c 'echo $$; exec sleep 1011' & wait"
    async with (
        asyncio.timeout(PATIENCE_S),
        living(tmp_path / "0", Launch(argv=FOREVER, env=ENV)) as attempt,
    ):
        streams = Collected()
        client = asyncio.create_task(
            run_on_pipes(*command_inside(attempt, ("sh", "-c", script)), streams)
        )
        while not streams.output.endswith(b"\n"):
            await asyncio.sleep(0.01)
        client.cancel()
        try:
            await asyncio.wait((client,))
        finally:
            os.kill(int(streams.output), 9)


async def test_a_client_that_leaves_while_its_command_is_started(tmp_path: Path) -> None:
    """In whatever moment it does, nothing that was opened for it stays open."""
    async with (
        asyncio.timeout(PATIENCE_S),
        living(tmp_path / "0", Launch(argv=FOREVER, env=ENV)) as attempt,
    ):
        await run_inside(attempt, ("true",))
        before = set(os.listdir("/proc/self/fd"))
        for moments in range(8):
            command = asyncio.create_task(run_inside(attempt, ("sleep", "1012")))
            for _ in range(moments):
                await asyncio.sleep(0)
            command.cancel()
            await asyncio.wait((command,))
            assert command.cancelled()
            del command
            await asyncio.sleep(0)  # transports close their files then
            gc.collect()  # what nobody has closed says so
        assert set(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("sh", "-c", "exit 3"), 3),
        (("sh", "-c", "kill -PIPE $$"), 141),
        (("no-such-program",), 127),
        (("/",), 126),
    ],
)
async def test_exit_codes(command: tuple[str, ...], code: int, tmp_path: Path) -> None:
    """They are those of a shell, also of commands that end by a signal or are none."""
    async with living(tmp_path / "0", Launch(argv=FOREVER, env=ENV)) as attempt:
        assert (await run_inside(attempt, command)).code == code


@pytest.mark.parametrize(
    ("program", "code", "why"),
    [
        ("nope", 127, "executable file not found in $PATH"),
        ("", 127, "executable file not found in $PATH"),
        ("/no/such", 127, "stat /no/such: no such file or directory"),
        ("/etc/passwd", 126, "permission denied"),
    ],
)
async def test_a_program_that_cannot_be_run(
    program: str, code: int, why: str, tmp_path: Path
) -> None:
    """It is said in the words of a container runtime."""
    async with living(tmp_path / "0", Launch(argv=FOREVER, env=ENV)) as attempt:
        assert await run_inside(attempt, (program,)) == Result(code, f'exec: "{program}": {why}')


async def test_a_container_that_has_ended(tmp_path: Path) -> None:
    """Its pid may be somebody else's by now, who is left alone."""
    async with living(tmp_path / "0", Launch(argv=FOREVER, env=ENV)) as attempt:
        pid, started, began = (attempt.folder / "child").read_text().split()
        (attempt.folder / "child").write_text(f"{pid} {int(started) - 1} {began}")
        try:
            done = await run_inside(attempt, ("echo", "inside"))
        finally:
            (attempt.folder / "child").write_text(f"{pid} {started} {began}")
    assert done.code == 126
    assert done.text.endswith("the container has ended")


AGAIN = "echo out > /dev/stdout; echo err > /dev/stderr; id -u"
"""Files that a process has are opened again by their names."""


@needs_root
@pytest.mark.parametrize("own_root", [False, True], ids=["the host's files", "its own root"])
async def test_another_user_opens_its_streams_again(own_root: bool, tmp_path: Path) -> None:
    """That of a container, and that of a command in it."""
    if own_root and not may_mount():
        pytest.skip("this machine permits no mount namespaces")
    argv = ("sh", "-c", f"{AGAIN}; exec sleep 1013")
    launch = Launch(argv=argv, env=ENV, own_root=own_root, user=4712, group=4713)
    async with asyncio.timeout(PATIENCE_S), attempted(tmp_path / "0", launch) as attempt:
        while not (attempt.log.exists() and "4712" in attempt.log.read_text()):
            await asyncio.sleep(0.01)
        said = sorted(line.split(" ", 1)[1] for line in attempt.log.read_text().splitlines())
        assert said == ["stderr F err", "stdout F 4712", "stdout F out"]
        assert await run_inside(attempt, ("sh", "-c", AGAIN)) == Result(0, "out\nerr\n4712")
        streams = Collected()
        command = command_inside(attempt, ("sh", "-c", AGAIN))
        assert await run_on_pipes(*command, streams) == 0
        assert (streams.output, streams.errors) == (b"out\n4712\n", b"err\n")


@needs_root
async def test_another_user_gets_no_device_of_the_machine(tmp_path: Path) -> None:
    """The input of most containers is /dev/null, which is everybody's."""
    before = os.stat("/dev/null").st_uid
    launch = Launch(argv=FOREVER, env=ENV, user=4712)
    async with living(tmp_path / "0", launch) as attempt:
        assert (await run_inside(attempt, ("true",))).code == 0
        assert os.stat("/dev/null").st_uid == before
