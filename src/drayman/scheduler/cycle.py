"""The decisions: for each pod in line a node and devices, or the reason why not.

Decisions are made one after the other, each on top of all before it, and counted at once in the state. Nothing here waits for the
API server; what was decided is handed out in batches for `binding` to carry out.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from drayman.allocator import Policy
from drayman.api.claim_generation import make_claim
from drayman.api.core import Pod, PodResourceClaim
from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.cluster.turns import Turns
from drayman.placement.claims import (
    ClaimsNotReadyError,
    Lack,
    claims_of,
    consumer_of,
    missing_group,
)
from drayman.placement.demand import Demand, Demands
from drayman.placement.fit import FITS, Verdict, refused_everywhere, unschedulable_message
from drayman.placement.nominations import Nominations
from drayman.placement.placing import Found, NotFound, Placer
from drayman.placement.state import ClusterState
from drayman.reasons.headline import Headlines
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.waiting import given_back, lacking
from drayman.scheduler.decisions import Placement
from drayman.scheduler.drafting import Drafting
from drayman.scheduler.queue import Entry, Queue

_log: Final = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0
"""How long a pod may lack something that is usually on its way before it is told so."""
MAKING_S: Final = 30.0
"""How long a claim may be in the making. A controller that has thousands of them to make is at work, and nobody's to warn about."""
_MOST_PLACERS: Final = 256
_INTERNAL_ERROR: Final = "internal error of the scheduler; see its log"


@dataclass(frozen=True, slots=True)
class Refused:
    """A pod that cannot be placed now."""

    entry: Entry
    demand: Demand | None
    """None where the pod lacks something before nodes are even looked at."""
    explain: Callable[[], str]
    """Says why. Not said before somebody wants to know: most pods are refused more often than they are told."""
    not_found: NotFound | None = None
    leaving: ResourceClaim | None = None
    """A claim that is reserved for the pod and on its way out."""
    patience_s: float = 0.0
    """How long the reason may hold before anybody need know."""

    @property
    def message(self) -> str:
        return self.explain()


@dataclass(slots=True)
class Decisions:
    """What a round of scheduling came to."""

    placements: list[Placement] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


