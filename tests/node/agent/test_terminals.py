"""Commands on terminals of a real node, as kubectl asks for them."""

from __future__ import annotations

import asyncio
import gc
import os
import pty
import shutil
import signal
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from drayman.node.agent.processes import sessions, terminals
from drayman.node.agent.processes.attempts import may_mount
from drayman.node.agent.processes.sessions import end_session, processes_of
from drayman.node.agent.processes.terminals import on_terminal
from node.agent.test_serving import served
from node.agent.world import World, container, running, world
from node.streams.talking import Collected
from patience import PATIENCE_S

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")


@dataclass
class Screen:
    """A user at a terminal with kubectl."""

    process: asyncio.subprocess.Process
    terminal: int
    text: str = ""
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    def readable(self) -> None:
        with suppress(OSError):
            if data := os.read(self.terminal, 65536):
                self.text += data.decode("utf-8", "replace")
                self._more.set()
                return
        asyncio.get_running_loop().remove_reader(self.terminal)
        self._more.set()

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    async def shows(self, text: str) -> None:
        """Returns when a text has appeared."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while text not in self.text:
                    await self._more.wait()
                    self._more.clear()
        except TimeoutError:
            raise AssertionError(f"{text!r} does not appear: {self.text!r}") from None

    def resize(self, columns: int, lines: int) -> None:
        termios.tcsetwinsize(self.terminal, (lines, columns))
        self.process.send_signal(signal.SIGWINCH)


@asynccontextmanager
async def screen(here: World, *words: str, **env: str) -> AsyncIterator[Screen]:
    near, far = pty.openpty()
    termios.tcsetwinsize(far, (24, 80))
    process = await asyncio.create_subprocess_exec(
        *("kubectl", "--kubeconfig", str(here.cluster.kubeconfig), *words),
        stdin=far,
        stdout=far,
        stderr=far,
        env={**os.environ, **env},
        start_new_session=True,
    )
    os.close(far)
    os.set_blocking(near, False)
    found = Screen(process, near)
    loop = asyncio.get_running_loop()
    loop.add_reader(near, found.readable)
    try:
        yield found
    finally:
        loop.remove_reader(near)
        os.close(near)
        if process.returncode is None:
            process.kill()
        await process.wait()


WAITS = "while :; do sleep 1; done"


async def test_a_shell_on_a_terminal() -> None:
    """It has a prompt, the size of the client's window also when that changes, job control, and an exit code."""
    async with (
        world() as here,
        served(here),
        running(here, container(WAITS)),
        screen(here, "exec", "-it", "p", "--", "sh", "-i") as shown,
    ):
        # The size comes a moment after the shell, as with a kubelet.
        shown.type(
            "until [ \"$(stty size)\" = '24 80' ]; do :; done; echo at $(tty) $(stty size)\n"
        )
        await shown.shows("at /dev/pts/")
        shown.resize(100, 30)
        shown.type("until [ \"$(stty size)\" = '30 100' ]; do :; done; echo now $(stty size)\n")
        await shown.shows("now 30 100")
        # By one process, which has the terminal by the time it says so: an interrupt before that is the shell's.
        shown.type("sh -c \"echo co''pying; exec cat\"\n")
        await shown.shows("copying")
        shown.type("\x03")
        # The shell's own new line: what is typed before it may still be read by the process that is about to end.
        await shown.shows("^C\r\n")
        shown.type("echo inter''rupted\n")
        await shown.shows("interrupted")
        shown.type("exit 5\n")
        async with asyncio.timeout(PATIENCE_S):
            await shown.process.wait()
        assert shown.process.returncode == 5


