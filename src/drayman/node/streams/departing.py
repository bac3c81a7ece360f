"""Clients that are gone while nobody reads what they have sent.

A command that does not read its input stops the reading of the connection, and the end of the connection lies behind what is not read. But
who is asked for a sign of life and is gone is reported as such by the system. The answer of those who are there is not waited for.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from aiohttp import web

CHECK_S: Final = 1.0
CHECKS_PER_PING: Final = 5
_GONE: Final = select.POLLRDHUP | select.POLLHUP | select.POLLERR


@contextmanager
def while_there(request: web.BaseRequest, ping: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """The current task is cancelled some seconds after the client of a request has left, if it does not end by itself."""
    task = asyncio.current_task()
    assert task is not None
    transport = request.transport
    known = None if transport is None else transport.get_extra_info("socket")
    if transport is None or known is None:
        yield
        return
    poll = select.poll()
    poll.register(known.fileno(), _GONE)
    watching = asyncio.create_task(
        _watch(poll, transport, ping, task), name="whether a client is there"
    )
    try:
        yield
    finally:
        watching.cancel()


async def _watch(
    poll: select.poll,
    transport: asyncio.Transport,
    ping: Callable[[], Awaitable[None]],
    task: asyncio.Task[object],
) -> None:
    checks = 0
    while not poll.poll(0):
        await asyncio.sleep(CHECK_S)
        checks += 1
        if checks % CHECKS_PER_PING == 0 and not transport.get_write_buffer_size():
            with suppress(ConnectionError):  # the system says so, too
                await ping()
    await asyncio.sleep(CHECK_S)  # whoever reads has heard of it by then
    task.cancel()
