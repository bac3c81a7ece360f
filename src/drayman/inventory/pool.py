"""A pool: the slices that one driver publishes under one name, and what a node may use of them.

Drivers replace a pool slice by slice, so at any moment some slices may be missing or old. `Pool.resolve` decides, for one node,
which generation counts and whether it is whole, without looking at slices that do not concern the node unless it must.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TypeAlias

from msgspec import Struct, field, structs

from drayman.api.core import Node, NodeSelector
from drayman.api.nodeselector import matches
from drayman.api.resource import Device, ResourceSlice, ResourceSliceSpec
from drayman.inventory.device import Amount, DeviceRecord
from drayman.inventory.features import Features
from drayman.inventory.identity import PoolId

PlaceKey: TypeAlias = NodeSelector | str | None
"""Nodes that slices or devices are for: those a selector matches, the one of a name, or None for all."""


class PoolState(Enum):
    USABLE = "usable"
    INCOMPLETE = "incomplete"  # the driver is still publishing
    INVALID = "invalid"  # its slices contradict each other


def newest_slices(slices: Iterable[ResourceSlice]) -> dict[PoolId, list[ResourceSlice]]:
    """The slices of each pool that are of its newest generation, whether all of them are there or not."""
    newest: dict[PoolId, list[ResourceSlice]] = {}
    for slice_ in slices:
        known = newest.setdefault(PoolId(slice_.spec.driver, slice_.spec.pool.name), [])
        generation = known[0].spec.pool.generation if known else slice_.spec.pool.generation
        if slice_.spec.pool.generation > generation:
            known.clear()
        if slice_.spec.pool.generation >= generation:
            known.append(slice_)
    return newest


class SliceRecord:
    """A slice and its devices as records, made on first access."""

    __slots__ = ("_places", "_records", "_sharing", "counters", "slice")

    def __init__(self, slice_: ResourceSlice, *, sharing: bool) -> None:
        self.slice = slice_
        self._sharing = sharing
        self._records: tuple[DeviceRecord, ...] | None = None
        self._places: frozenset[PlaceKey] | None = None
        # Which counters the devices name: a pool is checked from every node's side, but its devices are looked at from few.
        self.counters = frozenset(
            [
                (used.counter_set, name)
                for device in slice_.spec.devices or ()
                for used in device.consumes_counters
                for name in ("", *used.counters)
            ]
        )

    @property
    def records(self) -> tuple[DeviceRecord, ...]:
        if self._records is None:
            found: list[DeviceRecord] = []
            before: DeviceRecord | None = None
            for device in self.slice.spec.devices or ():
                before = DeviceRecord(self.slice, device, sharing=self._sharing, before=before)
                found.append(before)
            self._records = tuple(found)
        return self._records

    @property
    def places(self) -> frozenset[PlaceKey]:
        """Where the slice, or any single device of it, is for."""
        if self._places is None:
            if self.slice.spec.per_device_node_selection:
                devices = self.slice.spec.devices or ()
                self._places = frozenset(key for device in devices for key in _place(device))
            else:
                self._places = frozenset(_place(self.slice.spec))
        return self._places

    def selects(self, node: Node) -> bool:
        spec = self.slice.spec
        if spec.node_name:
            return spec.node_name == node.metadata.name
        if spec.all_nodes:
            return True
        if spec.node_selector is not None:
            return matches(spec.node_selector, node)
        if spec.per_device_node_selection:
            return any(selects_node(record, node) for record in self.records)
        return False


def _place(of: Device | ResourceSliceSpec) -> Iterator[PlaceKey]:
    if of.node_name:
        yield of.node_name
    elif of.all_nodes:
        yield None
    elif of.node_selector is not None:
        yield of.node_selector


def selects_node(record: DeviceRecord, node: Node) -> bool:
    """Whether the device can be used on the node."""
    if record.node_name:
        return record.node_name == node.metadata.name
    if record.all_nodes:
        return True
    return record.node_selector is not None and matches(record.node_selector, node)


class ResolvedPool(Struct, frozen=True, eq=False):
    """What a node sees of a pool. Only a usable pool has devices. Equal only to itself."""

    id: PoolId
    state: PoolState
    reason: str = ""
    records: tuple[DeviceRecord, ...] = ()  # in search order
    elsewhere: tuple[SliceRecord, ...] = ()  # slices for other nodes: they only use up counters
    limits: dict[str, dict[str, Amount]] = field(default_factory=dict)  # by counter set and counter
    published: tuple[DeviceRecord, ...] = ()  # of a pool that is not usable
    foreign: bool = False  # not usable, and not one of the node's own pools

    @property
    def search_order(self) -> tuple[bool, PoolId]:
        """Pools are searched in this order: those that need no binding first, then by name."""
        has_binding = any(r.device.binding_conditions is not None for r in self.records)
        return has_binding, self.id


class Pool:
    """The slices of a pool, indexed by what they are for."""

    def __init__(self, pool_id: PoolId, features: Features) -> None:
        self.id = pool_id
        self._features = features
        self.slices: dict[str, SliceRecord] = {}
        self.local: dict[str, dict[str, SliceRecord]] = {}  # by node name
        self.floating: dict[str, SliceRecord] = {}  # for nodes found by selector
        self.counters: dict[str, SliceRecord] = {}  # with shared counters: they concern every node
        self._generations: Counter[int] = Counter()

    def apply(self, slice_: ResourceSlice) -> None:
        """Add the slice, or replace the one with its name."""
        name = slice_.metadata.name
        self.remove(name)
        record = SliceRecord(slice_, sharing=self._features.consumable_capacity)
        self.slices[name] = record
        self._generations[slice_.spec.pool.generation] += 1
        if self._is_usable(slice_):
            self._index(slice_)[name] = record

    def remove(self, name: str) -> bool:
        record = self.slices.pop(name, None)
        if record is None:
            return False
        generation = record.slice.spec.pool.generation
        self._generations[generation] -= 1
        if not self._generations[generation]:
            del self._generations[generation]
        if self._is_usable(record.slice):
            index = self._index(record.slice)
            del index[name]
            node_name = record.slice.spec.node_name
            if not index and node_name in self.local and self.local[node_name] is index:
                del self.local[node_name]
        return True

    def _is_usable(self, slice_: ResourceSlice) -> bool:
        spec = slice_.spec
        partitioned = spec.shared_counters or spec.per_device_node_selection is not None
        return self._features.partitionable_devices or not partitioned

    def _index(self, slice_: ResourceSlice) -> dict[str, SliceRecord]:
        if slice_.spec.shared_counters:
            return self.counters
        if slice_.spec.node_name:
            return self.local.setdefault(slice_.spec.node_name, {})
        return self.floating

    def resolve(self, node: Node) -> ResolvedPool | None:
        """What the node sees of the pool; None if nothing of it concerns the node, or it is outdated there."""
        local = self.local.get(node.metadata.name, {}).values()
        relevant = [*local]
        if self.floating:
            relevant += [record for record in self.floating.values() if record.selects(node)]
        return self._resolve([*relevant, *self.counters.values()])

    def resolve_elsewhere(self) -> ResolvedPool | None:
        """What a node without devices of the pool sees: shared counters concern every node."""
        resolved = self._resolve(list(self.counters.values()))
        return None if resolved is None else structs.replace(resolved, foreign=True)

    def resolve_everywhere(self) -> ResolvedPool | None:
        """The pool as a whole, whichever nodes it is for."""
        return self._resolve(list(self.slices.values()))

    def _resolve(self, relevant: list[SliceRecord]) -> ResolvedPool | None:
        if not relevant:
            return None
        generation = max([record.slice.spec.pool.generation for record in relevant])
        current = [r for r in relevant if r.slice.spec.pool.generation == generation]
        wanted = current[0].slice.spec.pool.resource_slice_count
        rest: tuple[SliceRecord, ...] = ()
        if len(current) != wanted:
            if any(other > generation for other in self._generations):
                return None
            if self._generations[generation] != wanted:
                found = self._generations[generation]
                reason = f"{found} of {wanted} slices of generation {generation} are there"
                records = tuple(record for slice_ in current for record in slice_.records)
                return ResolvedPool(self.id, PoolState.INCOMPLETE, reason, published=records)
            names = {record.slice.metadata.name for record in current}
            rest = tuple(
                record
                for name, record in self.slices.items()
                if record.slice.spec.pool.generation == generation and name not in names
            )
        return self._build(current, rest)

    def _build(self, current: list[SliceRecord], rest: tuple[SliceRecord, ...]) -> ResolvedPool:
        if len(current) > 1:
            current.sort(key=lambda record: record.slice.metadata.name)
        # A slice with counters has no devices that could be allocated; validation keeps the two apart.
        with_devices = [r for r in current if r.slice.metadata.name not in self.counters]
        if len(with_devices) == 1:  # nearly always
            records = with_devices[0].records
        else:
            records = tuple([record for slice_ in with_devices for record in slice_.records])
        limits: dict[str, dict[str, Amount]] = {}
        reason = _duplicate_device(records)
        if not reason and self._features.partitionable_devices:
            reason = _collect_limits(current, limits) or _unknown_counter(
                (*with_devices, *rest), limits
            )
        if reason:
            return ResolvedPool(self.id, PoolState.INVALID, reason, published=records)
        return ResolvedPool(self.id, PoolState.USABLE, "", records, rest, limits)


def _duplicate_device(records: tuple[DeviceRecord, ...]) -> str:
    # Driver and pool are the same for all of them.
    if len({record.id.device for record in records}) == len(records):
        return ""
    counted = Counter(record.id.device for record in records)
    return f"duplicate device name {next(name for name, times in counted.items() if times > 1)}"


def _collect_limits(current: list[SliceRecord], limits: dict[str, dict[str, Amount]]) -> str:
    for record in current:
        for counter_set in record.slice.spec.shared_counters or ():
            if counter_set.name in limits:
                return f"duplicate counter set name {counter_set.name}"
            limits[counter_set.name] = {
                name: counter.value.amount for name, counter in counter_set.counters.items()
            }
    return ""


def _unknown_counter(slices: tuple[SliceRecord, ...], limits: dict[str, dict[str, Amount]]) -> str:
    if not any(slice_.counters for slice_ in slices):
        return ""
    known = {(name, counter) for name, counters in limits.items() for counter in ("", *counters)}
    for slice_ in slices:
        unknown = slice_.counters - known
        if unknown:
            name, counter = min(unknown)
            if not counter:
                return f"counter set {name} not found"
            return f"counter {counter} not found in counter set {name}"
    return ""
