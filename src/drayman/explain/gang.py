"""Gangs in explanations: the decision that the scheduler makes about all members together, and what becomes of each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.explain.answer import PLACED, RUNS, GangAnswer, GangMember
from drayman.placement.decision.deciding import Decider
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.book import Member, MemberState, ranked
from drayman.placement.gangs.gang import Gang, GangKey
from drayman.placement.joint.gangs import Flawed, GangDecider, Incomplete, NoRoom, Starting
from drayman.placement.joint.seating import Seat
from drayman.placement.world import World
from drayman.reasons.gangs import GangReasons, GangRefusal
from drayman.reasons.planned import Planned
from drayman.reasons.reason import Headline, Outlook, Reason
from drayman.reasons.waiting import held_back, held_by_itself
from drayman.reasons.wording import counted


class GangFinding(Struct, frozen=True, eq=False):
    """What would become of a gang."""

    key: GangKey
    gang: Gang | None
    """None if there is no telling what it is."""
    outcome: Flawed | Incomplete | NoRoom | Starting | None
    """None if no member waits."""
    seats: Mapping[str, Seat] = {}
    """Where members would start, by uid."""
    refusal: GangRefusal | None = None
    """Why the others wait."""

    @property
    def starts(self) -> bool:
        return isinstance(self.outcome, Starting)


class Gangs:
    """The gangs of a world. Each is decided about once."""

    def __init__(self, world: World, planned: Planned | None = None) -> None:
        self._world = world
        self._state = world.state
        self._book = world.state.gangs
        self._round = Decider(world.state).round(world.now)
        self._decider = GangDecider(
            self._round, Domains(world.state), CopyCounts(world.state), Policy.BEST
        )
        self._reasons = GangReasons(world.state, planned=planned)
        self._found: dict[GangKey, GangFinding | None] = {}

    def of(self, pod: Pod) -> GangFinding | None:
        """What would become of the gang that a pod is in; None for a pod that is on its own."""
        member = self._book.member(pod.metadata.uid)
        return None if member is None else self.find(member.membership.key)

    def find(self, key: GangKey) -> GangFinding | None:
        """None if it is not a gang: its pods are on their own."""
        if key not in self._found:
            self._found[key] = self._decided(key)
        return self._found[key]

    def _decided(self, key: GangKey) -> GangFinding | None:
        gang = self._book.gang(key)
        if gang is None:
            return None
        known = gang if isinstance(gang, Gang) else None
        waiting = self._candidates(key)
        if known is not None and not self._book.waiting(key):
            lack = self._book.lack(known)
            if lack is None:
                return GangFinding(key, known, None)
        outcome = self._decider.decide_about(key, waiting)
        if outcome is None:
            return None
        if not isinstance(outcome, Starting):
            return GangFinding(key, known, outcome, {}, self._refusal(outcome))
        seats, refusal = self._started(outcome, waiting)
        return GangFinding(key, known, outcome, seats, refusal)

    def _candidates(self, key: GangKey) -> list[Pod]:
        """The members about which a scheduler would decide."""
        members = ranked(self._book.waiting(key))
        return [m.pod for m in members if m.is_staying and held_by_itself(m.pod) is None]

    def _refusal(self, outcome: Flawed | Incomplete | NoRoom) -> GangRefusal:
        return self._reasons.of(self._round, self._decider, outcome)

    def _started(
        self, starting: Starting, waiting: Sequence[Pod]
    ) -> tuple[dict[str, Seat], GangRefusal | None]:
        """Where members would start, those that join later too, and why the others would not."""
        seats: dict[str, Seat] = {}
        with self._state.trial():
            outcome: Incomplete | NoRoom | Starting = starting
            while isinstance(outcome, Starting):
                for seat in outcome.seats:
                    self._decider.seating.take(seat)
                    seats[seat.demand.needs.uid] = seat
                left = [pod for pod in waiting if pod.metadata.uid not in seats]
                if not left:
                    return seats, None
                outcome = self._decider.decide(starting.gang, left)
            return seats, self._refusal(outcome)

    def seat_of(self, pod: Pod) -> Seat | None:
        """Where a member would start in the state as it is: of a trial, too."""
        key = self._book.key_of(pod)
        if key is None:
            return None
        outcome = self._decider.decide_about(key, self._candidates(key))
        seats = outcome.seats if isinstance(outcome, Starting) else ()
        return next((s for s in seats if s.demand.needs.uid == pod.metadata.uid), None)

    def answer(self, found: GangFinding) -> GangAnswer:
        """The gang with its members, as data."""
        gang, refusal = found.gang, found.refusal
        members = [*self._members(found)]
        taken = [member.node for member in members if member.has_node]
        answer = GangAnswer(
            name=str(found.key),
            needs=0 if gang is None else gang.least,
            members=tuple(members),
            required="" if gang is None else gang.wish.required or "",
            preferred="" if gang is None else gang.wish.preferred or "",
        )
        if gang is not None and taken:
            extent = self._decider.extent(gang, taken)
            answer = replace(answer, place=extent.place, spread=extent.spread)
        elif refusal is not None and refusal.nearest is not None:
            answer = replace(answer, place=refusal.nearest.place)
        if refusal is not None and refusal.locality is not None:
            locality = refusal.locality
            answer = replace(
                answer,
                wanted=locality.wanted,
                domains=locality.domains,
                even_empty=locality.outlook == Outlook.NEVER.value,
            )
        return answer

    def _members(self, found: GangFinding) -> Sequence[GangMember]:
        nearest = None if found.refusal is None else found.refusal.nearest
        seats = {seat.demand.needs.uid: seat for seat in (() if nearest is None else nearest.seats)}
        seats |= found.seats
        without = "waits" if nearest is None else "no room"
        known = {
            **self._book.placed(found.key),
            **self._book.succeeded(found.key),
            **self._book.waiting(found.key),
        }
        return [self._member(each, seats.get(each.uid), without) for each in ranked(known)]

    def _member(self, member: Member, seat: Seat | None, without: str) -> GangMember:
        membership, standing = member.membership, member.state
        state, node = without, ""
        if standing is MemberState.PLACED:
            said = held_back(self._world, member.pod)
            is_well = said is None or said.reason in (Reason.RUNS, Reason.TERMINATING)
            state, node = RUNS if is_well else PLACED, member.node
        elif standing is MemberState.SUCCEEDED:
            state = "done"
        elif seat is not None:
            state, node = "fits", seat.found.node.facts.name
        return GangMember(
            pod=member.pod.metadata.name,
            state=state,
            node=node,
            subgroup=membership.subgroup,
            rank=membership.rank,
        )


def headline_of(found: GangFinding, pod: Pod) -> Headline:
    """What there is to say about a member that waits."""
    seat = found.seats.get(pod.metadata.uid)
    if seat is None:
        assert found.refusal is not None
        return found.refusal.headline
    others = len(found.seats) - 1
    beside = f", together with {counted(others, 'other pod')} of {found.key}" if others else ""
    node = seat.found.node.facts.name
    return Headline.of(Reason.FITS, f"The pod can go to node {node}{beside}.")
