"""Which pods are where, as far as it matters to other pods.

Three things are updated with each placement: crowds of pods that selectors cannot distinguish, the terms of placed pods by domain (so that
the anti-affinity of placed pods costs one lookup per distinct term, not per pod), and the tallies that were asked for recently. Most
clusters have no such terms at all: then `concerns` says so and nothing here is used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, TypeVar

from msgspec import Struct

from drayman.bounded import Bounded
from drayman.inventory.undo import UndoLog
from drayman.placement.fit.needs import PodNeeds
from drayman.placement.fit.neighbour_check import NeighbourCheck
from drayman.placement.fit.neighbours import DomainCounts
from drayman.placement.fit.node import NodeFacts
from drayman.placement.fit.tally import Crowd, Tally
from drayman.placement.fit.terms import AffinityTerm, PodTerms, terms_of

_MOST_TALLIES: Final = 128
"""Each one costs a check with every placement; this many distinct questions are rarely open at once."""

_NO_LABELS: Final[Mapping[str, str]] = {}
K = TypeVar("K", bound=Hashable)


class _Placed(Struct, frozen=True, eq=False):
    """A pod, the node it is on, and what it says about others."""

    needs: PodNeeds
    node: str
    crowd: Crowd
    terms: PodTerms


class Neighbourhood:
    """An index of placed pods for the rules about other pods."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self._nodes: dict[str, NodeFacts] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._placed: dict[str, tuple[PodNeeds, str]] = {}  # with the node
        # As long as no rule is about other pods, they are merely recorded. The rest is used only when one is.
        self._is_counting = False
        self._pods: dict[str, _Placed] = {}
        self._on_node: dict[str, dict[str, _Placed]] = {}
        self._crowds: dict[Hashable, Crowd] = {}
        self._anti: dict[AffinityTerm, DomainCounts] = {}
        self._attraction: dict[tuple[int, AffinityTerm], DomainCounts] = {}
        self._tallies: Bounded[Hashable, Tally] = Bounded(_MOST_TALLIES)

    def set_node(self, facts: NodeFacts) -> None:
        """A node was added or changed. Pods that were already placed on it count from now on."""
        old = self._nodes.get(facts.name)
        if old is not None and old.shape is facts.shape and old.labels == facts.labels:
            return
        if old is not None:
            self._forget_node(old)
        self._nodes[facts.name] = facts
        for tally in self._tallies.values():
            tally.count_node(facts, 1)
        for placed in self._on_node.get(facts.name, {}).values():
            self._count(placed, facts, 1)

    def remove_node(self, name: str) -> None:
        """A node is gone. Its pods stay known and count again if it comes back."""
        old = self._nodes.pop(name, None)
        if old is not None:
            self._forget_node(old)

    def _forget_node(self, facts: NodeFacts) -> None:
        for placed in self._on_node.get(facts.name, {}).values():
            self._count(placed, facts, -1)
        for tally in self._tallies.values():
            tally.count_node(facts, -1)

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        if self._namespaces.get(name) != labels:
            self._log.put(self._namespaces, name, labels)
            self._use_tallies(Bounded(_MOST_TALLIES))

    def remove_namespace(self, name: str) -> None:
        if self._log.pop(self._namespaces, name) is not None:
            self._use_tallies(Bounded(_MOST_TALLIES))

    def _use_tallies(self, tallies: Bounded[Hashable, Tally]) -> None:
        self._log.note(self._use_tallies, self._tallies)
        self._tallies = tallies

    def add(self, needs: PodNeeds, node: str) -> None:
        """A pod is placed. Raises ValueError if it is placed already."""
        if needs.uid in self._placed:
            raise ValueError(f"pod {needs.namespace}/{needs.name} is placed already")
        if needs.shape.depends_on_pods:
            self._start_counting()
        self._placed[needs.uid] = (needs, node)
        if self._is_counting:
            self._add(needs, node)

    def _start_counting(self) -> None:
        if not self._is_counting:
            self._is_counting = True
            for needs, node in self._placed.values():
                self._add(needs, node)

    def _add(self, needs: PodNeeds, node: str) -> None:
        placed = _Placed(needs, node, self._crowd(needs), terms_of(needs))
        self._pods[needs.uid] = placed
        on_node = self._on_node.get(node)
        if on_node is None:
            on_node = self._on_node[node] = {}
        on_node[needs.uid] = placed
        facts = self._nodes.get(node)
        if facts is not None:
            self._count(placed, facts, 1)

    def remove(self, uid: str) -> PodNeeds:
        """The pod with this uid left. Raises ValueError if it is not placed."""
        known = self._placed.pop(uid, None)
        if known is None:
            raise ValueError(f"no pod with uid {uid!r} is placed")
        if self._is_counting:
            self._remove(uid)
        return known[0]

    def _remove(self, uid: str) -> None:
        placed = self._pods.pop(uid)
        on_node = self._on_node[placed.node]
        del on_node[uid]
        if not on_node:
            del self._on_node[placed.node]
        facts = self._nodes.get(placed.node)
        if facts is not None:
            self._count(placed, facts, -1)

    def _crowd(self, needs: PodNeeds) -> Crowd:
        key = (needs.namespace, frozenset(needs.labels.items()), needs.terminating)
        crowd = self._crowds.get(key)
        if crowd is None:
            self._sweep()
            crowd = self._crowds[key] = Crowd(needs.namespace, needs.labels, needs.terminating)
        return crowd

    def _sweep(self) -> None:
        """Drop empty crowds once there are as many as pods: the cost is one step per pod that was added."""
        if len(self._crowds) > 64 + 2 * len(self._pods):
            used = {placed.crowd for placed in self._pods.values()}
            self._crowds = {key: crowd for key, crowd in self._crowds.items() if crowd in used}

    def _count(self, placed: _Placed, facts: NodeFacts, change: int) -> None:
        placed.crowd.count(facts.name, change)
        for tally in self._tallies.values():
            if tally.wants(placed.crowd):
                tally.count(facts, change)
        if placed.needs.shape.depends_on_pods:
            for term in placed.terms.anti_affinity:
                _count_term(self._anti, term, term, facts, change)
            for weighed in placed.terms.attraction:
                _count_term(self._attraction, weighed, weighed[1], facts, change)

    @property
    def nodes(self) -> Iterable[NodeFacts]:
        return self._nodes.values()

    def concerns(self, needs: PodNeeds) -> bool:
        """Whether it matters to this pod, or to a placed one, where it goes."""
        return bool(needs.shape.depends_on_pods or self._anti or self._attraction)

    def prepare(self, needs: PodNeeds) -> NeighbourCheck:
        """Everything that decides where the pod may go, as of now. Valid until the next placement."""
        return NeighbourCheck.of(needs, terms_of(needs), self)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self._namespaces.get(namespace, _NO_LABELS)

    def repelling(self, needs: PodNeeds) -> list[tuple[str, DomainCounts]]:
        labels = self.namespace_labels(needs.namespace)
        return [
            (term.topology_key, counts)
            for term, counts in self._anti.items()
            if term.matches(needs.namespace, needs.labels, labels)
        ]

    def attracting(self, needs: PodNeeds) -> list[tuple[int, str, DomainCounts]]:
        labels = self.namespace_labels(needs.namespace)
        return [
            (weight, term.topology_key, counts)
            for (weight, term), counts in self._attraction.items()
            if term.matches(needs.namespace, needs.labels, labels)
        ]

    def tally(self, key: Hashable, make: Callable[[], Tally]) -> Tally:
        tally = self._tallies.get(key)
        if tally is not None:
            self._tallies.renew(key)
            return tally
        self._start_counting()
        tally = make()
        for facts in self._nodes.values():
            tally.count_node(facts, 1)
        for crowd in self._crowds.values():
            if crowd.by_node and tally.wants(crowd):
                for name, count in crowd.by_node.items():
                    tally.count(self._nodes[name], count)
        self._tallies[key] = tally
        return tally

    def wanted_near(self, key: Hashable, make: Callable[[], Tally]) -> Tally:
        return self.tally(key, make)


