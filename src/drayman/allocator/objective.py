"""What makes one allocation better than another: the objective of policy `best`.

Allocations of the same claims on the same node are compared by the following, in this order; lower is better everywhere. All claims
of the search count together, as they are for one pod. Entries with admin access do not count in rules 2 and 3.

1. `alternatives`: the index of the alternative served, for each `firstAvailable` request in the order of claims and requests.
2. `far`, then `near`: how well different kinds of devices are aligned. For each unordered pair of kinds that both have entries, let
   the kind with more entries (a of them) be served by the other (b of them), each of the b serving at most ceil(a / b). As many as
   possible are served from the same PCIe root, of the rest as many as possible from the same NUMA node; what is served from
   the same NUMA node but not the same root is `near`, what is served from neither is `far`. Both are added up over all pairs.
3. `numa_nodes`, then `roots`: how many NUMA nodes (then PCIe roots) the entries of each kind are spread over, added up over the kinds.
   An entry whose place is unknown counts as a NUMA node and a root of its own.
4. `spoiled`: how many devices that consume counters and were not held become unusable because what they consume is no longer there,
   not counting devices that the allocation gives to ordinary entries, or shares of which it gives.
5. `opened`: how many shareable devices get their first share.
6. `broken_numa_nodes`, then `broken_roots`: in how many NUMA nodes (then PCIe roots), counted per kind, some exclusive devices of the
   kind are gone after the allocation and some are not. A device is gone if it is held or its counters are.
7. `positions`: the entries' positions in search order, entry by entry in the order of claims and requests, ascending within a request.

Kind and place come from `drayman.topology`. Where devices of one root disagree about their NUMA node the first one in search order that
names one is believed for all of them, so that every root lies within one NUMA node (or within none that is known).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from drayman.allocator.alignment import Place, least_misalignment, misalignment, spread
from drayman.allocator.components import Distinctions
from drayman.allocator.counters import CounterTables
from drayman.allocator.state import State, Transitions
from drayman.allocator.tables import Request, Tables
from drayman.inventory.device import Amount
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.view import positions
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


class Layout:
    """Kinds and places of a node's devices."""

    def __init__(self, hardware: NodeHardware) -> None:
        records = hardware.records
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
        exclusive = hardware.everything & ~hardware.shareable
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