class Cycle:
    """Decides for pods. Pure but for the state, the queue and the names it gives to claims."""

    def __init__(
        self,
        state: ClusterState,
        queue: Queue,
        clock: Callable[[], float],
        *,
        policy: Policy,
        binding_timeout_s: float,
        turns: Turns | None = None,
        may_ask: Callable[[Pod], bool] = lambda _: False,
        nominations: Nominations | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """`may_ask` tells of a pod whether others could have to go for it."""
        self._state = state
        self._may_ask = may_ask
        self._nominations = nominations if nominations is not None else Nominations(state)
        self._queue = queue
        self._clock = clock
        self._policy = policy
        self._demands = Demands(state, binding_timeout_s)
        self._placers: Bounded[object, Placer] = Bounded(_MOST_PLACERS)
        self._pinned = Placer(state, policy)
        self._headlines = Headlines(state, policy)
        # Copies of a pod are refused one after the other, with the same answer.
        self._last_opening: tuple[NotFound | None, str] = (None, "")
        self._turns = turns
        self._drafting = Drafting(state, chance or random.Random())
        self._blocked: dict[str, set[str]] = {}  # pods that wait for a write, by uid of the claim

    def decide(self, most: int) -> Decisions:
        """Take up to so many pods from the line and decide about each.

        A pod that was refused and may ask others to go is the last: who comes next is to see what is kept for it. And to look
        for those others takes a while, in which whoever shares the event loop would have no turn.
        """
        now = self._clock()
        decisions = Decisions()
        ours: set[str] = set()  # claims that this round changes
        for entry in self._in_line(most, now):
            try:
                outcome = self._decide(entry, now, ours)
            except Exception:
                # A pod that the scheduler cannot cope with must not keep it from the others.
                _log.exception("pod %s/%s", entry.pod.metadata.namespace, entry.pod.metadata.name)
                self._queue.hold_back(entry, now)
                outcome = Refused(entry, None, lambda: _INTERNAL_ERROR)
            if isinstance(outcome, Placement):
                decisions.placements.append(outcome)
            elif outcome is not None:
                decisions.refused.append(outcome)
                if outcome.not_found is not None and self._may_ask(entry.pod):
                    break
        return decisions

    def _in_line(self, most: int, now: float) -> Iterator[Entry]:
        for _ in range(most):
            yield from self._queue.take(1, now)

    def settled(self, claims: Iterable[ResourceClaim]) -> None:
        """Writes for these claims are through or given up: pods that waited for that go on."""
        for claim in claims:
            waiting = self._blocked.pop(claim.metadata.uid, None)
            if waiting:
                self._queue.wake_pods(waiting)

    def _decide(self, entry: Entry, now: float, ours: set[str]) -> Placement | Refused | None:
        pod = entry.pod
        try:
            claims = self._claims_of(pod)
        except ClaimsNotReadyError as error:
            self._queue.wait(entry)
            told = lacking(self._state, pod, error, knows_templates=self._turns is not None)
            return Refused(
                entry,
                None,
                lambda: str(told),
                leaving=self._leaving(pod, error),
                patience_s=MAKING_S if told.reason is Reason.CLAIM_PENDING else PATIENCE_S,
            )
        for claim in claims:
            if (
                claim.metadata.uid
                and claim.metadata.uid not in ours
                and self._state.is_under_way(claim)
            ):
                self._blocked.setdefault(claim.metadata.uid, set()).add(entry.uid)
                self._queue.wait(entry)
                return None
        kept = self._kept_from(pod, claims)
        if kept is not None:
            self._queue.sleep_alone(entry)
            return Refused(entry, None, lambda: str(kept), patience_s=PATIENCE_S)
        demand = self._demands.of(pod, claims, now)
        with self._nominations.as_seen_by(pod):
            found = self._placer(demand).find(demand)
            if isinstance(found, NotFound):
                return self._refuse(entry, demand, found, now)
            verdict = self._without_promises(demand, found)
            if verdict is not FITS:
                not_yet = NotFound(dict.fromkeys(self._state.nodes, verdict), retry=True)
                return self._refuse(entry, demand, not_yet, now)
            placement = self._drafting.placement(entry, demand, found, now)
            self._nominations.fulfil(entry.uid)
            self._assume(placement, found)
        ours.update(claim.metadata.uid for claim in placement.claims)
        self._queue.placed(entry)
        return placement

    def _claims_of(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """Raises ClaimsNotReadyError."""
        claims = claims_of(pod, self._state.find_claim, self._draft)
        group = pod.spec.scheduling_group
        if group is not None and claims and self._state.groups.of(pod) is None:
            raise missing_group(group.pod_group_name)
        return claims

    def _leaving(self, pod: Pod, error: ClaimsNotReadyError) -> ResourceClaim | None:
        if error.lack is not Lack.DELETING:
            return None
        claim = self._state.find_claim(pod.metadata.namespace, error.name)
        if claim is None or self._state.is_under_way(claim):
            return None
        return claim if consumer_of(pod) in claim.status.reserved_for else None

    def _kept_from(self, pod: Pod, claims: Iterable[ResourceClaim]) -> Headline | None:
        """Why a pod may not begin to use a claim that is about to give its devices to somebody more important."""
        for claim in claims if self._nominations else ():
            nomination = self._nominations.keeps(claim, pod)
            if nomination is not None:
                return given_back(claim, nomination.pod)
        return None

    def _without_promises(self, demand: Demand, found: Found) -> Verdict:
        """Whether the pod may go to its node even if those for whom room is kept never come: it may have wanted their company."""
        if not self._nominations or not demand.needs.shape.social:
            return FITS
        with self._nominations.ignored():
            return self._placer(demand).verdict_on(demand, found.node)

    def _draft(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim | None:
        """The claim for an entry that names a template, while it is the scheduler's turn to make it."""
        if self._turns is None or not self._turns.is_held(pod.metadata.uid):
            return None
        name = entry.resource_claim_template_name or ""
        template = self._state.find_template(pod.metadata.namespace, name)
        return (
            None if template is None else make_claim(pod, entry, template, self._drafting.suffix())
        )

    def _placer(self, demand: Demand) -> Placer:
        if demand.only_node is not None:
            return self._pinned
        placer = self._placers.get(demand.key)
        if placer is None:
            placer = self._placers[demand.key] = Placer(self._state, self._policy)
        return placer

    def _refuse(self, entry: Entry, demand: Demand, not_found: NotFound, now: float) -> Refused:
        if not_found.retry:
            self._queue.hold_back(entry, now)
        elif entry.uid in self._nominations:
            self._queue.sleep_alone(entry)
        else:
            self._queue.sleep(entry, demand.key, demand.interest)
        return Refused(entry, demand, lambda: self._explain(demand, not_found), not_found)

    def explain_to(self, pod: Pod, not_found: NotFound) -> str:
        """Why a pod waits that was not tried itself: a copy of it was, and found this."""
        try:
            claims = self._claims_of(pod)
        except ClaimsNotReadyError as error:
            knows = self._turns is not None
            return str(lacking(self._state, pod, error, knows_templates=knows))
        return self._explain(self._demands.of(pod, claims, self._clock()), not_found)

    def _explain(self, demand: Demand, not_found: NotFound) -> str:
        with self._nominations.as_seen_by(demand.pod):
            return f"{self._opening(demand, not_found)} {self._headlines.of(demand, not_found)}"

    def _opening(self, demand: Demand, not_found: NotFound) -> str:
        """How kube-scheduler begins: how many nodes there are, and how many of them fail each rule."""
        known, text = self._last_opening
        if known is not not_found:
            total = len(self._state.nodes)
            if demand.impossible is not None:
                text = refused_everywhere(total, demand.impossible)
            else:
                text = unschedulable_message(total, not_found.verdicts.values())
            self._last_opening = (not_found, text)
        return text

    def _assume(self, placement: Placement, found: Found) -> None:
        """Count the decision."""
        if found.plan is not None:
            self._state.assume_plan(found.plan)
        if found.volumes is not None:
            placement.volumes = self._state.volumes.take(found.volumes, placement.node)
            placement.waits = True
        for claim in placement.claims:
            self._state.assume_claim(claim)
        for made in placement.made:
            self._state.assume_made(made.key, made.holder)
        self._state.assume_pod(placement.needs, placement.node)
        if placement.pod.spec.scheduling_group is not None:
            self._state.groups.place(placement.pod)
