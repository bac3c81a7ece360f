"""What has been changed in a trial, and the steps that put it back.

All parts of a cluster state share one log. While it is open, every change notes its inverse, next to the change itself; leaving a trial
takes the steps noted since it began, the latest first. So a trial costs as much as was changed in it, however large the cluster is.

What only ever grows is not put back: clocks and revisions tell caches when to look again, and a number that stands for two
states would mislead them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, TypeVarTuple

Ts = TypeVarTuple("Ts")
K = TypeVar("K")
V = TypeVar("V")


class UndoLog:
    """The inverse of everything that was changed since the log was opened. It can be opened again while it is open."""

    __slots__ = ("_begun", "_steps", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        """Whether changes are to be noted. Not while they are being undone."""
        self._steps: list[tuple[Callable[..., object], tuple[object, ...]]] = []
        self._begun: list[int] = []  # how many steps there were when each trial began

    @property
    def depth(self) -> int:
        """How many trials are under way, one within the other."""
        return len(self._begun)

    @property
    def size(self) -> int:
        """How many steps would undo everything."""
        return len(self._steps)

    def open(self) -> None:
        """A trial begins."""
        self._begun.append(len(self._steps))
        self.is_open = True

    def close(self) -> None:
        """The innermost trial ends: undo what it has changed."""
        self.is_open = False
        first = self._begun[-1]
        steps = self._steps
        while len(steps) > first:
            undo, arguments = steps.pop()
            undo(*arguments)
        self._begun.pop()
        self.is_open = bool(self._begun)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """What is changed in the block is undone at its end."""
        self.open()
        try:
            yield
        finally:
            self.close()

    def note(self, undo: Callable[[*Ts], object], *arguments: *Ts) -> None:
        """Note what undoes a change that is being made."""
        if self.is_open:
            self._steps.append((undo, arguments))

    def put(self, mapping: dict[K, V], key: K, value: V) -> None:
        """`mapping[key] = value`, noted."""
        if self.is_open:
            self._note_entry(mapping, key)
        mapping[key] = value

    def pop(self, mapping: dict[K, V], key: K) -> V | None:
        """`mapping.pop(key, None)`, noted."""
        if self.is_open and key in mapping:
            self._note_entry(mapping, key)
        return mapping.pop(key, None)

    def _note_entry(self, mapping: dict[K, V], key: K) -> None:
        if key in mapping:
            self._steps.append((mapping.__setitem__, (key, mapping[key])))
        else:
            self._steps.append((mapping.__delitem__, (key,)))
