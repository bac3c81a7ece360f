"""Commands that run where a container lives: hooks and probes."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from drayman.node.agent.attempts import PROGRAM, Attempt

_LONGEST_OUTPUT = 10 * 1024


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    text: str
    """What it wrote, or the beginning of it."""


def command_inside(
    attempt: Attempt, command: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """How a command is started in a container, and with which environment. Raises OSError if the container does not run."""
    pid = attempt.pid
    if pid is None:
        raise ProcessLookupError("the container has not been started")
    launch = attempt.launch()
    root = "own" if launch.own_root else "host"
    env = {**launch.env, "DRAYMAN_CWD": launch.cwd}
    env |= {"DRAYMAN_USER": str(launch.user)} if launch.user is not None else {}
    env |= {"DRAYMAN_GROUP": str(launch.group)} if launch.group is not None else {}
    return (*PROGRAM, "--enter", str(pid), root, *command), env


async def run_inside(attempt: Attempt, command: Sequence[str]) -> Result:
    """Run a command in a container until it has ended. Whoever gives up waiting ends it."""
    try:
        argv, env = command_inside(attempt, command)
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return Result(126, str(error))
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Result(process.returncode, output[:_LONGEST_OUTPUT].decode("utf-8", "replace").strip())
