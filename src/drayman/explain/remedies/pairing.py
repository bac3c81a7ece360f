"""Two changes at once, for pods that no single change helps: a misspelt selector in a cluster that is full as well, for example.

The first of the two is always another way to ask. Such changes are collected by going through the families without trying anything; then
each is assumed in turn, and a second one is looked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from msgspec.structs import replace

from drayman.explain.answer import Remedy, Spelling
from drayman.explain.remedies.amounts import lower_capacities, lower_counts
from drayman.explain.remedies.case import Case, Rephrasing, as_sentence, claim_texts_of
from drayman.explain.remedies.classes import other_classes
from drayman.explain.remedies.constraints import dropped_constraints, relaxed_constraints
from drayman.explain.remedies.device_taints import removed_taints, tolerated_taints
from drayman.explain.remedies.ending import ended_jobs
from drayman.explain.remedies.freeing import freed_pods
from drayman.explain.remedies.neighbours import dropped_affinity, loosened_spread
from drayman.explain.remedies.node_rules import (
    dropped_node_affinity,
    dropped_node_selectors,
    tolerated_node_taints,
    uncordoned_nodes,
    untainted_nodes,
)
from drayman.explain.remedies.resources import lower_requests
from drayman.explain.remedies.respelling import respelt_names
from drayman.explain.remedies.rewriting import corrected_values
from drayman.explain.remedies.rooms import rooms
from drayman.explain.remedies.selectors import without_conditions
from drayman.explain.values import Mistake
from drayman.placement.nodes import NodeState
from drayman.reasons.wording import continued

_Family = Callable[[Case], Iterator[Remedy]]

_MOST_CHANGES: Final = 12
_ASKING: Final[tuple[_Family, ...]] = (
    relaxed_constraints,
    tolerated_taints,
    tolerated_node_taints,
    without_conditions,
    dropped_constraints,
    other_classes,
    dropped_node_selectors,
    dropped_node_affinity,
    dropped_affinity,
    loosened_spread,
)
"""Families whose changes are ways to ask."""


def paired(
    case: Case, spelling: Sequence[Spelling], mistakes: Sequence[Mistake] = ()
) -> Iterator[Remedy]:
    """Pairs of changes that help: one for the first change of each family that allows one, and no pair in both orders."""
    known: set[frozenset[str]] = set()
    tried = 0
    for changes in _changes(case, spelling, mistakes):
        for change in changes[: _MOST_CHANGES - tried]:
            tried += 1
            found = _with_second(case, change)
            if found is None:
                continue
            both = frozenset((as_sentence(change.words), found.sentence))
            if both not in known:
                known.add(both)
                yield _joined(change, found)
            break


def _with_second(case: Case, change: Rephrasing) -> Remedy | None:
    """What helps a pod that already asks differently."""
    second = _after(case, change)
    if second.demand.impossible is not None:
        return None
    return next(chain.from_iterable(_families(second)), None)


@dataclass(slots=True, eq=False)
class _Collector(Case):
    """Records changes instead of trying them."""

    changes: list[Rephrasing] = field(default_factory=list)

    def tried(
        self, change: Rephrasing, nodes: Sequence[NodeState] | None = None
    ) -> Iterator[Remedy]:
        self.changes.append(change)
        return iter(())


def _changes(
    case: Case, spelling: Sequence[Spelling], mistakes: Sequence[Mistake]
) -> Iterator[list[Rephrasing]]:
    """The changes of each family that are ways to ask."""
    collector = _Collector(
        case.world,
        case.pod,
        case.demand,
        case.verdicts,
        case.nodes,
        case.trials,
        case.claim_texts,
        case.pods,
    )
    corrections: tuple[_Family, ...] = (
        lambda each: respelt_names(each, spelling),
        lambda each: corrected_values(each, mistakes),
    )
    for family in (*corrections, *_ASKING):
        collector.changes = []
        deque(family(collector), maxlen=0)  # nothing is found; this is for what gets recorded
        yield collector.changes


def _after(case: Case, change: Rephrasing) -> Case:
    """The case of a pod that asks differently. What nodes would say to that is not known."""
    demand = case.trials.demand_with(change.pod, change.claims)
    written = claim_texts_of(change.pod, demand, case.world)
    return Case(case.world, change.pod, demand, {}, case.nodes, case.trials, written, case.pods)


def _families(case: Case) -> Iterator[Iterator[Remedy]]:
    yield uncordoned_nodes(case)
    yield removed_taints(case)
    yield untainted_nodes(case)
    found = rooms(case)
    yield ended_jobs(case, found)
    yield freed_pods(found)
    for family in (lower_counts, lower_capacities, lower_requests, *_ASKING):
        yield family(case)


def _joined(change: Rephrasing, found: Remedy) -> Remedy:
    first, second = as_sentence(change.words), found.sentence
    return replace(
        found,
        sentence=f"{first.removesuffix('.')}, and {continued(second)}",
        operations=(*change.operations, *found.operations),
        commands=(*change.commands, *found.commands) if change.commands and found.commands else (),
    )
