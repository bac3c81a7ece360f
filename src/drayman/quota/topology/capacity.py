"""The nodes of a flavor, ordered by the levels of its topology, and what they have for pods of workloads.

A node belongs to a flavor if it has the flavor's labels, and to its topology if it has a value for every level. Pods that no workload
brought, such as those of daemon sets, take part of it. Whether a node takes pods at all is decided by its condition and its object, as
Kueue does it: one that has not said that it is ready counts as closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from drayman.api.core import Node, Toleration
from drayman.placement.domains.tree import DomainTree
from drayman.placement.fit import NodeFacts
from drayman.placement.fit.node_choice import NodeChoice
from drayman.placement.fit.readiness import is_ready
from drayman.placement.fit.requests import whole_amounts
from drayman.placement.fit.taints import UNSCHEDULABLE_TAINT, is_tolerated
from drayman.quota.amounts import Amounts
from drayman.quota.demands import Domain
from drayman.quota.topology.notes import Notes
from drayman.topology import Path, configured
from drayman.topology.levels import HOSTNAME

NOT_READY: Final = "not ready"
CORDONED: Final = "cordoned"
TAINTED: Final = "tainted"
NOT_SELECTED: Final = "not selected by the pods"


class Host(Struct, frozen=True, eq=False):
    """A node as placement in a topology sees it."""

    facts: NodeFacts
    ready: bool
    left: Amounts
    """What is allocatable and not used by pods that no workload brought."""

    def offers(self, name: str) -> bool:
        """Whether the node's kubelet offers an extended resource, so that no device serves it there."""
        return bool(self.facts.shape.extended.get(name))

    def refusal(self, choice: NodeChoice, tolerations: Sequence[Toleration]) -> str:
        """Why pods that look for such nodes cannot be here, whatever they ask for; empty if they can."""
        facts = self.facts
        if not self.ready:
            return NOT_READY
        if facts.shape.unschedulable and not is_tolerated(UNSCHEDULABLE_TAINT, tolerations):
            return CORDONED
        if not all(is_tolerated(taint, tolerations) for taint in facts.shape.taints):
            return TAINTED
        return "" if choice.allows(facts.labels, facts.name) else NOT_SELECTED


class Capacity:
    """The nodes of a flavor that are in its topology."""

    def __init__(self, levels: Sequence[str], labels: Mapping[str, str]) -> None:
        self.levels = tuple(levels)
        self._labels = dict(labels)
        self.tree = DomainTree(configured(levels))
        self.lowest = len(self.levels) - 1
        self.names_hosts = self.levels[-1] == HOSTNAME
        """Whether the lowest domains are nodes. A host name then says everything, and assignments have nothing else."""
        self._hosts: dict[str, Host] = {}
        self._of_level: dict[int, tuple[Path, ...]] = {}
        self._leaves: dict[Domain, tuple[Path, ...]] = {}
        self.changed: Notes[Path] = Notes()
        """Lowest domains of which a node changed."""
        self.shape = 0
        """Grows when there are other domains than before."""

    @property
    def assigned_levels(self) -> tuple[str, ...]:
        """The levels that an assignment lists."""
        return self.levels[-1:] if self.names_hosts else self.levels

    def set_node(self, node: Node, others: Amounts) -> None:
        """A node as it is now, of which pods that no workload brought use so much."""
        name, labels = node.metadata.name, node.metadata.labels
        place = self.tree.hierarchy.path(lambda level: labels.get(level.key, ""))
        if not all(place) or any(labels.get(k) != v for k, v in self._labels.items()):
            self.remove_node(name)
            return
        left = {
            resource: amount - others.get(resource, 0)
            for resource, amount in whole_amounts(node.status.allocatable).items()
        }
        self._note(name)  # where it was
        self._hosts[name] = Host(NodeFacts.of(node), is_ready(node.status.conditions), left)
        if self.tree.set(name, place):
            self._reshape()
        self._note(name)

    def remove_node(self, name: str) -> None:
        if self._hosts.pop(name, None) is not None:
            self.tree.remove(name)
            self._reshape()

    def hosts(self, leaf: Path) -> list[Host]:
        """The nodes of a lowest domain."""
        return [self._hosts[path[-1]] for path in self.tree.children(leaf)]

    def domains(self, level: int) -> tuple[Path, ...]:
        """The domains of a level, in the order of their values."""
        found = self._of_level.get(level)
        if found is None:
            found = self._of_level[level] = self.tree.domains(level)
        return found

    def domain(self, leaf: Path) -> Domain:
        """A lowest domain as assignments name it."""
        return leaf[-1:] if self.names_hosts else leaf

    def leaves(self, domain: Domain) -> tuple[Path, ...]:
        """The lowest domains that an assignment means: one, none if it is gone, or several nodes of the same host name."""
        if not self._leaves:
            for leaf in self.domains(self.lowest):
                key = self.domain(leaf)
                self._leaves[key] = (*self._leaves.get(key, ()), leaf)
        return self._leaves.get(domain, ())

    def _note(self, name: str) -> None:
        leaf = self.tree.leaf(name)
        if leaf is not None:
            self.changed.add(leaf[:-1])

    def _reshape(self) -> None:
        self.shape += 1
        self._of_level.clear()
        self._leaves.clear()
