"""Where a gang could go, best first.

Better is: a domain of a finer level that holds all of it; then less spread inside it (`selecting`); then less room left over in it and
around it, so that large domains stay whole; then the stable order of names. Nothing wider than the required level is considered, and
nodes without a value for that are left out.

A candidate is what counting finds (`rooms`), and counts are never too low. So if there is no candidate, the gang does not fit. If there
is one, it is tried: the search for nodes and devices has the last word, and asks for the next candidate. Each is worked out when it is
asked for. After the nodes with the least spread, the whole domain is offered, because a rule that counting does not know may need a node
that seemed superfluous.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct

from drayman.placement.domains.assigning import ASSIGN_STEPS, Assigned, Part, assign
from drayman.placement.domains.budget import Budget, OutOfSteps
from drayman.placement.domains.rooms import Amounts, Rooms, holds
from drayman.placement.domains.selecting import Selection, least_spread, select
from drayman.placement.domains.tree import WHOLE, contains
from drayman.topology import Path

CHOOSE_STEPS: Final = 4 * ASSIGN_STEPS
"""Steps that all candidates of one choice may take for the parts of a gang."""

_MOST_ALIKE: Final = 4
"""Candidates of one level that look the same before others get their turn. What counting does not know mostly keeps the gang from all of
them; a cluster has hundreds, and the search will not try them all."""


class Request(Struct, frozen=True):
    """A gang that is to be placed: what is missing of it, and what it wishes."""

    need: Amounts
    """Of all members that have no node."""
    required: int | None = None
    """The level of which one domain has to hold all of it; None if the whole cluster will do."""
    preferred: int | None = None
    """A finer level that it should not exceed. Least spread is sought in any case; this says what is good enough."""
    parts: tuple[Part, ...] = ()
    pinned: tuple[Path, ...] = ()
    """Where members run already, by node."""


class Candidate(Struct, frozen=True):
    """A place for a gang."""

    domain: Path
    """Everything is in it."""
    nodes: tuple[str, ...]
    """The nodes to use, those that make for the least spread first."""
    spread: tuple[int, ...] = ()
    """How many domains of each level below are used, nodes last. Empty where the whole domain is offered."""
    assigned: tuple[Assigned, ...] = ()
    """The domains of its parts."""
    is_best: bool = True
    """Whether nothing with less spread exists in the domain, by what is counted."""

    @property
    def level(self) -> int:
        """The level of the domain; -1 for the whole cluster."""
        return len(self.domain) - 1

    def is_preferred(self, request: Request) -> bool:
        """Whether it is what the gang prefers, as far as that goes beyond what it requires."""
        return request.preferred is None or self.level >= request.preferred


class _Offer(Struct, frozen=True):
    """Nodes of a domain, before it is known whether the parts of the gang find domains among them."""

    home: Path
    nodes: tuple[str, ...]
    selection: Selection | None = None
    """None: all nodes of the domain that hold anything."""

    @property
    def spread(self) -> tuple[int, ...] | None:
        return None if self.selection is None else self.selection.spread


class Choice:
    """The candidates for one gang."""

    def __init__(self, rooms: Rooms, request: Request, *, max_steps: int = CHOOSE_STEPS) -> None:
        self._rooms = rooms
        self._tree = rooms.tree
        self._request = request
        self._budget = Budget(max_steps)
        known = rooms.tree.leaf
        self._used = frozenset(leaf for leaf in request.pinned if known(leaf[-1]) == leaf)
        self._slices = slices_in(request)
        self._in_slices: Rooms | None = None
        self.gave_up = False
        """Whether a domain was passed over without knowing whether it holds the gang: no candidate is then not a refusal."""

    def __iter__(self) -> Iterator[Candidate]:
        """The candidates, best first."""
        widest = -1 if self._request.required is None else self._request.required
        later: list[_Offer] = []
        for level in range(self._tree.node_level, widest - 1, -1):
            homes = self._homes(level)
            offered: dict[Path, tuple[str, ...]] = {}
            for offers in (self._selected(homes, offered), self._whole(homes, offered)):
                alike: Counter[Hashable] = Counter()
                for offer in offers:
                    likeness = (offer.spread, self._rooms.of(offer.home))
                    alike[likeness] += 1
                    if alike[likeness] > _MOST_ALIKE:
                        later.append(offer)
                    elif (made := self._candidate(offer)) is not None:
                        yield made
        for offer in later:
            if (made := self._candidate(offer)) is not None:
                yield made

    def _homes(self, level: int) -> list[Path]:
        """The domains of a level that hold the gang."""
        request = self._request
        if level < 0:
            domains: tuple[Path, ...] = (WHOLE,)
        elif request.pinned:
            first = request.pinned[0][: level + 1]
            domains = (first,) if first[-1] else ()
        else:
            domains = self._tree.domains(level)
        return [
            path
            for path in domains
            if holds(self._rooms.of(path), request.need)
            and all(contains(path, leaf) for leaf in request.pinned)
            and (request.required is None or path[request.required])
        ]

    def _selected(
        self, homes: list[Path], offered: dict[Path, tuple[str, ...]]
    ) -> Iterator[_Offer]:
        """For each domain the nodes in it with the least spread, if those are not in a single domain of the next level.

        What is offered is noted.
        """
        queue: list[tuple[tuple[int, ...], tuple[int, ...], Path, Selection | None]] = []
        for home in homes:
            bound = self._bound(home)
            if bound is not None:
                queue.append((bound, self._tightness(home), home, None))
        heapify(queue)
        while queue:
            _, tightness, home, selection = heappop(queue)
            if selection is None:
                # Only now does it matter how well it does: others may not come before it any more.
                selection = self._select(home)
                if selection is not None and not _is_in_one(home, selection):
                    heappush(queue, (selection.spread, tightness, home, selection))
                continue
            nodes = [node for path in selection.chosen for node in self._useful(path)]
            offered[home] = tuple(nodes)
            yield _Offer(home, offered[home], selection)

    def _whole(self, homes: list[Path], offered: dict[Path, tuple[str, ...]]) -> Iterator[_Offer]:
        """The domains with all their nodes, unless those were offered before."""
        for home in sorted(homes, key=lambda path: (self._tightness(path), path)):
            children = [c for c in self._tree.children(home) if any(self._rooms.of(c))]
            if not children or (len(children) == 1 and children[0][-1]):
                continue
            first = offered.get(home, ())
            nodes = tuple(dict.fromkeys((*first, *self._useful(home))))
            if len(first) != len(nodes):
                yield _Offer(home, nodes)

    def _useful(self, domain: Path) -> tuple[str, ...]:
        """The nodes of a domain that hold anything."""
        leaves = self._tree.within(domain, self._tree.node_level)
        return tuple([leaf[-1] for leaf in leaves if any(self._rooms.of(leaf))])

    def _select(self, home: Path) -> Selection | None:
        rooms, need, down_to = self._counted(home)
        return select(rooms, need, home, down_to, used=self._used)

    def _bound(self, home: Path) -> tuple[int, ...] | None:
        rooms, need, down_to = self._counted(home)
        return least_spread(rooms, need, home, down_to, used=self._used)

    def _counted(self, home: Path) -> tuple[Rooms, Amounts, int]:
        """What is spread over a domain, and down to which level: pods over nodes, or slices over domains of their level."""
        part, number = self._slices or (None, 0)
        if part is None or part.required is None or len(home) > part.required:
            return self._rooms, self._request.need, self._tree.node_level
        if self._in_slices is None:
            self._in_slices = _in_slices(self._rooms, part, part.required)
        return self._in_slices, (number,), part.required

    def _candidate(self, offer: _Offer) -> Candidate | None:
        """What becomes of an offer once the parts of the gang have their domains; None if they have none there."""
        home, nodes, selection = offer.home, offer.nodes, offer.selection
        assigned: tuple[Assigned, ...] | None = ()
        if self._request.parts:
            rooms = self._rooms if selection is None else self._rooms.on(nodes)
            try:
                assigned = assign(rooms, home, self._request.parts, budget=self._budget)
            except OutOfSteps:
                self.gave_up = True
                return None
        if assigned is None:
            return None
        if selection is None:
            return Candidate(home, nodes, assigned=assigned)
        return Candidate(home, nodes, selection.spread, assigned, selection.is_best)

    def _tightness(self, home: Path) -> tuple[int, ...]:
        """What is left over in a domain, and in those around it, the nearest first.

        The level that the gang asks for comes before all others: whole domains of that are what gangs like it will need.
        """
        request = self._request
        asked = request.required if request.preferred is None else request.preferred
        lengths = list(range(len(home), 0, -1))
        if asked is not None and asked < len(home):
            lengths.insert(0, asked + 1)
        return tuple([self._rooms.of(home[:length])[0] - request.need[0] for length in lengths])


def choose(rooms: Rooms, request: Request, *, max_steps: int = CHOOSE_STEPS) -> Choice:
    """Where a gang could go, by what the domains of a tree hold."""
    return Choice(rooms, request, max_steps=max_steps)


def slices_of(
    name: str,
    each: Amounts,
    number: int,
    size: int,
    *,
    required: int | None = None,
    preferred: int | None = None,
    parts: tuple[Part, ...] = (),
) -> tuple[Part, ...]:
    """Members that are alike in slices of consecutive ranks; the last slice has what remains."""
    whole, rest = divmod(number, size)
    need = tuple([amount * size for amount in each])
    found = (Part(name, need, required, preferred, parts, whole),) if whole else ()
    if not rest:
        return found
    need = tuple([amount * rest for amount in each])
    return (*found, Part(name, need, required, preferred, first=whole))


def slices_in(request: Request) -> tuple[Part, int] | None:
    """The parts of a gang if they are alike and all there is of it, with their number: then domains are counted in slices."""
    if not request.parts:
        return None
    first, *others = request.parts
    number = sum(part.times for part in request.parts)
    if number < 2 or first.pinned or any(part.likeness != first.likeness for part in others):
        return None
    is_all = tuple([amount * number for amount in first.need]) == request.need
    return (first, number) if is_all else None


def _is_in_one(home: Path, selection: Selection) -> bool:
    """Whether a domain of the next level holds all of it, which has been offered before."""
    if not selection.spread or selection.spread[0] != 1:
        return False
    return bool(selection.chosen[0][len(home)])


def _in_slices(rooms: Rooms, part: Part, level: int) -> Rooms:
    """How many slices the domains hold."""
    tree = rooms.tree
    found: dict[str, Amounts] = {}
    for path in tree.domains(level):
        held = [have // want for have, want in zip(rooms.of(path), part.need, strict=True) if want]
        nodes = tree.nodes(path)
        if nodes and held and min(held):
            # All of it is counted with one node: nothing is asked about nodes below this level.
            found[nodes[0]] = (min(held),)
    return Rooms(tree, found, 1, is_exact=rooms.is_exact)
