"""Containers of a real node with an input or a terminal, and those who attach to them."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import shutil
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from drayman.node.agent.processes.attaching import MOST_CLIENTS, Attached, listener, message
from drayman.node.agent.processes.attempts import Attempt, Launch
from drayman.node.agent.processes.joining import join_container
from drayman.node.streams.model import ContainerName, NodeApiError, StreamOptions
from node.agent.test_asking_the_node import asked
from node.agent.test_attempts import ENV, lines
from node.agent.test_serving import kubectl, served
from node.agent.test_terminals import WAITS, screen
from node.agent.world import NAMESPACE, attempted, container, running, world
from node.streams.talking import Collected
from patience import PATIENCE_S

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
ALL = StreamOptions(stdin=True, stdout=True, stderr=True)


class Speaking(Collected):
    """A client that says what it is told to, and stays."""

    def __init__(self) -> None:
        super().__init__()
        self.words: asyncio.Queue[bytes] = asyncio.Queue()

    async def read(self) -> bytes:
        return await self.words.get()


@needs_kubectl
async def test_input_that_is_read_once() -> None:
    """It ends with the first client, and the container goes on to its end."""
    async with world() as here, served(here):
        script = "while read line; do echo got $line; done; echo over"
        await here.pod("p", container(script, stdin=True, stdinOnce=True))
        await here.phase("p", "Running")
        code, output, _ = await kubectl(here, "attach", "-i", "-q", "p", fed="one\ntwo\n")
        assert (code, output) == (0, "got one\ngot two\nover\n")
        await here.phase("p", "Succeeded")


@needs_kubectl
async def test_a_container_on_a_terminal() -> None:
    """Its shell is found again by who attaches later, also after a restart of the agent, with the size of the window."""
    async with world() as here:
        spec = {
            "name": "main",
            "image": "host",
            "command": ["sh", "-i"],
            "stdin": True,
            "tty": True,
        }
        async with served(here):
            await here.pod("p", spec)
            await here.phase("p", "Running")
            async with screen(here, "attach", "-it", "p") as shown:
                shown.type("word=kept; echo a''t $(tty)\n")
                await shown.shows("at /dev/pts/")
                shown.process.kill()
                await shown.process.wait()
        async with served(here):
            await here.phase("p", "Running")
            async with screen(here, "attach", "-it", "p") as shown:
                shown.resize(100, 30)
                shown.type(
                    "until [ \"$(stty size)\" = '30 100' ]; do :; done; echo $wo''rd $(stty size)\n"
                )
                await shown.shows("30 100")
                shown.type("echo wo''rd: $word\n")
                await shown.shows("word: kept")
                shown.type("exit 3\n")
                async with asyncio.timeout(PATIENCE_S):
                    await shown.process.wait()
            ended = await here.phase("p", "Failed")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


@pytest.mark.parametrize("once", [True, False])
async def test_input_without_a_client_waits(once: bool, tmp_path: Path) -> None:
    """Until there is one; if it is to be read once only, a client that goes away without a word ends it, too."""
    launch = Launch(argv=("cat",), env=ENV, stdin=True, stdin_once=once)
    async with asyncio.timeout(PATIENCE_S), attempted(tmp_path / "0", launch) as attempt:
        first = await attached(attempt)
        first.sendall(message(0, b"one\n"))
        first.close()
        if not once:
            with await attached(attempt) as second:
                second.sendall(message(0, b"two\n"))
                heard = b""
                while not heard.endswith(b"two\n"):  # what the first one said may come before it
                    heard += second.recv(100)
            attempt.signal(9)
        ended = await attempt.wait()
    assert ended.code == (0 if once else 137)
    assert "".join(line[9:] for line in lines(attempt)) == ("one" if once else "onetwo")


async def test_a_client_that_leaves_while_it_is_joined(tmp_path: Path) -> None:
    """In whatever moment it does, nothing that was opened for it stays open."""
    launch = Launch(argv=("cat",), env=ENV, stdin=True)
    async with asyncio.timeout(PATIENCE_S), attempted(tmp_path / "0", launch) as attempt:
        (await attached(attempt)).close()
        before = set(os.listdir("/proc/self/fd"))
        for moments in range(20):
            joining = asyncio.create_task(join_container(attempt.folder, ALL, Collected()))
            for _ in range(moments):
                await asyncio.sleep(0)
            joining.cancel()
            await asyncio.wait((joining,))
            assert joining.cancelled()
            del joining
            await asyncio.sleep(0)  # transports close their sockets then
            gc.collect()  # what nobody has closed says so
        assert set(os.listdir("/proc/self/fd")) <= before
        attempt.signal(9)


async def test_a_client_that_leaves_while_nobody_reads_its_input(tmp_path: Path) -> None:
    """Its place is free again for another one, though the container never takes what it has said."""
    launch = Launch(argv=("sleep", "1014"), env=ENV, stdin=True)
    async with asyncio.timeout(PATIENCE_S), attempted(tmp_path / "0", launch) as attempt:
        (await attached(attempt)).close()
        before = set(os.listdir("/proc/self/fd"))
        client = Talking(b"x" * 4_000_000)
        joining = asyncio.create_task(join_container(attempt.folder, ALL, client))
        await client.has_said.wait()
        joining.cancel()
        await asyncio.wait((joining,))
        while not set(os.listdir("/proc/self/fd")) <= before:
            await asyncio.sleep(0.01)
        attempt.signal(9)


class Talking(Collected):
    """Says something, and then no more."""

    def __init__(self, said: bytes) -> None:
        super().__init__()
        self._said = said
        self.has_said = asyncio.Event()

    async def read(self) -> bytes:
        if self._said:
            said, self._said = self._said, b""
            asyncio.get_running_loop().call_later(0.2, self.has_said.set)
            return said
        await asyncio.Event().wait()
        return b""


async def test_a_shim_that_has_no_time_for_another_client(tmp_path: Path) -> None:
    """A client waits, and nobody else in the agent does."""
    place = os.open(tmp_path, os.O_RDONLY)
    path = f"/proc/self/fd/{place}/attach"
    with socket.socket(socket.AF_UNIX) as shim, ExitStack() as clients:
        shim.bind(path)
        shim.listen(0)
        with suppress(BlockingIOError):
            while True:
                client = clients.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(path)
        joining = asyncio.create_task(join_container(tmp_path, ALL, Collected()))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not joining.done()
        clients.close()
        shim.setblocking(False)
        async with asyncio.timeout(PATIENCE_S):
            while not joining.done():
                with suppress(BlockingIOError):
                    shim.accept()[0].close()
                await asyncio.sleep(0)
    os.close(place)


async def test_a_container_that_has_ended_says_so(tmp_path: Path) -> None:
    """For a moment the agent does not know it yet; the number of an error tells nobody anything."""
    with socket.socket(socket.AF_UNIX) as shim:
        place = os.open(tmp_path, os.O_RDONLY)
        shim.bind(f"/proc/self/fd/{place}/attach")
        os.close(place)
    with pytest.raises(ConnectionRefusedError) as refused:
        await join_container(tmp_path, ALL, Collected())
    assert str(refused.value) == "the container has ended"


@needs_kubectl
async def test_a_client_of_a_container_that_has_ended() -> None:
    """It is told so as a mistake of its own, and not as one of the node."""
    async with world() as here, served(here) as agent, running(here, container(WAITS)) as pod:
        attempt = agent.workers[pod["metadata"]["uid"]].containers.attempt("main")
        assert attempt is not None
        place = os.open(attempt.folder, os.O_RDONLY)
        (attempt.folder / "attach").unlink()
        with socket.socket(socket.AF_UNIX) as shim:
            shim.bind(f"/proc/self/fd/{place}/attach")
        os.close(place)
        code, _, errors = await kubectl(here, "attach", "-q", "p")
    assert (code, errors) == (1, "error: the container has ended\n")


async def attached(attempt: Attempt) -> socket.socket:
    """A client, as soon as the container is there."""
    async with asyncio.timeout(PATIENCE_S):
        while attempt.pid is None:
            await asyncio.sleep(0.01)
    found = socket.socket(socket.AF_UNIX)
    found.settimeout(60)
    place = os.open(attempt.folder, os.O_RDONLY)
    found.connect(f"/proc/self/fd/{place}/attach")
    os.close(place)
    return found


async def test_several_clients_hear_the_same(tmp_path: Path) -> None:
    """One that does not read, or sends nonsense, keeps neither the others nor the container."""
    script = "read go; seq 1 200000; echo bad >&2; echo done"
    launch = Launch(argv=("sh", "-c", script), env=ENV, stdin=True)
    clients = [Collected(), Collected([b"go\n"])]
    async with asyncio.timeout(PATIENCE_S), attempted(tmp_path / "0", launch) as attempt:
        with await attached(attempt), await attached(attempt) as mad:
            mad.sendall(b"\x00\xff\xff\xff\xff" + bytes(100))
            await asyncio.gather(*(join_container(attempt.folder, ALL, each) for each in clients))
            ended = await attempt.wait()
    assert ended.code == 0
    for each in clients:
        assert each.output.split() == [*(str(n).encode() for n in range(1, 200001)), b"done"]
        assert each.errors == b"bad\n"


@needs_kubectl
async def test_a_shell_as_a_pod() -> None:
    """`kubectl run -it` attaches to what it has made, and ends with its exit code."""
    overrides = '{"spec":{"nodeName":"node-1"}}'
    words = (
        "run",
        "p",
        "-it",
        "--rm",
        "--restart=Never",
        "--image=host",
        f"--overrides={overrides}",
    )
    async with world() as here, served(here):
        async with screen(here, *words, "--command", "--", "sh", "-i") as shown:
            await shown.shows("try pressing enter")
            shown.type("echo a''t $(tty) $(stty size)\n")
            await shown.shows("at /dev/pts/")
            shown.type("exit 3\n")
            async with asyncio.timeout(PATIENCE_S):
                await shown.process.wait()
            assert shown.process.returncode == 3
        await here.gone("p")


@needs_kubectl
@pytest.mark.skipif(shutil.which("tar") is None, reason="there is no tar")
async def test_files_are_copied_both_ways(tmp_path: Path) -> None:
    """By `kubectl cp`, which runs tar in the container."""
    there, source, back = tmp_path / "there", tmp_path / "source", tmp_path / "back"
    there.mkdir()
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "random").write_bytes(os.urandom(300_000))
    (source / "empty").touch()
    async with world() as here, served(here), running(here, container(WAITS)):
        assert (await kubectl(here, "cp", str(source), f"p:{there}/copy"))[0] == 0
        assert (await kubectl(here, "cp", f"p:{there}/copy", str(back)))[0] == 0
    for folder in (there / "copy", back):
        assert (folder / "empty").read_bytes() == b""
        assert (folder / "deep" / "random").read_bytes() == (
            source / "deep" / "random"
        ).read_bytes()


async def test_a_terminal_without_input(tmp_path: Path) -> None:
    """It has a size, but nobody is heard."""
    script = "until stty size | grep -q '30 100'; do :; done; tty"
    launch = Launch(argv=("sh", "-c", script), env=ENV, tty=True)
    async with asyncio.timeout(PATIENCE_S), attempted(tmp_path / "0", launch) as attempt:
        with await attached(attempt) as client:
            client.sendall(message(0, b"ignored\n") + message(4, b"\x00\x1e\x00\x64"))
            ended = await attempt.wait()
    assert ended.code == 0
    assert lines(attempt)[-1].startswith("stdout F /dev/pts/")


async def test_more_clients_than_a_container_takes() -> None:
    """The next one is told so, the others stay, and one that leaves makes room."""
    script = "while read line; do echo $line; done"
    async with (
        asyncio.timeout(PATIENCE_S),
        world() as here,
        served(here) as agent,
        running(here, container(script, stdin=True)) as pod,
        asked(here, agent) as node,
    ):
        name = ContainerName(NAMESPACE, "p", pod["metadata"]["uid"], "main")
        clients = [Speaking() for _ in range(MOST_CLIENTS)]
        sessions = [asyncio.create_task(node.attach(name, ALL, each)) for each in clients]
        while not all(each.output for each in clients):
            clients[0].words.put_nowait(b"here\n")
            await asyncio.sleep(0.02)
        with pytest.raises(NodeApiError) as refused:
            await node.attach(name, ALL, Collected())
        assert (refused.value.code, str(refused.value)) == (
            400,
            f'container "main" has {MOST_CLIENTS} clients already, and takes no more',
        )
        assert not [each for each in sessions if each.done()]
        sessions[-1].cancel()
        await asyncio.wait(sessions[-1:])
        late = Speaking()
        joining: asyncio.Task[int] | None = None
        while not late.output:
            if joining is None or joining.done():  # the node learns a moment later who has left
                joining = asyncio.create_task(node.attach(name, ALL, late))
            clients[0].words.put_nowait(b"there\n")
            await asyncio.sleep(0.02)
        assert joining is not None
        for each in (*sessions, joining):
            each.cancel()
        await asyncio.gather(*sessions, joining, return_exceptions=True)


def test_a_client_that_has_just_left_makes_room(tmp_path: Path) -> None:
    """Though it was not its turn to be noticed."""
    listening = listener(str(tmp_path))
    place = os.open(tmp_path, os.O_RDONLY)
    held = Attached(listening, select.poll(), -1, is_terminal=False, has_input=False, once=False)
    with ExitStack() as clients:
        for number in range(MOST_CLIENTS + 1):
            client = clients.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(f"/proc/self/fd/{place}/attach")
            held.handle(listening.fileno(), select.POLLIN)
            if number == 0:
                client.close()
        held.say(1, b"hello")
        client.settimeout(PATIENCE_S)
        assert client.recv(100) == message(1, b"hello")
    held.finish()
    os.close(place)
