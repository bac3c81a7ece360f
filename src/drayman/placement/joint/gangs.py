"""The decision about a gang: which of its members start now, and where.

All members that wait are tried together first. If they do not fit, as many as the gang needs: its quorum, and those of its parts. If
those do not fit either, none of them starts and nothing is held. Once the quorum runs, further members join one by one, in the same domain.

Which domains are tried, and in which order, is decided by what they hold (`domains`). The joint search (`arranging`) has the last word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.placement.decision.deciding import Round
from drayman.placement.decision.outcomes import NoPlacement
from drayman.placement.demand import Demand
from drayman.placement.domains.assigning import Part
from drayman.placement.domains.choosing import Candidate, Request, choose
from drayman.placement.domains.copies import CopiesWanted, CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.domains.rooms import Amounts, Wanted, rooms
from drayman.placement.domains.tree import DomainTree
from drayman.placement.gangs.book import Member, ranked
from drayman.placement.gangs.gang import Flaw, Gang, Slices, Subgroup, Wish
from drayman.placement.gangs.quorum import Shortfall, shortfall
from drayman.placement.joint.arranging import Arranger
from drayman.placement.joint.seating import Seat, Seating, Seats
from drayman.placement.nodes import NodeState
from drayman.topology import Path
from drayman.topology.hierarchy import Hierarchy, configured

MOST_CANDIDATES: Final = 64
"""How many places are tried for one choice of members."""
MOST_CHOICES: Final = 32
"""How many choices of members are tried, where not all of them have to start."""


class Flawed(Struct, frozen=True):
    """There is no telling what the gang is."""

    flaw: Flaw


class Incomplete(Struct, frozen=True):
    """Members that the gang needs do not exist yet, or wait for something of their own."""

    gang: Gang
    lack: Shortfall
    unready: NoPlacement | None = None
    """What one of them waits for, if they exist."""


class NoRoom(Struct, frozen=True, eq=False):
    """Members that could start do not fit at the same time."""

    gang: Gang
    demands: tuple[Demand, ...]
    needed: int
    """How many of them have to start together."""
    gave_up: bool
    """Whether a search ended without an answer."""


class Starting(Struct, frozen=True, eq=False):
    """Members that can start together."""

    gang: Gang
    seats: Seats
    as_one: bool = True
    """Whether none of them starts without the others."""


class Nearest(Struct, frozen=True, eq=False):
    """As many members of a gang as fit at once in the place that has the most room."""

    seats: Seats
    place: str
    """Empty: anywhere."""
    nodes: tuple[NodeState, ...]


GangOutcome: TypeAlias = Flawed | Incomplete | NoRoom | Starting


class GangDecider:
    """Decides about the gangs of one cluster. Changes nothing."""

    def __init__(self, round_: Round, domains: Domains, counts: CopyCounts, policy: Policy) -> None:
        self._round = round_
        self.state = round_.decider.state
        self._book = self.state.gangs
        self.domains = domains
        self.counts = counts
        self.arranger = Arranger(round_, policy)
        self.seating = Seating(round_, policy)

    def decide(self, gang: Gang, candidates: Sequence[Pod]) -> Incomplete | NoRoom | Starting:
        """Which of these members, which wait for a node, start now."""
        lack = self._book.lack(gang)
        if lack is not None:
            return Incomplete(gang, lack)
        waiting = self._book.waiting(gang.key)
        members = ranked(
            {
                p.metadata.uid: waiting[p.metadata.uid]
                for p in candidates
                if p.metadata.uid in waiting
            }
        )
        ready: list[_Ready] = []
        unready: NoPlacement | None = None
        for member in members:
            demand = self._round.readied(member.pod)
            if isinstance(demand, Demand):
                ready.append(_Ready(member, demand))
            else:
                unready = unready or demand
        has = self._running(gang)
        lack = shortfall(gang, has + Counter(each.part for each in ready))
        if lack is not None:
            return Incomplete(gang, lack, unready)
        if shortfall(gang, has) is None:
            return self._joining(gang, ready)
        return self._starting(gang, ready, has)

    def nearest(self, refused: NoRoom) -> Nearest:
        """How far a gang that was refused gets, in the place that has the most room for it."""
        members = [
            _Ready(self._book.waiting(refused.gang.key)[d.needs.uid], d) for d in refused.demands
        ]
        return _Places(self, refused.gang, _Chosen(tuple(members), {})).nearest()

    def placed_nodes(self, gang: Gang) -> tuple[Member, ...]:
        """The members that have a node, and stay."""
        placed = ranked(self._book.placed(gang.key))
        return tuple(member for member in placed if member.is_staying)

    def _running(self, gang: Gang) -> Counter[str]:
        """How many members have a node, or have done their part, by subgroup."""
        found: Counter[str] = Counter()
        for members in (self._book.placed(gang.key), self._book.succeeded(gang.key)):
            for member in members.values():
                if member.is_staying:
                    found[member.membership.subgroup] += 1
        return found

    def _starting(
        self, gang: Gang, ready: Sequence[_Ready], has: Counter[str]
    ) -> NoRoom | Starting:
        needed = len(ready)
        gave_up = False
        for chosen in islice(_choices(gang, ready, has), MOST_CHOICES):
            needed = min(needed, chosen.needed)
            place = _Places(self, gang, chosen)
            seats = place.search()
            gave_up |= place.gave_up
            if seats is not None:
                return Starting(gang, seats)
        return NoRoom(gang, tuple(each.demand for each in ready), needed, gave_up)

    def _joining(self, gang: Gang, ready: Sequence[_Ready]) -> NoRoom | Starting:
        """Members beyond the quorum, each on its own."""
        seats: list[Seat] = []
        gave_up = False
        refused: set[tuple[str, Hashable]] = set()
        with self.state.trial():
            for each in ready:
                kind = (each.part, each.demand.key)
                if kind in refused:
                    continue
                place = _Places(self, gang, _Chosen((each,), {}))
                found = place.search()
                gave_up |= place.gave_up
                if found is None:
                    refused.add(kind)
                    continue
                for seat in found:
                    self.seating.take(seat)
                    seats.append(seat)
        if seats:
            return Starting(gang, tuple(seats), as_one=False)
        return NoRoom(gang, tuple(each.demand for each in ready), 1, gave_up)


class _Ready(Struct, frozen=True, eq=False):
    """A member that could start."""

    member: Member
    demand: Demand

    @property
    def part(self) -> str:
        """The subgroup that it is in."""
        return self.member.membership.subgroup


class _Chosen(Struct, frozen=True, eq=False):
    """Members that are tried together."""

    members: tuple[_Ready, ...]
    least: Mapping[str, int]
    """How many have to start in each subgroup; all of them where it does not say."""

    def least_of(self, part: str) -> int:
        number = sum(each.part == part for each in self.members)
        return min(number, self.least.get(part, number))

    @property
    def needed(self) -> int:
        return sum(self.least_of(part) for part in {each.part for each in self.members})


def _choices(gang: Gang, ready: Sequence[_Ready], has: Mapping[str, int]) -> Iterator[_Chosen]:
    """Which members to try: all of them, then as many as the gang needs."""
    everything = _Chosen(tuple(ready), {})
    yield everything
    quorums = [each for each in gang.subgroups if each.least is not None]
    if not quorums:
        needed = gang.least - sum(has.values())
        if needed < len(ready):
            # With subgroups that only have wishes, members are counted together.
            parts = {each.part for each in ready}
            if len(parts) == 1:
                yield _Chosen(tuple(ready), dict.fromkeys(parts, needed))
            else:
                yield _Chosen(tuple(ready)[:needed], {})
        return
    for names in _complete(gang, ""):
        least = {
            each.name: max(0, (each.least or 0) - has.get(each.name, 0))
            for each in quorums
            if each.name in names
        }
        members = tuple(each for each in ready if least.get(each.part))
        chosen = _Chosen(members, least)
        total = sum(has.values()) + chosen.needed
        if members and total >= gang.least and chosen.needed < everything.needed:
            yield chosen


def _complete(gang: Gang, name: str) -> Iterator[frozenset[str]]:
    """The sets of subgroups that suffice below one of them: all of them, or as many as are needed."""
    children = gang.children(name)
    parent = gang.subgroup(name)
    needed = gang.least_children if parent is None else parent.least_children
    for chosen in combinations(children, len(children) if needed is None else needed):
        yield from _combined(gang, chosen)


def _combined(gang: Gang, chosen: Sequence[Subgroup]) -> Iterator[frozenset[str]]:
    if not chosen:
        yield frozenset()
        return
    first, *others = chosen
    below = _complete(gang, first.name) if gang.children(first.name) else iter([frozenset[str]()])
    for names in below:
        for rest in _combined(gang, others):
            yield frozenset({first.name}) | names | rest


class _Places:
    """The search for places of members that are tried together."""

    def __init__(self, decider: GangDecider, gang: Gang, chosen: _Chosen) -> None:
        self._decider = decider
        self._state = decider.state
        self._gang = gang
        self._chosen = chosen
        self.gave_up = False
        self._kinds: dict[Hashable, int] = {}
        """The number of each kind of pods."""
        by_kind: dict[Hashable, list[Demand]] = {}
        for each in chosen.members:
            by_kind.setdefault(each.demand.key, []).append(each.demand)
        self._kinds = {key: number for number, key in enumerate(by_kind)}
        shared = _shared_claims([each.demand for each in chosen.members])
        self._wanted = Wanted.of([CopiesWanted(of[0], len(of), shared) for of in by_kind.values()])
        self._pins = decider.placed_nodes(gang)

    def search(self) -> Seats | None:
        """Seats for the members, in the best place that has them."""
        try:
            hierarchy = self._hierarchy()
            tree = self._decider.domains.tree(hierarchy)
            request = self._request(tree)
        except KeyError:
            # A level that the topology of the gang does not have: no place is one of it.
            return None
        held = rooms(self._state, tree, self._decider.counts, self._wanted)
        choice = choose(held, request)
        best: Seats | None = None
        for candidate in islice(choice, MOST_CANDIDATES):
            seats = self._arranged(tree, candidate)
            if seats is not None and (best is None or len(seats) > len(best)):
                best = seats
                if len(seats) == len(self._chosen.members):
                    break
        self.gave_up |= choice.gave_up or self._decider.arranger.gave_up
        return best

    def nearest(self) -> Nearest:
        """As many members as fit, in the domain of the required level that has the most room."""
        everywhere = tuple(self._state.nodes.values())
        demands = [each.demand for each in self._chosen.members]
        try:
            tree = self._decider.domains.tree(self._hierarchy())
            required, _ = _levels(tree, self._gang.wish)
        except KeyError:
            return Nearest((), "", ())
        if required is None:
            return Nearest(
                self._decider.arranger.arrange(demands, 1, everywhere) or (), "", everywhere
            )
        held = rooms(self._state, tree, self._decider.counts, self._wanted)
        pinned = {leaf[: required + 1] for leaf in self._pinned(tree, lambda _: True)}
        homes = [path for path in tree.domains(required) if not pinned or path in pinned]
        homes.sort(key=lambda path: (-held.of(path)[0], path))
        if not homes:
            return Nearest((), "", ())
        nodes = tuple(self._state.nodes[name] for name in tree.nodes(homes[0]))
        found = self._decider.arranger.arrange(demands, 1, nodes) or ()
        return Nearest(found, tree.title(homes[0]), nodes)

    def _hierarchy(self) -> Hierarchy:
        gang = self._gang
        wishes = [gang.wish, *(s.wish for s in gang.slices)]
        for part in gang.subgroups:
            wishes += [part.wish, *(s.wish for s in part.slices)]
        listed = next((wish.among for wish in wishes if wish.among), ())
        if listed:
            return configured(listed)
        named = [key for wish in wishes for key in (wish.required, wish.preferred) if key]
        return self._decider.domains.hierarchy(named, required=gang.wish.required)

    def _request(self, tree: DomainTree) -> Request:
        """Raises KeyError."""
        required, preferred = _levels(tree, self._gang.wish)
        pinned = () if required is None else tuple(self._pinned(tree, lambda _: True))
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
            pinned = tuple(pins) if required is not None else ()
            yield Part(
                part.name, self._need(members, least), required, preferred, within, pinned=pinned
            )

    def _slices(self, tree: DomainTree, slices: Sequence[Slices], part: str) -> Iterator[Part]:
        """The outermost slices of the members of a part, with those inside them."""
        if not slices:
            return
        members = self._in_slices(part)
        outermost = slices[0].size
        for number in range(-(-len(members) // outermost)):
            yield self._slice(
                tree, slices, part, members, number * outermost, (number + 1) * outermost
            )

    def _slice(
        self,
        tree: DomainTree,
        slices: Sequence[Slices],
        part: str,
        members: Sequence[_Ready],
        first: int,
        last: int,
    ) -> Part:
        here, (outer, *inner) = members[first:last], slices
        required, preferred = _levels(tree, outer.wish)
        within = (
            tuple(
                self._slice(tree, inner, part, members, start, min(start + inner[0].size, last))
                for start in range(first, min(last, len(members)), inner[0].size)
            )
            if inner
            else ()
        )
        name = _slice_name(part, outer.size, first)
        return Part(name, self._need(here, len(here)), required, preferred, within)

    def _in_slices(self, part: str) -> list[_Ready]:
        """The members of a part in the order of their ranks."""
        inside = {part, *_below(self._gang, part)}
        return [each for each in self._chosen.members if not part or each.part in inside]

    def _need(self, members: Sequence[_Ready], least: int) -> Amounts:
        """What members need at least if so many of them start."""
        spare = len(members) - least
        numbers = [0] * len(self._kinds)
        for each in members:
            numbers[self._kinds[each.demand.key]] += 1
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
        groups: dict[tuple[Path | None, str], list[_Ready]] = {}
        for each, home in zip(self._chosen.members, self._homes(homes), strict=True):
            groups.setdefault((home, each.part), []).append(each)
        # Parts that may go to the same nodes are placed together; those with the fewest nodes come first.
        crowds: dict[Path | None, list[_Ready]] = {}
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
                found = self._decider.arranger.arrange(demands, least[home], nodes)
                if found is None:
                    return None
                for seat in found:
                    self._decider.seating.take(seat)
                seats += found
        return tuple(seats)

    def _homes(self, homes: Mapping[tuple[str, int], Path]) -> Iterator[Path | None]:
        """For each member, the domain of the innermost part that has one."""
        gang = self._gang
        orders: dict[str, dict[str, int]] = {}
        for each in self._chosen.members:
            yield self._home(gang, each, homes, orders)

    def _home(
        self,
        gang: Gang,
        each: _Ready,
        homes: Mapping[tuple[str, int], Path],
        orders: dict[str, dict[str, int]],
    ) -> Path | None:
        name = each.part
        while True:
            part = gang.subgroup(name)
            slices = gang.slices if part is None else part.slices
            if slices:
                if name not in orders:
                    sliced = self._in_slices(name)
                    orders[name] = {m.member.uid: at for at, m in enumerate(sliced)}
                at = orders[name][each.member.uid]
                for inner in reversed(slices):
                    first = at - at % inner.size
                    home = homes.get((_slice_name(name, inner.size, first), 0))
                    if home is not None:
                        return home
            if part is None:
                return None
            home = homes.get((name, 0))
            if home is not None:
                return home
            name = part.parent


def _slice_name(part: str, size: int, first: int) -> str:
    return f"{part}[{first}:{first + size}]"


def _levels(tree: DomainTree, wish: Wish) -> tuple[int | None, int | None]:
    """The positions of the levels that are required and preferred. Raises KeyError."""
    hierarchy = tree.hierarchy
    required = None if wish.required is None else hierarchy.index(wish.required)
    return required, None if wish.preferred is None else hierarchy.index(wish.preferred)


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
