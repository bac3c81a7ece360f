"""Why no node takes a pod, in the words of its condition, worked out when it is about to be written.

Most refusals are never reported, and a reason takes a while to find: so only the demand of the pod and what the nodes said are recorded
with a refusal. By the time of the report, nodes, devices, classes and claims may have changed or gone. Recorded answers and the cluster
as it is must not be mixed: a node that was cordoned then and would take the pod now has no reason to be named. So the nodes are asked
again for what was recorded, which costs little where nothing has changed, and the reason is found for what they say. If one of them
would take the pod by now, the recorded answers are reported as they are, with a note that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec import Struct

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.inventory import allowance
from drayman.inventory.allowance import UnfinishedError
from drayman.placement.claims import ClaimsNotReadyError
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import Fitting, NoNode
from drayman.placement.demand import Demand
from drayman.placement.fit import refused_everywhere, unschedulable_message
from drayman.placement.placing import NotFound
from drayman.reasons.headline import Headlines, with_claims_named
from drayman.reasons.reason import Headline
from drayman.reasons.waiting import costly_claims, lacking

MOST_PARTS: Final = 100
"""In how many parts a reason is worked out before it is given up."""


class _Said(Struct, frozen=True):
    """What is said about a pod and its copies."""

    key: Hashable
    """Of the demand that they have in common."""
    opening: str
    headline: Headline

    def to(self, demand: Demand) -> str:
        return f"{self.opening} {with_claims_named(self.headline, demand)}"


class Explainer:
    """Explains the refusals of one scheduler."""

    def __init__(
        self,
        decider: Decider,
        policy: Policy,
        clock: Callable[[], float],
        *,
        knows_templates: bool,
    ) -> None:
        self._decider = decider
        self._knows_templates = knows_templates
        self._clock = clock
        self._policy = policy
        self._headlines = Headlines(decider.state, policy)
        # Copies of a pod are refused one after another with the same answer.
        self._last_opening: tuple[NotFound | None, str] = (None, "")

    def record(self, refusal: NoNode) -> NodeRefusal:
        """Keep a refusal of this moment, to be explained later."""
        return NodeRefusal(self, refusal, len(self._decider.state.nodes))

    def lacking(self, pod: Pod, error: ClaimsNotReadyError) -> Headline:
        """Why a pod waits that lacks a claim."""
        return lacking(self._decider.state, pod, error, knows_templates=self._knows_templates)

    def demand(self, pod: Pod) -> Demand:
        """What a pod asks for now. Raises ClaimsNotReadyError."""
        return self._decider.round(self._clock()).demand(pod)

    def asked_again(self, recorded: Demand) -> NoNode | Fitting:
        """What the nodes say now."""
        round_ = self._decider.round(self._clock())
        try:
            claims = round_.claims(recorded.pod)
        except ClaimsNotReadyError:
            # Gone since then, or left to the controller that makes claims: the pod was refused for these.
            claims = recorded.claims
        return round_.consider_nodes(round_.demand_with(recorded.pod, claims))

    def in_part(self) -> AbstractContextManager[allowance.Part]:
        """Within it, only so much is worked out that requests need not wait for long. Raises UnfinishedError then."""
        return self._decider.state.allowance.limited(allowance.PART)

    def said(self, refusal: NoNode) -> _Said:
        """Why a pod waits that nodes refuse now."""
        demand, not_found = refusal.demand, refusal.not_found
        opening = self.opening(refusal, len(self._decider.state.nodes))
        with self._decider.nominations.as_seen_by(demand.pod):
            return _Said(demand.key, opening, self._headlines.shared(demand, not_found))

    def opening(self, refusal: NoNode, nodes: int) -> str:
        """How kube-scheduler's message begins: how many nodes there are, and how many of them fail each rule."""
        known, text = self._last_opening
        if known is not refusal.not_found:
            if refusal.demand.impossible is not None:
                text = refused_everywhere(nodes, refusal.demand.impossible)
            else:
                text = unschedulable_message(nodes, refusal.not_found.verdicts.values())
            self._last_opening = (refusal.not_found, text)
        return text


@dataclass(slots=True, eq=False)
class NodeRefusal:
    """A pod that no node took, and why: for itself, and then for its copies, which were not tried."""

    _explainer: Explainer
    _refusal: NoNode
    _nodes: int
    """How many there were."""
    _said: _Said | None = None
    _parts: int = 0
    """In which the reason has been worked out so far."""

    def explain(self) -> str:
        """Why the pod waits. Raises UnfinishedError if there is more to work out: to be called again then, in a while."""
        self._said = None
        now: Fitting | None = None
        try:
            with self._explainer.in_part():
                asked = self._explainer.asked_again(self._refusal.demand)
                if isinstance(asked, NoNode):
                    self._said = self._explainer.said(asked)
                    return self._said.to(asked.demand)
                now = asked
        except UnfinishedError as error:
            self._parts += 1
            if error.rest is None and self._parts < MOST_PARTS:
                raise
        then = self._explainer.opening(self._refusal, self._nodes)
        return f"{then} {_changed_since(now)}"

    def copies(self, pods: Iterable[Pod]) -> Iterator[tuple[Pod, Callable[[], str]]]:
        """Those that wait for the reason that was given last, and how to explain it to each."""
        if self._said is not None:
            for pod in pods:
                yield pod, partial(self._explain_to, pod, self._said)

    def _explain_to(self, pod: Pod, said: _Said) -> str:
        try:
            demand = self._explainer.demand(pod)
        except ClaimsNotReadyError as error:
            return str(self._explainer.lacking(pod, error))
        if demand.key == said.key:
            return said.to(demand)
        # It asks for something else by now, and will be tried for itself.
        return said.opening


def _changed_since(now: Fitting | None) -> str:
    if now is None:
        return str(costly_claims())
    node = now.found.node.facts.name
    return f"The cluster has changed since: node {node} would take the pod, which is about to be tried again."
