"""What becomes of a gang that was decided about: who starts, what is said to those who wait, and when they are tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Final

from drayman.allocator import Policy
from drayman.inventory.allowance import PART, UnfinishedError
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.decision.outcomes import Unfinished
from drayman.placement.decision.placements import Placement, together
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.joint.gangs import (
    Flawed,
    GangDecider,
    Incomplete,
    NoRoom,
    Starting,
)
from drayman.placement.wake import Wake
from drayman.reasons.gangs import GangReasons
from drayman.scheduler.queue import Queue
from drayman.scheduler.unit import QueuedUnit

MEMBERS_PER_PART: Final = 8
"""How many members may be worked out with the work that a single pod is allowed."""
AGAIN_S: Final = 10.0
"""After which a gang is tried again whose members depend on other pods in ways that are not followed."""


class GangCycle:
    """Decides about the gangs in a queue."""

    def __init__(
        self, decider: Decider, policy: Policy, queue: Queue, *, knows_templates: bool
    ) -> None:
        self._decider = decider
        self._state = decider.state
        self._policy = policy
        self._queue = queue
        self._domains = Domains(self._state)
        self._counts = CopyCounts(self._state)
        self._reasons = GangReasons(self._state, policy, knows_templates=knows_templates)

    def decide(
        self, entry: QueuedUnit, round_: Round
    ) -> Flawed | Incomplete | NoRoom | Starting | Unfinished | None:
        """What to do about a gang. None if it is not a gang any more: its pods are on their own."""
        with self._state.allowance.limited(work_for(entry)):
            try:
                return self.outcome(entry, round_)
            except UnfinishedError as error:
                return Unfinished(error.rest, has_advanced=False)

    def outcome(
        self, entry: QueuedUnit, round_: Round
    ) -> Flawed | Incomplete | NoRoom | Starting | None:
        """The same, of a trial too. Raises UnfinishedError."""
        assert entry.gang is not None
        with self._decider.nominations.as_seen_by(entry.pod):
            return self._new(round_).decide_about(entry.gang, tuple(entry.pods.values()))

    def start(self, round_: Round, entry: QueuedUnit, starting: Starting) -> list[Placement]:
        """The members go where they were found to fit: that counts from now on."""
        # As in the search: a member may get what was kept for another.
        with self._decider.nominations.as_seen_by(entry.pod):
            placed = [round_.place(seat.demand, seat.found) for seat in starting.seats]
        if starting.as_one:
            # What was kept for members that do not start with the others is not kept any longer.
            self._decider.nominations.withdraw_gang(starting.gang.key)
        return together(placed, entry.key) if starting.as_one else placed

    def reason(self, round_: Round, outcome: Flawed | Incomplete | NoRoom) -> str:
        """Why a gang waits about which this was decided."""
        return str(self._reasons.of(round_, self._new(round_), outcome).headline)

    def explain(self, entry: QueuedUnit, now: float) -> str:
        """Why a gang waits, by the cluster as it is now."""
        round_ = self._decider.round(now)
        if entry.gang is None or not entry.pods:
            return "The pods of the gang are about to be tried again."
        outcome = self._new(round_).decide_about(entry.gang, tuple(entry.pods.values()))
        match outcome:
            case None:
                return "The gang has changed."
            case Starting():
                return "The cluster has changed since: the gang is about to be tried again."
            case _:
                return self.reason(round_, outcome)

    def shape(self, entry: QueuedUnit, refused: NoRoom) -> Hashable | None:
        """Equal for gangs that are refused alike; None for one whose members are bound to places by others."""
        gang = refused.gang
        if self._state.gangs.placed(gang.key):
            return None
        kinds = Counter((demand.needs.namespace, demand.key) for demand in refused.demands)
        parts = Counter(
            member.membership.subgroup for member in self._state.gangs.waiting(gang.key).values()
        )
        about = (gang.least, gang.least_children, gang.subgroups, gang.wish, gang.slices)
        kept_out = refused.withheld is not None
        counts = (frozenset(kinds.items()), frozenset(parts.items()))
        return ("gang", about, *counts, entry.leaf, kept_out)

    def put_to_sleep(self, entry: QueuedUnit, refused: NoRoom, now: float) -> None:
        """Until something happens that may help."""
        if refused.gave_up:
            self._queue.hold_back(entry, now)
            return
        shape = self.shape(entry, refused)
        depends = any(demand.shape.meets_others for demand in refused.demands)
        if shape is None or depends or refused.scarce is not None:
            self._queue.sleep_alone(entry, now + AGAIN_S if depends else None)
            return
        interest = Wake.NODES if refused.withheld is None else Wake.ANYTHING
        for demand in refused.demands:
            interest |= demand.interest
        self._queue.sleep(entry, shape, interest)

    def deciding(self, now: float) -> GangDecider:
        """Decides about gangs at this time, for questions."""
        return self._new(self._decider.round(now))

    def _new(self, round_: Round) -> GangDecider:
        return GangDecider(round_, self._domains, self._counts, self._policy)


def work_for(entry: QueuedUnit) -> float:
    """How much may be worked out about a gang at a time."""
    return PART * (1 + len(entry.pods) / MEMBERS_PER_PART) * 2.0**entry.fruitless
