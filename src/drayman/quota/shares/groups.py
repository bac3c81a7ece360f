"""Pod groups as queues see them: what starts next of a group, and what it gives up next.

A group below its quorum starts as many members as it lacks, at once. Beyond the quorum it grows by one pod, or by one subgroup that is
complete then. It shrinks in the same way: one by one down to the quorum, and then all of it goes, because the rest would be of no use.
What a quorum is, is said by `placement.gangs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntEnum
from fractions import Fraction
from itertools import combinations, islice, product
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.placement.gangs.gang import Gang, Subgroup
from drayman.placement.gangs.quorum import Sparing, shortfall
from drayman.placement.queueing.queues import Amount

MOST_CHOICES: Final = 32
"""How many choices of members are considered, where not every subgroup has to start."""


class Worker(Struct, frozen=True):
    """A pod of a group."""

    name: str
    group: str
    amount: Amount
    """Of the resource that queues share."""
    part: str = ""
    """The subgroup that it is in."""


Workers: TypeAlias = tuple[Worker, ...]


class Group(Struct, frozen=True, kw_only=True):
    """Pods that start together, in a queue."""

    name: str
    queue: str
    priority: int
    created: float
    is_preemptible: bool
    gang: Gang | None
    """None: there is no telling what it is, so nothing of it starts."""
    workers: Workers


class Strength(IntEnum):
    """How many members of a group run. In a queue, the weaker of two equals goes first, and it gives way last."""

    BELOW = 0
    """Fewer than it needs."""
    ENOUGH = 1
    BEYOND = 2


Place: TypeAlias = tuple[int, Strength, float]
"""What groups of one queue are ordered by, the first first."""


def place_of(priority: int, strength: Strength, created: float) -> Place:
    """The place of a group in its queue: by priority, then those that lack members before those that have enough, then by age."""
    return -priority, strength, created


def strength_of(group: Group, running: Collection[Worker]) -> Strength:
    gang = group.gang
    if gang is None:
        return Strength.ENOUGH
    if gang.subgroups:
        return _strength_of_parts(gang, running)
    needed = max(1, gang.least)
    return Strength((len(running) >= needed) + (len(running) > needed))


def _strength_of_parts(gang: Gang, running: Collection[Worker]) -> Strength:
    """A group is beyond what it needs if one of its innermost subgroups is."""
    if _lacks(gang, running):
        return Strength.BELOW
    counts = Counter(each.part for each in running)
    innermost = (part for part in gang.subgroups if not gang.children(part.name))
    is_beyond = any(counts[part.name] > (part.least or 0) for part in innermost)
    return Strength.BEYOND if is_beyond else Strength.ENOUGH


def can_exist(group: Group) -> bool:
    """Whether there are enough pods for the group to start at all."""
    return group.gang is not None and not _lacks(group.gang, group.workers)


def next_starts(group: Group, running: Collection[Worker]) -> list[Workers]:
    """What could start next: each choice is a set of members that start together. Empty if nothing of the group waits, or too little."""
    gang = group.gang
    if gang is None:
        return []
    there = {each.name for each in running}
    waiting = [each for each in group.workers if each.name not in there]
    if not waiting:
        return []
    if gang.subgroups:
        return list(islice(_PartsToStart(gang, running, waiting).choices(), MOST_CHOICES))
    lacking = max(1, max(1, gang.least) - len(running))
    return [tuple(waiting[:lacking])] if len(waiting) >= lacking else []


def next_to_return(group: Group, running: Collection[Worker], gone: Sequence[Worker]) -> Workers:
    """Which of some members that were taken away come back next, if there is room: as many as the group lacks, or one. Empty: too few."""
    gang = group.gang
    if gang is None or not gone:
        return ()
    if gang.subgroups:
        return tuple(gone)
    lacking = max(1, max(1, gang.least) - len(running))
    return tuple(gone[:lacking]) if len(gone) >= lacking else ()


def next_to_go(group: Group, running: Sequence[Worker]) -> Workers:
    """What a group gives up next: its last member that it can do without, or else all of it."""
    gang = group.gang
    if gang is None:
        return tuple(running)
    if not gang.subgroups:
        return tuple(running[-1:] if len(running) > max(1, gang.least) else running)
    counts = Counter(each.part for each in running)
    for each in reversed(running):
        if len(running) > 1 and Sparing(gang, counts).spare(each.part):
            return (each,)
    return tuple(running)


def _lacks(gang: Gang, members: Collection[Worker]) -> bool:
    """Whether members are fewer than a gang needs. A gang of nobody has not started, whatever its quorum."""
    if not members:
        return True
    return shortfall(gang, Counter(each.part for each in members)) is not None


class _PartsToStart:
    """Which members of a group with subgroups start next. A member in none of the innermost subgroups never does."""

    def __init__(self, gang: Gang, running: Collection[Worker], waiting: Sequence[Worker]) -> None:
        self._gang = gang
        self._has = Counter(each.part for each in running)
        self._waiting: dict[str, list[Worker]] = {}
        for each in waiting:
            self._waiting.setdefault(each.part, []).append(each)
        self._children: Mapping[str, tuple[Subgroup, ...]] = {
            name: self._largest_first(gang.children(name))
            for name in ("", *(each.name for each in gang.subgroups))
        }

    def _largest_first(self, children: Sequence[Subgroup]) -> tuple[Subgroup, ...]:
        """Subgroups by what they lack: a small one finds a place where a large one does not."""

        def lacking(part: Subgroup) -> Amount:
            missing = max(0, (part.least or 0) - self._has[part.name])
            waiting = self._waiting.get(part.name, [])[:missing]
            return sum((each.amount for each in waiting), start=Fraction(0))

        return tuple(sorted(children, key=lacking, reverse=True))

    def choices(self) -> Iterator[Workers]:
        for members in self._below("", self._gang.least_children):
            if not members:
                yield from self._beyond("")
                return
            yield members

    def _ways(self, part: Subgroup) -> Iterator[Workers]:
        """What makes a subgroup complete: nothing if it is."""
        if self._children[part.name]:
            yield from self._below(part.name, part.least_children)
            return
        lacking = max(0, (part.least or 0) - self._has[part.name])
        waiting = self._waiting.get(part.name, [])
        if len(waiting) >= lacking:
            yield tuple(waiting[:lacking])

    def _below(self, name: str, needed: int | None) -> Iterator[Workers]:
        """What makes enough of the subgroups below one complete."""
        children = self._children[name]
        ways = {each.name: list(islice(self._ways(each), MOST_CHOICES)) for each in children}
        open_ = [each for each in children if ways[each.name] and ways[each.name][0]]
        complete = sum(1 for each in children if ways[each.name] and not ways[each.name][0])
        lacking = max(0, (len(children) if needed is None else needed) - complete)
        for chosen in combinations(open_, lacking):
            for parts in product(*(ways[each.name] for each in chosen)):
                yield tuple(worker for members in parts for worker in members)

    def _beyond(self, name: str) -> Iterator[Workers]:
        """What a group that is complete can still start: single members, or what makes another subgroup complete."""
        for part in self._children[name]:
            if self._children[part.name]:
                ways = list(islice(self._ways(part), MOST_CHOICES))
                if ways and not ways[0]:
                    yield from self._beyond(part.name)
                else:
                    yield from ways
            elif waiting := self._waiting.get(part.name):
                lacking = max(1, (part.least or 0) - self._has[part.name])
                if len(waiting) >= lacking:
                    yield tuple(waiting[:lacking])
