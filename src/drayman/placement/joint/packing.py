"""How many pods of each kind go to each node.

Given is how many pods each node holds beside those that it has already; nothing else is known of nodes and pods. What is wanted is a
place for all pods on as few nodes as possible, and on the first nodes where there is a choice. For pods of one kind, taking the nodes
with the most room first is exact, and the rest goes where it fits most tightly. For several kinds the search takes its choices back.
It is complete: unless it runs out of steps, None means that there is no way.

The only assumption is that fewer pods fit wherever more fit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from drayman.placement.domains.budget import Budget, OutOfSteps

Load: TypeAlias = tuple[int, ...]
"""How many pods of each kind a node gets."""
Most: TypeAlias = Callable[[int, Load, int], int]
"""How many more pods of a kind a node holds, beside a load of other kinds: (node, load, kind)."""

DEFAULT_LIMIT: Final = 20_000
"""Steps of a search. A step takes about a microsecond."""


_SHARE_FOR_TIGHTER: Final = 4
"""Which part of that is spent at most on a way that needs fewer nodes, once there is a way."""


@dataclass(frozen=True, slots=True)
class Packing:
    """A way to place the pods."""

    loads: dict[int, Load]
    """By position of the node; only nodes that get pods."""
    left_out: Load
    """How many pods of each kind get no place."""
    is_tightest: bool = True
    """Whether it is known that no way needs fewer nodes."""


def pack(
    wanted: Load,
    spare: int,
    likenesses: Sequence[Hashable],
    most: Most,
    *,
    limit: int = DEFAULT_LIMIT,
) -> Packing | None:
    """A way to place the pods on the nodes, without up to `spare` of them; None if there is none.

    `likenesses` are the nodes: equal ones hold the same. Raises OutOfSteps.
    """
    search = _Search(wanted, spare, likenesses, most, Budget(limit))
    found = search.first(len(likenesses))
    if found is None:
        return None
    least = search.fewest_nodes(sum(found.left_out))
    search.budget = Budget(limit // _SHARE_FOR_TIGHTER)
    while len(found.loads) > least:
        try:
            better = search.first(len(found.loads) - 1, most_left_out=sum(found.left_out))
        except OutOfSteps:
            return Packing(found.loads, found.left_out, is_tightest=False)
        if better is None:
            break
        found = better
    return found


@dataclass(slots=True)
class _Search:
    wanted: Load
    spare: int
    likenesses: Sequence[Hashable]
    most: Most
    budget: Budget
    loads: dict[int, Load] = field(default_factory=dict)

    def first(self, nodes: int, most_left_out: int | None = None) -> Packing | None:
        """The first way that uses no more than so many nodes."""
        self.loads = {}
        spare = self.spare if most_left_out is None else most_left_out
        for left_out in self._ways(0, nodes, spare):
            loads = {node: load for node, load in self.loads.items() if any(load)}
            return Packing(loads, left_out)
        return None

    def fewest_nodes(self, left_out: int) -> int:
        """No way needs fewer nodes than the kind of pods that needs the most of them if it is alone."""
        empty = (0,) * len(self.wanted)
        fewest = 0
        for kind, number in enumerate(self.wanted):
            rooms = sorted(
                (self.most(node, empty, kind) for node in range(len(self.likenesses))), reverse=True
            )
            rest, used = number - left_out, 0
            for room in rooms:
                if rest <= 0:
                    break
                rest -= room
                used += 1
            fewest = max(fewest, used)
        return fewest

    def _ways(self, kind: int, nodes: int, spare: int) -> Iterator[Load]:
        """The ways for this kind and those after it. While one is looked at, `loads` has it; yields what is left out."""
        if kind == len(self.wanted):
            yield ()
            return
        for left_out in self._spread(kind, nodes, spare):
            for rest in self._ways(kind + 1, nodes, spare - left_out):
                yield (left_out, *rest)

    def _spread(self, kind: int, nodes: int, spare: int) -> Iterator[int]:
        """All ways to distribute the pods of a kind, those that take much of few nodes first. Yields how many are left out."""
        empty = (0,) * len(self.wanted)
        before = dict(self.loads)
        used = sum(1 for load in before.values() if any(load))
        rooms = [
            (node, self.most(node, before.get(node, empty), kind))
            for node in range(len(self.likenesses))
        ]
        order = self._ordered([(node, room) for node, room in rooms if room > 0], kind)
        behind = [0] * (len(order) + 1)
        for position in reversed(range(len(order))):
            behind[position] = behind[position + 1] + order[position][1]
        # Of nodes in a row that are alike, none takes more than the one before it: any other way is one of these in another order.
        ends = list(range(1, len(order) + 1))
        for position in reversed(range(len(order) - 1)):
            if self._are_alike(order[position][0], order[position + 1][0], before):
                ends[position] = ends[position + 1]
        taken: list[int] = []
        rest, fresh = self.wanted[kind], nodes - used

        def choices(position: int, rest: int, fresh: int) -> tuple[int, int]:
            """The most and the least that the node at a position may take."""
            node, room = order[position]
            highest = min(room, rest)
            if node not in before and fresh <= 0:
                highest = 0
            if position and ends[position - 1] == ends[position]:
                highest = min(highest, taken[position - 1])
            alike = ends[position] - position
            lowest = -(-(rest - spare - behind[ends[position]]) // alike)
            return highest, max(0, lowest)

        while True:
            if len(taken) == len(order) or rest == 0:
                if rest <= spare:
                    yield rest
            else:
                highest, lowest = choices(len(taken), rest, fresh)
                if highest >= lowest:
                    self.budget.spend()
                    node = order[len(taken)][0]
                    rest, fresh = self._put(node, kind, highest, before, rest, fresh)
                    taken.append(highest)
                    continue
            # No way goes on from here: the last node that took something takes one less.
            while taken:
                node = order[len(taken) - 1][0]
                last = taken.pop()
                rest, fresh = self._put(node, kind, -last, before, rest, fresh)
                _, lowest = choices(len(taken), rest, fresh)
                if last - 1 >= lowest:
                    self.budget.spend()
                    rest, fresh = self._put(node, kind, last - 1, before, rest, fresh)
                    taken.append(last - 1)
                    break
            else:
                return

    def _put(
        self, node: int, kind: int, change: int, before: dict[int, Load], rest: int, fresh: int
    ) -> tuple[int, int]:
        """Give a node more or fewer pods of a kind. Returns how many are left, and how many further nodes may be used."""
        if not change:
            return rest, fresh
        load = list(self.loads.get(node) or (0,) * len(self.wanted))
        was_used = any(load)
        load[kind] += change
        if any(load):
            self.loads[node] = tuple(load)
        else:
            del self.loads[node]
        return rest - change, fresh + was_used - any(load)

    def _ordered(self, rooms: list[tuple[int, int]], kind: int) -> list[tuple[int, int]]:
        """Nodes that get pods anyway first, then those with much room; and what is left of the pods where it fits most tightly."""
        rooms.sort(key=lambda each: (each[0] not in self.loads, -each[1], each[0]))
        rest = self.wanted[kind]
        for position, (node, room) in enumerate(rooms):
            if room >= rest:
                if node in self.loads:
                    return rooms
                tight = min(
                    (each for each in rooms[position:] if each[1] >= rest),
                    key=lambda each: (each[1], each[0]),
                )
                rooms.remove(tight)
                rooms.insert(position, tight)
                return rooms
            rest -= room
        return rooms

    def _are_alike(self, one: int, other: int, before: dict[int, Load]) -> bool:
        return self.likenesses[one] == self.likenesses[other] and before.get(one) == before.get(
            other
        )