class Objective:
    """Costs of allocations on one node, and lower bounds of them while only a part is placed."""

    def __init__(self, tables: Tables, transitions: Transitions) -> None:
        self._view = tables.view
        self._hardware = tables.view.hardware
        self._layout = self._hardware.derived(Layout)
        initial = transitions.initial()
        self._unusable = initial.counter_blocked | self._view.overcommitted
        self._held = self._view.in_use | self._view.shared
        self._sort_of_request = [self._only_kind(request) for request in tables.requests]
        self._numbers = [
            0 if request.alternatives[0].admin else request.alternatives[0].number
            for request in tables.requests
        ]
        self._remaining: dict[int, dict[Kind, int] | None] = {}

    def place(self, position: int) -> Place:
        return self._layout.places[position]

    def distinctions(self) -> Distinctions:
        """What the cost sees of devices: kind and place, and how the groups they belong to are used already."""
        places = self._layout.places
        groups: dict[Hashable, int] = {}
        roots: dict[int, int] = {}
        numa: dict[int, int] = {}
        for position, place in enumerate(places):
            bit = 1 << position
            key = (place.kind, place.root < 0, place.numa < 0)
            groups[key] = groups.get(key, 0) | bit
            if place.root >= 0:
                roots[place.root] = roots.get(place.root, 0) | bit
            if place.numa >= 0:
                numa[place.numa] = numa.get(place.numa, 0) | bit
        for level, places_of_level in (("root", roots), ("numa", numa)):
            for devices in places_of_level.values():
                used = (level, *sorted(self._describe(devices)))
                groups[used] = groups.get(used, 0) | devices
        colours = (*groups.values(), *self._counter_set_colours())
        return Distinctions((tuple(roots.values()), tuple(numa.values())), colours)

    def _describe(self, devices: int) -> Iterator[tuple[Kind, bool, bool]]:
        gone = self._view.in_use | self._unusable
        for position in positions(devices):
            shareable = bool(self._hardware.shareable >> position & 1)
            yield self._layout.places[position].kind, shareable, bool(gone >> position & 1)

    def _counter_set_colours(self) -> Iterable[int]:
        """Devices by what else consumes from their counter sets: that is what can be spoiled."""
        tables = self._hardware.derived(CounterTables)
        held: dict[int, list[tuple[Amount, ...]]] = {}
        for position in positions(self._hardware.consumers & self._held):
            for index, amounts in self._hardware.consumption[position]:
                held.setdefault(index, []).append(amounts)
        described = [
            (shape, tuple(sorted(held[index])) if index in held else ())
            for index, shape in enumerate(tables.shapes)
        ]
        colours: dict[Hashable, int] = {}
        for position in positions(self._hardware.consumers):
            key = tuple(described[index] for index, _ in self._hardware.consumption[position])
            colours[key] = colours.get(key, 0) | 1 << position
        return colours.values()

    def _only_kind(self, request: Request) -> Kind | None:
        """The kind of device a request gets; None if it may get several. Admin access counts for nothing."""
        kinds = {self.place(p).kind for p in positions(request.alternatives[0].candidates)}
        return kinds.pop() if len(kinds) == 1 else None

    def cost(self, chosen: Sequence[int], state: State) -> Cost:
        """The cost of a whole allocation. `chosen`: the positions of its entries, but for admin access."""
        return self._evaluate(chosen, state, {})

    def at_least(self, chosen: Sequence[int], state: State, request: int, missing: int) -> Cost:
        """What any allocation costs that begins like this: `missing` more for this request, and the requests after it."""
        remaining = self._ahead(request + 1)
        if remaining is not None and missing:
            kind_ahead = self._sort_of_request[request]
            if kind_ahead is None:
                remaining = None
            else:
                remaining = {**remaining, kind_ahead: remaining.get(kind_ahead, 0) + missing}
        return self._evaluate(chosen, state, remaining)

    def _ahead(self, request: int) -> dict[Kind, int] | None:
        """How many devices of each kind the requests from here on get; None if that is open."""
        if request not in self._remaining:
            self._remaining[request] = self._count_ahead(request)
        return self._remaining[request]

    def _count_ahead(self, request: int) -> dict[Kind, int] | None:
        total: dict[Kind, int] = {}
        sorts, numbers = self._sort_of_request[request:], self._numbers[request:]
        for sort, number in zip(sorts, numbers, strict=True):
            if sort is not None:
                total[sort] = total.get(sort, 0) + number
            elif number:
                return None
        return {sort: number for sort, number in total.items() if number}

    def _evaluate(
        self, chosen: Sequence[int], state: State, remaining: dict[Kind, int] | None
    ) -> Cost:
        places = [self._layout.places[position] for position in chosen]
        if remaining is None:
            far, near = 0, 0
        elif remaining:
            far, near = least_misalignment(places, remaining)
        else:
            far, near = misalignment(places)
        numa_nodes, roots = spread(places)
        spoiled = (
            state.counter_blocked & ~(self._unusable | self._held | state.taken | state.paid)
        ).bit_count()
        opened = (state.paid & ~self._view.paid).bit_count()
        broken_numa = broken_roots = 0
        if remaining == {}:
            gone = self._view.in_use | state.taken | self._unusable | state.counter_blocked
            broken_numa = _broken(self._layout.by_numa.values(), gone)
            broken_roots = _broken(self._layout.by_root.values(), gone)
        return Cost(far, near, numa_nodes, roots, spoiled, opened, broken_numa, broken_roots)


def _broken(groups: Iterable[int], in_use: int) -> int:
    """How many groups are used in part."""
    return sum(1 for devices in groups if in_use & devices and ~in_use & devices)