@pytest.mark.parametrize("leaves", ["killed", "hung up"])
async def test_a_client_that_leaves_takes_its_processes_with_it(
    leaves: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They get SIGHUP; one that ignores it is killed, also in a process group of its own."""
    # Enough for a shell on a slow machine to act on the signal.
    monkeypatch.setattr(sessions, "end_session", partial(end_session, grace_s=6.0))
    async with world() as here, served(here), running(here, container(WAITS)):
        script = f"set -m; trap 'echo hung up > {tmp_path}/said' HUP; (trap '' HUP; sleep 1000) & echo shell $$; wait; wait"
        async with screen(here, "exec", "-it", "p", "--", "sh", "-c", script) as shown:
            await shown.shows("shell ")
            await shown.shows("\n")
            session = int(shown.text.partition("shell ")[2].split()[0])
            assert len(await processes_of(session)) >= 2
            if leaves == "killed":
                shown.process.kill()
        async with asyncio.timeout(PATIENCE_S):
            while await processes_of(session):
                await asyncio.sleep(0.05)
        assert (tmp_path / "said").read_text() == "hung up\n"


@pytest.mark.skipif(not may_mount(), reason="mount namespaces are not permitted")
async def test_terminals_work_in_a_root_of_its_own() -> None:
    """The terminal of a command is there under its name, and new ones can be opened."""
    waits = container(WAITS, volumeMounts=[{"name": "v", "mountPath": "/of-the-pod"}])
    volumes = [{"name": "v", "emptyDir": {}}]
    async with world() as here, served(here), running(here, waits, volumes=volumes):
        script = "ls -d /of-the-pod; echo by name > $(tty); echo by itself > /dev/tty; script -qc 'tty' /dev/null; exit 3"
        async with screen(here, "exec", "-it", "p", "--", "sh", "-c", script) as shown:
            async with asyncio.timeout(PATIENCE_S):
                await shown.process.wait()
            await shown.shows("/dev/pts/")
            assert shown.process.returncode == 3
        for text in ("/of-the-pod", "by name", "by itself"):
            assert text in shown.text


async def test_all_of_a_long_output_arrives() -> None:
    """Also what was still on its way when the command ended."""
    async with (
        world() as here,
        served(here),
        running(here, container(WAITS)),
        screen(here, "exec", "-it", "p", "--", "seq", "1", "200000") as shown,
    ):
        await shown.shows("200000\r\n")
        assert shown.text.split() == [str(number) for number in range(1, 200001)]


SPEAKS_AND_ENDS = """
import os, pty, socket, sys
near, far = pty.openpty()
socket.send_fds(socket.socket(fileno=int(sys.argv[1])), [b"."], [near])
os.write(far, b"said")
"""


async def test_what_a_command_said_that_ended_before_anybody_listened_arrives() -> None:
    """The end of a terminal is an error for who reads it, and does not overtake the output."""

    def command(*, receiver: int) -> tuple[tuple[str, ...], dict[str, str]]:
        return (sys.executable, "-c", SPEAKS_AND_ENDS, str(receiver)), dict(os.environ)

    client = Collected()
    async with on_terminal(command) as (process, terminal):
        await process.wait()
        for _ in range(10):  # turns of the loop, in which it reads all that there is
            await asyncio.sleep(0)
        await terminal.pass_output(client)
    assert client.output == b"said"


HANGS_ON = """
import os, pty, signal, socket, sys, time
signal.signal(signal.SIGHUP, signal.SIG_IGN)
near, far = pty.openpty()
socket.send_fds(socket.socket(fileno=int(sys.argv[1])), [b"x"], [near])
time.sleep(1013)
"""


@pytest.mark.parametrize("opened", ["_Input", "Output"])
async def test_a_client_that_leaves_while_its_terminal_is_opened(
    opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command ends, also one that does not mind that a terminal hangs up, and nothing stays open."""

    def command(*, receiver: int) -> tuple[tuple[str, ...], dict[str, str]]:
        return (sys.executable, "-c", HANGS_ON, str(receiver)), dict(os.environ)

    def leaves(*arguments: object) -> object:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return made(*arguments)

    async def client() -> None:
        async with on_terminal(command):
            raise AssertionError("the terminal has been opened")

    made = getattr(terminals, opened)
    monkeypatch.setattr(terminals, opened, leaves)
    before = set(os.listdir("/proc/self/fd"))
    task = asyncio.create_task(client())
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait((task,))
    assert task.cancelled()
    del task
    await asyncio.sleep(0)  # transports close their files then
    gc.collect()  # what nobody has closed says so
    assert set(os.listdir("/proc/self/fd")) <= before
    children = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
    assert not any(b"1013" in Path("/proc", each, "cmdline").read_bytes() for each in children)
