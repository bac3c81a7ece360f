"""The decision about a gang: which of its members start now, and where.

All members that wait are tried together first. If they do not fit, as many as the gang needs: its quorum, and those of its parts. If
those do not fit either, none of them starts and nothing is held. Once the quorum runs, further members join one by one, in the same domain.

Which domains are tried, and in which order, is decided by what they hold (`domains`). The joint search (`arranging`) has the last word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.placement.decision.deciding import Round
from drayman.placement.decision.outcomes import NoPlacement
from drayman.placement.demand import Demand
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.book import ranked
from drayman.placement.gangs.gang import Flaw, Gang, GangKey
from drayman.placement.gangs.quorum import Shortfall, shortfall
from drayman.placement.joint.members import Chosen, Ready, choices
from drayman.placement.joint.places import Counted, Extent, Ground, Nearest, Places
from drayman.placement.joint.seating import Seat, Seats
from drayman.placement.joint.stated_needs import Scarce, scarce
from drayman.placement.nodes import NodeState
from drayman.placement.queueing.limits import Withheld
from drayman.placement.surroundings import Surroundings

MOST_CHOICES: Final = 32
"""How many choices of members are tried, where not all of them have to start."""


class Flawed(Struct, frozen=True):
    """There is no telling what the gang is."""

    flaw: Flaw


class Incomplete(Struct, frozen=True):
    """Members that the gang needs do not exist yet, or wait for something of their own."""

    gang: Gang
    lack: Shortfall
    unready: tuple[Pod, NoPlacement | None] | None = None
    """One of them that exists, and what it waits for; None if nothing is to be decided about it."""


class NoRoom(Struct, frozen=True, eq=False):
    """Members that could start do not fit at the same time."""

    gang: Gang
    demands: tuple[Demand, ...]
    needed: int
    """How many of them have to start together."""
    gave_up: bool
    """Whether a search ended without an answer."""
    fewest: Chosen
    """Those that were tried last: no more than have to start."""
    has_alternatives: bool = False
    """Whether others could start in their place, because not every member or subgroup has to."""
    is_joining: bool = False
    """Whether the gang has started, and these would come in addition."""
    scarce: Scarce | None = None
    """Set if no place was looked for, because the cluster has not enough of what the gang is said to need."""
    withheld: Withheld | None = None
    """Set if it is the queue of the gang that keeps out as many as have to start."""


class Starting(Struct, frozen=True, eq=False):
    """Members that can start together."""

    gang: Gang
    seats: Seats
    as_one: bool = True
    """Whether none of them starts without the others."""


class GangDecider:
    """Decides about the gangs of one cluster. Changes nothing."""

    def __init__(self, round_: Round, domains: Domains, counts: CopyCounts, policy: Policy) -> None:
        self._round = round_
        self._state = round_.decider.state
        self._book = self._state.gangs
        self._ground = Ground(round_, domains, counts, policy)
        self.seating = self._ground.seating

    def decide_about(
        self, key: GangKey, candidates: Sequence[Pod]
    ) -> Flawed | Incomplete | NoRoom | Starting | None:
        """What becomes of the gang of this key, of which these members wait. None if it is not a gang: its pods are on their own."""
        gang = self._book.gang(key)
        if gang is None:
            return None
        if isinstance(gang, Flaw):
            return Flawed(gang)
        for pod in candidates:
            own = self._book.gang_of(pod)
            if isinstance(own, Flaw):
                return Flawed(own)
        return self.decide(gang, candidates)

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
        ready: list[Ready] = []
        unready: tuple[Pod, NoPlacement | None] | None = None
        for member in members:
            demand = self._round.readied(member.pod)
            if isinstance(demand, Demand):
                ready.append(Ready(member, demand))
            else:
                unready = unready or (member.pod, demand)
        has = self._book.running(gang)
        lack = shortfall(gang, has + Counter(each.part for each in ready))
        if lack is not None:
            return Incomplete(gang, lack, unready or self._held_back(gang, candidates))
        if shortfall(gang, has) is None:
            return self._joining(gang, ready)
        return self._starting(gang, ready, has)

    def nearest(self, refused: NoRoom) -> Nearest:
        """How far a gang that was refused gets, in the place that has the most room for it."""
        members = [
            Ready(self._book.waiting(refused.gang.key)[d.needs.uid], d) for d in refused.demands
        ]
        return Places(self._ground, refused.gang, Chosen(tuple(members), {})).nearest()

    def counted(
        self, refused: NoRoom, state: Surroundings | None = None, counts: CopyCounts | None = None
    ) -> Counted | None:
        """What domains hold of a gang that was refused, in the cluster or in another state of it."""
        return Places(self._ground, refused.gang, refused.fewest).counted(state, counts)

    def homes(self, refused: NoRoom) -> tuple[tuple[NodeState, ...], ...]:
        """The nodes of each place in which a gang that was refused could be, those with the most room first."""
        return Places(self._ground, refused.gang, refused.fewest).homes()

    def are_apart(self, seats: Seats) -> bool:
        """Whether what each of these gets depends on nothing but its own node, and on those that go to the same one."""
        arranger = self._ground.arranger
        return arranger.are_apart([seat.demand for seat in seats]) and not arranger.share_devices(
            seats
        )

    def extent(self, gang: Gang, nodes: Sequence[str]) -> Extent:
        """How near to each other members of a gang are that have these nodes."""
        return Places(self._ground, gang, Chosen((), {})).extent(nodes)

    def _held_back(self, gang: Gang, candidates: Sequence[Pod]) -> tuple[Pod, None] | None:
        """A member that exists but is not up for a decision, such as one with a gate."""
        known = {pod.metadata.uid for pod in candidates}
        for member in ranked(self._book.waiting(gang.key)):
            if member.uid not in known and member.is_staying:
                return member.pod, None
        return None

    def _starting(self, gang: Gang, ready: Sequence[Ready], has: Counter[str]) -> NoRoom | Starting:
        needed = len(ready)
        gave_up = False
        withheld: Withheld | None = None
        tried = 0
        fewest = Chosen(tuple(ready), {})
        too_little = scarce(self._state, gang)
        if too_little is not None:
            demands = tuple(each.demand for each in ready)
            return NoRoom(gang, demands, needed, gave_up, fewest, scarce=too_little)
        for chosen in islice(choices(gang, ready, has), MOST_CHOICES):
            tried += 1
            fewest = chosen
            needed = min(needed, chosen.needed)
            withheld = self._withheld(chosen.members)
            if withheld is not None and chosen.needed < len(chosen.members):
                chosen = _fewest(chosen)
                withheld = self._withheld(chosen.members)
            if withheld is not None:
                continue
            place = Places(self._ground, gang, chosen)
            seats = place.search()
            gave_up |= place.gave_up
            if seats is not None:
                return Starting(gang, seats)
        demands = tuple(each.demand for each in ready)
        # Where members are only counted together, the first of them were tried, and others might do.
        are_first = len(fewest.members) < len(ready) and all(
            s.least is None for s in gang.subgroups
        )
        return NoRoom(
            gang,
            demands,
            needed,
            gave_up,
            fewest,
            has_alternatives=tried > 2 or are_first,
            withheld=withheld,
        )

    def _joining(self, gang: Gang, ready: Sequence[Ready]) -> NoRoom | Starting:
        """Members beyond the quorum, each on its own."""
        seats: list[Seat] = []
        gave_up = False
        withheld: Withheld | None = None
        refused: set[tuple[str, Hashable]] = set()
        with self._state.trial():
            for each in ready:
                kind = (each.part, each.demand.key)
                if kind in refused:
                    continue
                kept = self._withheld((each,))
                if kept is not None:
                    withheld = withheld or kept
                    continue
                place = Places(self._ground, gang, Chosen((each,), {}))
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
        demands = tuple(each.demand for each in ready)
        return NoRoom(
            gang,
            demands,
            1,
            gave_up,
            Chosen(tuple(ready[:1]), {}),
            is_joining=True,
            withheld=None if refused else withheld,
        )

    def _withheld(self, members: Iterable[Ready]) -> Withheld | None:
        return self._state.queues.withheld(each.demand.needs.uid for each in members)


def _fewest(chosen: Chosen) -> Chosen:
    """No more members than have to start."""
    left = {part: chosen.least_of(part) for part in {each.part for each in chosen.members}}
    members = []
    for each in chosen.members:
        if left[each.part]:
            left[each.part] -= 1
            members.append(each)
    return Chosen(tuple(members), {})
