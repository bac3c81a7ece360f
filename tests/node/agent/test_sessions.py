"""The processes of sessions that end together."""

from __future__ import annotations

import asyncio
import signal
import subprocess

from calls import counted_calls
from drayman.node.agent.processes.sessions import end_session, processes_of

SESSIONS, OTHERS = 10, 80
MOST_CALLS = 500
"""In the event loop, to end one session."""


async def sleeping(count: int) -> list[asyncio.subprocess.Process]:
    """Processes that lead sessions of their own."""
    return [
        await asyncio.create_subprocess_exec(
            "sleep", "1000", start_new_session=True, stdin=subprocess.DEVNULL
        )
        for _ in range(count)
    ]


async def test_sessions_that_end_together_share_what_is_read_of_all_processes() -> None:
    """The event loop does not read the process table of the machine for each of hundreds of clients that leave."""
    others = await sleeping(OTHERS)
    try:
        ending = await sleeping(SESSIONS)
        with counted_calls() as work:
            await asyncio.gather(*(end_session(each.pid, signal.SIGKILL) for each in ending))
        assert work.count < MOST_CALLS * SESSIONS
        assert [await each.wait() for each in ending] == [-signal.SIGKILL] * SESSIONS
        assert await processes_of(others[0].pid) == [others[0].pid]
    finally:
        for each in others:
            each.kill()
            await each.wait()
