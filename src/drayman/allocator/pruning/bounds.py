"""Bounds: reasons why the requests ahead cannot all be served, found without trying.

Each is a relaxation: it forgets some of the rules, so what it refutes is impossible and nothing that is possible is refuted.
In order of usefulness: values that a match constraint can still take, counts, a flow of places to devices, sums of
counters and capacities, and the number of distinct values.
"""

from __future__ import annotations

from msgspec import Struct

from drayman.allocator.problem.tables import Alternative, Tables
from drayman.allocator.pruning.demand import Ahead, Forecast, RequestDemand, group, single
from drayman.allocator.pruning.flow import largest_matching, serves
from drayman.allocator.pruning.room import RoomBounds
from drayman.allocator.pruning.sums import Sums
from drayman.allocator.tree.state import State, Transitions
from drayman.inventory.bitsets import positions

_KINDS_FOR_ROOM = 24
"""Room compares every demand with every other; with more kinds of requests than this it would cost more than it saves."""


class _Head(Struct, frozen=True):
    """The request at hand: so many more devices out of a set."""

    demand: RequestDemand
    rest: int


class Bounds:
    """The bounds of one problem."""

    def __init__(self, tables: Tables, transitions: Transitions) -> None:
        self._tables = tables
        self._transitions = transitions
        self._forecast = Forecast(tables)
        self._shareable = tables.view.hardware.shareable
        self._sums = Sums(tables, transitions)
        self._room = RoomBounds(tables, transitions)
        self._common: dict[tuple[object, ...], int] = {}

    def kinds_ahead(self, request: int) -> int:
        """How many kinds of requests a bound from here on has to look at, at most."""
        return self._forecast.kinds_ahead(request)

    def enter(self, request: int, state: State) -> State | None:
        """The state with the possible values narrowed; None if nothing is possible."""
        ahead = self._forecast.ahead(request)
        if not ahead.demands:
            return state
        claim = self._tables.requests[request].claim
        values = self._check(ahead, state, claim, None)
        if values is None:
            return None
        return state if values == state.values else self._transitions.narrowed(state, values)

    def more(self, alternative: Alternative, missing: int, rest: int, state: State) -> bool:
        """Whether the request can still get so many out of `rest`, and the requests after it what they need."""
        demand = single(alternative, missing)
        after = self._forecast.ahead(alternative.request + 1)
        ahead = group([demand, *after.demands])
        return self._check(ahead, state, alternative.claim, _Head(demand, rest)) is not None

    def _check(
        self, ahead: Ahead, state: State, claim: int, head: _Head | None
    ) -> tuple[int, ...] | None:
        reach = {
            demand: head.rest
            if head and demand is head.demand
            else self._reach(demand.only, demand.claim == claim, state)
            for demand in ahead.exact
        }
        values = self._narrow(ahead, state, reach)
        if values is None:
            return None
        flow: list[tuple[int, int]] = []
        ordinary: list[tuple[RequestDemand, int]] = []
        for demand, devices in reach.items():
            for index in demand.only.matches:
                devices &= self._tables.matches[index].attribute.allowed(values[index])
            reach[demand] = devices
            if not self._enough(demand, devices):
                return None
            if not demand.only.admin:
                flow.append(self._exclusive(demand, devices))
                ordinary.append((demand, devices))
        for demand in ahead.listed:
            union = self._listed(demand, state, claim, values)
            if union is None:
                return None
            flow.append(self._exclusive(demand, union))
            ordinary.append((demand, union))
        if len(flow) > 1 and not serves(flow):
            return None
        if len(ordinary) <= _KINDS_FOR_ROOM and not self._room.suffices(ordinary, state):
            return None
        if not self._sums.suffice(ahead, state):
            return None
        return values if self._distinct_values_suffice(ahead, reach) else None

    def _reach(self, alternative: Alternative, in_claim_at_hand: bool, state: State) -> int:
        """The devices that a request ahead could get, leaving aside with which others."""
        if in_claim_at_hand:
            return self._reach_now(alternative, state)
        devices = alternative.candidates
        if not alternative.admin:
            devices &= ~state.taken
        devices &= ~(state.counter_blocked & ~state.paid)
        devices &= ~state.capacity_blocked[alternative.charge]
        return self._as_far_as_all(alternative, devices)

    def _reach_now(self, alternative: Alternative, state: State) -> int:
        devices = self._transitions.reachable(state, alternative, alternative.candidates)
        for index in alternative.distincts:
            devices &= ~state.distinct[index]
        return self._as_far_as_all(alternative, devices)

    def _as_far_as_all(self, alternative: Alternative, devices: int) -> int:
        """A request for all devices can only use its own."""
        if alternative.sequence is None:
            return devices
        return devices & sum(1 << position for position in alternative.sequence)

    def _enough(self, demand: RequestDemand, devices: int) -> bool:
        shared = (devices & self._shareable).bit_count()
        if not shared:
            return devices.bit_count() >= demand.need
        own = devices.bit_count() - shared
        return own + shared >= demand.largest and own + shared * len(demand.sizes) >= demand.need

    def _exclusive(self, demand: RequestDemand, devices: int) -> tuple[int, int]:
        """The exclusive devices that are needed when every request also uses each shareable one."""
        shared = (devices & self._shareable).bit_count()
        if not shared:
            return devices, demand.need
        own = devices & ~self._shareable
        if shared >= demand.largest:
            return own, 0
        return own, sum(max(0, size - shared) for size in demand.sizes)

    def _listed(
        self, demand: RequestDemand, state: State, claim: int, values: tuple[int, ...]
    ) -> int | None:
        """The devices that some alternative can use; None if no alternative is possible any more."""
        union, possible = 0, False
        for alternative in demand.alternatives:
            devices = self._reach(alternative, demand.claim == claim, state)
            for index in alternative.matches:
                devices &= self._tables.matches[index].attribute.allowed(values[index])
            if devices.bit_count() >= alternative.number and alternative.sequence != ():
                union |= devices
                possible = True
        return union if possible else None

    def _narrow(
        self, ahead: Ahead, state: State, reach: dict[RequestDemand, int]
    ) -> tuple[int, ...] | None:
        """For each match constraint the values with which all its requests can be served."""
        if not ahead.by_match:
            return state.values
        values = list(state.values)
        for index, demands in ahead.by_match.items():
            attribute = self._tables.matches[index].attribute
            key = (
                id(attribute),
                values[index],
                *[(reach[d], d.need, d.largest, len(d.sizes), d.only.distincts) for d in demands],
            )
            common = self._common.get(key)
            if common is None:
                common = 0
                for value in positions(values[index]):
                    if self._value_suffices(attribute.holders[value], demands, reach):
                        common |= 1 << value
                self._common[key] = common
            if not common:
                return None
            values[index] = common
        return tuple(values)

    def _value_suffices(
        self, holders: int, demands: list[RequestDemand], reach: dict[RequestDemand, int]
    ) -> bool:
        union, needed = 0, 0
        for demand in demands:
            devices = reach[demand] & holders
            if not self._enough(demand, devices):
                return False
            for index in demand.only.distincts:
                if len(self._distinct_values(index, devices)) < demand.need:
                    return False
            own, need = self._exclusive(demand, devices)
            if not demand.only.admin:
                union |= own
                needed += need
        return union.bit_count() >= needed

    def _distinct_values(self, index: int, devices: int) -> list[int]:
        """The sets of devices with the same value, of those given."""
        holders = self._tables.distincts[index].attribute.holders
        return [having for holder in holders if (having := holder & devices)]

    def _distinct_values_suffice(self, ahead: Ahead, reach: dict[RequestDemand, int]) -> bool:
        for index, demands in ahead.by_distinct.items():
            flow = [(self._value_ids(index, reach[d]), d.need) for d in demands]
            if not serves(flow):
                return False
        return all(
            self._pairs_suffice(demand, reach[demand])
            for demand in ahead.exact
            if len(demand.only.distincts) > 1
        )

    def _value_ids(self, index: int, devices: int) -> int:
        holders = self._tables.distincts[index].attribute.holders
        return sum(1 << value for value, holder in enumerate(holders) if holder & devices)

    def _pairs_suffice(self, demand: RequestDemand, devices: int) -> bool:
        """With two attributes that must differ, each device uses up a value of both: count the pairs that do not meet."""
        first, *others = demand.only.distincts
        groups = self._distinct_values(first, devices)
        return all(
            largest_matching(self._value_ids(other, having) for having in groups) >= demand.need
            for other in others
        )
