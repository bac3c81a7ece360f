"""All nodes, looked at once for one pod: which of them pass node fit, and what their devices are worth to its requests.

Nodes of one signature (`allocator.signature`) are one outlook, worked out once: a thousand equal nodes cost little more than one.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

from drayman.allocator.problem.focus import focused
from drayman.allocator.refusals.funnel import sieves
from drayman.allocator.refusals.sieve import Hurdle, Sieve
from drayman.allocator.signature import signature
from drayman.inventory.bitsets import positions
from drayman.inventory.view import NodeView
from drayman.placement.demand import Demand, DevicesWanted
from drayman.placement.nodes import NodeState
from drayman.placement.state import ClusterState
from drayman.reasons.node_fit import NodeFit, Unfit


@dataclass(slots=True, eq=False)
class Site:
    """One node as the pod sees it."""

    node: NodeState
    unfit: Unfit | None
    view: NodeView
    """The part of the node that concerns the claims."""
    outlook: Outlook

    @property
    def name(self) -> str:
        return self.node.facts.name


@dataclass(eq=False)
class Outlook:
    """What devices are worth to the requests, on nodes that are alike."""

    wanted: DevicesWanted
    view: NodeView
    """Of one of them."""
    sites: list[Site] = field(default_factory=list)

    @cached_property
    def now(self) -> tuple[tuple[Sieve, ...], ...]:
        """What is left at present, by request and alternative."""
        return sieves(self.view, self.wanted.question)

    @cached_property
    def ever(self) -> tuple[tuple[Sieve, ...], ...]:
        """The same with nothing in use and nothing tainted."""
        return sieves(self.view.emptied(), self.wanted.question, with_taints=False)

    @cached_property
    def could_serve(self) -> bool:
        """Whether, with nothing in use and nothing tainted, each request finds enough."""
        return all(any(sieve.is_enough for sieve in request) for request in self.ever)

    @cached_property
    def needed(self) -> int:
        """The devices that a request would take if none of them were in use."""
        lost = 0
        for sieve in (sieve for request in self.now for sieve in request):
            tolerated = self.view.tolerated(sieve.wanted.spec.tolerations)
            lost |= sieve.left_by(Hurdle.SELECTOR) & tolerated & ~sieve.left_by(Hurdle.COUNTERS)
        return lost

    @cached_property
    def needed_at(self) -> tuple[int, ...]:
        """Their positions."""
        return tuple(positions(self.needed))

    @cached_property
    def fitting(self) -> list[Site]:
        """The nodes that pass node fit."""
        return [site for site in self.sites if site.unfit is None]


class Survey:
    """The nodes of a cluster, in order of arrival, and their outlooks."""

    def __init__(self, state: ClusterState, demand: Demand) -> None:
        self.state = state
        self.demand = demand
        self.sites: list[Site] = []
        self._outlooks: dict[Hashable, Outlook] = {}
        fit = NodeFit(state, demand)
        for node in state.nodes.values():
            self._look_at(node, fit)

    @property
    def outlooks(self) -> list[Outlook]:
        return list(self._outlooks.values())

    def _look_at(self, node: NodeState, fit: NodeFit) -> None:
        wanted = self.demand.on(node.facts)
        view = self.state.inventory.view(node.node, self.state.ledger)
        key = (wanted.delegated, signature(view, wanted.question))
        shown = focused(view, wanted.question)
        outlook = self._outlooks.get(key)
        if outlook is None:
            outlook = self._outlooks[key] = Outlook(wanted, shown)
        site = Site(node, fit.of(node), shown, outlook)
        outlook.sites.append(site)
        self.sites.append(site)
