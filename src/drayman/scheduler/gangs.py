"""What becomes of a gang that was decided about: who starts, what is said to those who wait, and when they are tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.inventory.allowance import PART, UnfinishedError
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.decision.outcomes import NoNode, NoPlacement, Unfinished
from drayman.placement.decision.placements import Placement, together
from drayman.placement.demand import Demand
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
from drayman.placement.joint.places import Nearest
from drayman.placement.placing import NotFound
from drayman.placement.wake import Wake
from drayman.reasons.gangs import flawed, incomplete, too_large, unready
from drayman.reasons.reason import Headline
from drayman.scheduler.queue import Queue, QueuedUnit

MEMBERS_PER_PART: Final = 8
"""How many members may be worked out with the work that a single pod is allowed."""
AGAIN_S: Final = 10.0
"""After which a gang is tried again whose members depend on other pods in ways that are not followed."""


_ELSEWHERE: Final = Verdict.refusal(
    Cause.NODE_AFFINITY, "node(s) were not in the domain with the most room for the gang"
)


DescribeLack: TypeAlias = Callable[[Pod, NoPlacement], Headline | None]
"""Says what a pod waits for before nodes are looked at; None if that is not worth a word."""


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
        work = work_for(entry)
        with self._decider.nominations.as_seen_by(entry.pod), self._state.allowance.limited(work):
            try:
                return self._new(round_).decide(gang, tuple(entry.pods.values()))
            except UnfinishedError as error:
                return Unfinished(error.rest, has_advanced=False)

    def start(self, round_: Round, entry: QueuedUnit, starting: Starting) -> list[Placement]:
        """The members go where they were found to fit: that counts from now on."""
        placed = [round_.place(seat.demand, seat.found) for seat in starting.seats]
        return together(placed, entry.key) if starting.as_one else placed

    def incomplete(self, outcome: Incomplete, describe_lack: DescribeLack) -> str:
        """Why a gang waits that lacks members."""
        if outcome.unready is None:
            return str(incomplete(outcome.gang, outcome.lack))
        pod, why = outcome.unready
        reason = describe_lack(pod, why)
        if reason is None:
            return str(incomplete(outcome.gang, outcome.lack))
        return str(unready(outcome.gang, outcome.lack, pod.metadata.name, reason))

    def explain(
        self,
        entry: QueuedUnit,
        now: float,
        describe: Callable[[NoNode], str],
        describe_lack: DescribeLack,
    ) -> str:
        """Why a gang waits, by the cluster as it is now."""
        round_ = self._decider.round(now)
        if entry.gang is None or not entry.pods:
            return "The pods of the gang are about to be tried again."
        gang = self._state.gangs.gang(entry.gang)
        if not isinstance(gang, Gang):
            return str(flawed(gang)) if gang is not None else "The gang has changed."
        decider = self._new(round_)
        outcome = decider.decide(gang, tuple(entry.pods.values()))
        match outcome:
            case Incomplete():
                return self.incomplete(outcome, describe_lack)
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
        next_one = "" if rest is None else self._refusal(round_, decider, nearest, rest, describe)
        return str(too_large(refused.gang, len(seated), refused.needed, nearest.place, next_one))

    def _refusal(
        self,
        round_: Round,
        decider: GangDecider,
        nearest: Nearest,
        rest: Demand,
        describe: Callable[[NoNode], str],
    ) -> str:
        """Why one more member does not fit beside those that do."""
        with self._state.trial():
            for seat in nearest.seats:
                decider.seating.take(seat)
            placer = round_.placer(rest)
            here = {n.facts.name: placer.verdict_on(rest, n) for n in nearest.nodes}
            if not here or FITS in here.values():
                return ""  # it is not nodes that refuse it
            verdicts = dict.fromkeys(self._state.nodes, _ELSEWHERE) | here
            return describe(NoNode(rest, NotFound(verdicts)))

    def _new(self, round_: Round) -> GangDecider:
        return GangDecider(round_, self._domains, self._counts, self._policy)

    def _flaw_of_members(self, entry: QueuedUnit) -> Flaw | None:
        for pod in entry.pods.values():
            found = self._state.gangs.gang_of(pod)
            if isinstance(found, Flaw):
                return found
        return None


def work_for(entry: QueuedUnit) -> float:
    """How much may be worked out about a gang at a time."""
    return PART * (1 + len(entry.pods) / MEMBERS_PER_PART) * 2.0**entry.fruitless
