"""The nodes of a cluster and the pods that count on them.

A pod counts on its node in several ways: in the sums of the node, for pods that care about others (`fit.neighbourhood`), and as a user of
its volumes. All of these are updated together here.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from msgspec import Struct

from drayman.api.core import Node
from drayman.inventory.undo import UndoLog
from drayman.placement.fit import Neighbourhood, NodeFacts, NodeUsage, PodNeeds
from drayman.placement.gangs.book import GangBook, Member
from drayman.placement.marks import Marks
from drayman.placement.prices import NO_PRICES, PLAIN, Offer, PriceTable, offer_of
from drayman.placement.queueing.book import QueueBook
from drayman.placement.volumes import Volumes


class NodeState(Struct, eq=False):
    """A node with what runs on it."""

    node: Node
    facts: NodeFacts
    usage: NodeUsage
    index: int
    """The order of arrival: the final tie-breaker between equal nodes."""
    offer: Offer = PLAIN
    """On which terms it is there."""


class PlacedPod(Struct, frozen=True):
    """A pod that counts on a node."""

    needs: PodNeeds
    node: str
    member: Member | None = None
    """If it is in a gang."""


class Nodes:
    """Nodes by name, in the order of their arrival, and where each pod counts."""

    def __init__(self, log: UndoLog, marks: Marks, prices: PriceTable = NO_PRICES) -> None:
        self._log = log
        self._marks = marks
        self._prices = prices
        self.by_name: dict[str, NodeState] = {}
        self.neighbourhood = Neighbourhood(log)
        self.volumes = Volumes(log)
        self.gangs = GangBook(log)
        self.soft_taints = 0
        """How many nodes have taints that pods would rather avoid."""
        self.closed = 0
        """How many nodes are cordoned, are spot, or have taints that keep pods away."""
        self.offers = 0
        """How many nodes have a price or are spot."""
        self.extended: Counter[str] = Counter()
        """What kubelets offer of each extended resource, on all nodes together."""
        self._placed: dict[str, PlacedPod] = {}  # by uid
        self._on_unknown_nodes: dict[
            str, dict[str, PodNeeds]
        ] = {}  # pods on nodes that are not known
        self._arrivals = 0
        self._queues: QueueBook | None = None

    def follow_with(self, queues: QueueBook) -> None:
        """Has queues told which pods count."""
        self._queues = queues

    def set(self, node: Node) -> bool:
        """A node was added or changed. Returns whether that may matter to any pod."""
        name = node.metadata.name
        facts, known = NodeFacts.of(node), self.by_name.get(name)
        if known is None:
            self._log.note(self._never_came, name)
            self._arrivals += 1
            usage = NodeUsage()
            for needs in self._on_unknown_nodes.get(name, {}).values():
                usage.add(needs)
            offer = offer_of(facts.labels, self._prices)
            self._enter(NodeState(node, facts, usage, self._arrivals, offer))
            return True
        before = known.facts
        is_news = facts.shape is not before.shape or facts.labels != before.labels
        self._describe(known, node, facts, is_news=is_news)
        return is_news

    def remove(self, name: str) -> None:
        """A node is gone. Its pods count again if it comes back."""
        known = self.by_name.pop(name, None)
        if known is None:
            return
        self._log.note(self._enter, known)
        self._count(known, -1)
        if known.usage.pods:
            self._on_unknown_nodes[name] = dict(known.usage.pods)
        self.neighbourhood.remove_node(name)
        self._marks.node(name)

    def find(self, uid: str) -> PlacedPod | None:
        """The pod with this uid, if it counts."""
        return self._placed.get(uid)

    def place(self, needs: PodNeeds, node: str) -> None:
        """Count a pod on a node, whether or not the node is known. Raises ValueError if it counts already."""
        # This raises before anything is changed.
        self.neighbourhood.add(needs, node)
        self._placed[needs.uid] = PlacedPod(needs, node)
        self._log.note(self._uncount, needs.uid)
        state = self.by_name.get(node)
        if state is None:
            self._on_unknown_nodes.setdefault(node, {})[needs.uid] = needs
        else:
            state.usage.add(needs)
            self._marks.node(node)
        self.volumes.add_pod(needs)
        if self._queues is not None:
            self._queues.place(needs.uid)

    def displace(self, uid: str) -> PlacedPod:
        """A pod no longer counts. Returns what to pass to `put_back` to count it again."""
        placed = self._uncount(uid)
        return PlacedPod(placed.needs, placed.node, self.gangs.displace(uid))

    def _uncount(self, uid: str) -> PlacedPod:
        placed = self._placed.pop(uid)
        needs, node = placed.needs, placed.node
        self._log.note(self.place, needs, node)
        state = self.by_name.get(node)
        if state is None:
            waiting = self._on_unknown_nodes.get(node, {})
            waiting.pop(uid, None)
            if not waiting:
                self._on_unknown_nodes.pop(node, None)
        else:
            state.usage.remove(uid)
            self._marks.node(node)
        self.neighbourhood.remove(uid)
        self.volumes.remove_pod(needs)
        if self._queues is not None:
            self._queues.displace(uid)
        return placed

    def put_back(self, placed: PlacedPod) -> None:
        """The inverse of `displace`."""
        self.place(placed.needs, placed.node)
        if placed.member is not None:
            self.gangs.rejoin(placed.member)

    def _never_came(self, name: str) -> None:
        self.remove(name)
        self._arrivals -= 1

    def _enter(self, state: NodeState) -> None:
        name = state.facts.name
        is_back = bool(self.by_name) and next(reversed(self.by_name.values())).index > state.index
        self.by_name[name] = state
        if is_back:  # after a trial without it
            ordered = sorted(self.by_name.values(), key=lambda each: each.index)
            self.by_name.clear()
            self.by_name.update((each.facts.name, each) for each in ordered)
        self._on_unknown_nodes.pop(name, None)
        self._count(state, 1)
        self.neighbourhood.set_node(state.facts)
        self._marks.node(name)

    def _describe(self, known: NodeState, node: Node, facts: NodeFacts, *, is_news: bool) -> None:
        undo = partial(self._describe, known, known.node, known.facts, is_news=is_news)
        self._log.note(undo)
        self._count(known, -1)
        known.node, known.facts = node, facts
        if is_news:
            known.offer = offer_of(facts.labels, self._prices)
        self._count(known, 1)
        if is_news:
            self.neighbourhood.set_node(facts)
            self._marks.node(facts.name)

    def _count(self, state: NodeState, change: int) -> None:
        """Count what makes nodes differ for pods."""
        shape, offer = state.facts.shape, state.offer
        self.soft_taints += change * bool(shape.soft_taints)
        self.closed += change * bool(shape.unschedulable or shape.taints or offer.is_spot)
        self.offers += change * (offer is not PLAIN)
        for name, amount in shape.extended.items():
            self.extended[name] += change * amount
            if not self.extended[name]:
                del self.extended[name]
