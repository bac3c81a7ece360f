"""What queues in cohorts may use, counted from their specs alone, and not by the engine under test.

Of each flavor and resource a node of the tree has its own quota and what its children do not keep for themselves; what children use
beyond that is used of their parent. No node may use more than it has and may borrow, and a root cannot borrow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from faults.snapshot import Object, amount

FlavorResource = tuple[str, str]
Usage = Mapping[FlavorResource, Fraction]
Node = tuple[str, str]
"""Its kind, `ClusterQueue` or `Cohort`, and its name."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Of a flavor and resource. No limit is None."""

    nominal: Fraction
    borrowing: Fraction | None = None
    lending: Fraction | None = None

    def or_more(self, other: Quota) -> Quota:
        """The more generous of both in each respect."""
        return Quota(
            max(self.nominal, other.nominal),
            _larger(self.borrowing, other.borrowing),
            _larger(self.lending, other.lending),
        )


def _larger(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else max(one, other)


def quotas_of(item: Object) -> dict[FlavorResource, Quota]:
    """What a ClusterQueue or Cohort says of itself."""
    return {
        (flavor["name"], resource["name"]): Quota(
            amount(resource["nominalQuota"]),
            _limit(resource, "borrowingLimit"),
            _limit(resource, "lendingLimit"),
        )
        for group in item["spec"].get("resourceGroups") or ()
        for flavor in group["flavors"]
        for resource in flavor["resources"]
    }


def _limit(resource: Object, name: str) -> Fraction | None:
    return None if resource.get(name) is None else amount(resource[name])


@dataclass(frozen=True, slots=True)
class Tree:
    """Queues and cohorts with their parents and quotas."""

    parents: dict[Node, Node] = field(default_factory=dict)
    quotas: dict[Node, dict[FlavorResource, Quota]] = field(default_factory=dict)

    @classmethod
    def of(cls, queues: Iterable[Object], cohorts: Iterable[Object]) -> Tree:
        tree = cls()
        for kind, parent_field, items in (
            ("ClusterQueue", "cohortName", queues),
            ("Cohort", "parentName", cohorts),
        ):
            for item in items:
                node = (kind, item["metadata"]["name"])
                tree.quotas[node] = quotas_of(item)
                if item["spec"].get(parent_field):
                    tree.parents[node] = ("Cohort", item["spec"][parent_field])
        return tree

    def with_more(self, more: Mapping[Node, Iterable[Mapping[FlavorResource, Quota]]]) -> Tree:
        """A tree in which nodes have the most that they have here, or in other versions of them."""
        quotas = {node: dict(own) for node, own in self.quotas.items()}
        for node, versions in more.items():
            for version in versions if node in quotas else ():
                for key, quota in version.items():
                    known = quotas[node].get(key)
                    quotas[node][key] = quota if known is None else quota.or_more(known)
        return Tree(self.parents, quotas)

    def exceeded(self, used: Mapping[str, Usage]) -> Iterator[str]:
        """Where queues, by name, use more than there is."""
        children: dict[Node, list[Node]] = defaultdict(list)
        for node, parent in self.parents.items():
            children[parent].append(node)
        roots = {*self.quotas, *self.parents.values()} - self.parents.keys()
        keys = {key for usage in used.values() for key in usage}
        for root in sorted(roots):
            for key in sorted(keys):
                found: list[str] = []
                self._weigh(root, key, children, used, found)
                yield from found

    def _weigh(
        self,
        node: Node,
        key: FlavorResource,
        children: Mapping[Node, list[Node]],
        used: Mapping[str, Usage],
        found: list[str],
    ) -> tuple[Fraction, Fraction]:
        """What a node offers to its parent, and what it uses of it."""
        own = self.quotas.get(node, {}).get(key, Quota(Fraction(0)))
        has = own.nominal
        uses = (
            used.get(node[1], {}).get(key, Fraction(0))
            if node[0] == "ClusterQueue"
            else Fraction(0)
        )
        for child in children.get(node, ()):
            offered, taken = self._weigh(child, key, children, used, found)
            has, uses = has + offered, uses + taken
        borrowing = own.borrowing if node in self.parents else Fraction(0)
        if borrowing is not None and uses > has + borrowing:
            most = f"{has}" if not borrowing else f"{has} and {borrowing} borrowed"
            found.append(f"{' '.join(node)} uses {uses} of {'/'.join(key)}, and has {most}")
        kept = Fraction(0) if own.lending is None else max(Fraction(0), has - own.lending)
        return has - kept, max(Fraction(0), uses - kept)
