"""What has been placed so far, and how placing one more device changes it.

States are values: placing a device makes a new one, giving a device up means going back to the old one. Nothing has to be undone, so
nothing can be undone wrongly.
"""

from __future__ import annotations

from drayman.allocator.problem.tables import Alternative, Tables
from drayman.inventory.counters import exceeds
from drayman.inventory.device import Amount


class State:
    """A partial allocation, reduced to what later choices depend on."""

    __slots__ = (
        "anchored",
        "capacity_blocked",
        "counter_blocked",
        "counters",
        "distinct",
        "entries",
        "left",
        "mine",
        "paid",
        "spent",
        "taken",
        "values",
    )

    def __init__(
        self,
        taken: int,
        mine: int,
        entries: int,
        paid: int,
        counters: dict[int, tuple[Amount, ...]],
        counter_blocked: int,
        left: dict[int, tuple[Amount, ...]],
        spent: dict[str, Amount],
        capacity_blocked: tuple[int, ...],
        values: tuple[int, ...],
        anchored: int,
        distinct: tuple[int, ...],
    ) -> None:
        self.taken = taken  # exclusive devices that an ordinary request can no longer get
        self.mine = mine  # exclusive devices of the claim at hand, admin access included
        self.entries = entries  # results of the claim at hand
        self.paid = paid  # shareable devices whose counters are charged
        self.counters = counters  # what is left of the counter sets consumed from by devices here
        self.counter_blocked = counter_blocked  # devices for which that is not enough
        self.left = left  # remaining capacities of the shareable devices placed here
        self.spent = spent  # by name, what was taken of the capacities of all of them
        self.capacity_blocked = capacity_blocked  # by capacity request: devices without enough left
        self.values = values  # by match constraint: values that can still be common to all
        self.anchored = anchored  # match constraints that have a device
        self.distinct = distinct  # by distinct constraint: devices with a value of a placed one


