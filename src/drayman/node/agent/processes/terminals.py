"""Pseudo-terminals of commands. A command opens its own, in the place where it runs, and sends the other end here."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from typing import Final, Protocol, TypeVar

from drayman.node.agent.processes.window_sizes import packed, set_size
from drayman.node.streams.finishing import to_the_end
from drayman.node.streams.model import Streams, WindowSize

T = TypeVar("T")
_PIECE: Final = 32 * 1024


class StartedWith(Protocol):
    """The words and the environment of a command that sends its terminal to `receiver`."""

    def __call__(self, *, receiver: int) -> tuple[tuple[str, ...], dict[str, str]]: ...


class Terminal:
    """The near end."""

    def __init__(self, near: int, output: asyncio.StreamReader, input_: _Input) -> None:
        self._near = near
        self._output = output
        self._input = input_
        self.is_silent = True
        """Whether everything that was said has been passed on."""

    async def pass_output(self, streams: Streams) -> None:
        """Returns when nobody has the far end open any more."""
        while data := await self._read():
            await streams.write(data)

    async def _read(self) -> bytes:
        self.is_silent = True
        data = await self._output.read(_PIECE)
        self.is_silent = False
        return data

    async def pass_input(self, streams: Streams) -> None:
        """The end of the input is not passed on: a terminal goes on, and its user types the end."""
        while data := await streams.read():
            await self._input.write(data)

    async def pass_sizes(self, streams: Streams) -> None:
        """The system tells the command of each. Sizes that cannot be are left out."""
        while True:
            size: WindowSize = await streams.resized()
            if (possible := packed(size.width, size.height)) is not None:
                set_size(self._near, possible)


class Output(asyncio.StreamReaderProtocol):
    """What is read of something that may end with an error, as terminals do. The error is passed on as the end: errors overtake what is
    still to be read."""

    def connection_lost(self, _exc: Exception | None) -> None:
        super().connection_lost(None)


class _Input(asyncio.BaseProtocol):
    """What is written to a terminal, as fast as the command reads it."""

    def __init__(self) -> None:
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self._may_write.set()

    async def write(self, data: bytes) -> None:
        """What a command that has ended is to read is dropped."""
        if self._transport is not None:
            self._transport.write(data)
        await self._may_write.wait()


@asynccontextmanager
async def on_terminal(
    command: StartedWith,
) -> AsyncIterator[tuple[asyncio.subprocess.Process, Terminal]]:
    """A command that leads a session on a terminal, which hangs up when the context is left. Raises OSError."""
    here, there = socket.socketpair()
    with here:
        with there:
            argv, env = command(receiver=there.fileno())
            process = await asyncio.create_subprocess_exec(
                *argv,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(there.fileno(),),
                start_new_session=True,
            )
        near = await _unless_left(process, _received(here, process))
    async with AsyncExitStack() as held:
        held.callback(os.close, near)
        found = await _unless_left(process, held.enter_async_context(_opened(near)))
        yield process, found


async def _unless_left(process: asyncio.subprocess.Process, opening: Awaitable[T]) -> T:
    """What is opened for a process. While that is under way, nobody else ends the process for whoever leaves."""
    try:
        return await opening
    except BaseException:
        with suppress(ProcessLookupError):  # it may have ended
            process.kill()
        await to_the_end(_gone(process))
        raise


async def _gone(process: asyncio.subprocess.Process) -> None:
    await process.wait()


async def _received(here: socket.socket, process: asyncio.subprocess.Process) -> int:
    """The descriptor that comes over a socket. Raises OSError with the words of a process that cannot send one."""
    loop = asyncio.get_running_loop()
    here.setblocking(False)
    arrived = asyncio.Event()
    loop.add_reader(here, arrived.set)
    try:
        await arrived.wait()
        _, descriptors, _, _ = socket.recv_fds(here, 1, 1)
    finally:
        loop.remove_reader(here)
    if descriptors:
        return descriptors[0]
    _, why = await process.communicate()
    raise OSError(errno.EIO, why.decode("utf-8", "replace").strip() or "there is no terminal")


@asynccontextmanager
async def _opened(near: int) -> AsyncIterator[Terminal]:
    loop = asyncio.get_running_loop()
    output = asyncio.StreamReader(limit=_PIECE)
    with ExitStack() as opened:
        reading, _ = await loop.connect_read_pipe(
            lambda: Output(output), os.fdopen(os.dup(near), "rb", 0)
        )
        opened.callback(reading.close)
        writing, input_ = await loop.connect_write_pipe(_Input, os.fdopen(os.dup(near), "wb", 0))
        opened.callback(writing.abort)
        yield Terminal(near, output, input_)
