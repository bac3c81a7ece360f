"""How many placed pods of some kind there are in each domain of a topology.

What a pod with affinity or spreading needs is a sum over all placed pods. Pods of one template ask for the same sums, one after the other,
so a sum that was asked for once is updated with each placement instead of being computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.bounded import Bounded
from drayman.placement.fit.node import NodeFacts

NODE_ITSELF: Final = ""
"""In place of a topology key: each node is a domain of its own."""

_MOST_REMEMBERED: Final = 1 << 12


@dataclass(slots=True, eq=False)
class Crowd:
    """Placed pods that no selector can distinguish, and how many of them each node has."""

    namespace: str
    labels: Mapping[str, str]
    terminating: bool
    by_node: dict[str, int] = field(default_factory=dict)

    def count(self, node: str, change: int) -> None:
        total = self.by_node.get(node, 0) + change
        if total:
            self.by_node[node] = total
        else:
            del self.by_node[node]


class Tally:
    """Counts of pods by domain. Domains without such pods have no entry in `counts`."""

    __slots__ = ("_eligible", "_verdicts", "_wanted", "counts", "domains", "topology_key")

    def __init__(
        self,
        topology_key: str,
        wanted: Callable[[Crowd], bool],
        eligible: Callable[[NodeFacts], bool] | None = None,
    ) -> None:
        self.topology_key = topology_key
        self.counts: dict[str, int] = {}
        self.domains: dict[str, int] = {}
        """How many eligible nodes each domain has. Kept only where eligibility matters."""
        self._wanted = wanted
        self._eligible = eligible
        self._verdicts: Bounded[Crowd, bool] = Bounded(_MOST_REMEMBERED)

    def domain(self, facts: NodeFacts) -> str | None:
        """The domain that a node's pods count for, if any."""
        if self._eligible is not None and not self._eligible(facts):
            return None
        if self.topology_key == NODE_ITSELF:
            return facts.name
        return facts.labels.get(self.topology_key)

    def wants(self, crowd: Crowd) -> bool:
        verdict = self._verdicts.get(crowd)
        if verdict is None:
            verdict = self._verdicts[crowd] = self._wanted(crowd)
        return verdict

    def count(self, facts: NodeFacts, change: int) -> None:
        """Pods of a counted crowd were added to a node, or left it."""
        _change(self.counts, self.domain(facts), change)

    def count_node(self, facts: NodeFacts, change: int) -> None:
        if self._eligible is not None:
            _change(self.domains, self.domain(facts), change)

    def least(self) -> int:
        """The fewest pods that any domain has."""
        if len(self.counts) < len(self.domains):
            return 0
        return min(self.counts.values(), default=0)


def _change(counts: dict[str, int], domain: str | None, change: int) -> None:
    if domain is None:
        return
    total = counts.get(domain, 0) + change
    if total:
        counts[domain] = total
    else:
        del counts[domain]
