"""Room for a group that does not fit: who would have to go, or to move, so that it starts.

Victims are added unit by unit, in the order of `Order.victims`. For each pod of the group in turn, those on one node have to suffice: a pod
needs a single node. Only where a limit is what keeps the group out, victims anywhere count. Then those that were taken away come back
where they can, each as its queue's turn comes: before the group, if they are entitled to more. So nobody goes for a group that would not
get the room, and who finds another place is moved.

Whether a way is acceptable is decided by those who ask (`Judgement`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from drayman.quota.shares.groups import Strength, Worker, Workers, next_to_return, strength_of
from drayman.quota.shares.ledger import Ledger, amount
from drayman.quota.shares.order import Order


class Clearing(Struct, frozen=True):
    """A way to make room for a group."""

    group: str
    seats: Mapping[str, str]
    """Where its pods go."""
    gone: Workers
    """Those that lose their places."""
    moved: Mapping[str, str]
    """Those that go elsewhere, and where."""

    @property
    def evicted(self) -> tuple[str, ...]:
        """Everybody who has to stop."""
        return (*(each.name for each in self.gone), *self.moved)


Judgement: TypeAlias = Callable[[Workers, Sequence[Workers], Sequence[Workers]], bool]
"""Whether a way is acceptable: the pods that start, the units that would not be where they were, and those of them that have no place.

