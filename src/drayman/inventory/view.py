"""A node's devices together with what is held of them: everything a search reads.

A view is a snapshot. It never changes, and it is cheap: the hardware part is shared between views, the rest is a handful of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from drayman.api.core import Node
from drayman.api.resource import DeviceClass
from drayman.inventory.capacity import consumption
from drayman.inventory.device import Amount
from drayman.inventory.features import Features
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.ledger import Holding, Ledger
from drayman.inventory.pool import PoolState, ResolvedPool


class NodeView:
    """One node as it is now."""

    def __init__(
        self,
        hardware: NodeHardware,
        ledger: Ledger,
        classes: Callable[[str], DeviceClass | None],
        foreign_problems: tuple[ResolvedPool, ...] = (),
    ) -> None:
        self.hardware = hardware
        self.device_class = classes
        self.problems = (*hardware.problems, *foreign_problems)
        self.revisions: Mapping[PoolId, int] = {
            pool.id: ledger.revision(pool.id) for pool in hardware.pools
        }
        self.in_use = 0  # devices held whole
        self.shared = 0  # devices of which somebody holds a share
        self._used: dict[int, dict[str, Amount]] = {}
        counters_used: dict[int, list[Amount]] = {}
        for pool in hardware.pools:
            held = ledger.held_in(pool.id)
            if held:
                self._take_stock(held)
                self._count_usage(pool, held, counters_used)
        self.counters = tuple(
            tuple(limit - used for limit, used in zip(info.limits, counters_used[i], strict=True))
            if i in counters_used
            else info.limits
            for i, info in enumerate(hardware.counter_sets)
        )

    @property
    def node(self) -> Node:
        return self.hardware.node

    @property
    def features(self) -> Features:
        return self.hardware.features

    @property
    def invalid_pools(self) -> tuple[ResolvedPool, ...]:
        return tuple(pool for pool in self.problems if pool.state is PoolState.INVALID)

    def emptied(self) -> NodeView:
        """The same node with nothing held."""
        return NodeView(
            self.hardware, Ledger(), self.device_class, self.problems[len(self.hardware.problems) :]
        )

    def id_of(self, position: int) -> DeviceId:
        return self.hardware.records[position].id

    def ids_of(self, devices: int) -> tuple[DeviceId, ...]:
        return tuple(self.id_of(position) for position in positions(devices))

    def _take_stock(self, held: Mapping[DeviceId, Iterable[Holding]]) -> None:
        for device, holdings in held.items():
            position = self.hardware.position.get(device)
            if position is None:
                continue
            for holding in holdings:
                if holding.share_id is None or not self.features.consumable_capacity:
                    self.in_use |= 1 << position
                else:
                    self.shared |= 1 << position
                for name, amount in holding.consumed.items():
                    used = self._used.setdefault(position, {})
                    used[name] = used.get(name, 0) + amount

    def _count_usage(
        self,
        pool: ResolvedPool,
        held: Mapping[DeviceId, Iterable[Holding]],
        counters_used: dict[int, list[Amount]],
    ) -> None:
        """Add what the held devices of the pool consume, wherever they are, once for each device."""
        if not pool.limits:
            return
        first = next(i for i, s in enumerate(self.hardware.counter_sets) if s.pool == pool.id)
        index = {name: first + offset for offset, name in enumerate(pool.limits)}
        elsewhere = (record for slice_ in pool.elsewhere for record in slice_.records)
        for record in (*pool.records, *elsewhere):
            if record.id not in held:
                continue
            for name, amounts in record.counters:
                info = self.hardware.counter_sets[index[name]]
                used = counters_used.setdefault(index[name], [0] * len(info.names))
                for i, amount in enumerate(info.amounts(amounts)):
                    used[i] += amount

    @cached_property
    def paid(self) -> int:
        """Shareable devices that are in use already: another share of them costs no counters."""
        return (self.shared | self.in_use) & self.hardware.shareable

    @cached_property
    def overcommitted(self) -> int:
        """Devices that nobody can get because a counter of their pool is used up beyond its limit."""
        pools = {
            info.pool
            for info, left in zip(self.hardware.counter_sets, self.counters, strict=True)
            if any(amount < 0 for amount in left)
        }
        if not pools:
            return 0
        blocked = sum(
            1 << i
            for i, record in enumerate(self.hardware.records)
            if record.counters and record.id.pool_id in pools
        )
        return blocked & ~self.paid

    def remaining(self, position: int) -> tuple[Amount, ...]:
        """What is left of each capacity of a device."""
        capacities = self.hardware.capacity_kinds[self.hardware.capacity_kind[position]]
        used = self._used.get(position)
        if used is None:
            return tuple(capacity.value for capacity in capacities)
        return tuple(capacity.value - used.get(capacity.name, 0) for capacity in capacities)

    @cached_property
    def capacity_groups(self) -> tuple[tuple[int, tuple[Amount, ...], int], ...]:
        """Devices with capacities, grouped: the kind of their capacities, what is left, and which devices."""
        groups: dict[tuple[int, tuple[Amount, ...]], int] = {}
        used = sum(1 << position for position in self._used)
        for kind, devices in enumerate(self.hardware.of_capacity_kind):
            untouched = devices & ~used
            if untouched:
                whole = tuple(capacity.value for capacity in self.hardware.capacity_kinds[kind])
                groups[kind, whole] = untouched
        for position in self._used:
            key = (self.hardware.capacity_kind[position], self.remaining(position))
            groups[key] = groups.get(key, 0) | 1 << position
        return tuple((kind, left, devices) for (kind, left), devices in groups.items())

    def charges(self, requests: Mapping[str, Amount]) -> tuple[tuple[Amount, ...] | None, ...]:
        """What a request takes from a device of each kind; None from a kind that cannot serve it."""
        return tuple(consumption(kind, requests) for kind in self.hardware.capacity_kinds)


def positions(devices: int) -> Iterable[int]:
    """The positions in a device set, in order."""
    while devices:
        low = devices & -devices
        yield low.bit_length() - 1
        devices ^= low
