"""The reservations of a scheduler, as a reader of its cluster works them out.

What waits is decided in the order of the scheduler, and the first few units that do not fit get the moment at which they will.

The scheduler may know of more earlier runs, because a reader sees only pods that still exist.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from itertools import islice
from typing import Final

from msgspec import Struct

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.api.pods import is_leaving, priority_of
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import Fitting, NoNode
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.gang import GangKey
from drayman.placement.gangs.importance import importance_of_waiting
from drayman.placement.joint.gangs import GangDecider, NoRoom, Starting
from drayman.placement.joint.seating import Seat, Seats, taken_as_it_is
from drayman.placement.nominations import Nominations
from drayman.placement.pauses import completed
from drayman.placement.reservations.making import (
    MOST_RESERVATIONS,
    Beside,
    Unit,
    may_reserve,
    reserve,
    seats_beside,
)
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.runs.book import Departure
from drayman.placement.world import World

MOST_BEFORE: Final = 64
"""How many units are decided until as many have a reservation. Where those after them would have one, an estimate is too early."""


class Waiting(Struct, frozen=True, eq=False):
    """A unit that waits."""

    unit: Unit
    gang: GangKey | None

    @property
    def likeness(self) -> Hashable:
        """Equal for pods of one owner: where one of them finds no room, neither do the others."""
        pod = self.unit.pods[0]
        owners = tuple(each.uid for each in pod.metadata.owner_references)
        return (owners, priority_of(pod)) if owners and self.gang is None else self.unit.key


class Foreseen:
    """What waits in one world, and what is reserved for it."""

    def __init__(
        self,
        world: World,
        waits: Callable[[Pod], bool],
        nominations: Nominations | None = None,
    ) -> None:
        """`waits` tells which pods without a node the scheduler may place, `nominations` what is kept for some of them."""
        self._world = world
        self._waits = waits
        self._state = world.state
        decider = Decider(world.state, nominations=nominations)
        self._nominations = decider.nominations
        self._round = decider.round(world.now)
        self._gangs = GangDecider(
            self._round, Domains(world.state), CopyCounts(world.state), Policy.BEST
        )

    @cached_property
    def units(self) -> dict[str, Waiting]:
        """By key, in the order of the scheduler: priority, then age."""
        return {each.unit.key: each for each in self._in_order()}

    @cached_property
    def standing(self) -> list[Reservation]:
        """What is reserved for those that come first. What fits is about to be placed, and is left out."""
        standing: list[Reservation] = []
        if not self._state.runs.tells_anything:
            return standing
        refused: set[Hashable] = set()
        departures = self._state.runs.departures(self._world.now)
        for each in islice(self.units.values(), MOST_BEFORE):
            if each.likeness in refused or self.is_promised_room(each):
                continue
            outcome = self.decide(each)
            if outcome is None or isinstance(outcome, tuple):
                continue
            refused.add(each.likeness)
            reservation = self.reserve(each, standing, departures) if may_reserve(outcome) else None
            standing += [] if reservation is None else [reservation]
            if len(standing) == MOST_RESERVATIONS:
                break
        return standing

    def is_promised_room(self, waiting: Waiting) -> bool:
        """Whether room is kept for a unit: what it gets is not for those before it to have, and it needs no other room."""
        return any(
            pod.status.nominated_node_name or pod.metadata.uid in self._nominations
            for pod in waiting.unit.pods
        )

    def reserve(
        self, waiting: Waiting, standing: list[Reservation], departures: list[Departure]
    ) -> Reservation | None:
        """Room for a unit beside what is reserved for those before it."""
        others = [each for each in standing if each.rank < waiting.unit.rank]
        search = reserve(
            self._state, waiting.unit, others, departures, lambda: self._seats(waiting)
        )
        return completed(search)

    def beside(
        self, waiting: Waiting, seats: Seats, reservations: list[Reservation]
    ) -> Seats | None:
        """Seats for a unit that fits, beside these reservations."""
        ways = Beside(
            lambda: self._seats(waiting),
            lambda seat: self._round.suppose(seat.demand, seat.found),
            lambda each: self._seats(self.units[each.key]) is not None,
        )
        return seats_beside(self._state, reservations, seats, ways)

    def decide(self, waiting: Waiting) -> Seats | NoNode | NoRoom | None:
        """What a unit gets in the state as it is, or that it has no room; None if it waits for something else."""
        if waiting.gang is None:
            outcome = self._round.consider(waiting.unit.pods[0])
            if isinstance(outcome, Fitting):
                return (Seat(outcome.demand, taken_as_it_is(outcome.found)),)
            return outcome if isinstance(outcome, NoNode) else None
        with self._nominations.as_seen_by(waiting.unit.pods[0]):
            decided = self._gangs.decide_about(waiting.gang, waiting.unit.pods)
        if isinstance(decided, Starting):
            return decided.seats
        return decided if isinstance(decided, NoRoom) else None

    def key_of(self, pod: Pod) -> str:
        """Of the unit that a pod is in."""
        gang = self._state.gangs.unit_of(pod)
        return pod.metadata.uid if gang is None else f"{gang} {gang.uid}"

    def _seats(self, waiting: Waiting) -> Seats | None:
        found = self.decide(waiting)
        return found if isinstance(found, tuple) else None

    def _in_order(self) -> Iterable[Waiting]:
        pods = [
            pod
            for pod in self._world.objects.pods
            if not pod.spec.node_name and not is_leaving(pod) and self._waits(pod)
        ]
        pods.sort(key=lambda p: (p.metadata.creation_timestamp or "", p.metadata.name))
        together: dict[str, list[Pod]] = {}
        for pod in pods:
            together.setdefault(self.key_of(pod), []).append(pod)
        found = []
        for number, (key, members) in enumerate(together.items()):
            gang = self._state.gangs.unit_of(members[0])
            stated = self._state.gangs.stated_priority(gang)
            metadata = members[0].metadata
            title = str(gang) if gang is not None else f"pod {metadata.namespace}/{metadata.name}"
            rank = (-importance_of_waiting(stated, members), number)
            found.append(Waiting(Unit(key, title, rank, tuple(members)), gang))
        return sorted(found, key=lambda each: each.unit.rank)
