"""Spreading pods over the domains of a topology.

A domain counts only nodes that the pod could go to, by the policies of each constraint, and that have the labels of all constraints. Pods
that are being deleted are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

from drayman.placement.fit.needs import PodNeeds
from drayman.placement.fit.neighbours import Neighbours
from drayman.placement.fit.node import NodeFacts
from drayman.placement.fit.node_choice import HOSTNAME
from drayman.placement.fit.static import tolerates_all
from drayman.placement.fit.tally import NODE_ITSELF, Crowd, Tally
from drayman.placement.fit.terms import PodTerms, SpreadTerm
from drayman.placement.fit.verdict import FITS, SPREAD, SPREAD_LABEL, Cause, Verdict


class SpreadCheck:
    """The rules about spreading, prepared for one pod."""

    __slots__ = ("_limits", "_soft")

    def __init__(self, needs: PodNeeds, terms: PodTerms, around: Neighbours) -> None:
        keys = _keys(terms.hard_spread)
        self._limits = [
            _limit(needs, term, _domain_tally(needs, term, keys, around))
            for term in terms.hard_spread
        ]
        soft_keys = _keys(terms.soft_spread)
        self._soft = [
            (
                term,
                _node_tally(needs, term, around)
                if term.topology_key == HOSTNAME
                else _domain_tally(needs, term, soft_keys, around),
            )
            for term in terms.soft_spread
        ]

    @property
    def scores(self) -> bool:
        """Whether the pod prefers to be spread."""
        return bool(self._soft)

    def verdict(self, facts: NodeFacts) -> Verdict:
        for key, counts, most in self._limits:
            domain = facts.labels.get(key)
            if domain is None:
                return Verdict.refusal(Cause.SPREAD, SPREAD_LABEL)
            if counts.get(domain, 0) > most:
                return Verdict.refusal(Cause.SPREAD, SPREAD, resolvable=True)
        return FITS

    def raw_scores(self, candidates: Sequence[NodeFacts]) -> list[int | None]:
        """How crowded the domains of each candidate are. None for candidates that lack a label."""
        keys = [term.topology_key for term, _ in self._soft]
        placed = [facts for facts in candidates if all(key in facts.labels for key in keys)]
        weighed = [(term, tally, math.log(_size(term, placed) + 2)) for term, tally in self._soft]
        qualified = {facts.name for facts in placed}
        return [
            _crowding(facts, weighed) if facts.name in qualified else None for facts in candidates
        ]


def _crowding(facts: NodeFacts, weighed: list[tuple[SpreadTerm, Tally, float]]) -> int:
    score = 0.0
    for term, tally, weight in weighed:
        domain = (
            facts.name if tally.topology_key == NODE_ITSELF else facts.labels[term.topology_key]
        )
        # The allowed skew reduces the differences between domains.
        score += tally.counts.get(domain, 0) * weight + (term.max_skew - 1)
    return math.floor(score + 0.5)


def _size(term: SpreadTerm, candidates: Sequence[NodeFacts]) -> int:
    if term.topology_key == HOSTNAME:
        return len(candidates)
    return len({facts.labels[term.topology_key] for facts in candidates})


def _limit(needs: PodNeeds, term: SpreadTerm, tally: Tally) -> tuple[str, dict[str, int], int]:
    """Topology key, pods by domain, and the most that a domain may have for the pod to go there."""
    least = tally.least() if len(tally.domains) >= term.min_domains else 0
    own = 1 if term.selector.matches(needs.labels) else 0
    return term.topology_key, tally.counts, term.max_skew + least - own


def _keys(terms: tuple[SpreadTerm, ...]) -> tuple[str, ...]:
    return tuple(term.topology_key for term in terms)


def _domain_tally(
    needs: PodNeeds, term: SpreadTerm, keys: tuple[str, ...], around: Neighbours
) -> Tally:
    def eligible(facts: NodeFacts) -> bool:
        if any(key not in facts.labels for key in keys):
            return False
        if term.honour_affinity and not needs.shape.nodes.allows(facts.labels, facts.name):
            return False
        return not term.honour_taints or tolerates_all(needs.shape, facts)

    key: Hashable = ("spread", needs.shape, needs.namespace, term, keys)
    return around.tally(
        key, lambda: Tally(term.topology_key, _wanted(needs.namespace, term), eligible)
    )


def _node_tally(needs: PodNeeds, term: SpreadTerm, around: Neighbours) -> Tally:
    key: Hashable = ("spread on nodes", needs.namespace, term.selector)
    return around.tally(key, lambda: Tally(NODE_ITSELF, _wanted(needs.namespace, term)))


def _wanted(namespace: str, term: SpreadTerm) -> Callable[[Crowd], bool]:
    return lambda crowd: term.counts(namespace, crowd)
