"""Waiting in line, user by user."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class RoundRobin(Generic[T]):
    """What users wait for: first come, first served for one user, and users in turn."""

    __slots__ = ("_length", "_lines", "_turns")

    def __init__(self) -> None:
        self._lines: dict[str, deque[T]] = {}
        self._turns: deque[str] = deque()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, user: str, item: T) -> None:
        """Have an item wait behind those of the same user."""
        line = self._lines.get(user)
        if line is None:
            line = self._lines[user] = deque()
            self._turns.append(user)
        line.append(item)
        self._length += 1

    def put_first(self, user: str, item: T) -> None:
        """Have an item that was taken too early wait before all others of the same user."""
        line = self._lines.get(user)
        if line is None:
            line = self._lines[user] = deque()
            self._turns.appendleft(user)
        line.appendleft(item)
        self._length += 1

    def pop(self) -> T:
        """The next item; the one after it is another user's, if another user waits. Raises IndexError if there is none."""
        user = self._turns.popleft()
        line = self._lines[user]
        item = line.popleft()
        if line:
            self._turns.append(user)
        else:
            del self._lines[user]
        self._length -= 1
        return item
