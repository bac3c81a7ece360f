"""What each domain holds of a number of pods.

A room is a list of amounts. Where all pods are alike there is one: how many of them fit. With several kinds there is one for each kind,
and one for each thing that kinds compete for: processors, memory, pods, devices of one class. Every amount is a sum over nodes, and none
is too low; so what exceeds a room does not fit, and of a single kind, what does not exceed it fits, if all counts are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.allocator import Question, signature
from drayman.allocator.copies import free_of_class, least_by_class
from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.placement.domains.copies import Copies, CopiesWanted, CopyCounts, SharedPool
from drayman.placement.domains.tree import DomainTree
from drayman.placement.nodes import NodeState
from drayman.placement.surroundings import Surroundings
from drayman.topology import Path

Amounts: TypeAlias = tuple[int, ...]
Pools: TypeAlias = tuple[tuple[int, SharedPool], ...]
"""Which amounts of a node are of devices that it shares with others."""
_MOST_KEPT: Final = 1_024


class Room(Struct, frozen=True):
    """What a domain holds of pods that are alike."""

    domain: Path
    copies: int
    largest: int
    """The most that a single node in it holds."""
    nodes_needed: int | None
    """The fewest nodes that hold as many as are wanted; None if all of them together do not."""


class Rooms:
    """What the domains of a tree hold."""

    def __init__(
        self,
        tree: DomainTree,
        by_node: Mapping[str, Amounts],
        size: int,
        *,
        is_exact: bool = True,
        pools: Mapping[str, Pools] | None = None,
    ) -> None:
        self.tree = tree
        self.size = size
        """How many amounts a room has."""
        self.is_exact = is_exact
        self._by_node = by_node
        self._pools = pools or {}
        self._nothing = (0,) * size
        sums: dict[Path, list[int]] = {}
        for name, amounts in by_node.items():
            leaf = tree.leaf(name)
            if leaf is None:
                continue
            for length in range(len(leaf) + 1):
                path = leaf[:length]
                total = sums.get(path)
                if total is None:
                    sums[path] = list(amounts)
                else:
                    for index, amount in enumerate(amounts):
                        total[index] += amount
        for path, index, excess in self._counted_twice():
            sums[path][index] -= excess
        self._sums = {path: tuple(total) for path, total in sums.items()}

    def _counted_twice(self) -> Iterator[tuple[Path, int, int]]:
        """By domain and amount, what nodes hold beyond what the devices that they share are enough for."""
        held: dict[tuple[Path, int, SharedPool], int] = {}
        for name, pools in self._pools.items():
            leaf = self.tree.leaf(name)
            if leaf is None or name not in self._by_node:
                continue
            for length in range(len(leaf) + 1):
                for index, pool in pools:
                    key = (leaf[:length], index, pool)
                    held[key] = held.get(key, 0) + self._by_node[name][index]
        for (path, index, pool), number in held.items():
            if number > pool.holds:
                yield path, index, number - pool.holds

    def of(self, domain: Path) -> Amounts:
        """What a domain holds."""
        return self._sums.get(domain, self._nothing)

    def on(self, nodes: Iterable[str]) -> Rooms:
        """The same with some nodes only."""
        kept = {name: self._by_node[name] for name in nodes if name in self._by_node}
        return Rooms(self.tree, kept, self.size, is_exact=self.is_exact, pools=self._pools)

    def of_level(self, level: int, number: int) -> list[Room]:
        """What the domains of a level hold of the first kind of pods, if so many are wanted."""
        return [self._room(path, number) for path in self.tree.domains(level)]

    def _room(self, domain: Path, number: int) -> Room:
        each = sorted((self.of(leaf)[0] for leaf in self._leaves(domain)), reverse=True)
        return Room(domain, self.of(domain)[0], max(each, default=0), fewest(each, number))

    def _leaves(self, domain: Path) -> tuple[Path, ...]:
        return self.tree.within(domain, self.tree.node_level)


def holds(room: Amounts, need: Amounts) -> bool:
    """Whether there is enough of everything."""
    return all(have >= want for have, want in zip(room, need, strict=True))


def fewest(descending: Sequence[int], need: int) -> int | None:
    """The fewest of some amounts, largest first, that add up to a need; None if all of them do not."""
    total = 0
    for number, amount in enumerate(descending):
        if total >= need:
            return number
        total += amount
    return len(descending) if total >= need else None


class Wanted(Struct, frozen=True):
    """Pods of one or several kinds, and what they need as amounts of a room."""

    kinds: tuple[CopiesWanted, ...]
    things: tuple[_Thing, ...]

    @staticmethod
    def of(kinds: Sequence[CopiesWanted]) -> Wanted:
        things = _competed_for(kinds) if len(kinds) > 1 else ()
        return Wanted(tuple(kinds), tuple(things))

    @property
    def size(self) -> int:
        return len(self.kinds) + len(self.things)

    @property
    def need(self) -> Amounts:
        """What all of them need."""
        return self.need_of([kind.number for kind in self.kinds])

    def need_of(self, numbers: Sequence[int]) -> Amounts:
        """What so many of each kind need."""
        shared = [
            sum(n * each for n, each in zip(numbers, thing.of_each, strict=True))
            for thing in self.things
        ]
        return (*numbers, *shared)


def rooms(state: Surroundings, tree: DomainTree, counts: CopyCounts, wanted: Wanted) -> Rooms:
    """What the domains of a tree hold of these pods now."""
    by_kind = [counts.of(kind) for kind in wanted.kinds]
    is_exact = len(by_kind) == 1 and all(c.is_exact for c in by_kind[0].values())
    pools = _pools(by_kind)
    if len(by_kind) == 1 and not wanted.things:
        single = {name: (count.at_most,) for name, count in by_kind[0].items()}
        return Rooms(tree, single, 1, is_exact=is_exact, pools=pools)
    none = Copies(0)
    found: dict[str, Amounts] = {}
    for name in dict.fromkeys(name for counted in by_kind for name in counted):
        node = state.nodes[name]
        held = [counted.get(name, none).at_most for counted in by_kind]
        found[name] = (*held, *[thing.left(state, node) for thing in wanted.things])
    return Rooms(tree, found, wanted.size, is_exact=False, pools=pools)


def _pools(by_kind: Sequence[Mapping[str, Copies]]) -> dict[str, Pools]:
    found: dict[str, Pools] = {}
    for index, counted in enumerate(by_kind):
        for name, count in counted.items():
            if count.pool is not None:
                found[name] = (*found.get(name, ()), (index, count.pool))
    return found


class _Thing(Struct, frozen=True, eq=False):
    """Something that several kinds of pods compete for."""

    of_each: tuple[int, ...]
    """What a pod of each kind takes of it."""
    left: Callable[[Surroundings, NodeState], int]


def _competed_for(kinds: Sequence[CopiesWanted]) -> Iterable[_Thing]:
    shapes = [kind.demand.needs.shape for kind in kinds]
    yield _Thing((1,) * len(kinds), _pods_left)
    for asked, left in (
        ([shape.cpu for shape in shapes], _cpu_left),
        ([shape.memory for shape in shapes], _memory_left),
    ):
        if sum(map(bool, asked)) > 1:
            yield _Thing(tuple(asked), left)
    own = [_own_claims(kind) for kind in kinds]
    by_class = [least_by_class(claims) for claims in own]
    questions = [Question(claims) for claims in own if claims]
    for name in sorted({name for least in by_class for name in least}):
        numbers = tuple(least.get(name, 0) for least in by_class)
        if sum(map(bool, numbers)) > 1:
            most = sum(n * kind.number for n, kind in zip(numbers, kinds, strict=True))
            yield _Thing(numbers, _devices_left(questions, name, most))


def _own_claims(kind: CopiesWanted) -> tuple[ResourceClaim, ...]:
    return tuple(c for c in kind.demand.open if c.metadata.name not in kind.shared)


def _pods_left(_: Surroundings, node: NodeState) -> int:
    return max(0, node.facts.shape.pods - len(node.usage.pods))


def _cpu_left(_: Surroundings, node: NodeState) -> int:
    return max(0, node.facts.shape.cpu - node.usage.cpu)


def _memory_left(_: Surroundings, node: NodeState) -> int:
    return max(0, node.facts.shape.memory - node.usage.memory)


def _devices_left(
    questions: Sequence[Question], name: str, most: int
) -> Callable[[Surroundings, NodeState], int]:
    kept: Bounded[Hashable, int] = Bounded(_MOST_KEPT)

    def left(state: Surroundings, node: NodeState) -> int:
        view = state.view(node)
        key = tuple([signature(view, question) for question in questions])
        found = kept.get(key)
        if found is None:
            found = kept[key] = free_of_class(view, questions, name, most)
        return found

    return left
