"""Work that takes long is done beside the event loop, for users in turn.

One thread does all of it. More would not be faster, and a single one bounds how much of it is in memory in decoded form. It works for
users in turn, so that a large body waits for one body of each other user, not for all of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from drayman.apiserver.protocol.round_robin import RoundRobin

T = TypeVar("T")

ON_BEHALF_OF: Final[ContextVar[str]] = ContextVar("on_behalf_of", default="")
"""The name of the user who sent the request that the current task answers; empty for work of the server's own."""

_STACK_BYTES: Final = 64 * 1024 * 1024
"""Decoders recurse in C as deep as the interpreter's limit allows, which is raised for as long as a CEL expression is evaluated."""
_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="beside")

_lock: Final = threading.Lock()
_waiting: Final[RoundRobin[tuple[Future[Any], Callable[[], Any]]]] = RoundRobin()
"""What the thread is going to do. Event loops of several threads may add to it."""


async def beside(work: Callable[[], T]) -> T:
    """The result of work in another thread."""
    return await asyncio.wrap_future(_submit(work))


def _submit(work: Callable[[], T]) -> Future[T]:
    outcome: Future[T] = Future()
    with _lock:
        _waiting.put(ON_BEHALF_OF.get(), (outcome, work))
    usual = threading.stack_size(_STACK_BYTES)
    try:
        _THREAD.submit(_do_next)
    finally:
        threading.stack_size(usual)
    return outcome


def _do_next() -> None:
    """Do the work whose turn it is: not necessarily that with which this was submitted."""
    with _lock:
        outcome, work = _waiting.pop()
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(work())
    except BaseException as error:
        outcome.set_exception(error)