class EmptyNeighbourhood:
    """The same nodes and namespaces without any pod in the way: what the rules about other pods say there.

    Pods that a pod must be near do not keep it away, so they stay. Without them it would seem to lack what it has.
    """

    def __init__(self, real: Neighbourhood) -> None:
        self._real = real

    def concerns(self, needs: PodNeeds) -> bool:
        return needs.shape.depends_on_pods

    def prepare(self, needs: PodNeeds) -> NeighbourCheck:
        return NeighbourCheck.of(needs, terms_of(needs), self)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self._real.namespace_labels(namespace)

    def repelling(self, _: PodNeeds) -> list[tuple[str, DomainCounts]]:
        return []

    def attracting(self, _: PodNeeds) -> list[tuple[int, str, DomainCounts]]:
        return []

    def tally(self, _: Hashable, make: Callable[[], Tally]) -> Tally:
        tally = make()
        for facts in self._real.nodes:
            tally.count_node(facts, 1)
        return tally

    def wanted_near(self, key: Hashable, make: Callable[[], Tally]) -> Tally:
        return self._real.tally(key, make)


def _count_term(
    index: dict[K, DomainCounts], key: K, term: AffinityTerm, facts: NodeFacts, change: int
) -> None:
    domain = facts.labels.get(term.topology_key)
    if domain is None:
        return
    counts = index.setdefault(key, {})
    counts[domain] = counts.get(domain, 0) + change
    if not counts[domain]:
        del counts[domain]
        if not counts:
            del index[key]
