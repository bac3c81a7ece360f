"""Rounds of decisions: takes pods from the queue, decides about each (`placement.decision`), and says why pods wait.

Nothing here waits for the API server; decisions are returned in batches for `binding` to carry out.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Final

from drayman.allocator import Policy
from drayman.api.claim_generation import SUFFIX_ALPHABET, SUFFIX_LENGTH
from drayman.api.core import Pod
from drayman.cluster.turns import Turns
from drayman.inventory import allowance
from drayman.inventory.allowance import UnfinishedError
from drayman.placement.charging import Uncharged
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.decision.outcomes import (
    BeingWritten,
    KeptOut,
    Lacking,
    NoNode,
    NoPlacement,
    NotCharged,
    Outcome,
    PromisedAway,
    Unfinished,
)
from drayman.placement.decision.placements import Placement
from drayman.placement.gangs.gang import GangKey
from drayman.placement.joint.gangs import Flawed, Incomplete, NoRoom, Starting
from drayman.placement.nominations import Nominations
from drayman.placement.state import ClusterState
from drayman.placement.wake import Wake
from drayman.reasons.queues import kept_out
from drayman.reasons.reason import Reason
from drayman.reasons.waiting import costly_claims, given_back, not_charged, others_leave
from drayman.scheduler.departures import Departures
from drayman.scheduler.explaining import Explainer, NodeRefusal
from drayman.scheduler.gangs import GangCycle, work_for
from drayman.scheduler.queue import Queue
from drayman.scheduler.reserving import Held, Reserving
from drayman.scheduler.retrying import INTERNAL_ERROR, Retrying
from drayman.scheduler.unit import QueuedUnit

_log: Final = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0
"""How long a pod may lack something that usually arrives soon before that is reported."""
LONGEST_ROUND_S: Final = 0.1
"""After which a round ends early, as nothing else on the event loop runs meanwhile. Most rounds are much shorter."""
SHARE_OF_TIME: Final = 20
"""A gang that is refused takes no more than such a part of the scheduler's time, however often something happens that may help it."""
LONGEST_REST_S: Final = 5.0
FORESIGHT_S: Final = 0.02
"""How long looking for the time at which refused units fit may keep others waiting at the end of a round."""
MAKING_S: Final = 30.0
"""How long it may take until a claim is created. A controller that is busy creating thousands of them is no reason to warn."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A pod that cannot be placed now."""

    entry: QueuedUnit
    why: NoPlacement | None
    """None after an error of our own, and for a gang."""
    explain: Callable[[], str]
    """Says why. Evaluated only on demand: most pods are refused more often than a reason is reported."""
    patience_s: float = 0.0
    """How long the reason may hold before it is reported."""
    keeps_turns: bool = False
    """Whether the scheduler still makes the claims of the pods, if they can be placed before the patience ends."""
    by_nodes: NodeRefusal | None = None
    """If nodes were asked, what is to be said to the copies of the pod as well."""
    no_room: NoRoom | None = None
    """If a gang was refused that might start if others went."""
    cannot_start: bool = False
    """Whether it is a gang that lacks members, or makes no sense, so that room is of no use to it."""

    @property
    def message(self) -> str:
        return self.explain()


