"""Which domain each part of a gang goes to, where parts have wishes of their own.

A part is a subgroup, or a slice: so many members with consecutive ranks. It has to be in one domain of its level, inside the domain of
the part that it belongs to. Members may use any node of their part's domain; so an assignment works out if for each domain what is
assigned to it and to all domains in it is no more than it holds.

The search is complete: it tries the tightest domain first and takes back what turns out not to work. What has failed once is remembered,
and parts that are alike are counted before they are assigned. Where it takes too many steps it ends without an answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from drayman.placement.domains.budget import Budget
from drayman.placement.domains.rooms import Amounts, Rooms, holds
from drayman.placement.domains.tree import contains
from drayman.topology import Path

ASSIGN_STEPS: Final = 50_000
"""Steps of one search: a thousand slices that fit into 48 racks, or a tenth of a second."""


class Part(Struct, frozen=True):
    """Members that have to be close to each other."""

    name: str
    need: Amounts
    """Of all its members, those of the parts in it included."""
    required: int | None = None
    """The level of which one domain has to hold all of it; None if that of the part around it will do."""
    preferred: int | None = None
    """A finer level that is tried first."""
    parts: tuple[Part, ...] = ()
    times: int = 1
    """How many there are like this."""
    first: int = 0
    """The number of the first of them."""
    pinned: tuple[Path, ...] = ()
    """Where members of it run already, by node."""

    @property
    def total(self) -> Amounts:
        return tuple([amount * self.times for amount in self.need])

    @property
    def likeness(self) -> Hashable:
        """Equal for parts that could be exchanged for one another."""
        inside = tuple([(part.likeness, part.times) for part in self.parts])
        return self.need, self.required, self.preferred, inside, self.pinned


class Assigned(Struct, frozen=True):
    """A part, or one of several that are alike, and its domain."""

    name: str
    number: int
    domain: Path


def assign(
    rooms: Rooms, home: Path, parts: Sequence[Part], *, budget: Budget | None = None
) -> tuple[Assigned, ...] | None:
    """A domain for each part inside a domain; None if there is no such assignment. Raises OutOfSteps."""
    return _Assigning(rooms, home, parts, budget or Budget(ASSIGN_STEPS)).run()


class _Task(Struct, frozen=True, eq=False):
    part: Part
    number: int
    around: int
    """The task of the part that it belongs to; -1 for the domain as a whole."""
    alike: int
    """If it is the first of several that are alike: how many there are."""


class _Assigning:
    def __init__(self, rooms: Rooms, home: Path, parts: Sequence[Part], budget: Budget) -> None:
        self._rooms = rooms
        self._tree = rooms.tree
        self._home = home
        self._budget = budget
        self._tasks: list[_Task] = []
        self._add(parts, -1)
        self._load: dict[Path, Amounts] = {}
        self._failed: set[object] = set()

    def _add(self, parts: Sequence[Part], around: int) -> None:
        alike: dict[Hashable, list[Part]] = {}
        for part in parts:
            alike.setdefault(part.likeness, []).append(part)
        # What is hard to place goes first.
        for group in sorted(alike.values(), key=lambda group: _ease(group[0])):
            total = sum(part.times for part in group)
            for part in group:
                for number in range(part.times):
                    self._tasks.append(_Task(part, part.first + number, around, total))
                    total = 0
                    self._add(part.parts, len(self._tasks) - 1)

    def run(self) -> tuple[Assigned, ...] | None:
        tasks = self._tasks
        chosen: list[Path] = []
        open_choices: list[Iterator[Path]] = []
        if tasks:
            open_choices.append(self._choices(0, chosen))
        while open_choices:
            self._budget.spend()
            position = len(open_choices) - 1
            if len(chosen) > position:  # the choice before did not work out
                self._put(position, chosen, -1)
                chosen.pop()
            path = next(open_choices[-1], None)
            if path is None:
                open_choices.pop()
                self._failed.add(self._state(position, chosen))
                continue
            chosen.append(path)
            self._put(position, chosen, 1)
            if len(chosen) == len(tasks):
                return tuple(
                    Assigned(task.part.name, task.number, path)
                    for task, path in zip(tasks, chosen, strict=True)
                )
            if self._failed and self._state(position + 1, chosen) in self._failed:
                continue
            open_choices.append(self._choices(position + 1, chosen))
        return None if tasks else ()

    def _choices(self, position: int, chosen: Sequence[Path]) -> Iterator[Path]:
        """The domains that may hold a part, the tightest of the finest level first."""
        task = self._tasks[position]
        part, around = task.part, self._around(task, chosen)
        if not self._alike_fit(part, task.alike, around):
            return
        for level in self._levels(part, around):
            if level is None:
                yield around
                continue
            fitting = []
            for path in self._tree.domains(level, around):
                free = self._free(path)
                if (
                    holds(free, part.need)
                    and _includes(path, part.pinned)
                    and self._fits_below(path, around, part.need)
                ):
                    fitting.append((free, path))
                self._budget.spend()
            fitting.sort()
            yield from [path for _, path in fitting]

    def _levels(self, part: Part, around: Path) -> Iterator[int | None]:
        """The levels to try, finest first. None: where the part around it is."""
        finest = part.required if part.preferred is None else part.preferred
        widest = part.required
        if finest is not None:
            first = len(around) if widest is None else widest
            for level in range(finest, first - 1, -1):
                if level >= len(around):
                    yield level
        if widest is None or (widest < len(around) and around[widest]):
            yield None

    def _alike_fit(self, part: Part, wanted: int, around: Path) -> bool:
        """Whether the domains of the level, each for itself, have room for so many of these parts."""
        if wanted <= 1 or part.required is None or part.required < len(around):
            return True
        number = 0
        for path in self._tree.domains(part.required, around):
            free = self._free(path)
            number += min(
                (have // want for have, want in zip(free, part.need, strict=True) if want),
                default=wanted,
            )
        return number >= wanted

    def _fits_below(self, path: Path, around: Path, need: Amounts) -> bool:
        """Whether the domains between the one around and this one have room, too."""
        return all(
            holds(self._free(path[:length]), need) for length in range(len(around) + 1, len(path))
        )

    def _around(self, task: _Task, chosen: Sequence[Path]) -> Path:
        return self._home if task.around < 0 else chosen[task.around]

    def _put(self, position: int, chosen: Sequence[Path], sign: int) -> None:
        """Count a part in its domain and in those between that and the one around it, which has room for it already."""
        task = self._tasks[position]
        path, around = chosen[position], self._around(task, chosen)
        for length in range(len(around) + 1, len(path) + 1):
            domain = path[:length]
            before = self._load.get(domain, (0,) * self._rooms.size)
            self._load[domain] = tuple(
                [b + sign * n for b, n in zip(before, task.part.need, strict=True)]
            )

    def _free(self, path: Path) -> Amounts:
        load = self._load.get(path)
        room = self._rooms.of(path)
        return room if load is None else tuple([r - n for r, n in zip(room, load, strict=True)])

    def _state(self, position: int, chosen: Sequence[Path]) -> object:
        """Everything on which depends whether the parts from a position on can be assigned."""
        around: set[int] = {task.around for task in self._tasks[position:]} - {-1}
        return (
            position,
            frozenset((path, load) for path, load in self._load.items() if any(load)),
            tuple((index, chosen[index]) for index in sorted(around) if index < position),
        )


def _ease(part: Part) -> tuple[int, Amounts]:
    """Finer levels are harder, and so are larger parts."""
    return -1 if part.required is None else -part.required - 2, tuple([-n for n in part.need])


def _includes(domain: Path, pinned: Sequence[Path]) -> bool:
    return all(contains(domain, leaf) for leaf in pinned)
