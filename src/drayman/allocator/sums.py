"""Bounds by sums: what the requests ahead take of each counter and capacity at the least, against what is left in all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drayman.allocator.demand import Ahead, Demand
from drayman.allocator.state import State, Transitions
from drayman.allocator.tables import Alternative, Tables
from drayman.inventory.device import Amount
from drayman.inventory.view import positions


class Sums:
    """Sums over one problem."""

    def __init__(self, tables: Tables, transitions: Transitions) -> None:
        self._tables = tables
        self._transitions = transitions
        self._hardware = tables.view.hardware
        self._counter_floors: dict[Alternative, Mapping[str, Amount]] = {}
        self._capacity_floors: dict[Alternative, Mapping[str, Amount]] = {}
        self._sets_of: dict[int, tuple[int, ...]] = {}

    def suffice(self, ahead: Ahead, state: State, reach: Mapping[Demand, int]) -> bool:
        if self._hardware.counter_sets and not self._counters_suffice(ahead, state):
            return False
        return not self._hardware.shareable or self._capacities_suffice(ahead, state, reach)

    # --- Counters ---------------------------------------------------------------------------------

    def _counters_suffice(self, ahead: Ahead, state: State) -> bool:
        needed: dict[str, Amount] = {}
        smallest: dict[str, Amount] = {}
        candidates = 0
        for demand in ahead.exact:
            floors = self._counter_floor(demand.only)
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
        supply = dict.fromkeys(needed, 0)
        for index in self._touched(candidates):
            info = self._hardware.counter_sets[index]
            for name, left in zip(info.names, state.counters[index], strict=True):
                if name in needed and left >= smallest[name]:
                    supply[name] += left
        return all(supply[name] >= amount for name, amount in needed.items())

    def _fits_by_set(self, demand: Demand, floors: Mapping[str, Amount], state: State) -> bool:
        """How many devices of this kind each counter set can still give, added up."""
        fitting = 0
        for index in self._touched(demand.only.candidates):
            info = self._hardware.counter_sets[index]
            fits: Amount | None = None
            for name, left in zip(info.names, state.counters[index], strict=True):
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
        return all(len(consumption[position]) == 1 for position in positions(alternative.candidates))

    def _touched(self, devices: int) -> tuple[int, ...]:
        """The counter sets that these devices consume from."""
        found = self._sets_of.get(devices)
        if found is None:
            consumption = self._hardware.consumption
            indices = {index for p in positions(devices) for index, _ in consumption[p]}
            found = self._sets_of[devices] = tuple(sorted(indices))
        return found

    def _counter_floor(self, alternative: Alternative) -> Mapping[str, Amount]:
        """The least that any candidate consumes, of counters that all candidates consume."""
        found = self._counter_floors.get(alternative)
        if found is None:
            found = _common_floor(
                self._consumed_by(position) for position in positions(alternative.candidates)
            )
            self._counter_floors[alternative] = found
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

    def _capacities_suffice(
        self, ahead: Ahead, state: State, reach: Mapping[Demand, int]
    ) -> bool:
        needed: dict[str, Amount] = {}
        smallest: dict[str, Amount] = {}
        devices = 0
        for demand in ahead.exact:
            floors = self._capacity_floor(demand.only)
            for name, amount in floors.items():
                needed[name] = needed.get(name, 0) + amount * demand.need
                smallest[name] = min(amount, smallest.get(name, amount))
            if floors:
                devices |= reach[demand]
        if not needed:
            return True
        supply = dict.fromkeys(needed, 0)
        for position in positions(devices):
            kind = self._hardware.capacity_kinds[self._hardware.capacity_kind[position]]
            for capacity, left in zip(kind, self._transitions.left(state, position), strict=True):
                if capacity.name in needed and left >= smallest[capacity.name]:
                    supply[capacity.name] += left
        return all(supply[name] >= amount for name, amount in needed.items())

    def _capacity_floor(self, alternative: Alternative) -> Mapping[str, Amount]:
        """The least that the request takes of each capacity, where every candidate is shared and charged."""
        found = self._capacity_floors.get(alternative)
        if found is None:
            found = _common_floor(
                self._charged(alternative, position)
                for position in positions(alternative.candidates)
            )
            self._capacity_floors[alternative] = found
        return found

    def _charged(self, alternative: Alternative, position: int) -> dict[str, Amount]:
        if not self._hardware.shareable >> position & 1:
            return {}
        kind = self._hardware.capacity_kind[position]
        amounts = self._tables.charges[alternative.charge][kind] or ()
        return {
            capacity.name: amount
            for capacity, amount in zip(self._hardware.capacity_kinds[kind], amounts, strict=False)
            if amount > 0
        }


def _common_floor(consumptions: Iterable[dict[str, Amount]]) -> Mapping[str, Amount]:
    """By name the smallest amount, of names that are in every one."""
    floor: dict[str, Amount] | None = None
    for consumption in consumptions:
        if floor is None:
            floor = dict(consumption)
            continue
        floor = {n: min(a, consumption[n]) for n, a in floor.items() if n in consumption}
        if not floor:
            break
    return floor or {}
