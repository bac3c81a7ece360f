"""The topologies of a cluster: its Topology objects, the flavors that name them, the nodes, and what is used of those.

This is what an engine holds. It is told of objects as they come and go, and of what workloads hold (`add` and `remove`, which are undone
with the log that it shares with the engine). It is asked two things about a workload: whether a flavor suits a pod set at all (`mismatch`),
and where all of its pod sets would go with the flavors that were found for them (`place`), as things are or as if nobody else were there.

    topologies = ClusterTopologies(log)
    with log.undone():                          # without some victims
        topologies.remove(victim.usage.places)
        found = topologies.place(units)

Several flavors may have the same nodes. What is used is counted by domain and not by flavor, so none of it is given twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from drayman.api.core import Node, Pod
from drayman.api.custom_groups import KueueTopology
from drayman.api.errors import DecodeError
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import TopologyRequest
from drayman.api.meta import ObjectMeta
from drayman.api.pods import is_finished
from drayman.inventory.undo import UndoLog
from drayman.placement.claims import ClaimsNotReadyError
from drayman.placement.fit.requests import PODS, requests_of
from drayman.placement.topologies import levels_of
from drayman.quota.amounts import Amounts, plus
from drayman.quota.demands import Domain, NotPlaced, Placement, TopologyDemand
from drayman.quota.topology.counting import Limits
from drayman.quota.topology.devices import DeviceCounter
from drayman.quota.topology.flavor import FlavorTopology, leader_and_workers
from drayman.quota.topology.usage import DomainUsage
from drayman.workloads.queued.names import WORKLOAD

Places = Iterable[tuple[Placement, Amounts]]
"""Where pods are, and what each of them takes there."""


class PlacedUnit(Struct, frozen=True):
    """Pod sets that are placed as one, in a flavor."""

    flavor: str
    demands: tuple[TopologyDemand, ...]
    """A single one, or those of a group."""
    limits: Limits | None = None
    """What devices allow of these pods on each node (`devices.DeviceCounter`). Not considered if others are taken not to be there."""


class ClusterTopologies:
    """Follows a cluster."""

    def __init__(self, log: UndoLog | None = None, *, is_balanced: bool = False) -> None:
        """`is_balanced`: whether the gate TASBalancedPlacement is on."""
        self._log = log or UndoLog()
        self._is_balanced = is_balanced
        self._levels: dict[str, tuple[str, ...]] = {}  # by name of the topology
        self._specs: dict[str, ResourceFlavorSpec] = {}  # of flavors that name a topology
        self._flavors: dict[str, FlavorTopology] = {}
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, tuple[str, Amounts]] = {}  # by uid: the node, and what is used there
        self._others: dict[str, Amounts] = {}  # by node
        self._used: dict[tuple[str, ...], DomainUsage] = {}  # by levels of assignments
        self.counter: DeviceCounter | None = None
        """Counts what devices allow of pods that ask for some, where a state of the cluster is at hand."""

    def __bool__(self) -> bool:
        """Whether there is any topology at all."""
        return bool(self._levels)

    # What the cluster shows.

    def set_topology(self, topology: KueueTopology) -> None:
        """A topology that cannot be read has no levels, so that nothing is placed there."""
        try:
            levels = tuple(level.node_label for level in levels_of(topology))
        except DecodeError:
            levels = ()
        if self._levels.get(topology.metadata.name) != levels:
            self._levels[topology.metadata.name] = levels
            self._rebuild(topology.metadata.name)

    def remove_topology(self, name: str) -> None:
        if self._levels.pop(name, None) is not None:
            self._rebuild(name)

    def set_flavor(self, name: str, spec: ResourceFlavorSpec) -> None:
        if spec.topology_name is None:
            self.remove_flavor(name)
        elif self._specs.get(name) != spec:
            self._specs[name] = spec
            self._build(name)

    def remove_flavor(self, name: str) -> None:
        self._specs.pop(name, None)
        self._flavors.pop(name, None)

    def set_node(self, node: Node) -> None:
        self._nodes[node.metadata.name] = node
        self._show(node.metadata.name)

    def remove_node(self, name: str) -> None:
        self._nodes.pop(name, None)
        for flavor in self._flavors.values():
            flavor.remove_node(name)

    def set_pod(self, pod: Pod) -> None:
        """A pod with or without a node. Those that a topology assignment has placed are counted with their workload."""
        uid, node = pod.metadata.uid, pod.spec.node_name
        if not node or is_finished(pod) or WORKLOAD in pod.metadata.annotations:
            self.remove_pod(uid)
            return
        used = {**requests_of(pod).amounts, PODS: 1}
        if self._pods.get(uid) != (node, used):
            self.remove_pod(uid)
            self._pods[uid] = (node, used)
            self._others[node] = plus(self._others.get(node, {}), used)
            self._show(node)

    def remove_pod(self, uid: str) -> None:
        known = self._pods.pop(uid, None)
        if known is not None:
            node, used = known
            left = plus(self._others[node], {name: -amount for name, amount in used.items()})
            self._others[node] = {name: amount for name, amount in left.items() if amount}
            if not self._others[node]:
                del self._others[node]
            self._show(node)

    def _show(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is not None:
            for flavor in self._flavors.values():
                flavor.set_node(node, self._others.get(name, {}))

    def _rebuild(self, topology: str) -> None:
        for name, spec in self._specs.items():
            if spec.topology_name == topology:
                self._build(name)

    def _build(self, name: str) -> None:
        spec = self._specs[name]
        levels = self._levels.get(spec.topology_name or "")
        self._flavors.pop(name, None)
        if levels:
            found = FlavorTopology(
                spec.topology_name or "", levels, spec.node_labels, is_balanced=self._is_balanced
            )
            self._flavors[name] = found
            for node in self._nodes.values():
                found.set_node(node, self._others.get(node.metadata.name, {}))

    # What workloads hold.

    def add(self, places: Places) -> None:
        """Pods have these places now. Undone with the log."""
        for placement, per_pod in places:
            self.used(placement.levels).add(placement, per_pod)

    def remove(self, places: Places) -> None:
        """The inverse of `add`."""
        for placement, per_pod in places:
            self.used(placement.levels).remove(placement, per_pod)

    def used(self, levels: tuple[str, ...]) -> DomainUsage:
        """What workloads hold in the domains of assignments with these levels."""
        found = self._used.get(levels)
        if found is None:
            found = self._used[levels] = DomainUsage(self._log)
        return found

    # Questions.

    def flavor(self, name: str) -> FlavorTopology | None:
        """The nodes of a flavor in its topology, if it has one that exists."""
        return self._flavors.get(name)

    def is_missing(self, flavor: str) -> bool:
        """Whether a flavor names a topology that does not exist: its queues cannot admit anything (TopologyNotFound)."""
        spec = self._specs.get(flavor)
        return spec is not None and spec.topology_name not in self._levels

    def has_topology(self, flavor: str) -> bool:
        return flavor in self._specs

    def mismatch(
        self, flavor: str, request: TopologyRequest | None, *, only_topologies: bool
    ) -> str | None:
        """Why a flavor does not suit pods because of its topology; None if it does.

        `only_topologies`: whether all flavors of the queue have one. Pods that ask for nothing are then placed anywhere in it.
        """
        if flavor not in self._specs:
            if request is None or not request.names_topology:
                return None
            return f"flavor {flavor} does not support TopologyAwareScheduling"
        if request is None or not request.names_topology:
            if only_topologies:
                return None
            return f"flavor {flavor} supports only TopologyAwareScheduling"
        found = self._flavors.get(flavor)
        levels = () if found is None else found.capacity.levels
        named = [
            request.required,
            request.preferred,
            request.pod_set_slice_required_topology,
            *(each.topology for each in request.podset_slice_required_topology_constraints),
        ]
        if any(key is not None and key not in levels for key in named):
            return f"flavor {flavor} does not contain the requested level"
        return None

    def place(
        self,
        units: Sequence[PlacedUnit],
        *,
        as_if_empty: bool = False,
        with_devices: bool = True,
    ) -> Mapping[str, Placement] | NotPlaced:
        """Places for the pod sets of a workload, by name, each beside those before it. Nothing is kept.

        `as_if_empty`: as if no other workload were there. What does not fit even then will not fit by driving others out.
        Without `with_devices`, and in an empty cluster, only what nodes have counts.
        """
        found: dict[str, Placement] = {}
        own: dict[tuple[str, ...], dict[Domain, Amounts]] = {}
        with self._log.undone():
            for unit in units:
                flavor = self._flavors.get(unit.flavor)
                if flavor is None:
                    return NotPlaced(f"the topology of flavor {unit.flavor} does not exist")
                levels = flavor.capacity.assigned_levels
                used = own.setdefault(levels, {}) if as_if_empty else self.used(levels)
                counts_devices = with_devices and not as_if_empty
                limits = self.limits(unit) if counts_devices else None
                if isinstance(limits, NotPlaced):
                    return limits
                result = flavor.place(unit.demands, used, limits)
                if isinstance(result, NotPlaced):
                    return result
                found.update(result)
                per_pod = {each.pod_set: each.per_pod for each in unit.demands}
                for name, placement in result.items():
                    if as_if_empty:
                        _count(own[levels], placement, per_pod[name])
                    else:
                        self.add([(placement, per_pod[name])])
        return found

    def served(self, sample: Pod | None) -> frozenset[str]:
        """The extended resources of pods that devices serve on nodes that do not offer them."""
        if sample is None or self.counter is None:
            return frozenset()
        return self.counter.served(sample)

    def limits(self, unit: PlacedUnit) -> Limits | NotPlaced | None:
        """What devices allow of the pods. A workload without its claim templates is placed when it has them."""
        if unit.limits is not None or self.counter is None:
            return unit.limits
        leader = _leader(unit.demands)
        workers = next((each for each in unit.demands if each is not leader), unit.demands[0])
        if workers.sample is None and (leader is None or leader.sample is None):
            return None
        sample, leads = _sample_of(workers), None if leader is None else _sample_of(leader)
        try:
            return self.counter.limits(sample, workers.count, 0.0, leads)
        except ClaimsNotReadyError as error:
            return NotPlaced(f"pod set {workers.pod_set!r}: {error}")


def _sample_of(demand: TopologyDemand) -> Pod:
    """A pod as devices are counted for it. One that asks for none may be anywhere."""
    return demand.sample or Pod(metadata=ObjectMeta(name=demand.pod_set, uid=f"<{demand.pod_set}>"))


def _leader(demands: Sequence[TopologyDemand]) -> TopologyDemand | None:
    pair = leader_and_workers(demands)
    return None if isinstance(pair, NotPlaced) else pair[0]


def _count(used: dict[Domain, Amounts], placement: Placement, per_pod: Amounts) -> None:
    for domain, count in placement.domains:
        taken = {**{name: amount * count for name, amount in per_pod.items()}, PODS: count}
        used[domain] = plus(used.get(domain, {}), taken)