class Transitions:
    """Placing devices, for one problem."""

    def __init__(self, tables: Tables, *, admin_blocks: bool) -> None:
        """`admin_blocks`: a device placed with admin access is lost to ordinary requests after it, as in upstream."""
        self._tables = tables
        self._usage = tables.view.usage
        self._hardware = tables.view.hardware
        self.admin_blocks = admin_blocks
        self._shareable = self._hardware.shareable
        self._consumption = self._hardware.consumption
        self._counter_tables = self._hardware.counter_tables
        self._initial: State | None = None

    def initial(self) -> State:
        """The state before anything is placed."""
        if self._initial is None:
            self._initial = self._begin()
        return self._initial

    def _begin(self) -> State:
        usage, tables = self._usage, self._tables
        return State(
            taken=0,
            mine=0,
            entries=0,
            paid=usage.paid,
            counters={},
            counter_blocked=usage.counter_blocked,
            left={},
            spent={},
            capacity_blocked=tables.capacity_blocked,
            values=tables.match_values,
            anchored=0,
            distinct=(0,) * len(tables.distincts),
        )

    def next_claim(self, state: State) -> State:
        """The state in which the requests of another claim begin."""
        return _with(state, 0, 0, state.values) if state.entries else state

    def narrowed(self, state: State, values: tuple[int, ...]) -> State:
        """The same state with fewer values to choose from."""
        return _with(state, state.mine, state.entries, values)

    def free(self, state: State, alternative: Alternative) -> int:
        """The devices that are not in use in the sense of this request; selectors are evaluated on these only."""
        return ~state.mine if alternative.admin else ~(state.taken | state.mine)

    def reachable(self, state: State, alternative: Alternative, devices: int) -> int:
        """Of these devices, those that the request can get as far as use, counters and capacity go."""
        devices &= ~state.mine if alternative.admin else ~(state.taken | state.mine)
        devices &= ~(state.counter_blocked & ~state.paid)
        return devices & ~state.capacity_blocked[alternative.charge]

    def unoccupied(self, state: State, alternative: Alternative, bit: int) -> bool:
        """Whether a device can be used, as far as use, counters and taints go. For requests for all devices."""
        free = alternative.candidates & self.free(state, alternative)
        return bool(bit & free & ~(state.counter_blocked & ~state.paid))

    def keeps_constraints(self, state: State, alternative: Alternative, position: int) -> bool:
        """Whether the device agrees with what was placed before for the constraints of the request."""
        matches, distincts = self._tables.matches, self._tables.distincts
        return all(
            matches[index].attribute.of_device[position] & state.values[index]
            for index in alternative.matches
        ) and all(
            distincts[index].attribute.of_device[position]
            and not state.distinct[index] >> position & 1
            for index in alternative.distincts
        )

    def can_place(self, state: State, alternative: Alternative, position: int) -> bool:
        """Whether a device of a request for all devices can be placed."""
        bit = 1 << position
        return (
            self.unoccupied(state, alternative, bit)
            and not state.capacity_blocked[alternative.charge] & bit
            and self.keeps_constraints(state, alternative, position)
        )

    def available(self, state: State, alternative: Alternative) -> int:
        """The devices that can be placed next for the request."""
        devices = self.reachable(state, alternative, alternative.candidates)
        for index in alternative.matches:
            devices &= self._tables.matches[index].attribute.allowed(state.values[index])
        for index in alternative.distincts:
            devices &= ~state.distinct[index]
        return devices

    def place(self, state: State, alternative: Alternative, position: int) -> State:
        """The state after giving the device to the request. The device must be available."""
        bit = 1 << position
        taken, mine, paid = state.taken, state.mine, state.paid
        counters, blocked = state.counters, state.counter_blocked
        left, spent, capacity_blocked = state.left, state.spent, state.capacity_blocked
        if self._consumption[position] and not paid & bit:
            counters, blocked = self.charge_counters(counters, blocked, position)
        if self._shareable & bit:
            paid |= bit
            left, spent, capacity_blocked = self._charge_capacity(
                state, alternative.charge, position
            )
        else:
            mine |= bit
            if self.admin_blocks or not alternative.admin:
                taken |= bit
        values, anchored, distinct = state.values, state.anchored, state.distinct
        if alternative.matches:
            changed = list(values)
            for index in alternative.matches:
                changed[index] &= self._tables.matches[index].attribute.of_device[position]
                anchored |= 1 << index
            values = tuple(changed)
        if alternative.distincts:
            changed = list(distinct)
            for index in alternative.distincts:
                changed[index] |= self._tables.distincts[index].attribute.conflicts[position]
            distinct = tuple(changed)
        return State(
            taken,
            mine,
            state.entries + 1,
            paid,
            counters,
            blocked,
            left,
            spent,
            capacity_blocked,
            values,
            anchored,
            distinct,
        )

    def left(self, state: State, position: int) -> tuple[Amount, ...]:
        """What is left of the capacities of a shareable device."""
        found = state.left.get(position)
        return self._usage.remaining(position) if found is None else found

    def counters_left(self, state: State, index: int) -> tuple[Amount, ...]:
        """What is left of a counter set."""
        found = state.counters.get(index)
        return self._usage.counters[index] if found is None else found

    def charge_counters(
        self, counters: dict[int, tuple[Amount, ...]], blocked: int, position: int
    ) -> tuple[dict[int, tuple[Amount, ...]], int]:
        """What is left, once a device is given out, of the counter sets consumed from, and which devices then lack counters."""
        counters = counters.copy()
        for index, amounts in self._consumption[position]:
            have = counters.get(index)
            if have is None:
                have = self._usage.counters[index]
            left = tuple([there - used for there, used in zip(have, amounts, strict=True)])
            counters[index] = left
            blocked |= self._counter_tables.blocked_by(index, left)
        return counters, blocked

    def _charge_capacity(
        self, state: State, charge: int, position: int
    ) -> tuple[dict[int, tuple[Amount, ...]], dict[str, Amount], tuple[int, ...]]:
        kind = self._hardware.capacity_kind[position]
        amounts = self._tables.charges[charge][kind]
        if not amounts:
            return state.left, state.spent, state.capacity_blocked
        left = tuple(
            [have - used for have, used in zip(self.left(state, position), amounts, strict=True)]
        )
        bit = 1 << position
        blocked = tuple(
            devices | bit if exceeds(charges[kind], left) else devices
            for devices, charges in zip(state.capacity_blocked, self._tables.charges, strict=True)
        )
        spent = dict(state.spent)
        for capacity, used in zip(self._hardware.capacity_kinds[kind], amounts, strict=True):
            spent[capacity.name] = spent.get(capacity.name, 0) + used
        return {**state.left, position: left}, spent, blocked


def _with(state: State, mine: int, entries: int, values: tuple[int, ...]) -> State:
    return State(
        state.taken,
        mine,
        entries,
        state.paid,
        state.counters,
        state.counter_blocked,
        state.left,
        state.spent,
        state.capacity_blocked,
        values,
        state.anchored,
        state.distinct,
    )
