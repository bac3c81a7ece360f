"""The devices that a node can use, in search order, and everything about them that does not depend on what is held.

Nodes that see the same slices share one hardware, so nothing in it depends on which of them is asked about. Tables are made when a
search first asks for them and are kept until a slice of these nodes changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias, TypeVar, cast

from drayman.api.core import Node
from drayman.api.resource import DeviceTaintRule
from drayman.bounded import Bounded
from drayman.inventory.attributes import AttributeIndex
from drayman.inventory.bitsets import bitset
from drayman.inventory.counters import Consumption, CounterSetInfo, CounterTables
from drayman.inventory.device import Amount, CapacityRecord, DeviceRecord, consumption
from drayman.inventory.features import Features
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.numbering import Numbering
from drayman.inventory.pool import PoolState, ResolvedPool, selects_node
from drayman.inventory.selectors import SelectorCache, SelectorFailure
from drayman.inventory.taints import Taints

T = TypeVar("T")

Charges: TypeAlias = tuple[tuple[Amount, ...] | None, ...]
"""By kind of device, what a request takes of each capacity."""

_MANY_POOLS: Final = 16
_MOST_DESCRIBED: Final = 1_024
_MOST_SELECTIONS: Final = 4_096  # kept for each hardware; expressions come from users
_NOTHING: Final[dict[DeviceId, Consumption]] = {}


class NodeHardware:
    """What a node, or many identical nodes, can use. Immutable for its users; holds tables that are filled on demand."""

    def __init__(
        self,
        pools: Iterable[ResolvedPool],
        features: Features,
        selectors: SelectorCache,
        numbering: Numbering,
        node: Node | None,
    ) -> None:
        """`node` is one of the nodes that can use it: they agree in every selection of nodes that concerns these pools.

        Without one, it is all hardware of a cluster, and no node need be able to use all of it.
        """
        self.features = features
        self.numbering = numbering  # shared by all hardware of an inventory
        ordered = list(pools)
        if len(ordered) > 1:
            ordered.sort(key=lambda pool: pool.search_order)
        self.pools = tuple(pool for pool in ordered if pool.state is PoolState.USABLE)
        self.problems = tuple(pool for pool in ordered if pool.state is not PoolState.USABLE)
        if len(self.pools) == 1:  # nearly always
            self.records = self.pools[0].records
        else:
            self.records = tuple([record for pool in self.pools for record in pool.records])
        self.position: dict[DeviceId, int] = {r.id: i for i, r in enumerate(self.records)}
        self.everything = (1 << len(self.records)) - 1
        self._selectors = selectors
        self._verdicts: Bounded[str, tuple[int, int]] = Bounded(_MOST_SELECTIONS)
        self._selected: Bounded[tuple[str, ...], tuple[int, int]] = Bounded(_MOST_SELECTIONS)
        self._derived: dict[object, object] = {}
        self._attributes: dict[str, AttributeIndex] = {}
        self._charges: Bounded[tuple[tuple[str, Amount], ...], Charges] = Bounded(_MOST_SELECTIONS)
        self._tainted: tuple[tuple[DeviceTaintRule, ...], Taints] | None = None
        self.shareable = self.binding = self.consumers = 0
        self.selects_node = self.everything
        special = [
            record
            for record in self.records
            if record.shareable
            or record.counters
            or record.device.binding_conditions
            or record.slice.spec.per_device_node_selection
        ]
        if special:  # rare: mostly there are only attributes and capacities
            self.shareable = self._where([record.shareable for record in self.records])
            self.binding = self._where([r.device.binding_conditions for r in self.records])
            self.consumers = self._where([record.counters for record in self.records])
            if node is not None:
                self.selects_node = self._selecting(node)
        self.counter_sets, self.consumption = self._counters()
        self.capacity_kinds, self.capacity_kind, self.of_capacity_kind = self._capacities()
        self.capacity_limits = tuple(
            [tuple([capacity.value for capacity in kind]) for kind in self.capacity_kinds]
        )

    def joined_with(self, others: Iterable[NodeHardware], node: Node) -> NodeHardware:
        """This and others with other pools as one, for a node that can use all of it."""
        pools = [*self.pools, *(pool for other in others for pool in other.pools)]
        return NodeHardware(pools, self.features, self._selectors, self.numbering, node)

    def _where(self, answers: Sequence[object]) -> int:
        """The devices for which something is true, mostly all of them or none."""
        if not any(answers):
            return 0
        if all(answers):
            return self.everything
        return bitset((i for i, answer in enumerate(answers) if answer), len(answers))

    def _selecting(self, node: Node) -> int:
        """The devices that can be used on the node.

        Slices were chosen because they select the node; only a device's own selection remains to be looked at.
        """
        answers = [
            not record.slice.spec.per_device_node_selection or selects_node(record, node)
            for record in self.records
        ]
        return self._where(answers)

    def _counters(self) -> tuple[tuple[CounterSetInfo, ...], list[Consumption]]:
        infos: list[CounterSetInfo] = []
        consumption: list[Consumption] = []
        for pool in self.pools:
            index = {name: len(infos) + i for i, name in enumerate(pool.limits)}
            infos += [CounterSetInfo(pool.id, name, limits) for name, limits in pool.limits.items()]
            if pool.limits and self.features.partitionable_devices:
                consumption += [_consumption(record, index, infos) for record in pool.records]
            else:
                consumption += [()] * len(pool.records)
        return tuple(infos), consumption

    @property
    def is_vast(self) -> bool:
        """Whether describing all the devices costs more than it saves: hardly any node has so many of its own."""
        return len(self.records) > _MOST_DESCRIBED

    @property
    def has_many_pools(self) -> bool:
        """Whether it is worth knowing which pools are alike."""
        return len(self.pools) >= _MANY_POOLS

    @cached_property
    def pool_number(self) -> dict[PoolId, int]:
        """Where in `pools` a pool is."""
        return {pool.id: number for number, pool in enumerate(self.pools)}

    @cached_property
    def pool_devices(self) -> tuple[range, ...]:
        """The positions of each pool's devices."""
        return _ranges(len(pool.records) for pool in self.pools)

    @cached_property
    def pool_counters(self) -> tuple[range, ...]:
        """The indices of each pool's counter sets."""
        return _ranges(len(pool.limits) for pool in self.pools)

    @cached_property
    def counter_tables(self) -> CounterTables:
        return CounterTables(len(self.counter_sets), self.consumption)

    def consumed_by(self, device: DeviceId) -> Consumption:
        """What a device takes from the counter sets here, whether it can be used here or is for other nodes."""
        position = self.position.get(device)
        here = () if position is None else self.consumption[position]
        if not self.counter_sets:
            return here
        return here + self._consumed_elsewhere.get(device.pool_id, _NOTHING).get(device, ())

    @cached_property
    def _consumed_elsewhere(self) -> dict[PoolId, dict[DeviceId, Consumption]]:
        found: dict[PoolId, dict[DeviceId, Consumption]] = {}
        first = 0
        for pool in self.pools:
            index = {name: first + i for i, name in enumerate(pool.limits)}
            first += len(pool.limits)
            if not pool.elsewhere or not pool.limits:
                continue
            devices = found[pool.id] = {}
            for record in (record for slice_ in pool.elsewhere for record in slice_.records):
                consumed = _consumption(record, index, self.counter_sets)
                devices[record.id] = devices.get(record.id, ()) + consumed
        return found

    def _capacities(self) -> tuple[tuple[tuple[CapacityRecord, ...], ...], list[int], list[int]]:
        """The kinds of capacities that there are, the kind of each device, and the devices of each kind."""
        kinds: dict[object, int] = {}
        distinct: list[tuple[CapacityRecord, ...]] = []
        members: list[list[int]] = []
        of_device: list[int] = []
        before: tuple[CapacityRecord, ...] | None = None
        kind = 0
        for position, record in enumerate(self.records):
            capacities = record.capacities
            if capacities is not before:  # devices of one slice that are alike have them in common
                before = capacities
                key = tuple([(c.name, c.value, c.policy) for c in capacities])
                kind = kinds.setdefault(key, len(kinds))
                if kind == len(distinct):
                    distinct.append(capacities)
                    members.append([])
            of_device.append(kind)
            members[kind].append(position)
        return tuple(distinct), of_device, [self._set_of(devices) for devices in members]

    def derived(self, table: Callable[[NodeHardware], T]) -> T:
        """A table derived from the hardware alone: made once, kept as long as the hardware is."""
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
        key = tuple(expressions)
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = self._select(key)
        return found

    def _select(self, expressions: tuple[str, ...]) -> tuple[int, int]:
        passing, failing = self.everything, 0
        for expression in expressions:
            accepted, failed = self._verdict(expression)
            failing |= passing & failed
            passing &= accepted
        return passing, failing

    def _verdict(self, expression: str) -> tuple[int, int]:
        known = self._verdicts.get(expression)
        if known is None:
            accepted, failed = self._selectors.judged(expression, self.records)
            known = (self._set_of(accepted), self._set_of(failed))
            self._verdicts[expression] = known
        return known

    def _set_of(self, members: Sequence[int]) -> int:
        """Distinct positions as a set. Mostly they are all of them or none."""
        if not members:
            return 0
        size = len(self.records)
        return self.everything if len(members) == size else bitset(members, size)

    def accepts(self, expression: str, record: DeviceRecord) -> bool:
        """Whether a selector says yes to a device, whether or not it is one of these."""
        return self._selectors.verdict(expression, record.id.driver, record.device) is True

    def failure(self, expressions: Sequence[str], position: int) -> str:
        """Why the first failing selector has no verdict on a device."""
        record = self.records[position]
        for expression in expressions:
            verdict = self._selectors.verdict(expression, record.id.driver, record.device)
            if isinstance(verdict, SelectorFailure):
                return verdict.message
        return ""

    def charges(self, requests: tuple[tuple[str, Amount], ...]) -> Charges:
        """What a request for these capacities takes from a device of each kind; None from a kind that cannot serve it."""
        found = self._charges.get(requests)
        if found is None:
            wanted = dict(requests)
            found = tuple(consumption(kind, wanted) for kind in self.capacity_kinds)
            self._charges[requests] = found
        return found

    def taints(self, rules: tuple[DeviceTaintRule, ...]) -> Taints:
        """The taints of the devices under these rules; those of the rules last asked for are kept."""
        if self._tainted is None or self._tainted[0] is not rules:
            self._tainted = (rules, Taints(self.records, rules))
        return self._tainted[1]


def _ranges(sizes: Iterable[int]) -> tuple[range, ...]:
    """Ranges of these sizes, one after the other."""
    found: list[range] = []
    start = 0
    for size in sizes:
        found.append(range(start, start + size))
        start += size
    return tuple(found)


def _consumption(
    record: DeviceRecord, index: Mapping[str, int], infos: Sequence[CounterSetInfo]
) -> Consumption:
    return tuple(
        [(index[name], infos[index[name]].amounts(used)) for name, used in record.counters]
    )
