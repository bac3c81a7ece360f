"""Places in topologies for what a search for flavors came to.

Quota that fits is not enough where a flavor has a topology: the pods need places in it. If there is none because others are there, it is as
with quota that others have: somebody may have to go. If there would be none even in an empty cluster, nobody has to.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import Admission, PodSetAssignment, TopologyRequest
from drayman.placement.fit.requests import PODS
from drayman.quota.amounts import Amounts
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.demands import Domain, NotPlaced, Placement, PodSetDemand, TopologyDemand
from drayman.quota.entries import Refusal
from drayman.quota.flavors.assignment import Assignment, Choice, Mode, PodSetChoice
from drayman.quota.flavors.ranks import Rank
from drayman.quota.reasons import TOPOLOGY_PLACEMENT_FAILED, WAITING_FOR_QUOTA
from drayman.quota.topology.assignments import assignment_of, placement_of
from drayman.quota.topology.cluster import ClusterTopologies, PlacedUnit
from drayman.quota.topology.replacing import replaced
from drayman.quota.tree.ledger import Usage

_ANYWHERE = TopologyRequest(unconstrained=True)


class Placing:
    """Finds places with the flavors that were found."""

    def __init__(
        self, topologies: ClusterTopologies, flavors: dict[str, ResourceFlavorSpec]
    ) -> None:
        self._topologies = topologies
        self._flavors = flavors

    def mismatch(self, queue: ClusterQueueState, demand: PodSetDemand, flavor: str) -> str | None:
        """Why a flavor does not suit a pod set because of its topology, or because it has none."""
        only = self._topologies.has_topology(flavor) and all(
            self._topologies.has_topology(name) for name in queue.flavors
        )
        return self._topologies.mismatch(flavor, demand.topology, only_topologies=only)

    def placed(self, assignment: Assignment) -> Assignment:
        """An assignment with places, or with what it takes to get some."""
        units = self.units(assignment)
        if not units or assignment.mode is Mode.NO_FIT:
            return assignment
        if assignment.mode is Mode.FIT:
            found = self._topologies.place(units)
            if not isinstance(found, NotPlaced):
                return _with_places(assignment, dict(found))
            if self._topologies.counter is not None and self.finds_places(assignment):
                # Only devices are missing. Who has them is not known here, so nobody has to go.
                refusal = Refusal(TOPOLOGY_PLACEMENT_FAILED, found.message)
                return replace(assignment, mode=Mode.NO_FIT, refusal=refusal)
            refusal = Refusal(WAITING_FOR_QUOTA, found.message)
            assignment = replace(assignment, mode=Mode.PREEMPT, refusal=refusal)
        empty = self._topologies.place(units, as_if_empty=True)
        if isinstance(empty, NotPlaced):
            refusal = Refusal(TOPOLOGY_PLACEMENT_FAILED, empty.message)
            return replace(assignment, mode=Mode.NO_FIT, refusal=refusal)
        return _all_contested(assignment, units)

    def finds_places(self, assignment: Assignment) -> bool:
        """Whether there are places for all pods as the ledger is now.

        The ledger may be without some who would have to go. Devices still count as theirs, so they are left out here; when they have
        gone, the pods get places with devices.
        """
        units = self.units(assignment)
        return not units or not isinstance(
            self._topologies.place(units, with_devices=False), NotPlaced
        )

    def are_free(self, assignment: Assignment) -> bool:
        """Whether the places that were found are still free."""
        for pods in assignment.pod_sets:
            if pods.placement is None:
                continue
            topology = self._topologies.flavor(self._flavor_of(pods))
            if topology is None:
                return False
            used = self._topologies.used(pods.placement.levels)
            needed = {**pods.demand.of_nodes, PODS: 1}
            served = self._topologies.served(pods.demand.sample)
            for domain, count in pods.placement.domains:
                hosts = [
                    host
                    for leaf in topology.capacity.leaves(domain)
                    for host in topology.capacity.hosts(leaf)
                ]
                taken = used.get(domain, {})
                for name, amount in needed.items():
                    if name in served and not any(host.offers(name) for host in hosts):
                        continue
                    free = sum(host.left.get(name, 0) for host in hosts) - taken.get(name, 0)
                    if amount * count > free:
                        return False
        return True

    def units(self, assignment: Assignment) -> list[PlacedUnit]:
        """The pod sets that need places, those of a group together."""
        groups: dict[str, list[PodSetChoice]] = {}
        for index, pods in enumerate(assignment.pod_sets):
            if self._flavor_of(pods):
                request = pods.demand.topology
                together = request.pod_set_group_name if request is not None else None
                groups.setdefault(together or f"\0{index}", []).append(pods)
        return [
            PlacedUnit(self._flavor_of(group[0]), tuple(self._demand(each) for each in group))
            for group in groups.values()
        ]

    def _flavor_of(self, pods: PodSetChoice) -> str:
        """The flavor whose topology the pods are in; empty if there is none."""
        for choice in pods.choices.values():
            if self._topologies.has_topology(choice.flavor):
                return choice.flavor
        return ""

    def _demand(self, pods: PodSetChoice) -> TopologyDemand:
        return self._topology_demand(pods.demand, pods.count, self._flavor_of(pods))

    def _topology_demand(self, demand: PodSetDemand, count: int, flavor: str) -> TopologyDemand:
        """The places that so many pods of a set need in a flavor."""
        spec = self._flavors[flavor]
        return TopologyDemand(
            pod_set=demand.name,
            count=count,
            per_pod=demand.of_nodes,
            node_selector=demand.node_selector,
            affinity=demand.affinity,
            tolerations=(*demand.tolerations, *spec.tolerations),
            request=demand.topology or _ANYWHERE,
            sample=_tolerating(demand.sample, spec),
            served=self._topologies.served(demand.sample),
        )

    def replaced(
        self, demands: Iterable[PodSetDemand], admission: Admission, lost: frozenset[str]
    ) -> Admission | NotPlaced:
        """An admission with other places for pods on lost hosts; those of others stay. What is supposed on the way is not taken back.

        Raises DecodeError where an assignment cannot be read.
        """
        by_name = {each.name: each for each in demands}
        assignments = []
        for assigned in admission.pod_set_assignments:
            demand = by_name.get(assigned.name)
            if demand is None or assigned.topology_assignment is None:
                assignments.append(assigned)
                continue
            placement = placement_of(assigned.topology_assignment)
            gone = [domain for domain, _ in placement.domains if domain[-1] in lost]
            if gone:
                found = self._elsewhere(assigned, demand, placement, gone)
                if isinstance(found, NotPlaced):
                    return found
                self._topologies.remove([(placement, demand.of_nodes)])
                self._topologies.add([(found, demand.of_nodes)])
                assigned = replace(assigned, topology_assignment=assignment_of(found))
            assignments.append(assigned)
        return replace(admission, pod_set_assignments=tuple(assignments))

    def _elsewhere(
        self,
        assigned: PodSetAssignment,
        demand: PodSetDemand,
        placement: Placement,
        gone: list[Domain],
    ) -> Placement | NotPlaced:
        if demand.topology is not None and demand.topology.pod_set_group_name is not None:
            return NotPlaced(
                f"pod set {demand.name!r} is one of a group, which is placed as a whole"
            )
        names = [each for each in assigned.flavors.values() if self._topologies.flavor(each)]
        topology = self._topologies.flavor(names[0]) if names else None
        if topology is None or names[0] not in self._flavors:
            return NotPlaced(f"the topology of pod set {demand.name!r} does not exist any more")
        count = sum(number for _, number in placement.domains)
        wanted = self._topology_demand(demand, count, names[0])
        limits = self._topologies.limits(PlacedUnit(names[0], (wanted,)))
        if isinstance(limits, NotPlaced):
            return limits
        used = self._topologies.used(placement.levels)
        return replaced(topology, wanted, placement, gone, used, limits)


def _tolerating(sample: Pod | None, flavor: ResourceFlavorSpec) -> Pod | None:
    """A pod as it is started in a flavor, as far as nodes that keep pods away are concerned."""
    if sample is None or not flavor.tolerations:
        return sample
    spec = sample.spec
    return replace(sample, spec=replace(spec, tolerations=(*spec.tolerations, *flavor.tolerations)))


def _with_places(assignment: Assignment, found: dict[str, Placement]) -> Assignment:
    pod_sets = tuple(
        replace(pods, placement=found.get(pods.demand.name)) for pods in assignment.pod_sets
    )
    places: list[tuple[Placement, Amounts]] = [
        (pods.placement, pods.demand.of_nodes) for pods in pod_sets if pods.placement is not None
    ]
    usage = Usage(assignment.usage.quota, tuple(places))
    return replace(assignment, pod_sets=pod_sets, usage=usage)


def _all_contested(assignment: Assignment, units: list[PlacedUnit]) -> Assignment:
    """Whoever is in the flavors of pods that need places may be in the way, also where there is quota enough."""
    placed = {demand.pod_set for unit in units for demand in unit.demands}
    pod_sets = tuple(
        replace(pods, choices={name: _contested(each) for name, each in pods.choices.items()})
        if pods.demand.name in placed
        else pods
        for pods in assignment.pod_sets
    )
    return replace(assignment, pod_sets=pod_sets)


def _contested(choice: Choice) -> Choice:
    return replace(choice, rank=Rank.PREEMPT) if choice.rank is Rank.FIT else choice
