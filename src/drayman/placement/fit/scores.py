"""Which of the suitable nodes is best, by upstream's weights.

Two kinds of scores are kept separate. Preferences are what users wrote down; the balance is how the cluster is filled. A scheduler that
ranks by preferences first never trades a user's preference for a few percent of balance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.placement.fit.needs import PodNeeds
from drayman.placement.fit.neighbour_check import NO_NEIGHBOURS, NeighbourCheck
from drayman.placement.fit.node import NodeFacts
from drayman.placement.fit.taints import DISCOURAGING, is_tolerated
from drayman.placement.fit.usage import NodeUsage

HIGHEST: Final = 100
NODE_AFFINITY_WEIGHT: Final = 2
TAINTS_WEIGHT: Final = 3
POD_AFFINITY_WEIGHT: Final = 2
SPREAD_WEIGHT: Final = 2


def has_preferences(needs: PodNeeds, check: NeighbourCheck = NO_NEIGHBOURS) -> bool:
    """Whether any preference says which nodes are better for the pod. The caller checks soft taints itself."""
    return bool(needs.shape.nodes.preferred or check.scores_affinity or check.scores_spread)


def preferences(
    needs: PodNeeds, candidates: Sequence[NodeFacts], check: NeighbourCheck = NO_NEIGHBOURS
) -> list[int]:
    """How well each candidate suits what users asked for."""
    totals = [0] * len(candidates)
    if needs.shape.nodes.preferred:
        _weigh(totals, NODE_AFFINITY_WEIGHT, _upwards(node_affinity_scores(needs, candidates)))
    _weigh(totals, TAINTS_WEIGHT, _downwards(taint_scores(needs, candidates)))
    if check.scores_affinity:
        scores = [check.affinity_score(facts) for facts in candidates]
        _weigh(totals, POD_AFFINITY_WEIGHT, _spanned(scores))
    if check.scores_spread:
        _weigh(totals, SPREAD_WEIGHT, _uncrowded(check.spread_scores(candidates)))
    return totals


def node_affinity_scores(needs: PodNeeds, candidates: Sequence[NodeFacts]) -> list[int]:
    """The weights of the preferences that each candidate meets."""
    nodes = needs.shape.nodes
    return [nodes.weight(facts.labels, facts.name) for facts in candidates]


def taint_scores(needs: PodNeeds, candidates: Sequence[NodeFacts]) -> list[int]:
    """How many discouraging taints of each candidate the pod does not tolerate."""
    tolerations = [t for t in needs.shape.tolerations if t.effect in ("", DISCOURAGING)]
    return [
        sum(not is_tolerated(taint, tolerations) for taint in facts.shape.soft_taints)
        for facts in candidates
    ]


def _weigh(totals: list[int], weight: int, scores: Sequence[int]) -> None:
    for position, score in enumerate(scores):
        totals[position] += weight * score


def _upwards(scores: list[int]) -> list[int]:
    """Relative to the highest."""
    most = max(scores, default=0)
    return [HIGHEST * score // most for score in scores] if most else scores


def _downwards(scores: list[int]) -> list[int]:
    """Relative to the highest, with the lowest best."""
    most = max(scores, default=0)
    return [HIGHEST - (HIGHEST * score // most if most else 0) for score in scores]


def _spanned(scores: list[int]) -> list[int]:
    """The position of each between the lowest and the highest."""
    least, most = min(scores, default=0), max(scores, default=0)
    if least == most:
        return [0] * len(scores)
    return [int(HIGHEST * ((score - least) / (most - least))) for score in scores]


def _uncrowded(scores: list[int | None]) -> list[int]:
    """The least crowded is best. Candidates without the labels are worst."""
    known = [score for score in scores if score is not None]
    least, most = min(known, default=0), max(known, default=0)
    if not most:
        return [0 if score is None else HIGHEST for score in scores]
    return [0 if s is None else HIGHEST * (most + least - s) // most for s in scores]


def balance(needs: PodNeeds, facts: NodeFacts, usage: NodeUsage) -> int:
    """How much room a node would have left, and how evenly, from 0 to 200."""
    return room_score(needs, facts, usage) + evenness_score(needs, facts, usage)


def room_score(needs: PodNeeds, facts: NodeFacts, usage: NodeUsage) -> int:
    """The mean of the fractions of cpu and memory that stay free."""
    pod, node = needs.shape, facts.shape
    scores = [
        max(there - used, 0) * HIGHEST // there
        for used, there in (
            (usage.scoring_cpu + pod.scoring_cpu, node.cpu),
            (usage.scoring_memory + pod.scoring_memory, node.memory),
        )
        if there
    ]
    return sum(scores) // len(scores) if scores else 0


def evenness_score(needs: PodNeeds, facts: NodeFacts, usage: NodeUsage) -> int:
    """Whether the pod brings the use of cpu and memory closer together or further apart."""
    pod, node = needs.shape, facts.shape
    if not pod.cpu and not pod.memory:
        return 0
    after = _evenness(usage.cpu + pod.cpu, node.cpu, usage.memory + pod.memory, node.memory)
    before = _evenness(usage.cpu, node.cpu, usage.memory, node.memory)
    half = HIGHEST // 2
    return half + (half + after - before) // 2


def _evenness(cpu: int, cpu_there: int, memory: int, memory_there: int) -> int:
    if not cpu_there or not memory_there:
        return HIGHEST
    apart = abs(min(cpu / cpu_there, 1.0) - min(memory / memory_there, 1.0)) / 2
    return int((1 - apart) * HIGHEST)
