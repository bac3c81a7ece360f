"""The first line of an explanation: the reason word and the sentence for a pod that no node serves.

Which reason: if some node could take the pod with nothing in use, then what keeps the pod off it now; else what has been decided about
nodes and devices, if that is in the way; else what the hardware lacks. Where nodes have different reasons, the reason of the nodes that
came furthest counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from drayman.allocator import Policy
from drayman.bounded import Bounded
from drayman.placement.demand import Demand
from drayman.placement.fit import Cause, Verdict
from drayman.placement.placing import NotFound
from drayman.placement.refusing import DevicesVerdict, name_claims
from drayman.placement.state import ClusterState
from drayman.reasons.causes import ANYWAY, NOW
from drayman.reasons.device_reasons import found_now
from drayman.reasons.finding import Finding, Group, furthest, grouped
from drayman.reasons.hardware_reasons import found_ever
from drayman.reasons.planned import Planned
from drayman.reasons.prospects import Prospects
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.sentences import sentence

_MOST_KEPT: Final = 1024


def headline(
    state: ClusterState, demand: Demand, not_found: NotFound, policy: Policy = Policy.BEST
) -> Headline:
    """Why the pod waits."""
    return Headlines(state, policy).of(demand, not_found)


def with_claims_named(shared: Headline, demand: Demand) -> Headline:
    """What is said about a pod and its copies, with the names of this one's claims."""
    named = name_claims(shared.sentence, demand.open)
    return Headline(reason=shared.reason, kind=shared.kind, sentence=named)


class Headlines:
    """Headlines for the pods of one cluster. What copies of a pod have in common is worked out once."""

    def __init__(
        self,
        state: ClusterState,
        policy: Policy = Policy.BEST,
        planned: Planned | None = None,
    ) -> None:
        self._state = state
        self._planned = planned
        self._prospects = Prospects(state, policy)
        self._kept: Bounded[object, tuple[NotFound, Headline]] = Bounded(_MOST_KEPT)

    def of(self, demand: Demand, not_found: NotFound) -> Headline:
        """Why the pod waits. What the nodes said must be what they say now: the rest is looked up in the cluster as it is."""
        return with_claims_named(self.shared(demand, not_found), demand)

    def among(self, demand: Demand, verdicts: Mapping[str, Verdict]) -> Headline | None:
        """Why these nodes, some of the cluster's, refuse the pod; None if they would do so with nothing in use."""
        groups = grouped(verdicts, self._state.nodes)
        found = _surely(groups) or self._now(demand, NotFound(dict(verdicts)), groups)
        if found is None:
            return None
        text = sentence(self._state, demand, found, self._planned)
        return with_claims_named(Headline.of(found.reason, text), demand)

    def shared(self, demand: Demand, not_found: NotFound) -> Headline:
        """The same for the pod and all its copies, which have other claims: `with_claims_named` puts their names in."""
        kept = self._kept.get(demand.key)
        if kept is None or kept[0] is not not_found:
            found = self._find(demand, not_found)
            text = sentence(self._state, demand, found, self._planned)
            made = Headline.of(found.reason, text)
            kept = self._kept[demand.key] = (not_found, made)
        return kept[1]

    def _find(self, demand: Demand, not_found: NotFound) -> Finding:
        if not self._state.nodes:
            return Finding(Reason.NO_NODES)
        groups = grouped(not_found.verdicts, self._state.nodes)
        return (
            _surely(groups)
            or self._now(demand, not_found, groups)
            or found_ever(self._state, demand, self._prospects, not_found.verdicts)
        )

    def _now(self, demand: Demand, not_found: NotFound, groups: list[Group]) -> Finding | None:
        """What keeps the pod from nodes that would take it with nothing in use."""
        able = self._at_a_glance(demand, groups)
        if not able:
            refusals = self._prospects.emptied(demand).refusals()
            names = (name for name in self._state.nodes if name not in refusals)
            able = grouped(not_found.verdicts, names)
        best = furthest(able)
        if not best:
            return None
        cause = best[0].verdict.cause
        if cause is Cause.DEVICES:
            return found_now(best, demand, pooled=not self._state.has_floating_devices)
        return Finding(NOW[cause], tuple(best))

    def _at_a_glance(self, demand: Demand, groups: list[Group]) -> list[Group]:
        """Nodes on which only devices are short now, and that would do when empty.

        No node comes further than these, and the allocator has recorded how final their refusal is. So if there are any, and one of them
        would take the pod when empty, the others need not be asked.
        """
        short = [
            group
            for group in groups
            if isinstance(group.verdict, DevicesVerdict) and group.verdict.is_temporary
        ]
        if not short or any(group.verdict.cause > Cause.DEVICES for group in groups):
            return []
        short = furthest(short)
        supposed = self._prospects.emptied(demand)
        return short if all(supposed.takes(group.nodes[0]) for group in short[:1]) else []


def _surely(groups: Sequence[Group]) -> Finding | None:
    """What leaves nothing else to say."""
    for cause, reason in ANYWAY.items():
        concerned = tuple(group for group in groups if group.verdict.cause is cause)
        if concerned:
            return Finding(reason, concerned)
    return None
