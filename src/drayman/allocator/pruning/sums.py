"""Bounds by sums: the least that the requests ahead take of each counter and capacity, against the total that is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from drayman.allocator.problem.tables import Alternative, Tables
from drayman.allocator.pruning.demand import Ahead, RequestDemand
from drayman.allocator.tree.state import State, Transitions
from drayman.inventory.bitsets import positions
from drayman.inventory.device import Amount


class Sums:
    """Sums over one problem."""

    def __init__(self, tables: Tables, transitions: Transitions) -> None:
        self._tables = tables
        self._transitions = transitions
        self._hardware = tables.view.hardware
        self._counter_floors: dict[int, Mapping[str, Amount]] = {}  # by candidates
        # By candidates and capacity request.
        self._capacity_floors: dict[tuple[int, int], Mapping[str, Amount]] = {}
        self._sets_of: dict[int, tuple[int, ...]] = {}
        self._supplies: dict[tuple[int, str, Amount], Amount] = {}
        self._indices: dict[int, dict[str, int]] = {}

    def suffice(self, ahead: Ahead, state: State) -> bool:
        if self._hardware.counter_sets and not self._counters_suffice(ahead, state):
            return False
        return not self._hardware.shareable or self._capacities_suffice(ahead, state)

    def largest_counter(self, name: str) -> Amount:
        """The most that any counter set has of a counter."""
        return max(
            limit
            for info in self._hardware.counter_sets
            for counter, limit in zip(info.names, info.limits, strict=True)
            if counter == name
        )

    def largest_capacity(self, name: str) -> Amount:
        """The most that any device has of a capacity."""
        return max(
            capacity.value
            for capacities in self._hardware.capacity_kinds
            for capacity in capacities
            if capacity.name == name
        )

    # --- Counters ---------------------------------------------------------------------------------

    def _counters_suffice(self, ahead: Ahead, state: State) -> bool:
        needed: dict[str, Amount] = {}
        smallest: dict[str, Amount] = {}
        candidates = 0
        for demand in ahead.exact:
            floors = self.counter_floor(demand.only)
            # A device that takes from two sets takes less from each: what is left in one set then says little.
            divided = floors and not self._takes_from_one_set(demand.only)
            for name, amount in floors.items():
                needed[name] = needed.get(name, 0) + amount * demand.need
                smallest[name] = min(0 if divided else amount, smallest.get(name, amount))
            if floors:
                candidates |= demand.only.candidates
                if not divided and not self._fits_by_set(demand, floors, state):
                    return False
        if not needed:
            return True
        supply: dict[str, Amount] = dict.fromkeys(needed, 0)
        for index in self._touched(candidates):
            info = self._hardware.counter_sets[index]
            for name, left in zip(
                info.names, self._transitions.counters_left(state, index), strict=True
            ):
                if name in needed and left >= smallest[name]:
                    supply[name] += left
        return all(supply[name] >= amount for name, amount in needed.items())

    def _fits_by_set(
        self, demand: RequestDemand, floors: Mapping[str, Amount], state: State
    ) -> bool:
        """How many devices of this kind each counter set can still give, added up."""
        fitting = 0
        for index in self._touched(demand.only.candidates):
            info = self._hardware.counter_sets[index]
            fits: Amount | None = None
            for name, left in zip(
                info.names, self._transitions.counters_left(state, index), strict=True
            ):
                floor = floors.get(name)
                if floor:
                    times = left // floor
                    fits = times if fits is None else min(fits, times)
            if fits is None:
                return True
            fitting += max(0, int(fits))
            if fitting >= demand.need:
                return True
        return False

    def _takes_from_one_set(self, alternative: Alternative) -> bool:
        consumption = self._hardware.consumption
        return all(
            len(consumption[position]) == 1 for position in positions(alternative.candidates)
        )

    def _touched(self, devices: int) -> tuple[int, ...]:
        """The counter sets that these devices consume from."""
        found = self._sets_of.get(devices)
        if found is None:
            consumption = self._hardware.consumption
            indices = {index for p in positions(devices) for index, _ in consumption[p]}
            found = self._sets_of[devices] = tuple(sorted(indices))
        return found

    def counter_floor(self, alternative: Alternative) -> Mapping[str, Amount]:
        """The least that any candidate consumes, of counters that all candidates consume."""
        found = self._counter_floors.get(alternative.candidates)
        if found is None:
            found = _common_floor(
                self._consumed_by(position) for position in positions(alternative.candidates)
            )
            self._counter_floors[alternative.candidates] = found
        return found

    def _consumed_by(self, position: int) -> dict[str, Amount]:
        total: dict[str, Amount] = {}
        if self._hardware.shareable >> position & 1:
            return total  # it may be charged once for many
        for index, amounts in self._hardware.consumption[position]:
            names = self._hardware.counter_sets[index].names
            for name, amount in zip(names, amounts, strict=True):
                if amount > 0:
                    total[name] = total.get(name, 0) + amount
        return total

    # --- Capacities -------------------------------------------------------------------------------

    def _capacities_suffice(self, ahead: Ahead, state: State) -> bool:
        needed: dict[str, Amount] = {}
        smallest: dict[str, Amount] = {}
        devices = 0
        for demand in ahead.exact:
            floors = self.capacity_floor(demand.only)
            for name, amount in floors.items():
                needed[name] = needed.get(name, 0) + amount * demand.need
                smallest[name] = min(amount, smallest.get(name, amount))
            if floors:
                devices |= demand.only.candidates
        for name, amount in needed.items():
            supply = self._untouched(devices, name, smallest[name])
            # No device that was used since can have lost more than what was taken and a rest too small for anything.
            if supply - state.spent.get(name, 0) - len(state.left) * smallest[name] >= amount:
                continue
            for position, left in state.left.items():
                if devices >> position & 1:
                    supply += self._usable(position, left, name, smallest[name])
                    supply -= self._usable_before(position, name, smallest[name])
            if supply < amount:
                return False
        return True

    def _untouched(self, devices: int, name: str, smallest: Amount) -> Amount:
        key = (devices, name, smallest)
        found = self._supplies.get(key)
        if found is None:
            found = sum(self._usable_before(p, name, smallest) for p in positions(devices))
            self._supplies[key] = found
        return found

    def _usable_before(self, position: int, name: str, smallest: Amount) -> Amount:
        return self._usable(position, self._tables.view.usage.remaining(position), name, smallest)

    def _usable(
        self, position: int, left: tuple[Amount, ...], name: str, smallest: Amount
    ) -> Amount:
        """What a device can still give of a capacity: nothing, if not even the smallest request fits."""
        kind = self._hardware.capacity_kind[position]
        index = self._capacity_index(kind).get(name)
        if index is None or left[index] < smallest:
            return 0
        return left[index]

    def _capacity_index(self, kind: int) -> dict[str, int]:
        index = self._indices.get(kind)
        if index is None:
            capacities = self._hardware.capacity_kinds[kind]
            index = self._indices[kind] = {c.name: i for i, c in enumerate(capacities)}
        return index

    def capacity_floor(self, alternative: Alternative) -> Mapping[str, Amount]:
        """The least that the request takes of each capacity, where every candidate is shared and charged."""
        key = (alternative.candidates, alternative.charge)
        found = self._capacity_floors.get(key)
        if found is None:
            found = {}
            if not alternative.candidates & ~self._hardware.shareable:
                found = _common_floor(self._charges(alternative))
            self._capacity_floors[key] = found
        return found

    def _charges(self, alternative: Alternative) -> Iterator[dict[str, Amount]]:
        """What the request takes, for each kind of device among its candidates."""
        for kind, _, devices in self._tables.view.usage.capacity_groups:
            if devices & alternative.candidates:
                amounts = self._tables.charges[alternative.charge][kind] or ()
                capacities = self._hardware.capacity_kinds[kind]
                yield {c.name: a for c, a in zip(capacities, amounts, strict=True) if a > 0}


def _common_floor(consumptions: Iterable[dict[str, Amount]]) -> Mapping[str, Amount]:
    """The smallest amount by name, of names that are in every one."""
    floor: dict[str, Amount] | None = None
    for consumption in consumptions:
        if floor is None:
            floor = dict(consumption)
            continue
        floor = {n: min(a, consumption[n]) for n, a in floor.items() if n in consumption}
        if not floor:
            break
    return floor or {}
