"""Rules that look only at the node object: whether it takes pods at all, and whether the pod may and wants to go there.

They depend on nothing that placements change, so their verdicts are kept as long as the shapes exist.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from drayman.bounded import Bounded
from drayman.placement.fit.needs import PodNeeds, PodShape
from drayman.placement.fit.node import NodeFacts
from drayman.placement.fit.node_choice import HOSTNAME
from drayman.placement.fit.taints import UNSCHEDULABLE_TAINT, is_tolerated
from drayman.placement.fit.verdict import (
    FITS,
    NODE_AFFINITY,
    OTHER_NODE_NAME,
    UNSCHEDULABLE,
    UNTOLERATED_TAINT,
    Cause,
    Verdict,
)

_MOST_VERDICTS: Final = 1 << 16


def static_verdict(needs: PodNeeds, facts: NodeFacts) -> Verdict:
    """What the node object says about a pod: the first rule that refuses, in upstream's order."""
    pod, node = needs.shape, facts.shape
    if node.unschedulable and not is_tolerated(UNSCHEDULABLE_TAINT, pod.tolerations):
        return Verdict.refusal(Cause.CORDONED, UNSCHEDULABLE)
    if pod.node_name and pod.node_name != facts.name:
        return Verdict.refusal(Cause.NODE_NAME, OTHER_NODE_NAME)
    if not tolerates_all(pod, facts):
        return Verdict.refusal(Cause.NODE_TAINT, UNTOLERATED_TAINT)
    if not pod.nodes.allows(facts.labels, facts.name):
        return Verdict.refusal(Cause.NODE_AFFINITY, NODE_AFFINITY)
    return FITS


def tolerates_all(pod: PodShape, facts: NodeFacts) -> bool:
    """Whether a pod tolerates every taint of a node that keeps pods away."""
    return all(is_tolerated(taint, pod.tolerations) for taint in facts.shape.taints)


def static_cache_key(needs: PodNeeds, facts: NodeFacts) -> Hashable:
    """What a static verdict depends on."""
    if needs.shape.by_name:
        return needs.shape, facts.shape, facts.name, facts.labels.get(HOSTNAME)
    return needs.shape, facts.shape


class StaticVerdicts:
    """Static verdicts, each worked out once."""

    __slots__ = ("_kept",)

    def __init__(self, most: int = _MOST_VERDICTS) -> None:
        self._kept: Bounded[Hashable, Verdict] = Bounded(most)

    def verdict(self, needs: PodNeeds, facts: NodeFacts) -> Verdict:
        key = static_cache_key(needs, facts)
        verdict = self._kept.get(key)
        if verdict is None:
            verdict = self._kept[key] = static_verdict(needs, facts)
        return verdict
