"""What makes one allocation better than another: the objective of policy `best`.

Allocations of the same claims on the same node are compared by the following, in this order; lower is better everywhere. All claims
of the search count together, as they are for one pod. Entries with admin access count for nothing but the last rule.

1. `alternatives`: the index of the alternative served, for each `firstAvailable` request in the order of claims and requests.
2. `far`, then `near`: how well different kinds of devices are aligned. For each unordered pair of kinds that both have entries, let
   the kind with more entries (a of them) be served by the other (b of them), each of the b serving at most ceil(a / b). As many as
   possible are served from the same PCIe root, of the rest as many as possible from the same NUMA node; what is served from
   the same NUMA node but not the same root is `near`, what is not served from the same NUMA node is `far`. Both are added up over all pairs.
3. `numa_nodes`, then `roots`: how many NUMA nodes (then PCIe roots) the entries of each kind are spread over, added up over the kinds.
   An entry whose place is unknown counts as a NUMA node and a root of its own.
4. `spoiled`: how many devices that consume counters and were not held become unusable because what they consume is no longer there,
   not counting the devices of the allocation itself.
5. `opened`: how many shareable devices get their first share.
6. `broken_numa_nodes`, then `broken_roots`: in how many NUMA nodes (then PCIe roots), counted per kind, some exclusive devices of the
   kind are in use after the allocation and some are not.
7. `positions`: the entries' positions in search order, entry by entry in the order of claims and requests, ascending within a request.

Kind and place come from `drayman.topology`. Where devices of one root disagree about their NUMA node the first one in search order that
names one is believed for all of them, so that every root lies within one NUMA node (or within none that is known).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from drayman.inventory.view import NodeView, positions
from drayman.topology.locality import Kind, kind, locality


class Cost(NamedTuple):
    """Rules 2 to 6 for one allocation."""

    far: int
    near: int
    numa_nodes: int
    roots: int
    spoiled: int
    opened: int
    broken_numa_nodes: int
    broken_roots: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a device is; -1 stands for unknown."""

    kind: Kind
    root: int
    numa: int


class Layout:
    """Kinds and places of a node's devices."""

    def __init__(self, view: NodeView) -> None:
        records = view.hardware.records
        roots: dict[str, int] = {}
        numa_of_root: dict[int, int] = {}
        found: list[tuple[Kind, int, int]] = []
        for record in records:
            where = locality(record.id.driver, record.device)
            root = -1 if where.pcie_root is None else roots.setdefault(where.pcie_root, len(roots))
            numa = -1 if where.numa is None else where.numa
            if root >= 0 and numa >= 0:
                numa_of_root.setdefault(root, numa)
            found.append((kind(record.id.driver, record.device), root, numa))
        self.places = tuple(
            Place(sort, root, numa_of_root.get(root, numa) if root >= 0 else numa)
            for sort, root, numa in found
        )
        exclusive = view.hardware.everything & ~view.hardware.shareable
        self.kinds = sorted({place.kind for place in self.places})
        # Per kind and group, the exclusive devices in it.
        self.by_numa = self._grouped(exclusive, by_root=False)
        self.by_root = self._grouped(exclusive, by_root=True)

    def _grouped(self, devices: int, *, by_root: bool) -> dict[tuple[Kind, int], int]:
        groups: dict[tuple[Kind, int], int] = {}
        for position in positions(devices):
            place = self.places[position]
            group = place.root if by_root else place.numa
            if group >= 0:
                key = (place.kind, group)
                groups[key] = groups.get(key, 0) | 1 << position
        return groups


def misalignment(places: Iterable[Place]) -> tuple[int, int]:
    """`far` and `near` of rule 2, for entries at these places."""
    by_kind: dict[Kind, list[Place]] = {}
    for place in places:
        by_kind.setdefault(place.kind, []).append(place)
    sorts = sorted(by_kind)
    far = near = 0
    for index, one in enumerate(sorts):
        for other in sorts[index + 1 :]:
            more, fewer = sorted((by_kind[one], by_kind[other]), key=len, reverse=True)
            each = -(-len(more) // len(fewer))
            at_root = _served(more, fewer, each, by_root=True)
            at_numa = max(at_root, _served(more, fewer, each, by_root=False))
            near += at_numa - at_root
            far += len(more) - at_numa
    return far, near


def _served(more: Sequence[Place], fewer: Sequence[Place], each: int, *, by_root: bool) -> int:
    """How many of the one kind have a partner of the other in the same group."""
    wanting: dict[int, int] = {}
    serving: dict[int, int] = {}
    for places, count in ((more, wanting), (fewer, serving)):
        for place in places:
            group = _group(place, by_root=by_root)
            count[group] = count.get(group, 0) + 1
    return sum(
        min(number, each * serving.get(group, 0))
        for group, number in wanting.items()
        if group != -1
    )


def _group(place: Place, *, by_root: bool) -> int:
    if by_root:
        return place.root
    # A root without a known NUMA node is still one place: what meets there need not be counted as far.
    return place.numa if place.numa >= 0 or place.root < 0 else -2 - place.root


def spread(places: Iterable[Place]) -> tuple[int, int]:
    """`numa_nodes` and `roots` of rule 3."""
    numa: set[tuple[Kind, int]] = set()
    roots: set[tuple[Kind, int]] = set()
    unknown_numa = unknown_roots = 0
    for place in places:
        if place.numa < 0:
            unknown_numa += 1
        else:
            numa.add((place.kind, place.numa))
        if place.root < 0:
            unknown_roots += 1
        else:
            roots.add((place.kind, place.root))
    return len(numa) + unknown_numa, len(roots) + unknown_roots


def broken(groups: Iterable[int], in_use: int) -> int:
    """How many groups are used in part."""
    return sum(1 for devices in groups if in_use & devices and ~in_use & devices)
