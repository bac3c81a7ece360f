"""The processes of a session: a command that was started for a client, and whatever it has started, in however many process groups."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import Any, Final

from drayman.node.pinned import pinned
from drayman.node.streams.finishing import cancelled

GRACE_S: Final = 2.0
"""Between the signal that the client is gone, which a command may want to act on, and the one that it cannot ignore."""
REST_S: Final = 0.5
"""How long after its end the output of a command is awaited that somebody in the background holds open."""
_PAUSE_S: Final = 0.02
_SESSION: Final = 3
"""The place of the session in what /proc says of a process, after its name."""


def processes_of(session: int) -> list[int]:
    """Those that have not ended."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    return [pid for pid in pids if _is_of(session, pid)]


def _is_of(session: int, pid: int) -> bool:
    with suppress(OSError):  # it has ended meanwhile
        with open(f"/proc/{pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        return int(words[_SESSION]) == session and words[0] not in "ZX"
    return False


def signal_session(session: int, number: int) -> bool:
    """Signal every process of a session; whether there was one."""
    found = processes_of(session)
    for pid in found:
        with suppress(ProcessLookupError), pinned(pid) as process:
            if _is_of(session, pid):  # it may have become another process
                process.send(number)
    return bool(found)


def exit_code(returned: int) -> int:
    """As shells have it: a signal counts from 128."""
    return returned if returned >= 0 else 128 - returned


async def end_session(session: int, first: int, grace_s: float = GRACE_S) -> None:
    """Tell the processes of a session to end, and make those that have not ended after a while."""
    loop = asyncio.get_running_loop()
    signal_session(session, first)
    latest = loop.time() + (0.0 if first == signal.SIGKILL else grace_s)
    while processes_of(session):
        if loop.time() >= latest:
            signal_session(session, signal.SIGKILL)
        await asyncio.sleep(_PAUSE_S)


async def end_command(
    process: asyncio.subprocess.Process, first: int, *tasks: asyncio.Task[Any]
) -> None:
    """End what is left of a command for which nobody waits any more: what was done about its streams, and its processes."""
    await cancelled(*tasks)
    if process.stdin is not None and not process.stdin.is_closing():
        process.stdin.transport.abort()  # nobody feeds it any more, whoever has the other end
    if process.returncode is None:
        await end_session(process.pid, first)
        await process.wait()
