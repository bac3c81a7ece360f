"""The steps of a decision, in order. The first that refuses ends it; a pod that passes all of them is placed.

Decisions are made in rounds, one after the other, each on top of all before it, and counted at once in the state. The decisions of one
round are written together, so they may rely on each other; those of another round that are still being written may fail.

The steps change nothing, so a question (`Round.consider`) is a decision without its end (`Round.place`). Pods that belong together are
decided about one after the other in one round; if one of them finds no place, those before it are taken back together
(`placements.take_back`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf
from typing import Final, TypeAlias

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.inventory.allowance import UnfinishedError
from drayman.placement.charging import Uncharged
from drayman.placement.claims import BINDING_TIMEOUT_S, ClaimLack, ClaimsNotReadyError
from drayman.placement.decision.drafting import drafted
from drayman.placement.decision.gathering import Suffix, counting, gathered
from drayman.placement.decision.outcomes import (
    BeingWritten,
    Fitting,
    KeptOut,
    Lacking,
    NoNode,
    NoPlacement,
    NotCharged,
    Outcome,
    PromisedAway,
    Unfinished,
)
from drayman.placement.decision.placements import Placement, assume
from drayman.placement.demand import Demand, Demands
from drayman.placement.fit import FITS, Cause, Verdict
from drayman.placement.fit.verdict import NODE_AFFINITY
from drayman.placement.nominations import Nominations
from drayman.placement.placing import Found, NodeOrder, NotFound, Placer
from drayman.placement.rivals import contested
from drayman.placement.state import ClusterState

_MOST_PLACERS: Final = 256
_NOT_THE_ONE: Final = Verdict.refusal(Cause.NODE_AFFINITY, NODE_AFFINITY)


class Decider:
    """Decides about the pods of one cluster. Keeps what pods that are alike have in common."""

    def __init__(
        self,
        state: ClusterState,
        *,
        policy: Policy = Policy.BEST,
        binding_timeout_s: float = BINDING_TIMEOUT_S,
        nominations: Nominations | None = None,
        suffix: Suffix | None = None,
        makes_claims_of: Callable[[Pod], bool] = lambda _: True,
        order: NodeOrder | None = None,
        uncharged: Uncharged | None = None,
    ) -> None:
        """`makes_claims_of` says whether claims are made here from a pod's templates; `suffix` ends their names. `uncharged` knows which
        pods no quota covers.

        `order` replaces the order in which nodes are taken, for comparisons.
        """
        self.state = state
        self.nominations = nominations if nominations is not None else Nominations(state)
        self.demands = Demands(state, binding_timeout_s)
        self.suffix = suffix or counting()
        self.makes_claims_of = makes_claims_of
        self.uncharged = uncharged
        self._policy = policy
        self._order = order
        self._placers: Bounded[object, Placer] = Bounded(_MOST_PLACERS)
        self._pinned = Placer(state, policy)

    def round(self, now: float) -> Round:
        """A new round at this time."""
        return Round(self, now)

    def placer(self, demand: Demand) -> Placer:
        """Finds nodes for pods of this shape."""
        # No other pod has the demand of one that is tied to a node by its claims.
        if demand.only_node is not None:
            return self._pinned
        placer = self._placers.get(demand.key)
        if placer is None:
            placer = self._placers[demand.key] = Placer(self.state, self._policy, self._order)
        return placer


@dataclass(slots=True, eq=False)
class Round:
    """Decisions that are made one after the other and written together."""

    decider: Decider
    now: float
    changed: set[str] = field(default_factory=set)
    """The claims, by uid, that it changes."""

    def decide(self, pod: Pod, only: str = "", *, work: float = inf) -> Outcome:
        """Decide about the pod. If it gets a place, that counts from now on.

        `only` names the one node that the pod can go to, as for a daemon. Other nodes are not asked. No more than `work` is done: if it
        does not suffice, the decision is for another time, and goes on from there.
        """
        with ExitStack() as aside:
            with self.decider.state.allowance.limited(work) as part:
                try:
                    outcome = self._considered(Attempt(pod, only, aside))
                except UnfinishedError as error:
                    return Unfinished(error.rest, part.has_advanced)
            if isinstance(outcome, Fitting):
                return self.place(outcome.demand, outcome.found)
            return outcome

    def consider(self, pod: Pod, only: str = "") -> NoPlacement | Fitting:
        """What would be decided about the pod. Changes nothing."""
        with ExitStack() as aside:
            return self._considered(Attempt(pod, only, aside))

    def consider_nodes(self, demand: Demand) -> NoNode | Fitting:
        """What the nodes would say to a pod that asks for this. Changes nothing."""
        with ExitStack() as aside:
            attempt = Attempt(demand.pod, "", aside)
            attempt.demand = demand
            for step in NODE_STEPS:
                refusal = step(self, attempt)
                if refusal is not None:
                    return refusal
            return Fitting(demand, attempt.found)

    def demand(self, pod: Pod) -> Demand:
        """What the pod asks for. Raises ClaimsNotReadyError."""
        return self.demand_with(pod, self.claims(pod))

    def demand_with(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Demand:
        """What the pod would ask for if its claims were these."""
        return self.decider.demands.of(pod, tuple(claims), self.now)

    def claims(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """The claims of the pod. Raises ClaimsNotReadyError."""
        decider = self.decider
        suffix = decider.suffix if decider.makes_claims_of(pod) else None
        return gathered(decider.state, pod, suffix)

    def find(self, demand: Demand, only: str = "") -> Found | NotFound:
        """Where the pod would go."""
        if not only:
            return self.decider.placer(demand).find(demand)
        tied = dataclasses.replace(demand, only_node=only)
        found = self.decider.placer(tied).find(tied)
        if isinstance(found, Found):
            return found
        others = dict.fromkeys(self.decider.state.nodes, _NOT_THE_ONE)
        own = {name: verdict for name, verdict in found.verdicts.items() if name == only}
        return NotFound(others | own, found.retry)

    def placer(self, demand: Demand) -> Placer:
        """Finds nodes for pods of this shape."""
        return self.decider.placer(demand)

    def place(self, demand: Demand, found: Found) -> Placement:
        """The pod goes where it was found to fit: node, devices, volumes and claims count from now on."""
        decider = self.decider
        placement = drafted(decider.state, demand, found, self.now, decider.suffix)
        decider.nominations.fulfil(placement.uid)
        placement = assume(decider.state, placement, found)
        decider.state.runs.begin(placement.pod, placement.node, self.now)
        self.changed.update(claim.metadata.uid for claim in placement.claims)
        return placement

    def readied(self, pod: Pod) -> Demand | NoPlacement:
        """What a pod asks of nodes, or what it waits for before that. Changes nothing."""
        with ExitStack() as aside:
            attempt = Attempt(pod, "", aside)
            for step in PRELIMINARIES:
                refusal = step(self, attempt)
                if refusal is not None:
                    return refusal
            return attempt.demand

    def suppose(self, demand: Demand, found: Found) -> None:
        """In a trial: what if the pod went there?"""
        decider = self.decider
        placement = drafted(decider.state, demand, found, self.now, decider.suffix)
        assume(decider.state, placement, found)

    def _considered(self, attempt: Attempt) -> NoPlacement | Fitting:
        for step in STEPS:
            refusal = step(self, attempt)
            if refusal is not None:
                return refusal
        return Fitting(attempt.demand, attempt.found)


@dataclass(slots=True, eq=False)
class Attempt:
    """One pod, with what the steps so far have found out."""

    pod: Pod
    only: str
    aside: ExitStack
    """Sets promises aside that do not count for the pod, until the end of the attempt."""
    claims: tuple[ResourceClaim, ...] = field(init=False)
    demand: Demand = field(init=False)
    found: Found = field(init=False)


Step: TypeAlias = Callable[[Round, Attempt], NoPlacement | None]
"""Refuses a pod, or leaves it to the next step."""
NodeStep: TypeAlias = Callable[[Round, Attempt], NoNode | None]
"""The same for a pod whose demand is known."""


def gather_claims(round_: Round, attempt: Attempt) -> Lacking | None:
    """A pod needs its claims first, and its group, if it is in one."""
    try:
        attempt.claims = round_.claims(attempt.pod)
    except ClaimsNotReadyError as error:
        return Lacking(error)
    return None


def be_charged(round_: Round, attempt: Attempt) -> NotCharged | None:
    """A pod that waits in a queue is placed only if quota covers it, regardless of what made it and what removed its gates."""
    uncharged = round_.decider.uncharged
    if uncharged is None:
        return None
    message = uncharged(attempt.pod, attempt.claims, round_.now)
    return NotCharged(message) if message else None


def wait_for_writes(round_: Round, attempt: Attempt) -> BeingWritten | None:
    """What another round does to a claim is not known until it is written."""
    for claim in attempt.claims:
        uid = claim.metadata.uid
        if uid and uid not in round_.changed and round_.decider.state.is_under_way(claim):
            return BeingWritten(claim)
    return None


def wait_for_contested_devices(round_: Round, attempt: Attempt) -> Lacking | None:
    """A pod does not start with a device that another claim has as well, or had until it released it."""
    for claim in attempt.claims:
        why = contested(round_.decider.state, claim) if claim.metadata.uid else ""
        if why:
            name = claim.metadata.name
            text = f'resource claim "{name}" cannot be used yet: {why}'
            return Lacking(ClaimsNotReadyError(text, ClaimLack.CONTESTED, name))
    return None


def leave_what_is_promised(round_: Round, attempt: Attempt) -> PromisedAway | None:
    """A pod may not begin to use a claim that is about to give its devices to a more important pod."""
    nominations = round_.decider.nominations
    for claim in attempt.claims if nominations else ():
        nomination = nominations.keeps(claim, attempt.pod)
        if nomination is not None:
            return PromisedAway(claim, nomination)
    return None


def work_out_demand(round_: Round, attempt: Attempt) -> None:
    """Work out what to ask of nodes."""
    attempt.demand = round_.demand_with(attempt.pod, attempt.claims)


def set_promises_aside(round_: Round, attempt: Attempt) -> None:
    """What is kept for less important pods, and for the pod itself, is available to it."""
    nominations = round_.decider.nominations
    if nominations:
        attempt.aside.enter_context(nominations.as_seen_by(attempt.pod))


def keep_to_the_queue(round_: Round, attempt: Attempt) -> KeptOut | None:
    """A pod that is in a queue stays within its limits."""
    withheld = round_.decider.state.queues.withheld((attempt.pod.metadata.uid,))
    return None if withheld is None else KeptOut(attempt.demand, withheld)


def find_a_node(round_: Round, attempt: Attempt) -> NoNode | None:
    """The rules in their order, and devices: `answering` asks one node, `placing` chooses among all."""
    found = round_.find(attempt.demand, attempt.only)
    if isinstance(found, NotFound):
        return NoNode(attempt.demand, found)
    attempt.found = found
    return None


def do_without_promises(round_: Round, attempt: Attempt) -> NoNode | None:
    """The pod must fit even if the pods for which room is kept never arrive: it may depend on their presence."""
    decider, demand = round_.decider, attempt.demand
    if not decider.nominations or not demand.needs.shape.depends_on_pods:
        return None
    with decider.nominations.ignored():
        verdict = decider.placer(demand).verdict_on(demand, attempt.found.node)
    if verdict is FITS:
        return None
    return NoNode(demand, NotFound(dict.fromkeys(decider.state.nodes, verdict), retry=True))


NODE_STEPS: Final[tuple[NodeStep, ...]] = (
    set_promises_aside,
    find_a_node,
    do_without_promises,
)
PRELIMINARIES: Final[tuple[Step, ...]] = (
    gather_claims,
    be_charged,
    wait_for_writes,
    wait_for_contested_devices,
    leave_what_is_promised,
    work_out_demand,
)
STEPS: Final[tuple[Step, ...]] = (
    *PRELIMINARIES,
    set_promises_aside,
    keep_to_the_queue,
    find_a_node,
    do_without_promises,
)
