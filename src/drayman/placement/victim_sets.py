"""Which victims have to go so that work fits, where a policy says which of them may go together.

A policy such as that of queues permits amounts, not pods: a queue that has more than its own may lose so much, whichever of its pods these
are. Which of them are of use depends on their nodes. So sets of victims are proposed, best first: those that clear the fewest nodes of the
fewest victims, the newest first. The caller looks for room for all of the work without each of them, until it fits.

Nothing is proposed twice, and everything is bounded by numbers of steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Generic, TypeAlias, TypeVar

from drayman.placement.domains.rooms import Amounts, holds

C = TypeVar("C")
Permitted: TypeAlias = Callable[[Sequence[C]], Sequence[C]]
"""Of victims that would go in this order, those that may, in an order in which they may: all of them if there is such an order. Any of them
may stay all the same. Victims without which others make no sense may be added."""

MOST_SETS: Final = 16
"""How many sets of the victims on one node are proposed. The first of them is nearly always all of them."""
MOST_STEPS: Final = 2_000
"""How many sets are looked at, before those that free too little are left out."""
_MOST_ORDERS: Final = 64
_MOST_RANKED: Final = 1_000
"""How many questions about nodes are asked before they are in order. Nodes beyond are left out."""


def permitted_sets(
    order: Sequence[C], permitted: Permitted[C], before: Sequence[C] = ()
) -> Iterator[tuple[C, ...]]:
    """Sets of victims that may go together, in an order in which they may, each with others that go in any case.

    First the set that their order makes, then those of other orders, in which one comes first that was left out. None of them is larger
    by one of the victims.
    """
    seen: set[frozenset[int]] = set()
    fronts: deque[tuple[C, ...]] = deque([()])
    known: set[tuple[int, ...]] = set()
    gone = frozenset(map(id, before))
    for _ in range(_MOST_ORDERS):
        if not fronts:
            return
        front = fronts.popleft()
        first = {id(each) for each in front}
        line = [*front, *(each for each in order if id(each) not in first | gone)]
        found = _largest(before, line, permitted)
        chosen = frozenset(map(id, found))
        if gone < chosen and chosen not in seen:
            seen.add(chosen)
            yield found
        for each in line:
            if id(each) not in chosen:
                longer = (each, *front)
                name = tuple(map(id, longer))
                if name not in known:
                    known.add(name)
                    fronts.append(longer)


def _largest(before: Sequence[C], line: Sequence[C], permitted: Permitted[C]) -> tuple[C, ...]:
    """A set of victims that may go together with others, as many as may, those first that come first."""
    found, chosen = tuple(before), frozenset(map(id, before))
    for tried in (line, *((each,) for each in line)):
        missing = [each for each in tried if id(each) not in chosen]
        if not missing:
            continue
        longer = tuple(permitted([*found, *missing]))
        ids = frozenset(map(id, longer))
        if chosen < ids:
            found, chosen = longer, ids
    return found


class VictimSets(Generic[C]):
    """The sets of victims for some work, in the cluster of one moment."""

    def __init__(
        self,
        order: Sequence[C],
        on_node: Mapping[str, Sequence[C]],
        permitted: Permitted[C],
        held: Callable[[str, Sequence[C]], Amounts],
        missing: Amounts,
        most_steps: int = MOST_STEPS,
    ) -> None:
        """`order` has the victims in the order in which they should go, `on_node` those of each node in the same order. One may be on
        several nodes.

        `held` says how much of the work a node holds if some of the victims are gone, which may be too much and is never too little;
        `missing` is how much more than now is needed.
        """
        self._places = {id(each): place for place, each in enumerate(order)}
        self._on_node = on_node
        self._present = {name: {id(c) for c in those} for name, those in on_node.items()}
        self._nodes_of: dict[int, list[str]] = {}
        for name, those in on_node.items():
            for each in those:
                self._nodes_of.setdefault(id(each), []).append(name)
        self._permitted = permitted
        self._held = held
        self._missing = missing
        self._left = most_steps
        self._left_out = False
        self._known: dict[tuple[str, frozenset[int]], Amounts] = {}
        self._proposed: set[frozenset[int]] = set()

    @property
    def gave_up(self) -> bool:
        """Whether there may be sets that were not proposed, because too many were looked at."""
        return self._left_out or self._left <= 0

    def __iter__(self) -> Iterator[tuple[C, ...] | None]:
        """The sets; None where a break may be taken, as nothing is supposed then."""
        ranked = yield from self._ranked()
        for width, goes_on in ((1, False), (MOST_SETS, True)):
            for found in self._deeper(ranked, 0, (), width, goes_on=goes_on):
                if found is None:
                    yield None
                    continue
                chosen = frozenset(map(id, found))
                if chosen not in self._proposed:
                    self._proposed.add(chosen)
                    yield found

    def _ranked(self) -> Generator[None, None, list[str]]:
        """The nodes that are of use, those first of which the fewest victims have to go for what is gained, and the newest of them."""
        ranks: list[tuple[bool, float, tuple[int, ...], str]] = []
        for name, those in self._on_node.items():
            yield None
            if len(self._known) >= _MOST_RANKED:
                self._left_out = True
                break
            if self._scale(self._gain(name, those)) <= 0:
                continue
            first = self._shortened(next(permitted_sets(those, self._permitted), ()))
            gain = self._scale(self._total(first))
            order = tuple(self._places.get(id(each), len(self._places)) for each in first)
            ranks.append((gain <= 0, len(first) / max(gain, 1), order, name))
        return [name for *_, name in sorted(ranks)]

    def _deeper(
        self, ranked: Sequence[str], start: int, gone: tuple[C, ...], width: int, *, goes_on: bool
    ) -> Iterator[tuple[C, ...] | None]:
        """Sets with victims on further nodes. `goes_on`: also where others are enough by counting."""
        now = self._total(gone)
        for index in range(start, len(ranked)):
            if self._left <= 0 or not self._can_do(now, ranked[index:]):
                return
            went = frozenset(map(id, gone))
            order = [each for each in self._on_node[ranked[index]] if id(each) not in went]
            for more in islice(permitted_sets(order, self._permitted, gone), width):
                self._left -= 1
                yield None
                chosen = self._shortened(more, went)
                if self._scale(self._total(chosen)) <= self._scale(now):
                    continue
                is_enough = holds(self._total(chosen), self._missing)
                if is_enough:
                    yield chosen
                if goes_on or not is_enough:
                    yield from self._deeper(ranked, index + 1, chosen, width, goes_on=goes_on)
                if self._left <= 0:
                    return

    def _can_do(self, now: Amounts, nodes: Sequence[str]) -> bool:
        """Whether nodes would free enough if all victims on them went."""
        most = list(now)
        for name in nodes:
            for index, amount in enumerate(self._gain(name, self._on_node[name])):
                most[index] += amount
        return holds(tuple(most), self._missing)

    def _shortened(
        self, chosen: tuple[C, ...], gone: frozenset[int] = frozenset()
    ) -> tuple[C, ...]:
        """Those that go in any case, and the first of the others that free as much as all of them."""
        others = [each for each in chosen if id(each) not in gone]

        def first(number: int) -> tuple[C, ...]:
            left_out = {id(each) for each in others[number:]}
            return tuple(each for each in chosen if id(each) not in left_out)

        low, high = 0, len(others)
        all_of_it = self._capped(self._total(chosen))
        while low < high:
            middle = (low + high) // 2
            if self._capped(self._total(first(middle))) == all_of_it:
                high = middle
            else:
                low = middle + 1
        return first(low)

    def _total(self, gone: Sequence[C]) -> Amounts:
        total = [0] * len(self._missing)
        nodes = dict.fromkeys(name for each in gone for name in self._nodes_of.get(id(each), ()))
        for name in nodes:
            for index, amount in enumerate(self._gain(name, gone)):
                total[index] += amount
        return tuple(total)

    def _gain(self, name: str, gone: Sequence[C]) -> Amounts:
        """What a node holds more than now."""
        here = [each for each in gone if id(each) in self._present[name]]
        now, then = self._asked(name, ()), self._asked(name, here)
        return tuple(max(0, t - n) for t, n in zip(then, now, strict=True))

    def _asked(self, name: str, here: Sequence[C]) -> Amounts:
        key = (name, frozenset(map(id, here)))
        if key not in self._known:
            self._known[key] = self._held(name, here)
        return self._known[key]

    def _capped(self, amounts: Amounts) -> Amounts:
        return tuple(min(a, m) for a, m in zip(amounts, self._missing, strict=True))

    def _scale(self, amounts: Amounts) -> int:
        return sum(max(0, each) for each in self._capped(amounts))
