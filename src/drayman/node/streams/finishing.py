"""What has to be tidied up after a client, whatever happens meanwhile.

A session is interrupted when its client closes it, and again when the connection is lost, which is a moment later. The second interruption
must not hit the tidying up that the first one has begun: a process or a connection would stay behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

_FAREWELL_S: Final = 2.0
_UNDER_WAY: Final[set[asyncio.Task[None]]] = set()
"""The event loop itself does not keep tasks alive."""


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Whoever waits can be interrupted; the work goes on."""
    task = asyncio.create_task(work)
    _UNDER_WAY.add(task)
    task.add_done_callback(_UNDER_WAY.discard)
    await asyncio.shield(task)


async def cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and return when they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection. What was written last may still be read, but not for ever."""
    writer.close()
    try:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await writer.wait_closed()
    finally:
        writer.transport.abort()
