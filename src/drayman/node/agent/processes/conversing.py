"""Commands of clients: their streams pass through pipes or a terminal, and their processes end when the client leaves."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from drayman.node.agent.processes.pipes import reading_pipe, started
from drayman.node.agent.processes.sessions import REST_S, end_command, exit_code
from drayman.node.agent.processes.terminals import StartedWith, Terminal, on_terminal
from drayman.node.streams.finishing import to_the_end
from drayman.node.streams.model import Streams

_PIECE: Final = 32 * 1024


async def run_on_pipes(argv: Sequence[str], env: Mapping[str, str], streams: Streams) -> int:
    """The exit code of a command. Raises OSError if it cannot be started."""
    async with reading_pipe() as out, reading_pipe() as err:
        process = await started(argv, env, out, err, stdin=asyncio.subprocess.PIPE)
        feeding = asyncio.create_task(_feed(process, streams))
        try:
            await asyncio.gather(
                _pass(out.source, streams.write), _pass(err.source, streams.write_error)
            )
            return exit_code(await process.wait())
        finally:
            await to_the_end(end_command(process, signal.SIGKILL, feeding))


async def run_on_terminal(command: StartedWith, streams: Streams) -> int:
    """The exit code of a command on a terminal of its own. Raises OSError if it cannot be started."""
    async with on_terminal(command) as (process, found):
        feeding = asyncio.create_task(found.pass_input(streams))
        resizing = asyncio.create_task(found.pass_sizes(streams))
        showing = asyncio.create_task(found.pass_output(streams))
        ending = asyncio.create_task(process.wait())
        try:
            await asyncio.wait((ending, showing), return_when=asyncio.FIRST_COMPLETED)
            if showing.done():
                showing.result()
            code = await ending
            await _shown(found, showing)
            return exit_code(code)
        finally:
            tasks = (feeding, resizing, showing, ending)
            await to_the_end(end_command(process, signal.SIGHUP, *tasks))


async def _shown(found: Terminal, showing: asyncio.Task[None]) -> None:
    """Returns when everything has been passed on that a command has said."""
    while not showing.done():
        await asyncio.wait((showing,), timeout=REST_S)
        if found.is_silent:
            return
    showing.result()


async def _feed(process: asyncio.subprocess.Process, streams: Streams) -> None:
    assert process.stdin is not None
    # What the command does not read waits in memory.
    process.stdin.transport.set_write_buffer_limits(high=_PIECE)
    with suppress(ConnectionError):  # a command need not read its input
        while data := await streams.read():
            process.stdin.write(data)
            await process.stdin.drain()
    process.stdin.close()


async def _pass(source: asyncio.StreamReader, write: Callable[[bytes], Awaitable[None]]) -> None:
    while data := await source.read(_PIECE):
        await write(data)
