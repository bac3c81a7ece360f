"""What becomes of a gang that was decided about: who starts, what is said to those who wait, and when they are tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final

from drayman.allocator import Policy
from drayman.inventory.allowance import PART, UnfinishedError
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.decision.outcomes import NoNode, Unfinished
from drayman.placement.decision.placements import Placement, together
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.fit import FITS, Cause, Verdict
from drayman.placement.gangs.gang import Flaw, Gang
from drayman.placement.joint.gangs import (
    Flawed,
    GangDecider,
    Incomplete,
    NoRoom,
    Starting,
)
from drayman.placement.placing import NotFound
from drayman.placement.wake import Wake
from drayman.scheduler.queue import Queue, QueuedUnit

MEMBERS_PER_PART: Final = 8
"""How many members may be worked out with the work that a single pod is allowed."""
AGAIN_S: Final = 10.0
"""After which a gang is tried again whose members depend on other pods in ways that are not followed."""


_ELSEWHERE: Final = Verdict.refusal(
    Cause.NODE_AFFINITY, "node(s) were not in the domain with the most room for the gang"
)


class GangCycle:
    """Decides about the gangs in a queue."""

    def __init__(self, decider: Decider, policy: Policy, queue: Queue) -> None:
        self._decider = decider
        self._state = decider.state
        self._policy = policy
        self._queue = queue
        self._domains = Domains(self._state)
        self._counts = CopyCounts(self._state)

    def decide(
        self, entry: QueuedUnit, round_: Round
    ) -> Flawed | Incomplete | NoRoom | Starting | Unfinished | None:
        """What to do about a gang. None if it is not a gang any more: its pods are on their own."""
        assert entry.gang is not None
        gang = self._state.gangs.gang(entry.gang)
        if gang is None:
            return None
        if isinstance(gang, Flaw):
            return Flawed(gang)
        own = self._flaw_of_members(entry)
        if own is not None:
            return Flawed(own)
        work = PART * (1 + len(entry.pods) / MEMBERS_PER_PART) * 2**entry.fruitless
        with self._decider.nominations.as_seen_by(entry.pod), self._state.allowance.limited(work):
            try:
                return self._new(round_).decide(gang, tuple(entry.pods.values()))
            except UnfinishedError as error:
                return Unfinished(error.rest, has_advanced=False)

    def start(self, round_: Round, entry: QueuedUnit, starting: Starting) -> list[Placement]:
        """The members go where they were found to fit: that counts from now on."""
        placed = [round_.place(seat.demand, seat.found) for seat in starting.seats]
        return together(placed, entry.key) if starting.as_one else placed

    def explain(self, entry: QueuedUnit, now: float, describe: Callable[[NoNode], str]) -> str:
        """Why a gang waits, by the cluster as it is now."""
        round_ = self._decider.round(now)
        if entry.gang is None or not entry.pods:
            return "The pods of the gang are about to be tried again."
        gang = self._state.gangs.gang(entry.gang)
        if not isinstance(gang, Gang):
            return f"{gang or 'The gang has changed'}."
        decider = self._new(round_)
        outcome = decider.decide(gang, tuple(entry.pods.values()))
        match outcome:
            case Incomplete():
                return incomplete(outcome)
            case NoRoom():
                return self._no_room(round_, decider, outcome, describe)
            case Starting():
                return "The cluster has changed since: the gang is about to be tried again."

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
        return ("gang", about, frozenset(kinds.items()), frozenset(parts.items()))

    def put_to_sleep(self, entry: QueuedUnit, refused: NoRoom, now: float) -> None:
        """Until something happens that may help."""
        if refused.gave_up:
            self._queue.hold_back(entry, now)
            return
        shape = self.shape(entry, refused)
        depends = any(demand.shape.meets_others for demand in refused.demands)
        if shape is None or depends:
            self._queue.sleep_alone(entry, now + AGAIN_S if depends else None)
            return
        interest = Wake.NODES
        for demand in refused.demands:
            interest |= demand.interest
        self._queue.sleep(entry, shape, interest)

    def _no_room(
        self,
        round_: Round,
        decider: GangDecider,
        refused: NoRoom,
        describe: Callable[[NoNode], str],
    ) -> str:
        """How many members fit at once, and what keeps the next one from fitting beside them."""
        nearest = decider.nearest(refused)
        seated = {seat.demand.needs.uid for seat in nearest.seats}
        rest = next((d for d in refused.demands if d.needs.uid not in seated), None)
        where = f" in {nearest.place}" if nearest.place else ""
        text = f"{refused.gang.key}: {len(seated)} of {refused.needed} members fit at once{where}."
        if rest is None:
            return text
        with self._state.trial():
            for seat in nearest.seats:
                decider.seating.take(seat)
            placer = round_.placer(rest)
            here = {n.facts.name: placer.verdict_on(rest, n) for n in nearest.nodes}
            if not here or FITS in here.values():
                return text  # it is not nodes that refuse it
            verdicts = dict.fromkeys(self._state.nodes, _ELSEWHERE) | here
            return f"{text} The next one: {describe(NoNode(rest, NotFound(verdicts)))}"

    def _new(self, round_: Round) -> GangDecider:
        return GangDecider(round_, self._domains, self._counts, self._policy)

    def _flaw_of_members(self, entry: QueuedUnit) -> Flaw | None:
        for pod in entry.pods.values():
            found = self._state.gangs.gang_of(pod)
            if isinstance(found, Flaw):
                return found
        return None


def incomplete(outcome: Incomplete) -> str:
    """Why a gang that lacks members waits."""
    lack = outcome.lack
    what = "complete subgroups" if lack.counts_subgroups else "members"
    whose = f"{outcome.gang.key}, subgroup {lack.subgroup}" if lack.subgroup else outcome.gang.key
    ready = " that are ready to start" if outcome.unready is not None else ""
    return f"{whose} has {lack.has} of {lack.needs} {what} that it needs{ready}."
