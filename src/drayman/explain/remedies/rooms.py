"""Room for a pod on a node where others are in the way: the fewest and least important of them that would have to go.

As in preemption, but for a person to decide, so priority is not a limit: all pods are removed, and the most important are put back first.
Among equals both orders are tried: putting back those with few devices first leaves the fewest victims, putting back those with many first
frees no more than is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from drayman.api.pods import priority_of
from drayman.explain.remedies.case import Case
from drayman.explain.remedies.linked_pods import LinkedPods
from drayman.explain.remedies.nearness import free_devices
from drayman.explain.remedies.trying import Fit
from drayman.placement.fit import FITS
from drayman.placement.nodes import NodeState
from drayman.placement.victims import RoomSearch, ways

MOST_NODES: Final = 6
_MOST_WEIGHED: Final = 512
"""Nodes among which those are chosen."""
_MOST_PRESENT: Final = 40
"""On a node with more linked pods than this, the choice is left to people."""
_MOST_TWICE: Final = 16
"""With more than this, they are put back in one order only."""


class Room(Struct, frozen=True):
    """The pods that would have to leave a node, and what the pod then gets there."""

    node: NodeState
    victims: tuple[LinkedPods, ...]
    fit: Fit

    def cost(self, namespace: str) -> tuple[int, int, int, int, int]:
        """Less is better: the least important, the fewest, the pod's own namespace, and no more devices than needed."""
        pods = [pod for linked in self.victims for pod in linked.pods]
        return (
            max(linked.priority for linked in self.victims),
            len(pods),
            sum(pod.metadata.namespace != namespace for pod in pods),
            sum(linked.devices for linked in self.victims),
            self.node.index,
        )


def rooms(case: Case) -> list[Room]:
    """Room on some of the nodes that could do it, the cheapest first."""
    found = [room for node in _promising(case) for room in _room(case, node)]
    return sorted(found, key=lambda room: room.cost(case.pod.metadata.namespace))


def _promising(case: Case) -> list[NodeState]:
    """Nodes where the pods in the way seem to be least important."""
    resolvable = (node for node in case.nodes if _is_resolvable(case, node))
    wanted = sum(
        max((sub.count for sub in request.first_available), default=1)
        if request.exactly is None
        else request.exactly.count
        for claim in case.demand.open
        for request in claim.spec.devices.requests
    )

    def importance(node: NodeState) -> tuple[int, int, int]:
        missing = max(wanted - free_devices(case.state, node), 1)
        pods = case.pods.on(node.facts.name)
        ranks = sorted(priority_of(p) for p in pods if p.spec.resource_claims or not wanted)
        in_the_way = ranks[:missing] or [0]
        return in_the_way[-1], len(in_the_way), node.index

    return sorted(islice(resolvable, _MOST_WEIGHED), key=importance)[:MOST_NODES]


def _is_resolvable(case: Case, node: NodeState) -> bool:
    """Whether a node might take the pod if others left it."""
    verdict = case.verdicts.get(node.facts.name)
    if verdict is not None:
        return verdict.resolvable
    return case.state.static_verdicts.verdict(case.demand.needs, node.facts) is FITS


def _room(case: Case, node: NodeState) -> Iterator[Room]:
    present = case.pods.linked_on(node)
    if not present or len(present) > _MOST_PRESENT:
        return
    orders = [_order(present, 1)]
    if len(present) <= _MOST_TWICE:
        orders.append(_order(present, -1))
    # Pods with none of what is missing are hardly ever in the way.
    idle = [linked for linked in present if not linked.devices] if case.demand.open else []
    attempts = (RoomSearch(node, tuple(order), unlikely=tuple(idle)) for order in orders)
    found = [
        Room(way.node, way.victims, way.found)
        for way in ways(case.state, attempts, lambda node: case.trials.fit_on(case.demand, node))
        if way.victims
    ]
    if found:
        yield min(found, key=lambda room: room.cost(case.pod.metadata.namespace))


def _order(present: Sequence[LinkedPods], sign: int) -> list[LinkedPods]:
    """The order in which they are put back: pods that are being deleted anyway come last."""
    return sorted(present, key=lambda p: (p.is_leaving, -p.priority, sign * p.devices, p.age))
