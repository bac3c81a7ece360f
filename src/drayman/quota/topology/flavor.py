"""Places pod sets in the topology of a flavor: the entry point.

One `FlavorTopology` stands for one ResourceFlavor with a topology. Whoever follows the cluster tells it of nodes (`set_node`, with what is
used there by pods that no workload brought) and asks for places (`place`); it is what `quota.demands.TopologyPlacer` describes. What
workloads hold is passed in with each question. A `DomainUsage` is the mapping for that: it is undone exactly, and what changed in it since
the last question is counted again, and nothing else. Any other mapping will do as well; it is then compared domain by domain.

Domains are named as assignments name them: by the host name alone if that is the lowest level, or else by the values of all levels. So what
is used of a node is one number for all flavors that have the node.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from drayman.api import codec
from drayman.api.core import Affinity, Node, NodeAffinity
from drayman.api.kueue_workload import TopologyRequest
from drayman.bounded import Bounded
from drayman.placement.fit.node_choice import node_choice
from drayman.placement.fit.requests import PODS
from drayman.quota.amounts import Amounts
from drayman.quota.demands import Domain, NotPlaced, Placement, TopologyDemand
from drayman.quota.topology.balanced import balanced
from drayman.quota.topology.capacity import Capacity
from drayman.quota.topology.choosing import Choice, Share
from drayman.quota.topology.counting import Counts, Limits, PodKind
from drayman.quota.topology.descending import descended
from drayman.quota.topology.refusing import not_placed
from drayman.quota.topology.usage import DomainUsage
from drayman.quota.topology.wishes import Mode, Senseless, Wish, wish_of

_MOST_COUNTS: Final = 64
"""Kinds of pods that are counted at the same time."""


class FlavorTopology:
    """The nodes of a flavor in its topology."""

    def __init__(
        self,
        topology: str,
        levels: Sequence[str],
        node_labels: Mapping[str, str],
        *,
        is_balanced: bool = False,
    ) -> None:
        """`is_balanced`: whether preferred pods are spread evenly, as with the gate TASBalancedPlacement."""
        self.topology = topology
        self.capacity = Capacity(levels, node_labels)
        self._is_balanced = is_balanced
        self._counts: Bounded[Hashable, Counts] = Bounded(_MOST_COUNTS)

    def set_node(self, node: Node, others: Amounts) -> None:
        """A node as it is now, of which pods that no workload brought use so much, `pods` included."""
        self.capacity.set_node(node, others)

    def remove_node(self, name: str) -> None:
        self.capacity.remove_node(name)

    def forget_counts(self) -> None:
        """Count everything anew at the next question. Only measurements need this."""
        self._counts.clear()

    def place(
        self,
        demands: Sequence[TopologyDemand],
        used: Mapping[Domain, Amounts],
        limits: Limits | None = None,
    ) -> Mapping[str, Placement] | NotPlaced:
        """Places for pod sets that are placed as one, by name: a single set, or two of a group, of which one is a leader.

        `used` is what workloads hold in each lowest domain; if it is empty, pods are placed as if nobody else were there. `limits` say
        what else, besides the resources of nodes, limits how many pods a node holds (`devices`).
        """
        pair = leader_and_workers(demands)
        if isinstance(pair, NotPlaced):
            return pair
        leader, workers = pair
        wish = wish_of(workers.request, self.capacity.levels, workers.count)
        if isinstance(wish, Senseless):
            return NotPlaced(f"topology {self.topology!r}: {wish.message}")
        counts = self.counts(wish, workers, leader, used, limits)
        shares = self._places(wish, counts, workers.count, leads=leader is not None)
        if shares is None:
            return not_placed(self.topology, self.capacity, wish, counts, workers.count, leader)
        lowest = wish.grain(self.capacity.lowest)
        placed = {
            workers.pod_set: self._placement(
                {share.domain: share.units * lowest for share in shares if share.units}
            )
        }
        if leader is not None:
            placed[leader.pod_set] = self._placement(
                {share.domain: 1 for share in shares if share.leads}
            )
        return placed

    def counts(
        self,
        wish: Wish,
        workers: TopologyDemand,
        leader: TopologyDemand | None,
        used: Mapping[Domain, Amounts],
        limits: Limits | None = None,
    ) -> Counts:
        """What the domains hold of these pods. Valid until the next question."""
        key = (
            # Whoever asks in turn about the cluster as it is and without its users gets two counts that stay.
            isinstance(used, DomainUsage),
            # What was counted within limits says nothing about pods, or questions, without them.
            limits is None,
            wish.layers,
            _key_of(workers),
            None if leader is None else _key_of(leader),
        )
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = Counts(
                self.capacity, wish, _kind_of(workers), None if leader is None else _kind_of(leader)
            )
        counts.renew(used, limits)
        return counts

    def _places(self, wish: Wish, counts: Counts, count: int, *, leads: bool) -> list[Share] | None:
        """What each lowest domain gets."""
        capacity = self.capacity
        choice = Choice(counts, smallest_first=wish.mode is Mode.UNCONSTRAINED)
        units = count // wish.slices.size
        found: list[Share] | None = None
        if self._is_balanced and wish.mode is Mode.PREFERRED and units and not leads:
            found = balanced(capacity, wish, counts, units)
        if found is None:
            found = self.first(wish, choice, units, leads=leads)
        return None if found is None else descended(capacity, wish, choice, found)

    def first(self, wish: Wish, choice: Choice, units: int, *, leads: bool) -> list[Share] | None:
        """Domains of the first level at which everything fits."""
        domains = self.capacity.domains
        if wish.mode is Mode.UNCONSTRAINED:
            return choice.several(domains(wish.level), units, leads=leads)
        coarsest = wish.level if wish.mode is Mode.REQUIRED else 0
        for level in range(wish.level, coarsest - 1, -1):
            one = choice.one(domains(level), units, leads=leads)
            if one is not None:
                return [one]
        if wish.mode is Mode.REQUIRED:
            return None
        return choice.several(domains(0), units, leads=leads)

    def _placement(self, pods: Mapping[tuple[str, ...], int]) -> Placement:
        # In the order of all levels, so that neighbours in the list are near each other.
        return Placement(
            self.capacity.assigned_levels,
            tuple((self.capacity.domain(leaf), pods[leaf]) for leaf in sorted(pods)),
        )


def leader_and_workers(
    demands: Sequence[TopologyDemand],
) -> tuple[TopologyDemand | None, TopologyDemand] | NotPlaced:
    """Which pod set leads, if two are placed together: the one of a single pod."""
    if len(demands) == 1:
        return None, demands[0]
    names = ", ".join(each.pod_set for each in demands)
    if len(demands) != 2 or all(each.count != 1 for each in demands):
        return NotPlaced(
            f"pod sets {names}: a group has two pod sets, and one of them, the leader, has one pod"
        )
    first, second = demands
    leader, workers = (first, second) if first.count == 1 else (second, first)
    if _together(leader.request) != _together(workers.request):
        return NotPlaced(f"pod sets {names} are a group, but ask for different topologies")
    return leader, workers


def _together(request: TopologyRequest) -> TopologyRequest:
    """What pod sets of a group have to agree on. Slices and indexes are of the workers alone."""
    return replace(
        TopologyRequest(),
        required=request.required,
        preferred=request.preferred,
        unconstrained=request.unconstrained,
    )


def _key_of(demand: TopologyDemand) -> Hashable:
    """Equal for pods that are counted alike."""
    return (
        frozenset(demand.per_pod.items()),
        frozenset(demand.node_selector.items()),
        None if demand.affinity is None else codec.encode(demand.affinity),
        demand.tolerations,
        demand.served,
    )


def _kind_of(demand: TopologyDemand) -> PodKind:
    affinity = None
    if demand.affinity is not None:
        affinity = Affinity(
            node_affinity=NodeAffinity(
                required_during_scheduling_ignored_during_execution=demand.affinity
            )
        )
    amounts = {**{name: n for name, n in demand.per_pod.items() if n > 0}, PODS: 1}
    return PodKind(
        tuple(amounts.items()),
        node_choice(demand.node_selector, affinity),
        demand.tolerations,
        demand.served,
    )