@dataclass(slots=True)
class Decisions:
    """The results of a round of scheduling."""

    placed: list[tuple[QueuedUnit, Placement]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    stuck: list[tuple[GangKey, Callable[[], str]]] = field(default_factory=list)
    """Gangs for which there is no room, and how to explain it."""

    @property
    def placements(self) -> list[Placement]:
        return [placement for _, placement in self.placed]


class Cycle:
    """Decides about queued pods."""

    def __init__(
        self,
        state: ClusterState,
        queue: Queue,
        clock: Callable[[], float],
        *,
        wall_clock: Callable[[], float] | None = None,
        policy: Policy,
        binding_timeout_s: float,
        turns: Turns | None = None,
        may_preempt: Callable[[Pod], bool] = lambda _: False,
        nominations: Nominations | None = None,
        departures: Departures | None = None,
        uncharged: Uncharged | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """`clock` measures how long pods wait; `wall_clock`, by default the same, is for times in objects.

        `may_preempt` says whether other pods might be evicted for a pod; `departures` whether those are gone that were for a gang;
        `uncharged` which pods no quota covers.
        """
        self._state = state
        self._may_preempt = may_preempt
        self._nominations = nominations if nominations is not None else Nominations(state)
        self._departures = departures
        self._queue = queue
        self._clock = clock
        self._wall_clock = wall_clock or clock
        self._turns = turns
        self._rng = rng or random.Random()
        self._decider = Decider(
            state,
            policy=policy,
            binding_timeout_s=binding_timeout_s,
            nominations=self._nominations,
            suffix=self._suffix,
            makes_claims_of=self._makes_claims_of,
            uncharged=uncharged,
        )
        self._explainer = Explainer(
            self._decider, policy, self._wall_clock, knows_templates=turns is not None
        )
        self.retrying = Retrying(queue, self._nominations)
        self.gangs = GangCycle(self._decider, policy, queue, knows_templates=turns is not None)
        self.reserving = Reserving(self._decider, self.gangs, queue, clock, self._wall_clock)

    def decide(self, most: int) -> Decisions:
        """Take up to `most` pods from the queue and decide about each.

        A refused pod that may preempt others ends the round: the next pod must see what is kept for it. Also, looking for victims takes a
        while, during which nothing else on the event loop would run. So does a decision that could not be finished at once, and a gang,
        however many members it has.
        """
        now = self._clock()
        round_ = self._decider.round(self._wall_clock())
        decisions = Decisions()
        for entry in self._in_line(most, now):
            try:
                if entry.gang is not None:
                    self._decide_gang(entry, round_, now, decisions)
                    break
                outcome = self._decide(entry, round_, now)
            except Exception:
                # A pod that the scheduler cannot handle must not hold up the others.
                _log.exception("%s", entry)
                self.retrying.failed(entry, now)
                outcome = Refused(entry, None, lambda: INTERNAL_ERROR)
            if isinstance(outcome, Placement):
                decisions.placed.append((entry, outcome))
            elif outcome is not None:
                decisions.refused.append(outcome)
                is_final = isinstance(outcome.why, NoNode | KeptOut)
                if is_final and self._may_preempt(entry.pod):
                    break
            if entry.is_unfinished or self._clock() - now >= LONGEST_ROUND_S:
                break
        if self.reserving.is_searching:
            self.reserving.advance(FORESIGHT_S)
        return decisions

    def _in_line(self, most: int, now: float) -> Iterator[QueuedUnit]:
        for _ in range(most):
            yield from self._queue.take(1, now)

    def _decide(self, entry: QueuedUnit, round_: Round, now: float) -> Placement | Refused | None:
        work = allowance.PART * 2**entry.fruitless
        reservations = self.reserving.binding(entry) if self.reserving.is_any else None
        outcome: Outcome | Held
        if reservations:
            outcome = self.reserving.decide(entry, round_, reservations, work)
        else:
            outcome = round_.decide(entry.pod, work=work)
        entry.is_unfinished = isinstance(outcome, Unfinished)
        # If nothing of a part could be kept, the next one has to be larger, or there would be no end to it.
        is_fruitless = isinstance(outcome, Unfinished) and not outcome.has_advanced
        entry.fruitless = entry.fruitless + 1 if is_fruitless else 0
        if isinstance(outcome, Placement):
            self._queue.placed(entry)
            if self.reserving.is_any:
                self.reserving.placed([outcome])
            return outcome
        if isinstance(outcome, Held):
            return self._held(entry, outcome)
        self.retrying.refused(entry, outcome, now)
        if isinstance(outcome, NoNode):
            self.reserving.refused(entry, outcome)
        elif isinstance(outcome, Lacking | NotCharged):
            self.reserving.give_up(entry.key)
        return self._refused(entry, outcome)

    def _held(self, entry: QueuedUnit, held: Held) -> Refused:
        """The unit is tried again when the room is no longer reserved, or there is more of it."""
        self._queue.sleep(entry, held.shape, Wake.ANYTHING | Wake.RESERVATIONS)
        return Refused(entry, None, lambda: held.message)

    def _decide_gang(
        self, entry: QueuedUnit, round_: Round, now: float, decisions: Decisions
    ) -> None:
        gangs = self.gangs
        if now < entry.rests_until and not self._has_come_free(entry):
            self._queue.nap(entry, entry.rests_until)
            return
        outcome = self._decided_gang(entry, round_)
        if isinstance(outcome, Held):
            held = self._held(entry, outcome)
            decisions.refused.append(held)
            if entry.gang is not None:
                decisions.stuck.append((entry.gang, held.explain))
            return
        entry.is_unfinished = isinstance(outcome, Unfinished)
        entry.fruitless = entry.fruitless + 1 if entry.is_unfinished else 0
        match outcome:
            case None:
                pods = tuple(entry.pods.values())
                for pod in pods:
                    self._queue.add(pod)
            case Starting():
                placed = gangs.start(round_, entry, outcome)
                self._queue.placed(entry, [placement.uid for placement in placed])
                self.reserving.give_up(entry.key)  # others of the gang may still wait
                self.reserving.placed(placed)
                decisions.placed += [(entry, placement) for placement in placed]
            case Unfinished():
                self.retrying.refused(entry, outcome, now)
                refused = self._refused(entry, outcome)
                decisions.refused += [] if refused is None else [refused]
            case Flawed() | Incomplete():
                self._queue.wait(entry)
                self.reserving.give_up(entry.key)
                # Members are created one after the other: that some are missing for a while is the normal case.
                text = gangs.reason(round_, outcome)
                is_early = isinstance(outcome, Incomplete) and outcome.unready is None
                refusal = Refused(
                    entry,
                    None,
                    lambda: text,
                    PATIENCE_S,
                    keeps_turns=is_early,
                    cannot_start=True,
                )
                decisions.refused.append(refusal)
            case NoRoom():
                took = self._clock() - now
                entry.rests_until = now + min(took * SHARE_OF_TIME, LONGEST_REST_S)
                gangs.put_to_sleep(entry, outcome, now)
                self.reserving.refused(entry, outcome)
                explain = cache(partial(self.explain_gang, entry))  # once for all members
                no_room = None if outcome.gave_up else outcome
                decisions.refused.append(Refused(entry, None, explain, no_room=no_room))
                decisions.stuck.append((outcome.gang.key, explain))

    def _has_come_free(self, entry: QueuedUnit) -> bool:
        """Whether all others have gone that were asked to go for a gang."""
        if self._departures is None or entry.gang is None:
            return False
        return self._departures.have_ended(entry.gang)

    def _decided_gang(
        self, entry: QueuedUnit, round_: Round
    ) -> Flawed | Incomplete | NoRoom | Starting | Unfinished | Held | None:
        outcome = self.gangs.decide(entry, round_)
        if not isinstance(outcome, Starting):
            return outcome
        reservations = self.reserving.binding(entry)
        return (
            self.reserving.admit(entry, round_, reservations, outcome) if reservations else outcome
        )

    def explain_gang(self, entry: QueuedUnit) -> str:
        """Why a gang waits, by the cluster as it is now."""
        if self._departures is not None and entry.gang is not None:
            left = self._departures.left(entry.gang)
            if left is not None:
                return str(others_leave(entry.gang, left))
        try:
            with self._state.allowance.limited(work_for(entry)):
                return self.gangs.explain(entry, self._wall_clock())
        except UnfinishedError:
            return str(costly_claims())

    def _refused(self, entry: QueuedUnit, why: NoPlacement) -> Refused | None:
        """What to report; None if there is nothing to report yet."""
        match why:
            case Lacking(error):
                headline = self._explainer.lacking(entry.pod, error)
                is_made = headline.reason is Reason.CLAIM_PENDING
                patience_s = MAKING_S if is_made else PATIENCE_S
                return Refused(entry, why, lambda: str(headline), patience_s)
            case NotCharged(message):
                waits = not_charged(message)
                return Refused(entry, why, lambda: str(waits), PATIENCE_S)
            case BeingWritten() | Unfinished(rest=None):
                return None
            case Unfinished():
                return Refused(entry, why, lambda: str(costly_claims()), PATIENCE_S)
            case PromisedAway(claim, nomination):
                kept = given_back(claim, nomination.pod)
                return Refused(entry, why, lambda: str(kept), PATIENCE_S)
            case KeptOut(_, withheld):
                return Refused(entry, why, cache(lambda: str(kept_out(withheld, self._state))))
            case NoNode():
                refusal = self._explainer.record(why)
                return Refused(entry, why, refusal.explain, by_nodes=refusal)

    def _makes_claims_of(self, pod: Pod) -> bool:
        """Whether it is the scheduler's turn to make the claims from the pod's templates."""
        return self._turns is not None and self._turns.is_held(pod.metadata.uid)

    def _suffix(self) -> str:
        return "".join(self._rng.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))
