"""The fewest domains that hold something, level by level.

Of all ways to choose nodes in a domain so that a need is met, the best one uses the fewest domains of the next finer level, then the
fewest of the level below, and so on down to the nodes. Among equals it leaves the least room over, so that large domains stay whole.

The fewest of one level are easily counted. Which ones to take decides how few the levels below get by with, so several choices may have
to be compared; domains that are alike are compared once, and a choice that reaches the bound of every level ends the search. Where that
takes too long, the best one so far is the answer, and it says that it may not be the best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import mul
from typing import Final

from msgspec import Struct

from drayman.placement.domains.budget import Budget, OutOfSteps
from drayman.placement.domains.rooms import Amounts, Rooms, fewest, holds
from drayman.topology import Path

SELECT_STEPS: Final = 1_000
"""Choices that are compared for one domain, and domains that are looked at for each: some milliseconds. Clusters of equal racks need
one choice for each level."""

_MORE_CHOICES: Final = 8
"""Choices with the least spread that are compared for what they leave over."""


class Selection(Struct, frozen=True):
    """Domains of the finest level that was looked at, and how many of each level above they are in."""

    chosen: tuple[Path, ...]
    spread: tuple[int, ...]
    """How many domains of each level below the one that was chosen in, widest first."""
    left_over: int
    """What the domains of the first of these levels hold beyond the need."""
    is_best: bool = True


def select(
    rooms: Rooms,
    need: Amounts,
    home: Path,
    down_to: int,
    *,
    used: frozenset[Path] = frozenset(),
    max_steps: int = SELECT_STEPS,
) -> Selection | None:
    """The least spread of a need over a domain, by domains down to some level; None if it does not hold that.

    `used` are nodes that count as chosen already, with all domains that they are in.
    """
    if not holds(rooms.of(home), need):
        return None
    return _Selecting(rooms, need, down_to, used, max_steps).best(home)


def least_spread(
    rooms: Rooms,
    need: Amounts,
    home: Path,
    down_to: int,
    *,
    used: frozenset[Path] = frozenset(),
) -> tuple[int, ...] | None:
    """What no selection in a domain falls below; None if it does not hold the need. Costs a fraction of a selection."""
    if not holds(rooms.of(home), need):
        return None
    return _Selecting(rooms, need, down_to, used, 0).bound(home)


class _Selecting:
    def __init__(
        self, rooms: Rooms, need: Amounts, down_to: int, used: frozenset[Path], max_steps: int
    ) -> None:
        self._rooms = rooms
        self._tree = rooms.tree
        self._need = need
        self._down_to = down_to
        self._used = frozenset(leaf[:length] for leaf in used for length in range(len(leaf) + 1))
        self._budget = Budget(max_steps)
        self._alike: dict[Path, int] = {}
        self._numbers: dict[object, int] = {}

    def best(self, home: Path) -> Selection:
        if len(home) > self._down_to:
            return Selection((home,), (), self._left_over((home,)))
        return self._among(self._tree.children(home), _MORE_CHOICES)

    def bound(self, home: Path) -> tuple[int, ...]:
        return () if len(home) > self._down_to else self._bound(self._tree.children(home))[0]

    def _among(self, allowed: Sequence[Path], more: int = 1) -> Selection:
        """The best choice of these domains, which are of one level and together hold the need.

        So many with the least spread are compared for what they leave over.
        """
        given = [path for path in allowed if path in self._used]
        others = [path for path in allowed if path not in self._used and any(self._rooms.of(path))]
        rest = self._minus(given)
        number = self._fewest(others, rest)
        if more == 1 and len(allowed[0]) > self._down_to:
            # Nothing is decided below, so the first that are few enough will do.
            sensible = self._covering(others, rest)
            if len(sensible) == number:
                return self._with([*given, *sensible])
        bound, size = self._bound(allowed)
        found: Selection | None = None
        is_complete = True
        while found is None:
            try:
                for extra in self._choices(others, rest, number):
                    chosen = [*given, *extra]
                    if found is None:
                        found = self._with(chosen)
                    else:
                        more -= found.spread == bound
                        found = self._better(found, chosen, bound, size)
                    if found.spread == bound and (more <= 0 or not found.left_over):
                        break
            except OutOfSteps:
                is_complete = False
                found = found or self._with([*given, *self._covering(others, rest)])
            number += 1
        is_best = found.spread == bound or (is_complete and found.is_best)
        return Selection(found.chosen, found.spread, found.left_over, is_best)

    def _better(
        self, found: Selection, chosen: list[Path], bound: tuple[int, ...], size: int
    ) -> Selection:
        """What was found, or another choice if it is better. Raises OutOfSteps."""
        self._budget.spend()
        if found.spread == bound and self._left_over(chosen) >= found.left_over:
            return found
        self._budget.spend(size)
        made = self._with(chosen)
        return made if _rank(made) < _rank(found) else found

    def _with(self, chosen: list[Path]) -> Selection:
        """The best way to go on within these domains."""
        if not chosen:
            return Selection((), (), 0)
        left_over = self._left_over(chosen)
        if len(chosen[0]) > self._down_to:
            return Selection(tuple(sorted(chosen)), (len(chosen),), left_over)
        children = [child for path in chosen for child in self._tree.children(path)]
        below = self._among(children)
        return Selection(below.chosen, (len(chosen), *below.spread), left_over, below.is_best)

    def _left_over(self, chosen: Sequence[Path]) -> int:
        """What the domains hold of the first amount beyond the need."""
        return sum([self._rooms.of(path)[0] for path in chosen]) - self._need[0]

    def _choices(self, others: list[Path], rest: Amounts, number: int) -> Iterator[list[Path]]:
        """Sets of so many domains that hold the rest, one of each kind of set; a sensible one first."""
        if not number:
            yield []
            return
        kinds: dict[int, list[Path]] = {}
        for path in others:
            kinds.setdefault(self._number(path), []).append(path)
        # From small to large: what leaves little over comes early.
        groups = sorted(kinds.values(), key=lambda group: (self._rooms.of(group[0]), group[0]))
        sensible = self._covering(others, rest)
        if len(sensible) == number:
            yield sensible
            if len(groups) == 1:
                return
        largest = self._largest_from(groups)
        yield from self._combined(groups, largest, 0, rest, number)

    def _combined(
        self,
        groups: list[list[Path]],
        largest: list[Amounts],
        start: int,
        rest: Amounts,
        number: int,
    ) -> Iterator[list[Path]]:
        if not number:
            if not any(amount > 0 for amount in rest):
                yield []
            return
        if start == len(groups):
            return
        self._budget.spend()
        if any(want > have * number for want, have in zip(rest, largest[start], strict=True)):
            return
        group = groups[start]
        room = self._rooms.of(group[0])
        for taken in range(min(number, len(group)), -1, -1):
            after = tuple([want - taken * have for want, have in zip(rest, room, strict=True)])
            for more in self._combined(groups, largest, start + 1, after, number - taken):
                yield [*group[:taken], *more]

    def _largest_from(self, groups: list[list[Path]]) -> list[Amounts]:
        """For each position the most that any group from there on has of each amount."""
        found: list[Amounts] = []
        most = (0,) * self._rooms.size
        for group in reversed(groups):
            room = self._rooms.of(group[0])
            most = tuple([max(one, other) for one, other in zip(most, room, strict=True)])
            found.append(most)
        return found[::-1]

    def _covering(self, others: list[Path], rest: Amounts) -> list[Path]:
        """The largest domains until the rest is held, and the smallest that will do as the last one."""
        rooms = self._rooms.of
        if len(rest) == 1:
            sized = sorted([(-rooms(path)[0], path) for path in others])
        else:
            scale = [1 / want if want > 0 else 0.0 for want in rest]
            sized = sorted([(-sum(map(mul, rooms(path), scale)), path) for path in others])
        for taken, (_, path) in enumerate(sized):
            room = rooms(path)
            if holds(room, rest):
                size, last = sized[taken]
                for other in sized[taken:]:
                    if other[0] > size and holds(rooms(other[1]), rest):
                        size, last = other
                return [*(path for _, path in sized[:taken]), last] if any(rest) else []
            rest = tuple([max(0, want - have) for want, have in zip(rest, room, strict=True)])
        return [path for _, path in sized]

    def _fewest(self, domains: list[Path], rest: Amounts) -> int:
        """A number of domains below which the rest is not held."""
        number = 0
        for index, want in enumerate(rest):
            if want > 0:
                each = sorted((self._rooms.of(path)[index] for path in domains), reverse=True)
                number = max(number, fewest(each, want) or 0)
        return number

    def _bound(self, allowed: Sequence[Path]) -> tuple[tuple[int, ...], int]:
        """How few domains of each level from here on could do, if they could be chosen freely; and how many there are."""
        found: list[int] = []
        size = 0
        level: Sequence[Path] = allowed
        while True:
            given = [path for path in level if path in self._used]
            others = [path for path in level if path not in self._used]
            found.append(len(given) + self._fewest(others, self._minus(given)))
            size += len(level)
            if not level or len(level[0]) > self._down_to:
                return tuple(found), size
            level = [child for path in level for child in self._tree.children(path)]

    def _minus(self, given: Sequence[Path]) -> Amounts:
        total = self._total(given)
        return tuple([max(0, w - h) for w, h in zip(self._need, total, strict=True)])

    def _total(self, paths: Sequence[Path]) -> Amounts:
        if not paths:
            return (0,) * self._rooms.size
        return tuple([sum(each) for each in zip(*map(self._rooms.of, paths), strict=True)])

    def _number(self, path: Path) -> int:
        """Equal for domains that are alike, down to the finest level."""
        found = self._alike.get(path)
        if found is None:
            content: object = self._rooms.of(path)
            if len(path) <= self._down_to:
                content = tuple(sorted(map(self._number, self._tree.children(path))))
            found = self._alike[path] = self._numbers.setdefault(
                (len(path), content), len(self._numbers)
            )
        return found


def _rank(selection: Selection) -> tuple[tuple[int, ...], int]:
    return selection.spread, selection.left_over
