"""All devices of a cluster, kept up to date one slice at a time.

An event touches the pool it names and the nodes that pool concerns. Views are built when asked for and kept until something they
show has changed, so a search on one node costs the same in a cluster of one node and of ten thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from drayman.api.core import Node
from drayman.api.resource import DeviceClass, DeviceTaint, DeviceTaintRule, ResourceSlice
from drayman.inventory.device import DeviceRecord
from drayman.inventory.features import Features
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import PoolId
from drayman.inventory.ledger import Ledger
from drayman.inventory.pool import Pool, PoolState, ResolvedPool
from drayman.inventory.selectors import SelectorCache
from drayman.inventory.view import NodeView


@dataclass(frozen=True, slots=True)
class _Cached:
    hardware: NodeHardware
    labels: dict[str, str]
    local_revision: int
    shared_revision: int


class Inventory:
    """Slices, classes and taint rules of a cluster."""

    def __init__(self, features: Features | None = None) -> None:
        self.features = features or Features()
        self.classes: dict[str, DeviceClass] = {}
        self._pools: dict[PoolId, Pool] = {}
        self._pool_of_slice: dict[str, PoolId] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._local: dict[str, set[PoolId]] = {}  # pools with slices for a node, by node name
        self._floating: set[PoolId] = set()  # pools with slices that select nodes
        self._local_revision: dict[str, int] = {}
        self._shared_revision = 0
        self._foreign_problems: dict[PoolId, ResolvedPool] = {}
        self._foreign_unknown: set[PoolId] = set()
        self._selectors = SelectorCache(list_attributes=self.features.list_attributes)
        self._hardware: dict[str, _Cached] = {}

    def apply_class(self, device_class: DeviceClass) -> None:
        self.classes[device_class.metadata.name] = device_class

    def remove_class(self, name: str) -> None:
        self.classes.pop(name, None)

    def apply_slice(self, slice_: ResourceSlice) -> None:
        """Add a slice, or replace the one with its name."""
        pool_id = PoolId(slice_.spec.driver, slice_.spec.pool.name)
        name = slice_.metadata.name
        if self._pool_of_slice.get(name, pool_id) != pool_id:
            self.remove_slice(name)
        pool = self._pools.get(pool_id)
        if pool is None:
            pool = self._pools[pool_id] = Pool(pool_id, self.features)
        before = _concerned(pool)
        pool.apply(slice_)
        self._pool_of_slice[name] = pool_id
        self._pool_changed(pool, before)

    def remove_slice(self, name: str) -> None:
        pool_id = self._pool_of_slice.pop(name, None)
        if pool_id is None:
            return
        pool = self._pools[pool_id]
        before = _concerned(pool)
        pool.remove(name)
        self._pool_changed(pool, before)
        if not pool.slices:
            del self._pools[pool_id]

    def apply_taint_rule(self, rule: DeviceTaintRule) -> None:
        self._rules[rule.metadata.name] = rule
        self._shared_revision += 1

    def remove_taint_rule(self, name: str) -> None:
        if self._rules.pop(name, None) is not None:
            self._shared_revision += 1

    def _pool_changed(self, pool: Pool, nodes_before: frozenset[str]) -> None:
        for name in nodes_before | pool.local.keys():
            self._local_revision[name] = self._local_revision.get(name, 0) + 1
            pools = self._local.setdefault(name, set())
            if name in pool.local:
                pools.add(pool.id)
            else:
                pools.discard(pool.id)
        if pool.floating or pool.id in self._floating:
            self._shared_revision += 1
        if pool.floating:
            self._floating.add(pool.id)
        else:
            self._floating.discard(pool.id)
        self._foreign_problems.pop(pool.id, None)
        if pool.counters:
            self._foreign_unknown.add(pool.id)
        else:
            self._foreign_unknown.discard(pool.id)

    def view(self, node: Node, ledger: Ledger) -> NodeView:
        """The node as it is now. Raises NodeSelectorError if a slice selects nodes in a way that cannot be read."""
        hardware = self._hardware_of(node)
        return NodeView(hardware, ledger, self.classes.get, self._problems_elsewhere(node))

    def _hardware_of(self, node: Node) -> NodeHardware:
        name = node.metadata.name
        revision = self._local_revision.get(name, 0)
        cached = self._hardware.get(name)
        if (
            cached is None
            or cached.local_revision != revision
            or cached.shared_revision != self._shared_revision
            or cached.labels != node.metadata.labels
        ):
            hardware = self._build(node)
            labels = dict(node.metadata.labels)
            cached = _Cached(hardware, labels, revision, self._shared_revision)
            self._hardware[name] = cached
        return cached.hardware

    def _build(self, node: Node) -> NodeHardware:
        pool_ids = self._local.get(node.metadata.name, set()) | self._floating
        resolved = (self._pools[pool_id].resolve(node) for pool_id in pool_ids)
        return NodeHardware(
            node,
            [pool for pool in resolved if pool is not None],
            self.features,
            self._selectors,
            partial(_taints_of, tuple(rule for _, rule in sorted(self._rules.items()))),
        )

    def _problems_elsewhere(self, node: Node) -> tuple[ResolvedPool, ...]:
        """Broken pools of other nodes that have shared counters: as upstream sees it they concern every node."""
        while self._foreign_unknown:
            pool_id = self._foreign_unknown.pop()
            resolved = self._pools[pool_id].resolve_elsewhere()
            if resolved is not None and resolved.state is not PoolState.USABLE:
                self._foreign_problems[pool_id] = resolved
        if not self._foreign_problems:
            return ()
        own = self._local.get(node.metadata.name, set()) | self._floating
        return tuple(
            problem
            for pool_id, problem in sorted(self._foreign_problems.items())
            if pool_id not in own
        )


def _concerned(pool: Pool) -> frozenset[str]:
    return frozenset(pool.local)


def _taints_of(rules: tuple[DeviceTaintRule, ...], record: DeviceRecord) -> tuple[DeviceTaint, ...]:
    """The device's own taints and those that rules put on it."""
    if not rules:
        return record.device.taints
    return record.device.taints + tuple(r.spec.taint for r in rules if _selects_device(r, record))


def _selects_device(rule: DeviceTaintRule, record: DeviceRecord) -> bool:
    # An absent selector taints every device: what the 1.36 scheduler does, and what its own benchmark relies on.
    selector = rule.spec.device_selector
    if selector is None:
        return True
    driver, pool, device = record.id
    return (
        selector.driver in (None, driver)
        and selector.pool in (None, pool)
        and selector.device in (None, device)
    )
