"""Has others give way to pods and gangs that were refused: looks for victims, keeps what they leave, and says when to try again."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Final, Protocol

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.cluster.informers import Handlers
from drayman.cluster.resources import DISRUPTION_BUDGETS
from drayman.placement.decision.outcomes import KeptOut, Lacking, NoNode
from drayman.placement.joint.gangs import GangDecider
from drayman.placement.nominations import Nominations
from drayman.placement.placing import Placer
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.state import ClusterState
from drayman.quota.shares.live import LiveShares
from drayman.quota.shares.reach import Reaching
from drayman.scheduler.cycle import Refused
from drayman.scheduler.departures import Departures
from drayman.scheduler.gang_preempting import GangPreemptor
from drayman.scheduler.making_room import MakingRoom
from drayman.scheduler.occupants import Occupants
from drayman.scheduler.preempting import Preempted, Preemptor
from drayman.scheduler.protection import Budgets
from drayman.scheduler.queue import Queue
from drayman.scheduler.unit import QueuedUnit

KEPT_S: Final = 60.0
"""For how long room is kept for a unit that lacks members or claims. What makes them replaces those that are deleted within moments."""


class Listener(Protocol):
    """Has decisions carried out."""

    def deciding(self, now: float) -> GangDecider:
        """Decides about gangs at a time."""

    def reserved_before(self, entry: QueuedUnit) -> list[Reservation]:
        """What is reserved for others, so that a unit must not take it."""

    def preempted(self, decision: Preempted, now: float) -> None:
        """Has a decision written."""

    def awaits_others(self, entry: QueuedUnit, until: float | None) -> None:
        """A unit waits for others to go. If they are not gone by then, it looks for other room."""

    def put_off(self, uid: str) -> None:
        """A unit, by its key or a pod of it, waits a while before it is tried again."""


class GivingWay:
    """Preemption by the units of one queue."""

    def __init__(
        self,
        state: ClusterState,
        nominations: Nominations,
        queue: Queue,
        handlers: Handlers,
        policy: Policy,
        clocks: tuple[Callable[[], float], Callable[[], float]],
        listener: Listener,
        shares: LiveShares,
    ) -> None:
        """`clocks` are the one that measures how long units wait and the one for times in objects."""
        self._nominations = nominations
        self._queue = queue
        self._clock, self._wall_clock = clocks
        self._listener = listener
        self._occupants = Occupants(handlers, state, nominations.expects_to_go)
        budgets = Budgets(handlers.informers.informer(DISRUPTION_BUDGETS).cache)
        placer = Placer(state, policy)
        reaching = Reaching(state, shares)
        self._preemptor = Preemptor(state, placer, nominations, self._occupants, budgets, reaching)
        self._gangs = GangPreemptor(
            state, nominations, self._occupants, budgets, listener.deciding, reaching
        )
        self.departures = Departures(nominations, self._occupants)
        self._making_room = MakingRoom(
            self._clock,
            lambda entry: queue.get(entry.key) is entry,
            self._decided,
            lambda entry: listener.put_off(entry.key),
        )

    def may_preempt(self, pod: Pod) -> bool:
        """Whether other pods might be evicted for a pod that is on its own."""
        return self._preemptor.may_preempt(pod)

    def begin(self, refused: Refused) -> Coroutine[None, None, None] | None:
        """Look for victims. Returns what is left to be done, if that takes long."""
        entry, why, now = refused.entry, refused.why, self._wall_clock()
        room = self._making_room
        if refused.cannot_start or isinstance(why, Lacking):
            self._keep_for_a_while(entry)
            return None
        entry.lacks_since = None

        def reserved() -> list[Reservation]:
            return self._listener.reserved_before(entry)

        if refused.no_room is not None:
            search = self._gangs.decide(entry, refused.no_room, now, room.is_due, reserved)
        elif isinstance(why, NoNode):
            search = self._preemptor.decide(why.demand, why.not_found, now, room.is_due, reserved)
        elif isinstance(why, KeptOut):
            search = self._preemptor.decide(why.demand, None, now, room.is_due, reserved)
        else:
            return None
        return room.begin(entry, search)

    def _keep_for_a_while(self, entry: QueuedUnit) -> None:
        """Room that is made for a unit is of no use to it while it lacks members or claims. They may come, but that has to be soon."""
        kept, now = self._nominations, self._clock()
        promised = kept.get(entry.key) if entry.gang is None else kept.of_gang(entry.gang)
        if promised is None or promised.is_asked_for:
            entry.lacks_since = None
            return
        entry.lacks_since = now if entry.lacks_since is None else entry.lacks_since
        if now - entry.lacks_since < KEPT_S:
            self._queue.wake_at(entry, entry.lacks_since + KEPT_S)
            return
        entry.lacks_since = None
        before: tuple[Pod, ...] = (entry.pod,)
        if entry.gang is None:
            kept.withdraw(entry.key)
        else:
            before = kept.withdraw_gang(entry.gang)
        self._listener.preempted(Preempted(before), self._wall_clock())

    def _decided(self, entry: QueuedUnit, decision: Preempted | None) -> None:
        now, kept = self._wall_clock(), self._nominations
        promised = kept.get(entry.key) if entry.gang is None else kept.of_gang(entry.gang)
        if promised is not None:
            overdue_at = self._occupants.overdue_at(promised, now)
            until = None if overdue_at is None else self._clock() + overdue_at - now
            self._listener.awaits_others(entry, until)
        if decision is None:
            return
        if decision.pods:
            self._listener.preempted(decision, now)
        if decision.again:
            self._listener.put_off(entry.key)
        elif decision.retry_at is not None:
            self._queue.wake_at(entry, self._clock() + decision.retry_at - now)
