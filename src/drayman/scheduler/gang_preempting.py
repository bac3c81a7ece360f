"""Whether others have to go for a gang that was refused, and who. Decides and promises; `evicting` carries it out.

As for single pods (`preempting`): a gang that has preempted others preempts nobody else until they are gone, and what they leave is kept
for all its members until it is bound or gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from drayman.api.core import Pod
from drayman.api.times import seconds_of, time_left
from drayman.placement.gangs.gang import Gang
from drayman.placement.gangs.importance import importance_of_waiting
from drayman.placement.joint.clearing import Cleared, Clearing, Present
from drayman.placement.joint.gangs import GangDecider, NoRoom
from drayman.placement.nominations import Nominations
from drayman.placement.parties import Occupant, gangs_of
from drayman.placement.preemption import Changed
from drayman.placement.reservations.reservation import Reservation, count_in
from drayman.placement.state import ClusterState
from drayman.quota.shares.reach import ABOVE, Reach, Reaching
from drayman.scheduler.gangs import work_for
from drayman.scheduler.occupants import Occupants
from drayman.scheduler.preempting import (
    Deciding,
    Preempted,
    Reserved,
    as_seen_by,
    importance_beside,
)
from drayman.scheduler.protection import Budgets
from drayman.scheduler.unit import QueuedUnit


class GangPreemptor:
    """Decides about preemption for gangs. Pure except for the promises it makes."""

    def __init__(
        self,
        state: ClusterState,
        nominations: Nominations,
        occupants: Occupants,
        budgets: Budgets,
        deciding: Callable[[float], GangDecider],
        reaching: Reaching,
    ) -> None:
        """`deciding` gives what decides about gangs at a time."""
        self._reaching = reaching
        self._state = state
        self._nominations = nominations
        self._occupants = occupants
        self._budgets = budgets
        self._deciding = deciding

    def decide(
        self,
        entry: QueuedUnit,
        refused: NoRoom,
        now: float,
        is_due: Callable[[], bool],
        reserved: Reserved = lambda: (),
    ) -> Deciding:
        """What to do so that a gang finds room; None if nobody may be evicted for it, or earlier victims have yet to go."""
        gang, pods = refused.gang, tuple(entry.pods.values())
        found_here = (self._nominations.get(uid) for uid in entry.pods)
        kept = [each for each in found_here if each is not None]
        if any(each.is_asked_for for each in kept):
            return None
        for each in kept:
            if each.gang != gang.key:  # its pod was in another gang, or in none
                self._nominations.withdraw(each.uid)
        former = self._nominations.of_gang(gang.key)
        if former is not None and self._occupants.are_awaited(former, now):
            return None
        before = self._nominations.withdraw_gang(gang.key)
        importance = importance_of_waiting(gang.priority, pods)
        retry_at = self._delayed_until(gang, pods, now)
        found: Cleared | Changed | None = None
        reaches: Sequence[Reach | None] = ()
        reach: Reach | None = None
        if retry_at is None and self._may_preempt(pods, importance):
            reaches, retry_at = self._reaches(entry, gang, importance, now)
        for reach in reaches:
            clearing = self._clearing(entry, refused, importance, now, is_due, reserved(), reach)
            found = yield from as_seen_by(self._nominations, entry.pod, clearing.search())
            if found is not None:
                break
        if isinstance(found, Cleared):
            return self._promised(gang, importance, found, before, reach)
        if isinstance(found, Changed):
            return Preempted(before, again=True)
        return None if not before and retry_at is None else Preempted(before, retry_at=retry_at)

    def _reaches(
        self, entry: QueuedUnit, gang: Gang, importance: int, now: float
    ) -> tuple[Sequence[Reach | None], float | None]:
        """Who may have to go: as queues say, or by priority; and when it makes sense to look again."""
        if self._reaching.concerns(entry.pod.metadata.uid):
            return self._reaching.of(gang.key, now)
        return (None,), self._occupants.next_in_reach(importance, now)

    def _may_preempt(self, pods: Sequence[Pod], importance: int) -> bool:
        if any(pod.spec.preemption_policy == "Never" for pod in pods):
            return False
        if self._reaching.concerns(pods[0].metadata.uid):
            return True
        return not self._occupants.are_all_as_important(importance)

    def _delayed_until(self, gang: Gang, pods: Iterable[Pod], now: float) -> float | None:
        """A gang may have said that it waits for a while before others have to go."""
        created = [seconds_of(pod.metadata.creation_timestamp) for pod in pods]
        since = min((at for at in created if at is not None), default=now)
        left = time_left(since, gang.preemption_delay_s, now)
        return now + left if left else None

    def _clearing(
        self,
        entry: QueuedUnit,
        refused: NoRoom,
        importance: int,
        now: float,
        is_due: Callable[[], bool],
        reserved: Sequence[Reservation],
        reach: Reach | None,
    ) -> Clearing:
        importance = importance if reach is None else ABOVE

        def listing(is_in_the_way: Callable[[Occupant], bool]) -> Present:
            present = self._occupants.among(tuple(self._state.nodes), is_in_the_way, now)
            if reach is not None:
                present = reach.graded(present)
            return Present(
                tuple(p for p in present if p.priority < importance and not p.is_leaving),
                tuple(p for p in present if p.is_leaving),
                tuple(self._occupants.unused_claims()),
            )

        def limited() -> AbstractContextManager[object]:
            return self._state.allowance.limited(work_for(entry))

        return Clearing(
            self._state,
            refused,
            tuple(entry.pods.values()),
            lambda: self._deciding(now),
            listing,
            self._budgets.asked(is_due).violated_by,
            limited,
            is_due,
            lambda: count_in(self._state, reserved),
            None if reach is None else reach.permitted,
        )

    def _promised(
        self,
        gang: Gang,
        importance: int,
        found: Cleared,
        before: tuple[Pod, ...],
        reach: Reach | None,
    ) -> Preempted:
        if reach is not None:
            first = found.starting.seats[0].demand.pod
            importance = importance_beside(first, found.pods, importance)
        seats = [(s.demand.needs, s.demand.pod, s.found) for s in found.starting.seats]
        departing = (*found.leaving, *found.pods)
        made = self._nominations.promise_gang(gang.key, importance, seats, departing, found.freed)
        pods = {pod.metadata.uid: pod for pod in (*before, *(each.pod for each in made))}
        gangs = gangs_of(found.victims)
        return Preempted(tuple(pods.values()), made, found.pods, gangs, reach=reach)
