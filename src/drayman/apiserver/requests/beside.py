"""Work that takes long is done beside the event loop, for users in turn.

One thread does all that is large. More would not be faster, and a single one bounds how much of it is in memory in decoded form. It works
for users in turn, so that a large body waits for one body of each other user, not for all of them. What is small but costly, such as a
custom object with rules in CEL, has another thread and does not wait for large bodies.
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


class _Lane:
    """A thread, and what it is going to do. Event loops of several threads may add to it."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: RoundRobin[tuple[Future[Any], Callable[[], Any]]] = RoundRobin()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        outcome: Future[T] = Future()
        with self._lock:
            self._waiting.put(ON_BEHALF_OF.get(), (outcome, work))
        usual = threading.stack_size(_STACK_BYTES)
        try:
            self._thread.submit(self._do_next)
        finally:
            threading.stack_size(usual)
        return outcome

    def _do_next(self) -> None:
        """Do the work whose turn it is: not necessarily that with which this was submitted."""
        with self._lock:
            outcome, work = self._waiting.pop()
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)


_LARGE: Final = _Lane("large-work")
_SMALL: Final = _Lane("small-work")


async def beside(work: Callable[[], T], *, is_small: bool = False) -> T:
    """The result of work in another thread."""
    lane = _SMALL if is_small else _LARGE
    return await asyncio.wrap_future(lane.submit(work))
