"""Trying changes out: does the pod fit somewhere, asking like this, on the current state?

A cluster has thousands of nodes and a pod dozens of possible remedies, so not every remedy is tried on every node: the ones that came
closest are looked at first, the first that fits is the answer, and nodes that look alike to a question (`allocator.signature`) share
theirs. What was left out is recorded and reported.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from msgspec import Struct

from drayman.allocator import Policy, signature
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.inventory.identity import DeviceId
from drayman.placement.decision.deciding import Decider
from drayman.placement.demand import Demand
from drayman.placement.nodes import NodeState
from drayman.placement.placing import Placer
from drayman.placement.state import ClusterState

MOST_NODES: Final = 64
"""Nodes on which one remedy is tried."""
MOST_SEARCHES: Final = 1000
"""Searches for all remedies of one pod together."""
_CLAIMS_OF_A_SEARCH: Final = 8
"""A search takes as long as there are claims, so one for more claims than these counts as several."""
_MOST_LOOKS: Final = 6000
"""How often a node is looked at for them, most often to find that it is like one that was searched."""


class Fit(Struct, frozen=True):
    """Where a pod fits after a change, and the devices it gets there."""

    node: str
    devices: tuple[str, ...]


class Trials:
    """Asks nodes, and counts the searches."""

    def __init__(
        self, state: ClusterState, now: float, nodes: Sequence[NodeState], searches: int
    ) -> None:
        self._state = state
        self.round = Decider(state).round(now)
        self._placer = Placer(state, Policy.BEST)
        self._nodes = nodes
        self._left = searches
        self._looks_left = _MOST_LOOKS
        self.left_out = 0
        """On how many nodes a change that did not help elsewhere was not tried, at most."""

    @property
    def is_spent(self) -> bool:
        """Whether the limit of searches has been reached."""
        return self._left <= 0 or self._looks_left <= 0

    def demand_with(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Demand:
        return self.round.demand_with(pod, claims)

    def ask(
        self, pod: Pod, claims: Sequence[ResourceClaim], nodes: Sequence[NodeState] | None = None
    ) -> Fit | None:
        """Where the pod would fit if it and its claims were like this; the nearest nodes are asked unless some are given."""
        demand = self.demand_with(pod, claims)
        return self.first_fit(demand, nodes)

    def first_fit(self, demand: Demand, nodes: Sequence[NodeState] | None = None) -> Fit | None:
        if self._placer.is_hopeless(demand):
            return None
        refused: set[Hashable] = set()
        chosen = self._nodes if nodes is None else nodes
        for node in chosen[:MOST_NODES]:
            if self.is_spent:
                return None
            looks = self._looks(demand, node)
            if looks in refused:
                continue
            fit = self.fit_on(demand, node)
            if fit is not None:
                return fit
            refused.add(looks)
        self.left_out = max(self.left_out, len(chosen) - MOST_NODES)
        return None

    def fit_on(self, demand: Demand, node: NodeState) -> Fit | None:
        """What the pod gets on a node now; None if it does not fit, or the limit of searches has been reached."""
        if self.is_spent or self._placer.is_hopeless(demand):
            return None
        self._left -= 1 + len(demand.open) // _CLAIMS_OF_A_SEARCH
        found = self._placer.found_on(demand, node)
        if found is None:
            return None
        given = () if found.plan is None else found.plan.claims
        results = (r for item in given for r in item.allocation.devices.results)
        return Fit(node.facts.name, tuple(str(DeviceId.of(r)) for r in results))

    def _looks(self, demand: Demand, node: NodeState) -> Hashable:
        """Equal for nodes that give equal answers."""
        self._looks_left -= 1
        shape = demand.needs.shape
        if shape.by_name or shape.volumes or demand.held:
            return node.index
        if self._state.neighbourhood.concerns(demand.needs):
            return node.index
        wanted = demand.on(node.facts)
        view = self._state.inventory.view(node.node, self._state.ledger)
        devices = signature(view, wanted.question) if wanted.claims else None
        return node.facts.shape, node.usage.room_key, wanted.delegated, devices
