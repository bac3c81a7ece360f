"""What makes one allocation better than another: the objective of policy `best`.

Allocations of the same claims on the same node are compared by the following, in this order; lower is better everywhere. All claims
of the search count together, as they are for one pod. Entries with admin access do not count in rules 2 to 8: they hold nothing.

1. `alternatives`: the index of the alternative served, for each `firstAvailable` request in the order of claims and requests.
2. `rungs`: the index of the level that is reached, for each alignment that the claims or their pod state (`ladders`).
3. `fabrics`: how many NVLink groups the GPUs are spread over, on a node with several. A GPU in none that is known counts as one.
4. `far`, then `near`: how well different kinds of devices are aligned. For each unordered pair of kinds that both have entries, let
   the kind with more entries (a of them) be served by the other (b of them), each of the b serving at most ceil(a / b). As many as
   possible are served from the same PCIe root, of the rest as many as possible from the same NUMA node; what is served from
   the same NUMA node but not the same root is `near`, what is served from neither is `far`. Both are added up over all pairs.
5. `numa_nodes`, then `roots`: how many NUMA nodes (then PCIe roots) the entries of each kind are spread over, added up over the kinds.
   An entry whose place is unknown counts as a NUMA node and a root of its own.
6. `spoiled`: how many devices that consume counters and were not held become unusable because what they consume is no longer there,
   not counting devices that the allocation gives to ordinary entries, or shares of which it gives.
7. `opened`: how many shareable devices get their first share.
8. `broken_fabrics`, `broken_numa_nodes`, then `broken_roots`: in how many NVLink groups (of a node with several), NUMA nodes, then PCIe
   roots, counted per kind, some exclusive devices of the kind are gone after the allocation and some are not. A device is gone if it is
   held or its counters are.
9. `positions`: the entries' positions in search order, entry by entry in the order of claims and requests, ascending within a request.

Rules 1 to 8 are the `quality` of a plan. As it has no names and no positions in it, plans for the same claims on different nodes can be
compared by it; they are equally good if it is equal.

Kind and place come from `drayman.topology`. Where devices of one root disagree about their NUMA node, the first one in search order that
names one is believed for all of them, so that every root lies within one NUMA node (or within none that is known).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from drayman.allocator.policies.ladders import Ladders
from drayman.allocator.problem.alignment import (
    Layout,
    layout_of,
    least_misalignment,
    misalignment,
    spread,
    spread_over_fabrics,
)
from drayman.allocator.problem.outcome import Cost
from drayman.allocator.problem.tables import Alternative, Request, Tables
from drayman.allocator.pruning.components import Distinctions
from drayman.allocator.tree.state import State, Transitions
from drayman.inventory.bitsets import positions
from drayman.inventory.device import Amount
from drayman.inventory.usage import Usage
from drayman.topology.locality import DeviceKind

Broken: TypeAlias = tuple[int, int, int]
"""Of fabrics, NUMA nodes and roots."""
_NONE_BROKEN: Final[Broken] = (0, 0, 0)


class Objective:
    """Costs of allocations on one node, and lower bounds of them while only a part is placed."""

    def __init__(self, tables: Tables) -> None:
        self._usage = tables.view.usage
        self._hardware = tables.view.hardware
        self._layout = self._hardware.derived(layout_of)
        self._unusable = self._usage.counter_blocked | self._usage.overcommitted
        self._held = self._usage.in_use | self._usage.shared
        self._sort_of_request = [self._only_kind(request) for request in tables.requests]
        self._numbers = [
            0 if request.alternatives[0].admin else request.alternatives[0].number
            for request in tables.requests
        ]
        self._ordinary = [
            request.alternatives[0]
            for request, number in zip(tables.requests, self._numbers, strict=True)
            if number
        ]
        self._remaining: dict[int, dict[DeviceKind, int] | None] = {}
        self._with_admin = Transitions(tables, admin_blocks=False) if tables.has_admin else None
        self._scattered = [self._scatter(request.alternatives[0]) for request in tables.requests]
        self._scattered_ahead = self._scatter_ahead()
        self.ladders = Ladders(tables, self._layout) if tables.alignment else None

    def distinctions(self, universe: int) -> Distinctions:
        """What the cost sees of these devices: kind and place, and how the groups they belong to are used already."""
        layout = self._layout
        groups: dict[Hashable, int] = {}
        roots = [devices for devices in layout.roots.values() if devices & universe]
        numa = [devices for devices in layout.numa.values() if devices & universe]
        labels = [("root", roots), ("numa", numa)]
        fabrics = [devices for devices in layout.fabrics.values() if devices & universe]
        if fabrics:
            labels.append(("fabric", fabrics))
        for level, places_of_level in labels:
            for devices in places_of_level:
                used = (level, *self._describe(devices))
                groups[used] = groups.get(used, 0) | devices
        colours = (*layout.of_kind.values(), layout.at_root, layout.at_numa, *groups.values())
        counted = self._counter_set_colours(universe)
        stated = () if self.ladders is None else self.ladders.labels
        places = (*(tuple(devices) for _, devices in labels), *stated)
        near_held = () if self.ladders is None else self.ladders.colours
        return Distinctions(places, (*colours, *counted, *near_held))

    def _describe(self, devices: int) -> Iterator[int]:
        """How many of each kind there are: all, those that can be shared, and those of either that are gone."""
        gone = self._usage.in_use | self._unusable
        shareable = self._hardware.shareable
        for of_kind in self._layout.of_kind.values():
            inside = devices & of_kind
            yield inside.bit_count()
            if inside:
                yield (inside & shareable).bit_count()
                yield (inside & gone).bit_count()
                yield (inside & gone & shareable).bit_count()

    def _counter_set_colours(self, universe: int) -> Iterable[int]:
        """Devices by what else consumes from their counter sets: that is what can be spoiled."""
        tables, held = self._hardware.counter_tables, self._held
        described: dict[int, Hashable] = {}
        colours: dict[Hashable, int] = {}
        for position in positions(self._hardware.consumers & universe):
            consumed = self._hardware.consumption[position]
            for index, _ in consumed:
                if index not in described:
                    users = tables.consumers[index]
                    taken = sorted(amounts for user, amounts in users if held >> user & 1)
                    described[index] = (tables.shapes[index], tuple(taken))
            key = tuple([described[index] for index, _ in consumed])
            colours[key] = colours.get(key, 0) | 1 << position
        return colours.values()

    def _scatter(self, alternative: Alternative) -> tuple[int, int]:
        """Whether every device of a request counts as a NUMA node, and as a root, of its own because its place is unknown."""
        if alternative.admin or alternative.sequence is not None:
            return 0, 0  # does not count, or leaves no choice
        devices = alternative.candidates
        return int(not devices & self._layout.at_numa), int(not devices & self._layout.at_root)

    def _scatter_ahead(self) -> list[tuple[int, int]]:
        """The least that rule 5 counts for the requests from each one on, and for none."""
        numa_nodes = roots = 0
        ahead = [(0, 0)]
        for number, (numa, root) in zip(
            reversed(self._numbers), reversed(self._scattered), strict=True
        ):
            numa_nodes += number * numa
            roots += number * root
            ahead.append((numa_nodes, roots))
        return ahead[::-1]

    def _only_kind(self, request: Request) -> DeviceKind | None:
        """The kind of device a request gets; None if it may get several. Admin access does not count."""
        candidates = request.alternatives[0].candidates
        kinds = [sort for sort, devices in self._layout.of_kind.items() if devices & candidates]
        return kinds[0] if len(kinds) == 1 else None

    def cost(self, chosen: Sequence[int], state: State) -> Cost:
        """The cost of a whole allocation, but for rule 2. `chosen`: the positions of its entries, except admin access."""
        return self._evaluate(chosen, state, {})

    def cost_of(
        self, placements: Sequence[tuple[Alternative, int]], transitions: Transitions
    ) -> Cost:
        """The cost of a whole allocation, from its entries in order."""
        state = transitions.initial()
        claim = 0
        for alternative, position in placements:
            if alternative.claim != claim:
                claim = alternative.claim
                state = transitions.next_claim(state)
            state = transitions.place(state, alternative, position)
        chosen = [position for alternative, position in placements if not alternative.admin]
        cost = self.cost(chosen, state)
        if self.ladders is None:
            return cost
        return cost._replace(rungs=self.ladders.reached(placements))

    def is_unbeatable(self, cost: Cost) -> bool:
        """Whether it can be seen without a search that no allocation costs less."""
        layout = self._layout
        has_places = layout.at_root or layout.at_numa or layout.fabrics or self.ladders is not None
        if has_places or self._ahead(0) is None:
            return False  # what remains of the cost depends on places
        # Without places the kinds of devices alone decide rules 3 to 5 and 8, and the requests leave no choice of kinds.
        return cost.spoiled <= self._least_spoiled(cost.spoiled) and (
            cost.opened <= self._least_opened()
        )

    def _least_spoiled(self, enough: int) -> int:
        """How many devices any allocation spoils at least; need not be more than `enough`.

        No other device restores what one device spoils, and none of it can be given out with that device.
        """
        most = 0
        out_of_reach = self._unusable & ~self._usage.paid
        for alternative in self._ordinary:
            if most >= enough:
                break
            least = enough
            for position in positions(alternative.candidates & ~out_of_reach):
                least = min(least, self._spoiled(self._blocked_by(position), position))
                if least <= most:
                    break
            most = max(most, least)
        return most

    def cheapest(self, devices: int) -> tuple[Cost, int]:
        """The best allocation of a single one of these devices, with its cost. For problems without stated alignments."""
        found: tuple[Cost, int] | None = None
        fresh = self._hardware.shareable & ~self._usage.paid
        gpus = self._layout.of_kind.get(DeviceKind.GPU, 0) if self._layout.fabrics else 0
        for position in positions(devices):
            fabrics = gpus >> position & 1
            blocked = self._blocked_by(position)
            spoiled, opened = self._spoiled(blocked, position), fresh >> position & 1
            if found is not None and (fabrics, spoiled, opened) > (
                found[0].fabrics,
                found[0].spoiled,
                found[0].opened,
            ):
                continue
            gone = self._usage.in_use | self._unusable | blocked | 1 << position
            cost = Cost((), fabrics, 0, 0, 1, 1, spoiled, opened, *self._broken(gone))
            if found is None or cost < found[0]:
                found = cost, position
        if found is None:
            raise ValueError("there is nothing to choose from")
        return found

    def _blocked_by(self, position: int) -> int:
        """The devices that lack counters once this one is given out, of the sets that it consumes from."""
        blocked = 0
        if self._usage.paid >> position & 1:
            return blocked
        for index, amounts in self._hardware.consumption[position]:
            left = zip(self._usage.counters[index], amounts, strict=True)
            after = tuple([have - used for have, used in left])
            blocked |= self._hardware.counter_tables.blocked_by(index, after)
        return blocked

    def _spoiled(self, blocked: int, position: int) -> int:
        gone = self._unusable | self._held | self._usage.paid | 1 << position
        return (blocked & ~gone).bit_count()

    def _least_opened(self) -> int:
        """Whether some request can only get devices of which no share is held yet."""
        fresh = self._hardware.shareable & ~self._usage.paid
        return int(any(not alternative.candidates & ~fresh for alternative in self._ordinary))

    def at_least(self, chosen: Sequence[int], state: State, request: int, missing: int) -> Cost:
        """The least cost of an allocation that begins like this: `missing` more for this request, and the requests after it."""
        remaining = self._ahead(request + 1)
        if remaining is not None and missing:
            kind_ahead = self._sort_of_request[request]
            if kind_ahead is None:
                remaining = None
            else:
                remaining = {**remaining, kind_ahead: remaining.get(kind_ahead, 0) + missing}
        cost = self._evaluate(chosen, state, remaining)
        numa_ahead, roots_ahead = self._scattered_ahead[request + 1]
        numa, root = self._scattered[request]
        return cost._replace(
            numa_nodes=cost.numa_nodes + numa_ahead + missing * numa,
            roots=cost.roots + roots_ahead + missing * root,
        )

    def _ahead(self, request: int) -> dict[DeviceKind, int] | None:
        """How many devices of each kind the requests from here on get; None if that is open."""
        if request not in self._remaining:
            self._remaining[request] = self._count_ahead(request)
        return self._remaining[request]

    def _count_ahead(self, request: int) -> dict[DeviceKind, int] | None:
        total: dict[DeviceKind, int] = {}
        sorts, numbers = self._sort_of_request[request:], self._numbers[request:]
        for sort, number in zip(sorts, numbers, strict=True):
            if sort is not None:
                total[sort] = total.get(sort, 0) + number
            elif number:
                return None
        return {sort: number for sort, number in total.items() if number}

    def _evaluate(
        self, chosen: Sequence[int], state: State, remaining: dict[DeviceKind, int] | None
    ) -> Cost:
        places = [self._layout.places[position] for position in chosen]
        if remaining is None:
            far, near = 0, 0
        elif remaining:
            far, near = least_misalignment(places, remaining)
        else:
            far, near = misalignment(places)
        numa_nodes, roots = spread(places)
        if self._with_admin is None:
            taken, paid, blocked = state.taken, state.paid, state.counter_blocked
        else:
            taken, paid, blocked = self._held_in_the_end(chosen, self._with_admin)
        spoiled = (blocked & ~(self._unusable | self._held | taken | paid)).bit_count()
        opened = (paid & ~self._usage.paid).bit_count()
        broken = _NONE_BROKEN
        if remaining == {}:
            gone = self._usage.in_use | taken | self._unusable | blocked
            broken = self._broken(gone)
        fabrics = spread_over_fabrics(places) if self._layout.fabrics else 0
        return Cost((), fabrics, far, near, numa_nodes, roots, spoiled, opened, *broken)

    def _held_in_the_end(
        self, chosen: Sequence[int], transitions: Transitions
    ) -> tuple[int, int, int]:
        """Devices taken, devices with shares taken, and devices that lack counters, except by admin access.

        The search charges for that too, as upstream does, but nothing of it is left once the claim is allocated.
        """
        taken, paid = 0, self._usage.paid
        counters: dict[int, tuple[Amount, ...]] = {}
        blocked = self._usage.counter_blocked
        for position in chosen:
            bit = 1 << position
            if self._hardware.consumption[position] and not paid & bit:
                counters, blocked = transitions.charge_counters(counters, blocked, position)
            if self._hardware.shareable & bit:
                paid |= bit
            else:
                taken |= bit
        return taken, paid, blocked

    def _broken(self, gone: int) -> Broken:
        """Rule 8, with these devices gone."""
        return _broken(self._layout, gone)


def cost_of(tables: Tables, placements: Sequence[tuple[Alternative, int]]) -> Cost:
    """What an allocation costs, counting only the devices that the view shows."""
    transitions = Transitions(tables, admin_blocks=False)
    return Objective(tables).cost_of(placements, transitions)


def broken_in(usage: Usage) -> Broken:
    """Rule 8 for devices of which nothing is allocated."""
    gone = usage.in_use | usage.counter_blocked | usage.overcommitted
    return _broken(usage.hardware.derived(layout_of), gone)


def _broken(layout: Layout, gone: int) -> Broken:
    return (
        _used_in_part(layout.by_fabric, gone) if layout.by_fabric else 0,
        _used_in_part(layout.by_numa, gone),
        _used_in_part(layout.by_root, gone),
    )


def _used_in_part(groups: Iterable[int], in_use: int) -> int:
    """How many groups are used in part."""
    return sum(1 for devices in groups if in_use & devices and ~in_use & devices)
