"""What may have changed, for code that keeps answers (`placing`).

Everything that may change an answer leaves a mark: the name of a node, or a new `epoch` if any node may be concerned. A reader that keeps
answers remembers how far it has read, and looks again at what was marked since.

In a trial, marks go on a branch of their own that ends with it. A reader that did not look in the meantime never sees them: everything is
as it was. A reader that did look must recheck the nodes whose marks it read there. Epochs and the numbers for floating devices go back to
what they were, too. No number ever stands for two states, so a reader cannot confuse them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_MOST_MARKS: Final = 200_000


class _Branch:
    """The marks of a trial, or of the cluster as it is."""

    __slots__ = ("is_over", "names", "numbers", "parent", "start")

    def __init__(
        self, parent: _Branch | None = None, numbers: tuple[int, int, int] = (0, 0, 0)
    ) -> None:
        self.parent = parent
        self.start = 0 if parent is None else len(parent.names)
        self.names: list[str] = []
        self.is_over = False
        self.numbers = numbers  # epoch, taken and freed, as they were when it began


class Position(NamedTuple):
    """How far a reader has read."""

    branch: _Branch
    read: int


class Marks:
    """The marks of one cluster state."""

    def __init__(self) -> None:
        self.epoch = 0
        """Stays the same while only marked nodes change."""
        self.floating_taken = 0
        """Changes when devices are taken that several nodes can use."""
        self.floating_freed = 0
        """Changes when such devices are given back."""
        self._latest = 0
        self._branch = _Branch()

    @property
    def position(self) -> Position:
        """The position after everything so far."""
        return Position(self._branch, len(self._branch.names))

    def since(self, position: Position) -> list[str]:
        """The nodes that were marked after a position, some of them several times."""
        branch, read = position
        found: list[str] = []
        while branch.parent is not None and branch.is_over:
            # What was read there is undone. What was not read there was never seen.
            found += branch.names[:read]
            branch, read = branch.parent, branch.start
        found += branch.names[read:]
        return found if branch is self._branch else found + self._marked_below(branch)

    def _marked_below(self, branch: _Branch) -> list[str]:
        """What was marked in the trials running within this one."""
        below: list[_Branch] = []
        current: _Branch | None = self._branch
        while current is not None and current is not branch:
            below.append(current)
            current = current.parent
        return [name for each in reversed(below) for name in each.names]

    def node(self, name: str) -> None:
        """An answer about this node may no longer hold."""
        branch = self._branch
        branch.names.append(name)
        if len(branch.names) > _MOST_MARKS and branch.parent is None:
            branch.names.clear()
            self.everything()

    def everything(self) -> None:
        """No answer can be relied on."""
        self.epoch = self._next()

    def take_floating(self) -> None:
        self.floating_taken = self._next()
        if self._branch.parent is not None:
            # When the trial is over they are free again, for readers that saw them taken.
            self.floating_freed = self._next()

    def free_floating(self) -> None:
        self.floating_freed = self._next()

    def begin_trial(self) -> None:
        numbers = (self.epoch, self.floating_taken, self.floating_freed)
        self._branch = _Branch(self._branch, numbers)

    def end_trial(self) -> None:
        ended = self._branch
        assert ended.parent is not None
        ended.is_over = True
        self.epoch, self.floating_taken, self.floating_freed = ended.numbers
        self._branch = ended.parent

    def _next(self) -> int:
        self._latest += 1
        return self._latest
