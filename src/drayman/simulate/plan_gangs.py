"""Gangs in a plan: decided about as a unit when the first of their pods has its turn, all or none of those that are needed.

The decision and the words are those of the scheduler. Pods that do not exist yet are shown to the state as its scheduler would see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drayman.allocator import Policy
from drayman.placement.decision.deciding import Round
from drayman.placement.demand import Demand
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.gang import GangKey
from drayman.placement.joint.gangs import GangDecider, NoRoom, Starting
from drayman.placement.joint.seating import Seats
from drayman.placement.world import World
from drayman.reasons.gangs import GangReasons
from drayman.reasons.planned import Planned
from drayman.reasons.reason import Headline
from drayman.reasons.waiting import held_back
from drayman.simulate.plan_turn import Turn


class PlannedGangs:
    """The gangs of a plan."""

    def __init__(self, world: World, round_: Round, planned: Planned) -> None:
        self._world = world
        self._book = world.state.gangs
        self._round = round_
        self._planned = planned
        self._turns: dict[GangKey, list[Turn]] = {}
        self._keys: dict[int, GangKey] = {}
        self._waits: dict[int, Headline] = {}
        self._machinery: tuple[GangDecider, GangReasons] | None = None

    def expect(self, turns: Iterable[Turn]) -> None:
        """These pods will have their turns, in this order."""
        for turn in turns:
            key = self._book.key_of(turn.pod)
            if key is not None:
                self._turns.setdefault(key, []).append(turn)
                self._keys[id(turn)] = key
                if not turn.expanded.after:
                    self._see(turn)

    def decide(self, turn: Turn) -> Headline | None:
        """Decide about the gang of the pod whose turn it is, if that has not been done.

        The turn has its placement then, or it is said why not. Neither for a pod that is on its own.
        """
        key = self._keys.get(id(turn))
        if key is None or turn.placement is not None:
            return None
        if id(turn) not in self._waits:
            self._see(turn)
            self._decide_about(key, turn)
        return self._waits.get(id(turn))

    def _see(self, turn: Turn) -> None:
        self._book.see(turn.pod)
        self._world.state.queues.see(turn.pod)

    def _decide_about(self, key: GangKey, first: Turn) -> None:
        open_ = [t for t in self._turns[key] if t is first or self._is_up(t)]
        while open_:
            decider, reasons = self._deciding()
            outcome = decider.decide_about(key, [turn.pod for turn in open_])
            if outcome is None:
                return
            if not isinstance(outcome, Starting):
                demands = outcome.demands if isinstance(outcome, NoRoom) else ()
                headline = reasons.of(self._round, decider, outcome).headline
                self._refuse(open_, headline, demands)
                return
            self._start(open_, outcome.seats)
            open_ = [turn for turn in open_ if turn.placement is None]

    def _is_up(self, turn: Turn) -> bool:
        """Whether the scheduler would decide about the pod together with the first of its gang."""
        return (
            turn.placement is None
            and id(turn) not in self._waits
            and not turn.expanded.after
            and not turn.pod.spec.node_name
            and held_back(self._world, turn.pod) is None
        )

    def _start(self, turns: Sequence[Turn], seats: Seats) -> None:
        by_uid = {turn.pod.metadata.uid: turn for turn in turns}
        for seat in seats:
            turn = by_uid[seat.demand.needs.uid]
            turn.demand, turn.found = seat.demand, seat.found
            turn.placement = self._round.place(seat.demand, seat.found)

    def _refuse(self, turns: Sequence[Turn], why: Headline, demands: Sequence[Demand]) -> None:
        by_uid = {demand.needs.uid: demand for demand in demands}
        for turn in turns:
            turn.demand = by_uid.get(turn.pod.metadata.uid)
            self._waits[id(turn)] = why

    def _deciding(self) -> tuple[GangDecider, GangReasons]:
        """Made when first needed: most plans have no gangs."""
        if self._machinery is None:
            state = self._world.state
            decider = GangDecider(self._round, Domains(state), CopyCounts(state), Policy.BEST)
            self._machinery = decider, GangReasons(state, planned=self._planned)
        return self._machinery