It is asked while the ledger shows the way as if it were carried out.
"""


@dataclass(slots=True)
class RoomMaker:
    """Looks for ways to make room. Leaves the ledger as it found it."""

    ledger: Ledger
    order: Order
    most_moved: int | None = None
    """How many pods may be taken away at most, where all of them have to find another place."""

    def clear(
        self, group: str, ahead: str | None, victims: Collection[str], judgement: Judgement
    ) -> Clearing | None:
        """Room for the next start of a group. `ahead` is the group with which its queue stands in line, if it is another."""
        for workers in self.ledger.starts(group):
            search = _Search(self, group, ahead, tuple(victims), judgement)
            found = search.found_for(workers)
            if found is not None:
                return found
        return None


@dataclass(slots=True)
class _Search:
    maker: RoomMaker
    group: str
    ahead: str | None
    victims: tuple[str, ...]
    judgement: Judgement

    def found_for(self, workers: Workers) -> Clearing | None:
        """Room for one pod, then for one more, and so on, each on top of what was taken for those before."""
        if not self._would_fit_alone(workers):
            return None
        units: tuple[Workers, ...] = ()
        found: Clearing | None = None
        for number in range(1, len(workers) + 1):
            way = self._extended(workers[:number], units)
            if way is None:
                return None
            units, found = way
        return found

    def _would_fit_alone(self, workers: Workers) -> bool:
        """Whether the pods would fit if all victims were gone. If not, there is no need to look at them one by one."""
        ledger = self.maker.ledger
        with ledger.trial():
            for name in self.victims:
                for each in ledger.running(name):
                    ledger.lift(each.name)
            return ledger.seat(self.group, workers)

    def _extended(
        self, workers: Workers, units: tuple[Workers, ...]
    ) -> tuple[tuple[Workers, ...], Clearing] | None:
        """The first way for these pods that takes these units away, and perhaps more."""
        for more in self._additions(workers, units):
            found = self._tried(workers, (*units, *more))
            if found is not None:
                return (*units, *more), found
        return None

    def _additions(
        self, workers: Workers, units: tuple[Workers, ...]
    ) -> Iterator[tuple[Workers, ...]]:
        """Which further units to take away. Room that is free without taking any is given out when the cycle begins."""
        if units:
            yield ()
        taken = [worker for unit in units for worker in unit]
        potential: list[Workers] = []
        by_priority = self.maker.most_moved is None
        for unit in self.maker.order.victims(self.victims, taken, by_priority=by_priority):
            potential.append(unit)
            is_limited = False
            for here in self._by_node(unit, potential):
                yield here
                whole = self._with_the_rest(here, potential)
                if len(whole) > len(here):
                    yield whole
                if len(here) > 1:
                    yield (unit,)  # those before it may not be needed, and not find back
                is_limited |= not self._is_allowed(workers, (*units, *here))
            if is_limited and len(potential) > 1:
                yield tuple(potential)

    def _by_node(self, latest: Workers, potential: Sequence[Workers]) -> list[tuple[Workers, ...]]:
        """The units on each node of the latest one, the fewest pods first."""
        ledger = self.maker.ledger
        found = []
        for node in dict.fromkeys(ledger.node_of(each.name) for each in latest):
            here = (u for u in potential if any(ledger.node_of(w.name) == node for w in u))
            found.append(tuple(here))
        return sorted(found, key=lambda units: sum(map(len, units)))

    def _with_the_rest(
        self, units: Sequence[Workers], potential: Sequence[Workers]
    ) -> tuple[Workers, ...]:
        """The same units, with all others of groups that could not do without them."""
        ledger = self.maker.ledger
        gone = {worker.name for unit in units for worker in unit}
        broken: set[str] = set()
        for name in {unit[0].group for unit in units}:
            left = [each for each in ledger.running(name) if each.name not in gone]
            if left and strength_of(ledger.groups[name], left) is Strength.BELOW:
                broken.add(name)
        chosen = {id(unit) for unit in units}
        return tuple(u for u in potential if id(u) in chosen or u[0].group in broken)

    def _is_allowed(self, workers: Workers, units: tuple[Workers, ...]) -> bool:
        """Whether limits and quotas leave room for the pods once units are gone, wherever they are."""
        ledger = self.maker.ledger
        with ledger.trial():
            for unit in units:
                for each in unit:
                    ledger.lift(each.name)
            return ledger.allows(self.group, workers)

    def _tried(self, workers: Workers, units: tuple[Workers, ...]) -> Clearing | None:
        """What comes of it if units are taken away."""
        ledger, most = self.maker.ledger, self.maker.most_moved
        if most is not None and sum(map(len, units)) > most:
            return None
        before = {each.name: ledger.node_of(each.name) for unit in units for each in unit}
        weak = {unit[0].group for unit in units if ledger.strength(unit[0].group) is Strength.BELOW}
        with ledger.trial():
            for name in before:
                ledger.lift(name)
            if not self._seated(workers, units) or self._is_any_broken(units, weak):
                return None
            changed = [
                _those(unit, lambda w: ledger.node_of(w.name) != before[w.name]) for unit in units
            ]
            lost = [_those(unit, lambda w: ledger.node_of(w.name) is None) for unit in units]
            if not self.judgement(workers, list(filter(None, changed)), list(filter(None, lost))):
                return None
            moved = {
                each.name: node
                for unit in changed
                for each in unit
                if (node := ledger.node_of(each.name)) is not None
            }
            seats = {each.name: ledger.node_of(each.name) or "" for each in workers}
            return Clearing(self.group, seats, tuple(w for unit in lost for w in unit), moved)

    def _is_any_broken(self, units: Sequence[Workers], weak: Collection[str]) -> bool:
        """Whether a group that had enough members would be left with too few, and not with none."""
        ledger = self.maker.ledger
        groups = {unit[0].group for unit in units}
        return any(
            ledger.running(name) and ledger.strength(name) is Strength.BELOW
            for name in groups.difference(weak)
        )

    def _seated(self, workers: Workers, units: tuple[Workers, ...]) -> bool:
        """Give out what is free now, to the group and to those that were taken away. Returns whether the group gets its part."""
        ledger = self.maker.ledger
        gone: dict[str, list[Worker]] = {}
        for unit in units:
            for each in unit:
                gone.setdefault(each.group, []).append(each)

        def returning(name: str) -> Workers:
            return next_to_return(ledger.groups[name], ledger.running(name), gone[name])

        def request(name: str) -> int:
            if name != self.group:
                return amount(returning(name))
            return amount(workers) if self.ahead is None else ledger.request(self.ahead)

        open_ = {*gone, self.group}
        while open_:
            name = self.maker.order.next(open_, request, is_supposed=True)
            open_.discard(name)
            if name == self.group:
                if not ledger.seat(name, workers):
                    return False
            elif back := returning(name):
                ledger.seat(name, back)
        return True


def _those(unit: Workers, chosen: Callable[[Worker], bool]) -> Workers:
    return tuple(filter(chosen, unit))
