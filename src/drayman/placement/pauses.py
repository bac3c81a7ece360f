"""Breaks in a search that takes long.

A search that takes breaks is a generator that yields where one is due, with the state as it was. The cluster may change meanwhile, so a
search has to know whether there has been a break: then what it has found is looked at once more.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

R = TypeVar("R")


def never() -> bool:
    """No break is due, however long it takes."""
    return False


def completed(search: Generator[None, None, R]) -> R:
    """The result of a search that takes no breaks."""
    while True:
        try:
            next(search)
        except StopIteration as end:
            result: R = end.value
            return result


class Pauses:
    """The breaks of one search."""

    def __init__(self, is_due: Callable[[], bool] = never) -> None:
        self._is_due = is_due
        self.any = False
        """Whether there has been a break."""

    def if_due(self) -> Generator[None, None, None]:
        """A break, if one is due."""
        if self._is_due():
            self.any = True
            yield

    def noting(self, search: Generator[None, None, R]) -> Generator[None, None, R]:
        """A search that takes breaks itself."""
        return _paused(search, self._now)

    def within(self, search: Generator[None, None, R]) -> Generator[None, None, R]:
        """A search that can be interrupted often, with breaks only where they are due."""
        return _paused(search, self.if_due)

    def _now(self) -> Generator[None, None, None]:
        self.any = True
        yield


def _paused(
    search: Generator[None, None, R], pause: Callable[[], Generator[None, None, None]]
) -> Generator[None, None, R]:
    """A search with such a pause wherever it can be interrupted."""
    while True:
        try:
            next(search)
        except StopIteration as end:
            result: R = end.value
            return result
        yield from pause()
