"""How methods of a driver are called: coroutines here, everything else in a thread.

A driver may share its process with others, and with a whole cluster. So what would end the process, or a task of the kit, is an error of
that driver; and the threads are daemons, unlike those of `concurrent.futures`, for which Python waits when it ends: one method that hangs
would keep the process for ever.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Final, ParamSpec, TypeVar, cast

from drayman.drivers.kit.errors import DriverEndedError

P = ParamSpec("P")
T = TypeVar("T")

_MOST: Final = 64
"""Claims whose drivers block at the same time. Some wait for each other, so there have to be more than a few."""


class Threads:
    """The threads of one driver."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._free = asyncio.Semaphore(_MOST)

    async def call(
        self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Raises DriverEndedError, and what the driver raises."""
        with driver_errors():
            if inspect.iscoroutinefunction(function):
                return cast(T, await function(*args, **kwargs))
            if inspect.isasyncgenfunction(function):
                return cast(T, [each async for each in function(*args, **kwargs)])
            result = await self._in_thread(lambda: _whole(function(*args, **kwargs)))
            return cast(T, await result) if inspect.isawaitable(result) else result

    async def _in_thread(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        outcome: Future[T] = Future()
        ended = asyncio.Event()

        def end() -> None:
            self._free.release()
            ended.set()

        def run() -> None:
            try:
                outcome.set_result(work())
            except BaseException as error:
                outcome.set_exception(error)
            with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
                loop.call_soon_threadsafe(end)

        await self._free.acquire()
        try:
            Thread(target=run, name=self._name, daemon=True).start()
        except RuntimeError:
            self._free.release()
            raise
        await ended.wait()
        return outcome.result()


@contextmanager
def driver_errors() -> Iterator[None]:
    """Around whatever is a driver's own. Raises DriverEndedError where it would end more than what it was asked for."""
    try:
        yield
    except SystemExit as error:
        is_status = error.code is None or isinstance(error.code, int)
        said = f" with status {error.code or 0}" if is_status else f": {error.code}"
        raise DriverEndedError(f"the driver has called sys.exit{said}") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        said = f": {error}" if str(error) else ""
        raise DriverEndedError(f"the driver has raised asyncio.CancelledError{said}") from error


def _whole(result: T) -> T:
    """What an iterator gives is worked out where it may block, and where it may fail."""
    return cast(T, list(result)) if isinstance(result, Iterator) else result
