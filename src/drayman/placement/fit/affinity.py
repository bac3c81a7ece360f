"""Affinity between pods: which pods the pod wants near or far, and which placed pods want it near or far.

The pod's required affinity is about single pods that match all its terms at once. The first pod of a group that wants to be together has no
pod to join, so if no pod matches and the pod matches its own terms, every node with the labels will do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from drayman.placement.fit.needs import PodNeeds
from drayman.placement.fit.neighbours import DomainCounts, Neighbours
from drayman.placement.fit.node import NodeFacts
from drayman.placement.fit.tally import Crowd, Tally
from drayman.placement.fit.terms import AffinityTerm, PodTerms
from drayman.placement.fit.verdict import (
    EXISTING_ANTI_AFFINITY,
    FITS,
    POD_AFFINITY,
    POD_ANTI_AFFINITY,
    Cause,
    Verdict,
)


class AffinityCheck:
    """The rules about affinity, prepared for one pod."""

    __slots__ = ("_apart", "_avoided", "_first", "_together", "_wishes")

    def __init__(self, needs: PodNeeds, terms: PodTerms, around: Neighbours) -> None:
        together = [
            _tally(around, around.wanted_near, terms.affinity, key)
            for key in dict.fromkeys(term.topology_key for term in terms.affinity)
        ]
        self._together = [(tally.topology_key, tally.counts) for tally in together]
        self._first = (
            bool(terms.affinity)
            and not any(tally.counts for tally in together)
            and _all_match(terms.affinity, needs, around)
        )
        self._apart = [
            (term.topology_key, _tally(around, around.tally, (term,), term.topology_key).counts)
            for term in terms.anti_affinity
        ]
        self._avoided = around.repelling(needs)
        self._wishes = around.attracting(needs) + [
            (
                weight,
                term.topology_key,
                _tally(around, around.tally, (term,), term.topology_key).counts,
            )
            for weight, term in terms.preferred
        ]

    @property
    def scores(self) -> bool:
        """Whether the pod or a placed pod has a preference about where it goes."""
        return bool(self._wishes)

    def verdict(self, facts: NodeFacts) -> Verdict:
        if self._together and not self._may_join(facts):
            return Verdict.refusal(Cause.POD_AFFINITY, POD_AFFINITY)
        if _occupied(self._apart, facts):
            return Verdict.refusal(Cause.POD_ANTI_AFFINITY, POD_ANTI_AFFINITY, resolvable=True)
        if _occupied(self._avoided, facts):
            return Verdict.refusal(Cause.POD_ANTI_AFFINITY, EXISTING_ANTI_AFFINITY, resolvable=True)
        return FITS

    def _may_join(self, facts: NodeFacts) -> bool:
        met = True
        for key, counts in self._together:
            domain = facts.labels.get(key)
            if domain is None:
                return False
            met = met and domain in counts
        return met or self._first

    def score(self, facts: NodeFacts) -> int:
        """How much the pod is wanted in the domains of a node, by itself and by others."""
        total = 0
        for weight, key, counts in self._wishes:
            domain = facts.labels.get(key)
            if domain is not None:
                total += weight * counts.get(domain, 0)
        return total


def _occupied(terms: list[tuple[str, DomainCounts]], facts: NodeFacts) -> bool:
    for key, counts in terms:
        if facts.labels.get(key) in counts:
            return True
    return False


def _tally(
    around: Neighbours,
    kept: Callable[[Hashable, Callable[[], Tally]], Tally],
    terms: tuple[AffinityTerm, ...],
    topology_key: str,
) -> Tally:
    """How many placed pods match all of some terms, by the domains of one topology."""

    def wanted(crowd: Crowd) -> bool:
        labels = around.namespace_labels(crowd.namespace)
        return all(term.matches(crowd.namespace, crowd.labels, labels) for term in terms)

    key: Hashable = ("affinity", terms, topology_key)
    return kept(key, lambda: Tally(topology_key, wanted))


def _all_match(terms: tuple[AffinityTerm, ...], needs: PodNeeds, around: Neighbours) -> bool:
    labels = around.namespace_labels(needs.namespace)
    return all(term.matches(needs.namespace, needs.labels, labels) for term in terms)
