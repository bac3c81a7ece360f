"""The processes of a session: a command that was started for a client, and whatever it has started, in however many process groups."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

from drayman.node.pinned import pinned
from drayman.node.streams.finishing import cancelled

GRACE_S: Final = 2.0
"""Between the signal that the client is gone, which a command may want to act on, and the one that it cannot ignore."""
REST_S: Final = 0.5
"""How long after its end the output of a command is awaited that somebody in the background holds open."""
_PAUSE_S: Final = 0.02
_SESSION: Final = 3
"""The place of the session in what /proc says of a process, after its name."""


def processes_by_session() -> dict[int, list[int]]:
    """The processes of this machine that have not ended."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        session = _session_of(int(name)) if name.isdecimal() else None
        if session is not None:
            found.setdefault(session, []).append(int(name))
    return found


def _session_of(pid: int) -> int | None:
    """The session of a process; None if the process has ended."""
    with suppress(OSError):  # it ended between the listing and the reading
        with open(f"/proc/{pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        if words[0] not in "ZX":
            return int(words[_SESSION])
    return None


class _Scans:
    """Scans of the process table, in another thread and one at a time.

    A machine may have thousands of processes and hundreds of sessions that end together: each scan answers all that waited for it.
    """

    def __init__(self) -> None:
        self._current: asyncio.Task[dict[int, list[int]]] | None = None
        self._next: asyncio.Task[dict[int, list[int]]] | None = None

    async def processes_of(self, session: int) -> list[int]:
        """Those that have not ended, by a scan that has yet to begin."""
        if self._next is None:
            self._next = asyncio.create_task(self._scan(), name="a scan of processes")
        found = await asyncio.shield(self._next)
        return found.get(session, [])

    async def _scan(self) -> dict[int, list[int]]:
        if self._current is not None:
            await asyncio.wait((self._current,))
        self._current, self._next = self._next, None
        return await asyncio.to_thread(processes_by_session)


_scans: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Scans]] = WeakKeyDictionary()


async def processes_of(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    return await _scans.setdefault(asyncio.get_running_loop(), _Scans()).processes_of(session)


def _signal(session: int, processes: Iterable[int], number: int) -> None:
    for pid in processes:
        with suppress(ProcessLookupError), pinned(pid) as process:
            if _session_of(pid) == session:  # the pid may belong to another process by now
                process.send(number)


def exit_code(returned: int) -> int:
    """As shells have it: a signal counts from 128."""
    return returned if returned >= 0 else 128 - returned


async def end_session(session: int, first: int, grace_s: float = GRACE_S) -> None:
    """Tell the processes of a session to end, and make those that have not ended after a while."""
    loop = asyncio.get_running_loop()
    _signal(session, await processes_of(session), first)
    latest = loop.time() + (0.0 if first == signal.SIGKILL else grace_s)
    while left := await processes_of(session):
        if loop.time() >= latest:
            _signal(session, left, signal.SIGKILL)
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
