"""How methods of a driver are called: coroutines here, everything else in a thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

_MOST: Final = 64
"""Claims whose drivers block at the same time. Some wait for each other, so there have to be more than a few."""


class Threads:
    """The threads of one driver."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(_MOST, thread_name_prefix=name)

    async def call(
        self, function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if inspect.iscoroutinefunction(function):
            return cast(T, await function(*args, **kwargs))
        if inspect.isasyncgenfunction(function):
            return cast(T, [each async for each in function(*args, **kwargs)])
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(self._pool, lambda: _whole(function(*args, **kwargs)))
        return cast(T, await result) if inspect.isawaitable(result) else result

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _whole(result: T) -> T:
    """What a generator gives is worked out where it may block."""
    return cast(T, list(result)) if isinstance(result, Generator) else result
