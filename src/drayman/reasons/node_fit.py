"""What keeps a pod from nodes before their devices are looked at: the first rule that each node fails, in the scheduler's order."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from drayman.placement.answering import node_verdict, prepared
from drayman.placement.demand import Demand
from drayman.placement.fit import FITS, Cause, NodeFacts, PodShape, Verdict
from drayman.placement.fit.taints import is_tolerated
from drayman.placement.fit.verdict import (
    EXISTING_ANTI_AFFINITY,
    NO_FREE_PORTS,
    NODE_AFFINITY,
    POD_AFFINITY,
    POD_ANTI_AFFINITY,
    SPREAD,
    SPREAD_LABEL,
    TOO_MANY_PODS,
    insufficient,
)
from drayman.placement.fit.volumes import (
    NO_SPACE,
    NOTHING_TO_BIND,
    ONE_POD_ONLY,
    UNBOUND,
    VOLUME_AFFINITY,
    VOLUME_GONE,
    VOLUME_ZONE,
)
from drayman.placement.nodes import NodeState
from drayman.placement.spending import NOT_ACCEPTED
from drayman.placement.state import ClusterState
from drayman.reasons.causes import TESTS, FitTest
from drayman.reasons.naming import taint_title

_SHORT: Final = insufficient("")


_WORDS: Final = {
    NODE_AFFINITY: "not matching the pod's node selector or affinity",
    NOT_ACCEPTED: "a spot node, which the pod does not accept",
    NO_FREE_PORTS: "a host port that the pod needs is in use",
    POD_AFFINITY: "ruled out by the pod's affinity to other pods",
    POD_ANTI_AFFINITY: "ruled out by the pod's anti-affinity to pods there",
    EXISTING_ANTI_AFFINITY: "ruled out by the anti-affinity of pods there",
    SPREAD: "ruled out by the pod's topology spread constraints",
    SPREAD_LABEL: "without a label that the pod's topology spread constraints use",
    UNBOUND: "a volume claim of the pod has no volume",
    NOTHING_TO_BIND: "no volume for a volume claim of the pod",
    NO_SPACE: "too little storage left for a volume claim of the pod",
    VOLUME_AFFINITY: "a volume of the pod cannot be reached from there",
    VOLUME_ZONE: "a volume of the pod is in another zone",
    VOLUME_GONE: "a volume of the pod does not exist any more",
    ONE_POD_ONLY: "a volume that only one pod may use is in use",
}
"""Wording used here in place of kube-scheduler's, which is about all nodes at once."""


class Unfit(Struct, frozen=True):
    """The rule that a node fails, and a short reason. Resources can be short in several ways at once."""

    cause: Cause
    reasons: tuple[str, ...]

    @property
    def test(self) -> FitTest:
        return TESTS[self.cause]


class NodeFit:
    """Asks nodes about one pod."""

    def __init__(self, state: ClusterState, demand: Demand) -> None:
        self._state = state
        self._demand = demand
        self._checks = prepared(state, demand)
        self._named: dict[tuple[object, ...], Unfit] = {}

    def of(self, node: NodeState) -> Unfit | None:
        """Why devices of the node are not looked at; None if they are."""
        facts = node.facts
        verdict = self._verdict(node)
        if verdict is FITS:
            return None
        key = (verdict, self._wording_depends_on(verdict, facts))
        known = self._named.get(key)
        if known is None:
            known = self._named[key] = self._unfit(verdict, facts)
        return known

    def _wording_depends_on(self, verdict: Verdict, facts: NodeFacts) -> object:
        """What the wording of a verdict depends on besides the verdict."""
        if verdict.cause is Cause.CLAIM_ELSEWHERE:
            return facts.name
        return facts.shape if verdict.cause is Cause.NODE_TAINT else None

    def _verdict(self, node: NodeState) -> Verdict:
        verdict = node_verdict(self._state, self._checks, node)
        return self._demand.held_verdict(node.node) if verdict is FITS else verdict

    def _unfit(self, verdict: Verdict, facts: NodeFacts) -> Unfit:
        match cause := verdict.cause:
            case Cause.CORDONED:
                return Unfit(cause, ("cordoned",))
            case Cause.NODE_TAINT:
                return Unfit(cause, (untolerated(self._demand.needs.shape, facts),))
            case Cause.RESOURCES:
                short = [r.removeprefix(_SHORT) for r in verdict.reasons]
                return Unfit(cause, tuple("pods" if r == TOO_MANY_PODS else r for r in short))
            case Cause.CLAIM_ELSEWHERE:
                return Unfit(cause, tuple(self._elsewhere(facts)))
            case _:
                return Unfit(cause, about_node(verdict))

    def _elsewhere(self, facts: NodeFacts) -> list[str]:
        node = self._state.nodes[facts.name].node
        unavailable = self._demand.unavailable_on(node)
        return [f"claim {claim.metadata.name} has its devices elsewhere" for claim in unavailable]


def about_node(verdict: Verdict) -> tuple[str, ...]:
    """What a node says, in words about itself."""
    return tuple(_WORDS.get(reason, reason) for reason in verdict.reasons)


def untolerated(pod: PodShape, facts: NodeFacts) -> str:
    """The first taint of a node that keeps a pod away, as kubectl writes taints."""
    for taint in facts.shape.taints:
        if not is_tolerated(taint, pod.tolerations):
            return taint_title(taint.key, taint.value, taint.effect)
    return ""
