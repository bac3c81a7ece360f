"""Bounds by room: how many entries the devices that requests compete for can take, against how many the requests want.

A device that is not shared takes one entry, but the partitions of a GPU only as many as their counters allow; a shareable device takes
as many as its capacities allow. Requests whose devices all lie within a set need room there.
"""

from __future__ import annotations

from collections.abc import Sequence

from drayman.allocator.problem.tables import Tables
from drayman.allocator.pruning.demand import RequestDemand
from drayman.allocator.tree.state import State, Transitions
from drayman.inventory.bitsets import positions
from drayman.inventory.device import Amount


class RoomBounds:
    """Room on one node."""

    def __init__(self, tables: Tables, transitions: Transitions) -> None:
        self._tables = tables
        self._transitions = transitions
        self._hardware = tables.view.hardware
        self._shareable = tables.view.hardware.shareable
        self._counted = self._hardware.consumers & ~self._shareable
        self._members: dict[int, tuple[tuple[int, int], ...]] = {}
        self._fitting: dict[tuple[int, int, tuple[Amount, ...]], int] = {}
        self._shares: dict[tuple[int, tuple[Amount, ...], frozenset[int]], int] = {}

    def _by_set(self, devices: int) -> tuple[tuple[int, int], ...]:
        """Exclusive devices by counter set. One that takes from several sets is counted with the first of them."""
        found = self._members.get(devices)
        if found is None:
            sets: dict[int, int] = {}
            for position in positions(devices):
                consumption = self._hardware.consumption[position]
                if consumption:
                    index = consumption[0][0]
                    sets[index] = sets.get(index, 0) | 1 << position
            found = self._members[devices] = tuple(sets.items())
        return found

    def suffices(self, wanted: Sequence[tuple[RequestDemand, int]], state: State) -> bool:
        """Whether there is room for the demands, each with the devices that it can reach."""
        if not self._counted and not self._shareable:
            return True
        charges = frozenset(a.charge for demand, _ in wanted for a in demand.alternatives)
        return all(
            self._within(devices, wanted, charges, state)
            for devices in dict.fromkeys(devices for _, devices in wanted)
        )

    def _within(
        self,
        devices: int,
        wanted: Sequence[tuple[RequestDemand, int]],
        charges: frozenset[int],
        state: State,
    ) -> bool:
        need = requests = 0
        for demand, reach in wanted:
            if not reach & ~devices:
                need += demand.need
                requests += len(demand.sizes)
        room = 0
        shared = devices & self._shareable
        for position in positions(shared):
            room += min(requests, self._shares_of(position, charges, state))
            if room >= need:
                return True
        rest = devices & ~self._shareable
        for index, members in self._by_set(rest & self._counted):
            rest ^= members
            room += self._fit(index, members, state)
        return room + rest.bit_count() >= need

    def _fit(self, index: int, devices: int, state: State) -> int:
        """At most how many of these devices fit into what is left of the counter set."""
        left = self._transitions.counters_left(state, index)
        key = (index, devices, left)
        found = self._fitting.get(key)
        if found is None:
            found = devices.bit_count()
            consumed = [self._hardware.consumption[p][0][1] for p in positions(devices)]
            for i, have in enumerate(left):
                found = min(found, _smallest_that_fit([amounts[i] for amounts in consumed], have))
            self._fitting[key] = found
        return found

    def _shares_of(self, position: int, charges: frozenset[int], state: State) -> int:
        """At most how many requests can still share the device."""
        kind = self._hardware.capacity_kind[position]
        left = self._transitions.left(state, position)
        key = (kind, left, charges)
        found = self._shares.get(key)
        if found is None:
            offers = [self._tables.charges[charge][kind] for charge in charges]
            possible = [amounts for amounts in offers if amounts is not None]
            found = 0 if not possible else _most_shares(possible, left)
            self._shares[key] = found
        return found


_UNLIMITED = 1 << 20


def _most_shares(charges: list[tuple[Amount, ...]], left: tuple[Amount, ...]) -> int:
    most = _UNLIMITED
    for i, have in enumerate(left):
        least = min(amounts[i] for amounts in charges)
        if least > 0:
            most = min(most, max(0, int(have // least)))
    return most


def _smallest_that_fit(amounts: list[Amount], have: Amount) -> int:
    amounts.sort()
    count = 0
    for amount in amounts:
        have -= amount
        if have < 0:
            break
        count += 1
    return count
