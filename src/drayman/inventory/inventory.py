"""All devices of a cluster, kept up to date one slice at a time.

An event touches the pool it names and the nodes that pool concerns. Views are built when asked for, from parts that are kept until
something they show has changed, so a search on one node costs the same in a cluster of one node and of ten thousand. What a node sees
together with others is one part, and its own devices are another: the former is kept once for all nodes that see the same of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from weakref import WeakValueDictionary

from drayman.api.core import Node
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceSlice
from drayman.cel.reads import Reads
from drayman.inventory.allowance import Allowance
from drayman.inventory.features import Features
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import PoolId
from drayman.inventory.ledger import Ledger
from drayman.inventory.limits import PoolLimits
from drayman.inventory.numbering import Numbering
from drayman.inventory.places import Place, Places
from drayman.inventory.pool import Pool, PoolState, ResolvedPool, newest_slices
from drayman.inventory.selectors import SelectorCache
from drayman.inventory.taints import Taints
from drayman.inventory.undo import UndoLog
from drayman.inventory.usage import Usage
from drayman.inventory.view import NodeView
from drayman.inventory.visible import VisibleDevices, VisiblePools


@dataclass(slots=True)
class _NodeEntry:
    """What is known of a node from its last view."""

    labels: Mapping[str, str]
    clock: int  # up to when that is known to be so
    visible: VisibleDevices
    problems: tuple[ResolvedPool, ...] = ()
    problems_clock: int = -1


class Inventory:
    """Slices, classes and taint rules of a cluster."""

    def __init__(self, features: Features | None = None, log: UndoLog | None = None) -> None:
        self.features = features or Features()
        self._log = log or UndoLog()
        self.classes: dict[str, DeviceClass] = {}
        self._clock = 0  # counts events about slices
        self._other_events = 0
        self._pools: dict[PoolId, Pool] = {}
        self._pool_of_slice: dict[str, PoolId] = {}
        self._tainted: set[str] = set()  # slices with devices that their driver has tainted
        self._rules: dict[str, DeviceTaintRule] = {}
        self._ordered_rules: tuple[DeviceTaintRule, ...] = ()
        self._local: dict[str, set[PoolId]] = {}  # pools with slices for a node, by node name
        self._local_revision: dict[str, int] = {}
        self._places = Places()
        self._foreign_clock = 0
        self._foreign_problems: dict[PoolId, ResolvedPool] = {}
        self._foreign_unknown: set[PoolId] = set()
        self._selectors = SelectorCache(list_attributes=self.features.list_attributes)
        self._numbering = Numbering()
        self._nodes: dict[str, _NodeEntry] = {}
        self._visible: WeakValueDictionary[Hashable, VisiblePools] = WeakValueDictionary()
        self._foreseen: dict[str, VisiblePools] = {}  # by node, until a view of it is made
        self._everywhere: tuple[int, NodeHardware] | None = None  # and the clock of it

    def reads(self, expression: str) -> Reads:
        """What a selector reads of a device: nothing, if it does not compile."""
        return self._selectors.reads(expression)

    @property
    def allowance(self) -> Allowance:
        """Limits how much is worked out about devices at a time."""
        return self._selectors.allowance

    @property
    def revision(self) -> int:
        """Counts the events that may change an answer: as long as it is the same, only the ledger can have changed one."""
        return self._clock + self._other_events

    @property
    def has_taints(self) -> bool:
        """Whether any device may be tainted."""
        return bool(self._tainted or self._rules)

    def apply_class(self, device_class: DeviceClass) -> None:
        """Add a class, or replace the one with its name."""
        name = device_class.metadata.name
        known = self.classes.get(name)
        if known is None or known.spec != device_class.spec:
            self._log.note(self._classes_changed)
            self._log.put(self.classes, name, device_class)
            self._classes_changed()

    def remove_class(self, name: str) -> None:
        if name in self.classes:
            self._log.note(self._classes_changed)
            self._log.pop(self.classes, name)
            self._classes_changed()

    def _classes_changed(self) -> None:
        self._other_events += 1

    def apply_slice(self, slice_: ResourceSlice) -> None:
        """Add a slice, or replace the one with its name. One that says what is known already is not an event."""
        pool_id = PoolId(slice_.spec.driver, slice_.spec.pool.name)
        name = slice_.metadata.name
        if self._pool_of_slice.get(name, pool_id) != pool_id:
            self.remove_slice(name)
        pool = self._pools.get(pool_id)
        if pool is None:
            pool = self._pools[pool_id] = Pool(pool_id, self.features)
        known = pool.slices.get(name)
        if known is not None and known.slice.spec == slice_.spec:
            return
        if known is None:
            self._log.note(self.remove_slice, name)
        else:
            self._log.note(self.apply_slice, known.slice)
        before = _concerned(pool)
        pool.apply(slice_)
        self._pool_of_slice[name] = pool_id
        if any(device.taints for device in slice_.spec.devices or ()):
            self._tainted.add(name)
        else:
            self._tainted.discard(name)
        self._pool_changed(pool, before)

    def remove_slice(self, name: str) -> None:
        pool_id = self._pool_of_slice.pop(name, None)
        if pool_id is None:
            return
        self._tainted.discard(name)
        pool = self._pools[pool_id]
        self._log.note(self.apply_slice, pool.slices[name].slice)
        before = _concerned(pool)
        pool.remove(name)
        self._pool_changed(pool, before)
        if not pool.slices:
            del self._pools[pool_id]

    def apply_taint_rule(self, rule: DeviceTaintRule) -> None:
        """Add a rule, or replace the one with its name. Its status is ignored."""
        known = self._rules.get(rule.metadata.name)
        if known is None or known.spec != rule.spec:
            self._log.note(self._rules_changed)
            self._log.put(self._rules, rule.metadata.name, rule)
            self._rules_changed()

    def remove_taint_rule(self, name: str) -> None:
        if name in self._rules:
            self._log.note(self._rules_changed)
            self._log.pop(self._rules, name)
            self._rules_changed()

    def _rules_changed(self) -> None:
        self._other_events += 1
        self._ordered_rules = tuple(rule for _, rule in sorted(self._rules.items()))

    def remove_node(self, name: str) -> None:
        """Drop what is kept for a node that is gone. Its slices have events of their own."""
        self._nodes.pop(name, None)

    def _pool_changed(self, pool: Pool, nodes_before: frozenset[str]) -> None:
        self._clock += 1
        for name in nodes_before | pool.local.keys():
            self._local_revision[name] = self._clock
            pools = self._local.setdefault(name, set())
            if name in pool.local:
                pools.add(pool.id)
            else:
                pools.discard(pool.id)
        self._places.put(pool.id, pool.floating.values(), self._clock)
        if self._foreign_problems.pop(pool.id, None) is not None or pool.counters:
            self._foreign_clock = self._clock
        if pool.counters:
            self._foreign_unknown.add(pool.id)
        else:
            self._foreign_unknown.discard(pool.id)

    @property
    def everywhere(self) -> NodeHardware:
        """All devices of pools that are usable as a whole, whichever nodes they are for. Kept until a slice changes."""
        if self._everywhere is None or self._everywhere[0] != self._clock:
            resolved = (pool.resolve_everywhere() for pool in self._pools.values())
            pools = [pool for pool in resolved if pool is not None]
            made = NodeHardware(pools, self.features, self._selectors, self._numbering, None)
            self._everywhere = self._clock, made
        return self._everywhere[1]

    @property
    def taint_rules(self) -> tuple[DeviceTaintRule, ...]:
        """The rules that taint devices, by name."""
        return self._ordered_rules

    def has_counters(self, pool_id: PoolId) -> bool:
        """Whether devices of a pool draw from something that they share."""
        pool = self._pools.get(pool_id)
        return pool is not None and bool(pool.counters)

    def limits(self, pool_id: PoolId) -> PoolLimits:
        """How much of a pool can be held, whichever node it is for. Worked out each time it is asked for."""
        pool = self._pools.get(pool_id)
        slices = [] if pool is None else [record.slice for record in pool.slices.values()]
        return PoolLimits.of(newest_slices(slices).get(pool_id, []))

    def view(self, node: Node, ledger: Ledger) -> NodeView:
        """The node as it is now. Raises SelectorError if a slice selects nodes in a way that cannot be read."""
        entry, rules = self._entry(node), self._ordered_rules
        seen = entry.visible.parts
        parts: tuple[Usage, ...]
        taints: tuple[Taints, ...]
        if len(seen) == 1:  # nearly always, and views are made all the time
            usage = seen[0].usage(ledger)
            parts, taints = (usage,), (usage.hardware.taints(rules),)
        else:
            parts = tuple([part.usage(ledger) for part in seen])
            taints = tuple([part.hardware.taints(rules) for part in parts])
        return NodeView(
            node,
            parts,
            ledger.clock,
            taints,
            self.classes.get,
            entry.problems,
            entry.visible.together,
        )

    def foresee(self, node: Node) -> NodeHardware | None:
        """The devices that are for this node by name, prepared before its first view; None if there are none.

        Raises SelectorError as `view` does. What the node shares with others is left for the view: it changes with every slice of it.
        """
        named, places = self._places.of_node(node)
        own = self._own_pools(node.metadata.name, named)
        if not own:
            return None
        own_pools = self._local_pools(node, own, named, places)
        self._foreseen[node.metadata.name] = own_pools
        return own_pools.hardware

    def _own_pools(self, name: str, named: Place | None) -> Set[PoolId]:
        """The pools with something for the node of this name."""
        return self._local.get(name, frozenset()) | (named.pools if named is not None else set())

    def _entry(self, node: Node) -> _NodeEntry:
        """What the node sees: as before if no event since concerns it."""
        name, labels = node.metadata.name, node.metadata.labels
        entry = self._nodes.get(name)
        if (
            entry is None
            or entry.clock != self._clock
            or (entry.labels is not labels and entry.labels != labels)
        ):
            groups = self._visible_pools(node)
            same = entry is not None and entry.labels == labels and entry.visible.groups == groups
            visible = entry.visible if entry is not None and same else VisibleDevices(node, groups)
            entry = self._nodes[name] = _NodeEntry(labels, self._clock, visible)
            self._foreseen.pop(name, None)
        if entry.problems_clock != self._foreign_clock:
            elsewhere = self._problems_elsewhere(entry.visible)
            entry.problems = (*entry.visible.problems, *elsewhere)
            entry.problems_clock = self._foreign_clock
        return entry

    def _visible_pools(self, node: Node) -> tuple[VisiblePools, ...]:
        """The pools with something for this node by name, and those that it sees together with others."""
        named, places = self._places.of_node(node)
        own = self._own_pools(node.metadata.name, named)
        if not own:
            return (self._floating_pools(node, places, frozenset()),)
        local = self._local_pools(node, own, named, places)
        if not places or all(place.pools <= own for place in places):
            return (local,)
        return local, self._floating_pools(node, places, own)

    def _local_pools(
        self, node: Node, pools: Set[PoolId], named: Place | None, places: frozenset[Place]
    ) -> VisiblePools:
        name = node.metadata.name
        revision = max(self._local_revision.get(name, 0), 0 if named is None else named.revision)
        # Slices of these pools may be for places, too: then it matters which of them the node is in.
        reached = places and frozenset(p for p in places if not p.pools.isdisjoint(pools))
        key = (name, reached, revision)
        return self._visible.get(key) or self._new_pools(key, node, frozenset(pools))

    def _floating_pools(
        self, node: Node, places: frozenset[Place], but: Set[PoolId]
    ) -> VisiblePools:
        """What is in the places, except some pools: one object for all nodes that are in the same places."""
        excluded = frozenset[PoolId]().union(*(place.pools & but for place in places))
        key = (excluded, places, max((place.revision for place in places), default=0))
        known = self._visible.get(key)
        if known is not None:
            return known
        pools = frozenset[PoolId]().union(*(place.pools for place in places))
        return self._new_pools(key, node, pools - excluded)

    def _new_pools(self, key: Hashable, node: Node, pools: frozenset[PoolId]) -> VisiblePools:
        """Keep what is made. Keys are equal for nodes that see the same slices of the pools, until one of those changes."""
        made = self._visible[key] = VisiblePools(self._build(node, pools), pools)
        return made

    def _build(self, node: Node, pool_ids: Iterable[PoolId]) -> NodeHardware:
        resolved = (self._pools[pool_id].resolve(node) for pool_id in pool_ids)
        known = [pool for pool in resolved if pool is not None]
        return NodeHardware(known, self.features, self._selectors, self._numbering, node)

    def _problems_elsewhere(self, visible: VisibleDevices) -> Iterator[ResolvedPool]:
        """Broken pools of other nodes that have shared counters: as upstream sees it they concern every node."""
        while self._foreign_unknown:
            pool_id = self._foreign_unknown.pop()
            resolved = self._pools[pool_id].resolve_elsewhere()
            if resolved is not None and resolved.state is not PoolState.USABLE:
                self._foreign_problems[pool_id] = resolved
        for pool_id, problem in sorted(self._foreign_problems.items()):
            if not visible.sees(pool_id):
                yield problem


def _concerned(pool: Pool) -> frozenset[str]:
    return frozenset(pool.local)
