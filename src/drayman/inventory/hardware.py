"""The devices that one node can use, in search order, and everything about them that does not depend on who holds what.

Device sets are Python integers: bit i is the i-th device in the order in which devices are tried. Tables are made when a search
first asks for them and are kept until a slice of the node changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from drayman.api.core import Node
from drayman.api.resource import DeviceTaint, DeviceToleration
from drayman.inventory.attributes import AttributeIndex
from drayman.inventory.device import Amount, Capacity, DeviceRecord
from drayman.inventory.features import Features
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.pool import PoolState, ResolvedPool, selects_node
from drayman.inventory.selectors import SelectorCache, SelectorFailure

T = TypeVar("T")

_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


class CounterSetInfo:
    """A counter set of one pool: its counters in a fixed order, and how much there is of each."""

    __slots__ = ("limits", "name", "names", "pool")

    def __init__(self, pool: PoolId, name: str, limits: dict[str, Amount]) -> None:
        self.pool = pool
        self.name = name
        self.names = tuple(limits)
        self.limits = tuple(limits.values())

    def amounts(self, used: dict[str, Amount]) -> tuple[Amount, ...]:
        return tuple(used.get(name, 0) for name in self.names)


class NodeHardware:
    """What a node can use. Immutable for its users; holds tables that are filled on demand."""

    def __init__(
        self,
        node: Node,
        pools: Iterable[ResolvedPool],
        features: Features,
        selectors: SelectorCache,
        taints_of: Callable[[DeviceRecord], tuple[DeviceTaint, ...]],
    ) -> None:
        self.node = node
        self.features = features
        ordered = sorted(pools, key=lambda pool: (pool.has_binding_conditions, pool.id))
        self.pools = tuple(pool for pool in ordered if pool.state is PoolState.USABLE)
        self.problems = tuple(pool for pool in ordered if pool.state is not PoolState.USABLE)
        self.records = tuple(record for pool in self.pools for record in pool.records)
        self.position: dict[DeviceId, int] = {r.id: i for i, r in enumerate(self.records)}
        self.everything = (1 << len(self.records)) - 1
        self._selectors = selectors
        self._taints_of = taints_of
        self._verdicts: dict[str, tuple[int, int]] = {}
        self._derived: dict[object, object] = {}
        self._attributes: dict[str, AttributeIndex] = {}
        self._tolerated: dict[tuple[DeviceToleration, ...], int] = {}
        self._taint_groups: dict[tuple[tuple[str, str, str], ...], int] | None = None
        self.shareable = self._where(lambda record: record.shareable)
        self.binding = self._where(lambda record: bool(record.device.binding_conditions))
        self.selects_node = self._where(self._selects_node)
        self.counter_sets, self.consumption = self._counters()
        self.consumers = self._where(lambda record: bool(record.counters))
        self.capacity_kinds, self.capacity_kind = self._capacities()
        self.of_capacity_kind = [0] * len(self.capacity_kinds)
        for position, kind in enumerate(self.capacity_kind):
            self.of_capacity_kind[kind] |= 1 << position

    def _where(self, condition: Callable[[DeviceRecord], bool]) -> int:
        return sum(1 << i for i, record in enumerate(self.records) if condition(record))

    def _selects_node(self, record: DeviceRecord) -> bool:
        # Slices were chosen because they select the node; only a device's own selection remains to be looked at.
        return not record.slice.spec.per_device_node_selection or selects_node(record, self.node)

    def _counters(
        self,
    ) -> tuple[tuple[CounterSetInfo, ...], list[tuple[tuple[int, tuple[Amount, ...]], ...]]]:
        infos: list[CounterSetInfo] = []
        consumption: list[tuple[tuple[int, tuple[Amount, ...]], ...]] = []
        for pool in self.pools:
            index: dict[str, int] = {}
            for name, limits in pool.limits.items():
                index[name] = len(infos)
                infos.append(CounterSetInfo(pool.id, name, limits))
            consumption += [
                tuple(
                    (index[name], infos[index[name]].amounts(used))
                    for name, used in record.counters
                )
                if self.features.partitionable_devices
                else ()
                for record in pool.records
            ]
        return tuple(infos), consumption

    def _capacities(self) -> tuple[tuple[tuple[Capacity, ...], ...], list[int]]:
        kinds: dict[object, int] = {}
        distinct: list[tuple[Capacity, ...]] = []
        of_device: list[int] = []
        for record in self.records:
            key = tuple((c.name, c.value, c.policy) for c in record.capacities)
            kind = kinds.setdefault(key, len(kinds))
            if kind == len(distinct):
                distinct.append(record.capacities)
            of_device.append(kind)
        return tuple(distinct), of_device

    def derived(self, table: Callable[[NodeHardware], T]) -> T:
        """A table that somebody derives from the hardware alone: made once, kept as long as the hardware is."""
        found = self._derived.get(table)
        if found is None:
            found = self._derived[table] = table(self)
        return cast("T", found)

    def attribute(self, name: str) -> AttributeIndex:
        index = self._attributes.get(name)
        if index is None:
            lists = self.features.list_attributes
            index = self._attributes[name] = AttributeIndex(self.records, name, lists=lists)
        return index

    def select(self, expressions: Sequence[str]) -> tuple[int, int]:
        """The devices that pass all selectors, and those on which one fails before another says no."""
        passing, failing = self.everything, 0
        for expression in expressions:
            accepted, failed = self._verdict(expression)
            failing |= passing & failed
            passing &= accepted
        return passing, failing

    def _verdict(self, expression: str) -> tuple[int, int]:
        known = self._verdicts.get(expression)
        if known is None:
            accepted = failed = 0
            for position, record in enumerate(self.records):
                verdict = self._selectors.verdict(expression, record.id.driver, record.device)
                if isinstance(verdict, SelectorFailure):
                    failed |= 1 << position
                elif verdict:
                    accepted |= 1 << position
            known = self._verdicts[expression] = (accepted, failed)
        return known

    def failure(self, expressions: Sequence[str], position: int) -> str:
        """Why the first failing selector has no verdict on a device."""
        record = self.records[position]
        for expression in expressions:
            verdict = self._selectors.verdict(expression, record.id.driver, record.device)
            if isinstance(verdict, SelectorFailure):
                return verdict.message
        return ""

    def tolerated(self, tolerations: tuple[DeviceToleration, ...]) -> int:
        """The devices whose taints, if they have any that block, are all tolerated."""
        if not self.features.device_taints:
            return self.everything
        found = self._tolerated.get(tolerations)
        if found is None:
            found = self.everything
            for taints, devices in self._grouped_taints().items():
                if not all(any(_tolerates(t, taint) for t in tolerations) for taint in taints):
                    found &= ~devices
            self._tolerated[tolerations] = found
        return found

    def _grouped_taints(self) -> dict[tuple[tuple[str, str, str], ...], int]:
        if self._taint_groups is None:
            self._taint_groups = {}
            for position, record in enumerate(self.records):
                taints = tuple(
                    (taint.key, taint.value, taint.effect)
                    for taint in self._taints_of(record)
                    if taint.effect in _BLOCKING_EFFECTS
                )
                if taints:
                    known = self._taint_groups.get(taints, 0)
                    self._taint_groups[taints] = known | 1 << position
        return self._taint_groups


def _tolerates(toleration: DeviceToleration, taint: tuple[str, str, str]) -> bool:
    key, value, effect = taint
    if toleration.effect and toleration.effect != effect:
        return False
    if toleration.key and toleration.key != key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == value
