"""Where members of a gang that are tried together could go: domains by what they hold, then nodes and devices.

The domains of a gang, of its subgroups and of its slices are chosen by counting (`domains`). Members of one domain are then placed
together by the joint search, those with the fewest nodes to choose from first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct

from drayman.allocator import Policy
from drayman.placement.decision.deciding import Round
from drayman.placement.demand import Demand
from drayman.placement.domains.assigning import Part
from drayman.placement.domains.choosing import Candidate, Request, choose
from drayman.placement.domains.copies import CopyCounts, kinds_of
from drayman.placement.domains.following import Domains
from drayman.placement.domains.rooms import Amounts, Rooms, Wanted, rooms
from drayman.placement.domains.tree import DomainTree, enclosing, used_by
from drayman.placement.gangs.book import Member, ranked
from drayman.placement.gangs.gang import Gang, Slices, Wish
from drayman.placement.joint.arranging import Arranger
from drayman.placement.joint.members import Chosen, Ready
from drayman.placement.joint.seating import Seat, Seating, Seats
from drayman.placement.joint.slots import Slots, slots_of
from drayman.placement.nodes import NodeState
from drayman.placement.state import ClusterState
from drayman.placement.surroundings import Surroundings
from drayman.topology import Path
from drayman.topology.hierarchy import Hierarchy, configured

MOST_CANDIDATES: Final = 64
"""How many places are tried for one choice of members."""


class Ground:
    """What a search for places stands on: the cluster in one round of decisions, and what is kept between searches."""

    def __init__(self, round_: Round, domains: Domains, counts: CopyCounts, policy: Policy) -> None:
        self.state: ClusterState = round_.decider.state
        self.domains = domains
        self.counts = counts
        self.arranger = Arranger(round_, policy)
        self.seating = Seating(round_, policy)


class Nearest(Struct, frozen=True, eq=False):
    """As many members of a gang as fit at once in the place that has the most room."""

    seats: Seats
    place: str
    """Empty: anywhere."""
    nodes: tuple[NodeState, ...]


class Extent(Struct, frozen=True):
    """How near to each other members are."""

    place: str
    """The smallest domain that all of them are in: rack r3."""
    spread: Mapping[str, int]
    """How many domains of each finer level they use, nodes last."""


class Counted(Struct, frozen=True, eq=False):
    """What domains hold of members that are tried together, and what those ask for, by counting alone."""

    rooms: Rooms
    request: Request
    numbers: Amounts
    """How many of each kind have to start."""
    names: tuple[str, ...]
    """What each kind is called."""


def placed_members(state: ClusterState, gang: Gang) -> tuple[Member, ...]:
    """The members that have a node, and stay."""
    placed = ranked(state.gangs.placed(gang.key))
    return tuple(member for member in placed if member.is_staying)


class Places:
    """The search for places of members that are tried together."""

    def __init__(self, ground: Ground, gang: Gang, chosen: Chosen) -> None:
        self._ground = ground
        self._state = ground.state
        self._gang = gang
        self._chosen = chosen
        self.gave_up = False
        demands = [each.demand for each in chosen.members]
        kinds, kind_of_each = kinds_of(demands, _shared_claims(demands))
        self._wanted = Wanted.of(kinds)
        self._kind_of = {
            demand.needs.uid: kind for demand, kind in zip(demands, kind_of_each, strict=True)
        }
        self._pins = placed_members(ground.state, gang)
        self._slots_of: dict[str, Slots] = {}  # by part

    def search(self) -> Seats | None:
        """Seats for the members, in the best place that has them."""
        try:
            hierarchy = self._hierarchy()
            tree = self._ground.domains.tree(hierarchy)
            request = self._request(tree)
        except KeyError:
            # A level that the topology of the gang does not have: no place is one of it.
            return None
        held = rooms(self._state, tree, self._ground.counts, self._wanted)
        choice = choose(held, request)
        best: Seats | None = None
        for number, candidate in enumerate(choice):
            if number == MOST_CANDIDATES:
                self.gave_up = True
                break
            seats = self._arranged(tree, candidate)
            if seats is not None and (best is None or len(seats) > len(best)):
                best = seats
                if len(seats) == len(self._chosen.members):
                    break
        self.gave_up |= choice.gave_up or self._ground.arranger.gave_up
        return best

    def nearest(self) -> Nearest:
        """As many members as fit, in the domain of the required level that has the most room."""
        everywhere = tuple(self._state.nodes.values())
        demands = [each.demand for each in self._chosen.members]
        try:
            tree = self._ground.domains.tree(self._hierarchy())
            required, _ = _levels(tree, self._gang.wish)
        except KeyError:
            return Nearest((), "", ())
        if required is None:
            return Nearest(
                self._ground.arranger.arrange(demands, 1, everywhere) or (), "", everywhere
            )
        homes = self._homes_by_room(tree, required)
        if not homes:
            return Nearest((), "", ())
        nodes = tuple(self._state.nodes[name] for name in tree.nodes(homes[0]))
        found = self._ground.arranger.arrange(demands, 1, nodes) or ()
        return Nearest(found, tree.title(homes[0]), nodes)

    def counted(
        self, state: Surroundings | None = None, counts: CopyCounts | None = None
    ) -> Counted | None:
        """What the domains hold, in the cluster or in another state of it. None if the gang names a level that does not exist."""
        try:
            tree = self._ground.domains.tree(self._hierarchy())
            request = self._request(tree)
        except KeyError:
            return None
        held = rooms(state or self._state, tree, counts or self._ground.counts, self._wanted)
        kinds = self._wanted.kinds
        names = tuple(f"like {kind.demand.pod.metadata.name}" for kind in kinds)
        return Counted(held, request, request.need[: len(kinds)], names)

    def homes(self) -> tuple[tuple[NodeState, ...], ...]:
        """The nodes of each place in which the gang could be, those with the most room first."""
        try:
            tree = self._ground.domains.tree(self._hierarchy())
            required, _ = _levels(tree, self._gang.wish)
        except KeyError:
            return ()
        if required is None:
            return (tuple(self._state.nodes.values()),)
        homes = self._homes_by_room(tree, required)
        return tuple(tuple(self._state.nodes[name] for name in tree.nodes(path)) for path in homes)

    def _homes_by_room(self, tree: DomainTree, required: int) -> list[Path]:
        held = rooms(self._state, tree, self._ground.counts, self._wanted)
        pinned = {leaf[: required + 1] for leaf in self._pinned(tree, lambda _: True)}
        homes = [path for path in tree.domains(required) if not pinned or path in pinned]
        need = self._wanted.need
        return sorted(
            homes, key=lambda path: (tuple(map(_negative_least, held.of(path), need)), path)
        )

    def extent(self, nodes: Sequence[str]) -> Extent:
        """How near these nodes are to each other, by the levels that the gang knows."""
        tree = self._ground.domains.tree(self._hierarchy())
        leaves = [leaf for name in nodes if (leaf := tree.leaf(name)) is not None]
        home = enclosing(leaves)
        while home and not home[-1]:
            home = home[:-1]
        levels = enumerate(tree.hierarchy.levels[len(home) :], len(home))
        spread = {
            level.title: sum(bool(path[-1]) for path in used_by(leaves, at))
            for at, level in levels
            if level.title != "host"
        }
        # Nodes without a value are in no domain of a level.
        spread = {title: number for title, number in spread.items() if number}
        return Extent(tree.title(home), {**spread, "node": len(set(leaves))})

    def _hierarchy(self) -> Hierarchy:
        gang = self._gang
        wishes = [gang.wish, *(s.wish for s in gang.slices)]
        for part in gang.subgroups:
            wishes += [part.wish, *(s.wish for s in part.slices)]
        listed = next((wish.among for wish in wishes if wish.among), ())
        if listed:
            return configured(listed)
        named = [key for wish in wishes for key in (wish.required, wish.preferred) if key]
        return self._ground.domains.hierarchy(named, required=gang.wish.required)

    def _request(self, tree: DomainTree) -> Request:
        """Raises KeyError."""
        required, preferred = _levels(tree, self._gang.wish)
        pinned = tuple(self._pinned(tree, lambda _: True))
        return Request(
            self._need(self._chosen.members, self._chosen.needed),
            required,
            preferred,
            (*self._parts(tree, ""), *self._slices(tree, self._gang.slices, "")),
            pinned,
        )

    def _parts(self, tree: DomainTree, name: str) -> Iterator[Part]:
        for part in self._gang.children(name):
            inside = {part.name, *_below(self._gang, part.name)}
            members = [each for each in self._chosen.members if each.part in inside]
            if not members:
                continue
            required, preferred = _levels(tree, part.wish)
            within = (*self._parts(tree, part.name), *self._slices(tree, part.slices, part.name))
            if required is None and preferred is None and not within:
                continue
            least = sum(self._chosen.least_of(each) for each in {m.part for m in members})
            pins = self._pinned(tree, lambda m, inside=inside: m.membership.subgroup in inside)  # type: ignore[misc]
            pinned = tuple(pins)
            yield Part(
                part.name, self._need(members, least), required, preferred, within, pinned=pinned
            )

    def _slices(self, tree: DomainTree, slices: Sequence[Slices], part: str) -> Iterator[Part]:
        """The outermost slices of the members of a part, with those inside them."""
        if not slices:
            return
        slots = self._slots(tree, slices, part)
        members = sorted(self._in_part(part), key=lambda each: slots[each.member.uid])
        yield from self._sliced(tree, slices, part, members, slots)

    def _sliced(
        self,
        tree: DomainTree,
        slices: Sequence[Slices],
        part: str,
        members: Sequence[Ready],
        slots: Slots,
    ) -> Iterator[Part]:
        """The slices that these members are in, with those inside them."""
        (outer, *inner) = slices
        required, preferred = _levels(tree, outer.wish)
        for number, found in groupby(members, lambda each: slots[each.member.uid] // outer.size):
            here = tuple(found)
            first, last = number * outer.size, (number + 1) * outer.size
            within = tuple(self._sliced(tree, inner, part, here, slots)) if inner else ()
            pins = self._pinned(tree, lambda m, a=first, b=last: a <= slots.get(m.uid, -1) < b)  # type: ignore[misc]
            yield Part(
                _slice_name(part, outer.size, first),
                self._need(here, len(here)),
                required,
                preferred,
                within,
                pinned=tuple(pins),
            )

    def _slots(self, tree: DomainTree, slices: Sequence[Slices], part: str) -> Slots:
        """In which slices the members of a part are, those that run included."""
        if part not in self._slots_of:
            inside = {part, *_below(self._gang, part)}
            pins = [m for m in self._pins if not part or m.membership.subgroup in inside]
            running = [(m, leaf) for m in pins if (leaf := tree.leaf(m.node)) is not None]
            levels = [_levels(tree, each.wish)[0] for each in slices]
            newcomers = [each.member for each in self._in_part(part)]
            self._slots_of[part] = slots_of(slices, levels, newcomers, running)
        return self._slots_of[part]

    def _in_part(self, part: str) -> list[Ready]:
        """The members of a part in the order of their ranks."""
        inside = {part, *_below(self._gang, part)}
        return [each for each in self._chosen.members if not part or each.part in inside]

    def _need(self, members: Sequence[Ready], least: int) -> Amounts:
        """What members need at least if so many of them start."""
        spare = len(members) - least
        numbers = [0] * len(self._wanted.kinds)
        for each in members:
            numbers[self._kind_of[each.demand.needs.uid]] += 1
        return self._wanted.need_of([max(0, number - spare) for number in numbers])

    def _pinned(self, tree: DomainTree, concerns: Callable[[Member], bool]) -> Iterator[Path]:
        for member in self._pins:
            leaf = tree.leaf(member.node) if concerns(member) else None
            if leaf is not None:
                yield leaf

    def _arranged(self, tree: DomainTree, candidate: Candidate) -> Seats | None:
        """Seats for the members in a place, part by part."""
        homes = {(each.name, each.number): each.domain for each in candidate.assigned}
        allowed = set(candidate.nodes)
        groups: dict[tuple[Path | None, str], list[Ready]] = {}
        for each, home in zip(self._chosen.members, self._homes(tree, homes), strict=True):
            groups.setdefault((home, each.part), []).append(each)
        # Parts that may go to the same nodes are placed together; those with the fewest nodes come first.
        crowds: dict[Path | None, list[Ready]] = {}
        least: Counter[Path | None] = Counter()
        for (home, part), members in groups.items():
            crowds.setdefault(home, []).extend(members)
            is_whole = len(members) == sum(m.part == part for m in self._chosen.members)
            least[home] += self._chosen.least_of(part) if is_whole else len(members)
        places = {
            home: [
                name
                for name in (candidate.nodes if home is None else tree.nodes(home))
                if name in allowed
            ]
            for home in crowds
        }
        seats: list[Seat] = []
        with self._state.trial():
            for home in sorted(crowds, key=lambda home: len(places[home])):
                nodes = [self._state.nodes[name] for name in places[home]]
                demands = [each.demand for each in crowds[home]]
                found = self._ground.arranger.arrange(demands, least[home], nodes)
                if found is None:
                    return None
                for seat in found:
                    self._ground.seating.take(seat)
                seats += found
        return tuple(seats)

    def _homes(
        self, tree: DomainTree, homes: Mapping[tuple[str, int], Path]
    ) -> Iterator[Path | None]:
        """For each member, the domain of the innermost part that has one."""
        for each in self._chosen.members:
            yield self._home(tree, each, homes)

    def _home(
        self, tree: DomainTree, each: Ready, homes: Mapping[tuple[str, int], Path]
    ) -> Path | None:
        gang, name = self._gang, each.part
        while True:
            part = gang.subgroup(name)
            # A member in no subgroup that the gang has is in the slices of the gang itself.
            title = "" if part is None else name
            slices = gang.slices if part is None else part.slices
            if slices:
                at = self._slots(tree, slices, title)[each.member.uid]
                for inner in reversed(slices):
                    first = at - at % inner.size
                    home = homes.get((_slice_name(title, inner.size, first), 0))
                    if home is not None:
                        return home
            if part is None:
                return None
            home = homes.get((name, 0))
            if home is not None:
                return home
            name = part.parent


def _negative_least(have: int, want: int) -> int:
    return -min(have, want)


def _slice_name(part: str, size: int, first: int) -> str:
    return f"{part}[{first}:{first + size}]"


def _levels(tree: DomainTree, wish: Wish) -> tuple[int | None, int | None]:
    """The positions of the levels that are required and preferred. Raises KeyError."""
    hierarchy = tree.hierarchy
    required = None if wish.required is None else hierarchy.position(wish.required)
    return required, None if wish.preferred is None else hierarchy.position(wish.preferred)


def _below(gang: Gang, name: str) -> Iterator[str]:
    for child in gang.children(name):
        yield child.name
        yield from _below(gang, child.name)


def _shared_claims(demands: Sequence[Demand]) -> frozenset[str]:
    """The names of claims that several of the pods use."""
    users = Counter(
        claim.metadata.name for demand in demands for claim in demand.open if claim.metadata.uid
    )
    return frozenset(name for name, number in users.items() if number > 1)
