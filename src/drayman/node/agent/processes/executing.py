"""Commands that run where a container lives: hooks and probes, and those of clients."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from drayman.node.agent.processes.attempts import PROGRAM, Attempt
from drayman.node.agent.processes.pipes import reading_pipe, started
from drayman.node.agent.processes.sessions import REST_S, end_command, exit_code
from drayman.node.streams.finishing import to_the_end

_LONGEST_OUTPUT: Final = 10 * 1024


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    text: str
    """What it wrote, or the beginning of it."""


def command_inside(
    attempt: Attempt, command: Sequence[str], *, receiver: int | None = None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """How a command is started in a container, and with which environment: the agent's, until it is inside.

    Raises OSError if the container does not run. `receiver`: the descriptor of a socket, for the other end of a terminal on which it is to
    run.
    """
    if attempt.pid is None:
        raise ProcessLookupError("the container has not been started")
    terminal = "" if receiver is None else str(receiver)
    return (*PROGRAM, "--enter", str(attempt.folder), terminal, *command), dict(os.environ)


async def run_inside(attempt: Attempt, command: Sequence[str]) -> Result:
    """Run a command in a container until it has ended. Whoever gives up waiting ends it and what it has started."""
    output = bytearray()
    try:
        argv, env = command_inside(attempt, command)
        async with reading_pipe() as pipe:
            process = await started(argv, env, pipe, pipe, stdin=subprocess.DEVNULL)
            reading = asyncio.create_task(_keep_beginning(pipe.source, output))
            try:
                code = await process.wait()
                await asyncio.wait((reading,), timeout=REST_S)
            finally:
                await to_the_end(end_command(process, signal.SIGKILL, reading))
    except OSError as error:
        return Result(126, str(error))
    return Result(exit_code(code), output.decode("utf-8", "replace").strip())


async def _keep_beginning(source: asyncio.StreamReader, kept: bytearray) -> None:
    """Read to the end, but keep only as much as anybody wants to see."""
    while data := await source.read(_LONGEST_OUTPUT):
        kept += data[: _LONGEST_OUTPUT - len(kept)]
