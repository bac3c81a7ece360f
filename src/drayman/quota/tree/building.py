"""The forest of all cohorts and queues, from what their objects say.

A cohort need not have an object: one that is only named has no quota and no limits of its own. Cohorts that name each other in a
circle have no root, so nothing in or below the circle has a meaning: such queues get no node until the circle is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from drayman.api.kueue import ClusterQueueSpec, CohortSpec, FairSharing, ResourceGroup
from drayman.quota.amounts import FlavorResource, amount_of
from drayman.quota.tree.nodes import Node, Quota, derive

_EMPTY: Final = CohortSpec()


class Forest(Struct, frozen=True):
    """All trees. A queue without a cohort is a tree of its own."""

    queues: dict[str, Node]
    """By name, those that have a place."""
    cohorts: dict[str, Node]
    in_circles: frozenset[str]
    """Queues whose cohorts never come to a root."""

    def roots(self) -> Iterator[Node]:
        for node in self.cohorts.values():
            if node.parent is None:
                yield node
        for node in self.queues.values():
            if node.parent is None:
                yield node


def forest_of(queues: Mapping[str, ClusterQueueSpec], cohorts: Mapping[str, CohortSpec]) -> Forest:
    """The trees that these specs describe, with nothing used. Children are in the order of their names, cohorts first."""
    parents = _parents(queues, cohorts)
    rooted = _rooted(parents)
    nodes = {
        name: _node(name, cohorts.get(name, _EMPTY), is_queue=False) for name in sorted(rooted)
    }
    places: dict[str, Node] = {}
    children: dict[str, list[Node]] = {}
    for name, node in nodes.items():
        if parent := parents[name]:
            node.parent = nodes[parent]
            children.setdefault(parent, []).append(node)
    for name, spec in sorted(queues.items()):
        if spec.cohort_name and spec.cohort_name not in rooted:
            continue
        place = _node(name, spec, is_queue=True)
        places[name] = place
        if spec.cohort_name:
            place.parent = nodes[spec.cohort_name]
            children.setdefault(spec.cohort_name, []).append(place)
    for name, below in children.items():
        nodes[name].children = tuple(below)
    forest = Forest(places, nodes, frozenset(queues.keys() - places.keys()))
    for root in forest.roots():
        derive(root)
    return forest


def quotas_of(groups: tuple[ResourceGroup, ...]) -> dict[FlavorResource, Quota]:
    """The quota of each flavor and resource that resource groups list."""
    return {
        FlavorResource(flavor.name, each.name): Quota(
            amount_of(each.name, each.nominal_quota),
            None if each.borrowing_limit is None else amount_of(each.name, each.borrowing_limit),
            None if each.lending_limit is None else amount_of(each.name, each.lending_limit),
        )
        for group in groups
        for flavor in group.flavors
        for each in flavor.resources
    }


def weight_of(sharing: FairSharing | None) -> float:
    """The weight in fair sharing."""
    return 1.0 if sharing is None or sharing.weight is None else float(sharing.weight.amount)


def _node(name: str, spec: ClusterQueueSpec | CohortSpec, *, is_queue: bool) -> Node:
    quotas = quotas_of(spec.resource_groups)
    return Node(name, quotas, weight_of(spec.fair_sharing), is_queue=is_queue)


def _parents(
    queues: Mapping[str, ClusterQueueSpec], cohorts: Mapping[str, CohortSpec]
) -> dict[str, str]:
    """The parent of every cohort that exists or is named; empty for those without one."""
    parents = {name: spec.parent_name for name, spec in cohorts.items()}
    for spec in queues.values():
        if spec.cohort_name:
            parents.setdefault(spec.cohort_name, "")
    for parent in tuple(parents.values()):
        if parent:
            parents.setdefault(parent, "")
    return parents


def _rooted(parents: Mapping[str, str]) -> set[str]:
    """The cohorts from which the way up ends."""
    rooted: set[str] = set()
    circling: set[str] = set()
    for start in parents:
        way: list[str] = []
        seen: set[str] = set()
        name = start
        while name and name not in rooted and name not in circling and name not in seen:
            seen.add(name)
            way.append(name)
            name = parents[name]
        ends = not name or name in rooted
        (rooted if ends else circling).update(way)
    return rooted
