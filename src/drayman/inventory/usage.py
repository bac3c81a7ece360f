"""What is held of a hardware's devices, and what is left: derived from the ledger, device by device as it changes.

A `Usage` is a snapshot and never changes. The tracker keeps the numbers up to date by looking only at what the ledger says has changed,
so that the next snapshot costs as much as was committed since, however many devices there are.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from drayman.inventory.bitsets import bitset, positions
from drayman.inventory.counters import Consumption
from drayman.inventory.device import Amount
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.ledger import Holding, Ledger
from drayman.inventory.pool import ResolvedPool

CapacityGroup: TypeAlias = tuple[int, tuple[Amount, ...], int]
"""Devices that are alike in capacity: the kind of their capacities, what is left of them, and which devices."""


class Usage(Struct, frozen=True, eq=False, dict=True):
    """What is held, in numbers. Two usages are the same only if they are the same object."""

    hardware: NodeHardware
    in_use: int  # devices held whole
    shared: int  # devices of which a share is held
    left: Mapping[int, tuple[Amount, ...]]  # capacities of devices of which something is consumed
    capacity_groups: tuple[CapacityGroup, ...]
    counters: tuple[tuple[Amount, ...], ...]  # what is left, by counter set
    counter_blocked: int  # devices for which that is not enough
    exceeded: frozenset[int]  # the counter sets from which more is taken than there is
    pools_alike: tuple[int, ...]  # sets of pools that are used alike, of a hardware with many

    @cached_property
    def number(self) -> int:
        """Equal for usages with the same numbers, if the hardware is the same too. With many devices each has its own."""
        hardware = self.hardware
        if hardware.is_vast:
            return hardware.numbering.unique()
        left = tuple(sorted(self.left.items()))
        return hardware.numbering.of((self.in_use, self.shared, left, self.counters))

    @cached_property
    def paid(self) -> int:
        """Shareable devices that are in use already: another share of them costs no counters."""
        return (self.shared | self.in_use) & self.hardware.shareable

    @cached_property
    def overcommitted(self) -> int:
        """Devices that cannot be allocated because a counter of their pool is used up beyond its limit."""
        if not self.exceeded:
            return 0
        pools = {self.hardware.counter_sets[index].pool for index in self.exceeded}
        records = self.hardware.records
        blocked = bitset(
            (i for i, r in enumerate(records) if r.counters and r.id.pool_id in pools), len(records)
        )
        return blocked & ~self.paid

    def remaining(self, position: int) -> tuple[Amount, ...]:
        """What is left of each capacity of a device."""
        found = self.left.get(position)
        if found is None:
            return self.hardware.capacity_limits[self.hardware.capacity_kind[position]]
        return found


def nothing_held(hardware: NodeHardware) -> Usage:
    """For `NodeHardware.derived`."""
    return UsageTracker(hardware).snapshot()


class UsageTracker:
    """The usage of one hardware according to one ledger."""

    def __init__(self, hardware: NodeHardware) -> None:
        self._hardware = hardware
        self._time: int | None = None  # of the ledger, up to which its changes are known
        self._in_use = 0
        self._shared = 0
        self._left: dict[int, tuple[Amount, ...]] = {}
        self._groups: dict[tuple[int, tuple[Amount, ...]], int] = {
            (kind, hardware.capacity_limits[kind]): devices
            for kind, devices in enumerate(hardware.of_capacity_kind)
        }
        self._counters = [info.limits for info in hardware.counter_sets]
        self._exceeded: set[int] = set()
        self._consumers: set[DeviceId] = set()  # held devices that consume counters
        self._blocked_by = [0] * len(self._counters)
        self._blocked = 0
        for index in range(len(self._counters)):
            self._update_blocked(index)
        self._state_of_pool: list[Hashable] = []
        self._pools_by_state: dict[Hashable, int] = {}
        if hardware.has_many_pools:
            self._group_pools()
        self._current: Usage | None = None

    def usage(self, ledger: Ledger) -> Usage:
        """What is held now. The same object as before if nothing has changed."""
        if ledger.clock != self._time:
            if self._time is None and self._is_simple:
                self._take_all(ledger)
            else:
                self._take_changes(ledger)
            self._time = ledger.clock
        if self._current is None:
            self._current = self.snapshot()
        return self._current

    def snapshot(self) -> Usage:
        """What is known to be held: nothing, before the tracker has looked at a ledger."""
        return Usage(
            self._hardware,
            self._in_use,
            self._shared,
            dict(self._left),
            tuple([(kind, left, devices) for (kind, left), devices in self._groups.items()]),
            tuple(self._counters),
            self._blocked,
            frozenset(self._exceeded),
            tuple(self._pools_by_state.values()),
        )

    @property
    def _is_simple(self) -> bool:
        """Whether devices are held whole, each by itself: no counters, nothing shared, and few pools."""
        return not (self._counters or self._hardware.shareable or self._state_of_pool)

    def _take_all(self, ledger: Ledger) -> None:
        """Record all that is held of simple hardware, as fast as possible: a cluster has thousands of nodes to look at first."""
        position_of = self._hardware.position
        for pool in self._hardware.pools:
            for device, held in ledger.held_in(pool.id).items():
                position = position_of.get(device)
                if position is None:
                    continue
                if [holding for holding in held.values() if holding.consumed]:
                    self._take_device(position, held.values())
                else:
                    self._in_use |= 1 << position

    def _take_changes(self, ledger: Ledger) -> None:
        changed = [d for d, held in self._changes(ledger) if self._take_stock(d, held)]
        if changed:
            if self._state_of_pool:
                self._regroup_pools({device.pool_id for device in changed})
            self._current = None

    # --- What has changed -------------------------------------------------------------------------

    def _changes(self, ledger: Ledger) -> Iterable[tuple[DeviceId, Collection[Holding]]]:
        """The devices to look at, with what is held of each."""
        if self._time is None:
            found = [ledger.held_in(pool.id).items() for pool in self._hardware.pools]
            return [(device, held.values()) for items in found for device, held in items]
        return [(d, ledger.held(d)) for d in self._changed_since(ledger, self._time)]

    def _changed_since(self, ledger: Ledger, time: int) -> Iterable[DeviceId]:
        """The changes of the cluster if they are few, else those of each pool that has some."""
        pools = self._hardware.pools
        if ledger.clock - time <= len(pools):
            changes = ledger.changes(time)
            if changes is not None:
                return changes
        return [
            device
            for pool in pools
            if ledger.revision(pool.id) > time
            for device in self._changes_in(pool, ledger, time)
        ]

    def _changes_in(self, pool: ResolvedPool, ledger: Ledger, since: int) -> Iterable[DeviceId]:
        changes = ledger.changes_in(pool.id, since)
        if changes is not None:
            return changes
        devices = dict.fromkeys(record.id for record in pool.records)
        devices.update(dict.fromkeys(d for d in self._consumers if d.pool_id == pool.id))
        devices.update(dict.fromkeys(ledger.held_in(pool.id)))
        return devices

    def _take_stock(self, device: DeviceId, holdings: Collection[Holding]) -> bool:
        """Record what is held of one device; whether that is something new."""
        changed = False
        position = self._hardware.position.get(device)
        if position is not None:
            changed = self._take_device(position, holdings)
        # A device uses counters once, however many claims hold it, even if it is on another node.
        if self._counters and bool(holdings) != (device in self._consumers):
            consumed = self._hardware.consumed_by(device)
            if consumed:
                changed = True
                self._charge(consumed, 1 if holdings else -1)
                (self._consumers.add if holdings else self._consumers.discard)(device)
        return changed

    def _take_device(self, position: int, holdings: Collection[Holding]) -> bool:
        bit = 1 << position
        whole, shared = bool(holdings), False
        # Shares of a device that is no longer shareable keep all of it.
        if self._hardware.shareable & bit and self._hardware.features.consumable_capacity:
            whole = any(holding.share_id is None for holding in holdings)
            shared = any(holding.share_id is not None for holding in holdings)
        in_use = self._in_use | bit if whole else self._in_use & ~bit
        shares = self._shared | bit if shared else self._shared & ~bit
        changed = in_use != self._in_use or shares != self._shared
        self._in_use, self._shared = in_use, shares
        left = self._left_of(position, holdings)
        if left is None and position not in self._left:  # mostly: devices are held whole
            return changed
        return self._set_left(position, left) or changed

    def _left_of(self, position: int, holdings: Collection[Holding]) -> tuple[Amount, ...] | None:
        """What is left of the capacities of a device; None if nothing of it is consumed."""
        consumed = [holding.consumed for holding in holdings if holding.consumed]
        if not consumed:
            return None
        used: dict[str, Amount] = {}
        for name, amount in (item for amounts in consumed for item in amounts.items()):
            used[name] = used.get(name, 0) + amount
        capacities = self._hardware.capacity_kinds[self._hardware.capacity_kind[position]]
        return tuple([capacity.value - used.get(capacity.name, 0) for capacity in capacities])

    def _set_left(self, position: int, left: tuple[Amount, ...] | None) -> bool:
        before = self._left.get(position)
        if before == left:
            return False
        kind = self._hardware.capacity_kind[position]
        limits = self._hardware.capacity_limits[kind]
        old, new = (
            (kind, limits if before is None else before),
            (kind, limits if left is None else left),
        )
        bit = 1 << position
        self._groups[old] &= ~bit
        if not self._groups[old]:
            del self._groups[old]
        self._groups[new] = self._groups.get(new, 0) | bit
        if left is None:
            del self._left[position]
        else:
            self._left[position] = left
        return True

    # --- Counters ---------------------------------------------------------------------------------

    def _charge(self, consumed: Consumption, times: int) -> None:
        for index, amounts in consumed:
            left = tuple(
                [
                    have - times * used
                    for have, used in zip(self._counters[index], amounts, strict=True)
                ]
            )
            self._counters[index] = left
            (self._exceeded.add if min(left, default=0) < 0 else self._exceeded.discard)(index)
            self._update_blocked(index)

    def _update_blocked(self, index: int) -> None:
        """Record which devices now lack counters; those that lack another set's counters stay blocked."""
        before = self._blocked_by[index]
        now = self._hardware.counter_tables.blocked_by(index, self._counters[index])
        if now == before:
            return
        self._blocked_by[index] = now
        self._blocked |= now
        for position in positions(before & ~now):
            sets = self._hardware.consumption[position]
            if not any(self._blocked_by[other] >> position & 1 for other, _ in sets):
                self._blocked ^= 1 << position

    # --- Pools used alike -------------------------------------------------------------------------

    def _group_pools(self) -> None:
        members: dict[Hashable, list[int]] = {}
        for number in range(len(self._hardware.pools)):
            state = self._pool_state(number)
            self._state_of_pool.append(state)
            members.setdefault(state, []).append(number)
        for state, numbers in members.items():
            self._pools_by_state[state] = bitset(numbers, len(self._hardware.pools))

    def _regroup_pools(self, changed: Iterable[PoolId]) -> None:
        for pool_id in changed:
            number = self._hardware.pool_number[pool_id]
            before, now = self._state_of_pool[number], self._pool_state(number)
            self._state_of_pool[number] = now
            rest = self._pools_by_state[before] & ~(1 << number)
            if rest:
                self._pools_by_state[before] = rest
            else:
                del self._pools_by_state[before]
            self._pools_by_state[now] = self._pools_by_state.get(now, 0) | 1 << number

    def _pool_state(self, number: int) -> Hashable:
        """Everything about the use of a pool, its devices numbered from zero."""
        devices, sets = self._hardware.pool_devices[number], self._hardware.pool_counters[number]
        everything = (1 << len(devices)) - 1
        consumed = [p for p in devices if p in self._left] if self._left else []
        return (
            self._in_use >> devices.start & everything,
            self._shared >> devices.start & everything,
            tuple(self._counters[sets.start : sets.stop]),
            tuple([(position - devices.start, self._left[position]) for position in consumed]),
        )
