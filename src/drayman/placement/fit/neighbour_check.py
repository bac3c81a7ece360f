"""The rules about other pods, prepared for one pod and then asked node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.placement.fit.affinity import AffinityCheck
from drayman.placement.fit.needs import PodNeeds
from drayman.placement.fit.neighbours import Neighbours
from drayman.placement.fit.node import NodeFacts
from drayman.placement.fit.spread import SpreadCheck
from drayman.placement.fit.terms import PodTerms
from drayman.placement.fit.verdict import FITS, Cause, Verdict


class NeighbourCheck:
    """Where a pod may go and prefers to go, given the pods that are placed."""

    __slots__ = ("_affinity", "_refusal", "_spread")

    _affinity: AffinityCheck | None
    _spread: SpreadCheck | None

    def __init__(
        self,
        affinity: AffinityCheck | None = None,
        spread: SpreadCheck | None = None,
        refusal: Verdict = FITS,
    ) -> None:
        self._affinity = affinity
        self._spread = spread
        self._refusal = refusal

    @staticmethod
    def of(needs: PodNeeds, terms: PodTerms, around: Neighbours) -> NeighbourCheck:
        if terms.problem:
            return NeighbourCheck(refusal=Verdict.refusal(Cause.POD_AFFINITY, terms.problem))
        spreads = terms.hard_spread or terms.soft_spread
        return NeighbourCheck(
            AffinityCheck(needs, terms, around),
            SpreadCheck(needs, terms, around) if spreads else None,
        )

    def verdict(self, facts: NodeFacts) -> Verdict:
        """What the rules say about a node: the first that refuses, in upstream's order."""
        if self._refusal is not FITS:
            return self._refusal
        if self._spread is not None:
            verdict = self._spread.verdict(facts)
            if verdict is not FITS:
                return verdict
        return FITS if self._affinity is None else self._affinity.verdict(facts)

    @property
    def scores_affinity(self) -> bool:
        return self._affinity is not None and self._affinity.scores

    @property
    def scores_spread(self) -> bool:
        return self._spread is not None and self._spread.scores

    def affinity_score(self, facts: NodeFacts) -> int:
        """How much the pod is wanted near the pods around a node. Not normalised."""
        return 0 if self._affinity is None else self._affinity.score(facts)

    def spread_scores(self, candidates: Sequence[NodeFacts]) -> list[int | None]:
        """How crowded the surroundings of each candidate are, None where that is unknown. Not normalised."""
        return (
            [None] * len(candidates)
            if self._spread is None
            else self._spread.raw_scores(candidates)
        )


NO_NEIGHBOURS: Final = NeighbourCheck()
"""For a pod that no rule about other pods concerns."""
