"""Which remedies are tried, in which order, and how many are named.

Families come in the order in which people would consider them: what is still to be done or is a mistake, then what costs nothing but
patience or some closeness, then asking for less, then taking from others, then giving up what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.explain.answer import Remedy, Spelling
from drayman.explain.remedies.alignment import softened_alignments
from drayman.explain.remedies.amounts import fixed_counts, lower_capacities, lower_counts
from drayman.explain.remedies.case import Case, claim_texts_of
from drayman.explain.remedies.classes import dropped_alternatives, other_classes
from drayman.explain.remedies.constraints import dropped_constraints, relaxed_constraints
from drayman.explain.remedies.device_taints import removed_taints, tolerated_taints
from drayman.explain.remedies.ending import ended_jobs
from drayman.explain.remedies.freeing import freed_pods, released_claims, removed_leftovers
from drayman.explain.remedies.linked_pods import PodIndex
from drayman.explain.remedies.nearness import nearest_first
from drayman.explain.remedies.neighbours import dropped_affinity, loosened_spread
from drayman.explain.remedies.node_rules import (
    accepted_spot,
    dropped_node_affinity,
    dropped_node_selectors,
    labelled_nodes,
    tolerated_node_taints,
    uncordoned_nodes,
    untainted_nodes,
)
from drayman.explain.remedies.pairing import paired
from drayman.explain.remedies.preliminaries import (
    opened_gates,
    other_claims,
    other_groups,
    other_scheduler,
    resumed_job,
)
from drayman.explain.remedies.resources import dropped_ports, lower_extended, lower_requests
from drayman.explain.remedies.respelling import respelt_names
from drayman.explain.remedies.rewriting import corrected_values
from drayman.explain.remedies.rooms import rooms
from drayman.explain.remedies.selectors import without_conditions
from drayman.explain.remedies.trying import MOST_NODES, MOST_SEARCHES, Trials
from drayman.explain.values import Mistake
from drayman.placement.demand import Demand
from drayman.placement.nodes import NodeState
from drayman.placement.placing import NotFound
from drayman.placement.world import World

MOST_REMEDIES: Final = 8
_MOST_OF_A_FAMILY: Final = 2

_ONE_IS_ENOUGH: Final = (uncordoned_nodes, untainted_nodes, labelled_nodes, lower_requests)
"""Families whose further remedies are the same for another node."""
_BEFORE_NODES: Final = (opened_gates, other_scheduler, other_claims, other_groups)


class RemedyReport(Struct, frozen=True):
    """What helps, the best first."""

    remedies: tuple[Remedy, ...] = ()
    untried: str = ""
    """Set if not everything could be tried."""


def remedies_for(
    world: World,
    pod: Pod,
    demand: Demand | None,
    not_found: NotFound | None,
    spelling: Sequence[Spelling] = (),
    mistakes: Sequence[Mistake] = (),
) -> RemedyReport:
    """What would make the pod fit. `demand` and `not_found` are None where it waits before nodes are looked at.

    `spelling` are names in its claims that are known not to exist, `mistakes` values.
    """
    state = world.state
    if demand is None or not_found is None:
        nodes = nearest_first(state, {})
        trials = Trials(state, world.now, nodes, MOST_SEARCHES)
        families = (family(world, pod, trials) for family in _BEFORE_NODES)
        return _report(families, nodes, trials)
    nodes = nearest_first(state, not_found.verdicts, demand.only_node)
    trials = Trials(state, world.now, nodes, MOST_SEARCHES)
    written = claim_texts_of(pod, demand, world)
    pods = PodIndex(world, pod)
    case = Case(world, pod, demand, not_found.verdicts, nodes, trials, written, pods)
    report = _report(_families(case, spelling, mistakes), nodes, trials)
    if report.remedies:
        return report
    return _report([paired(case, spelling, mistakes)], nodes, trials)


def remedies_for_job(world: World, job: Job) -> RemedyReport:
    """What would let a job without pods make progress."""
    if not job.spec.suspend:
        return RemedyReport()
    nodes = nearest_first(world.state, {})
    trials = Trials(world.state, world.now, nodes, MOST_SEARCHES)
    return _report([resumed_job(world, job, trials)], nodes, trials)


def _families(
    case: Case, spelling: Sequence[Spelling], mistakes: Sequence[Mistake]
) -> Iterator[Iterator[Remedy]]:
    """The families in order. Lazy, as a later one is not tried if there are enough remedies."""
    yield respelt_names(case, spelling)
    yield corrected_values(case, mistakes)
    yield from _each(case, uncordoned_nodes, removed_taints, untainted_nodes)
    yield from _each(case, tolerated_taints, tolerated_node_taints, accepted_spot)
    yield from _each(case, relaxed_constraints, softened_alignments, fixed_counts, loosened_spread)
    found = rooms(case)
    yield ended_jobs(case, found)
    yield from _each(case, lower_counts, lower_capacities, lower_requests, lower_extended)
    yield freed_pods(found)
    yield released_claims(case)
    yield removed_leftovers(case)
    yield from _each(case, dropped_constraints, without_conditions)
    yield from _each(case, other_classes, dropped_alternatives)
    yield from _each(case, dropped_node_selectors, dropped_node_affinity, labelled_nodes)
    yield from _each(case, dropped_affinity, dropped_ports)


def _each(case: Case, *families: Callable[[Case], Iterator[Remedy]]) -> Iterator[Iterator[Remedy]]:
    for family in families:
        yield islice(family(case), 1) if family in _ONE_IS_ENOUGH else family(case)


def _report(
    families: Iterable[Iterator[Remedy]], nodes: list[NodeState], trials: Trials
) -> RemedyReport:
    found: list[Remedy] = []
    for family in families:
        # Two families may give the same result: a pod that makes room may also be the one that keeps a claim where it is.
        new = (r for r in family if all(r.operations != known.operations for known in found))
        found += islice(new, min(_MOST_OF_A_FAMILY, MOST_REMEDIES - len(found)))
        if len(found) == MOST_REMEDIES or trials.is_spent:
            break
    return RemedyReport(tuple(found), _untried(nodes, trials))


def _untried(nodes: list[NodeState], trials: Trials) -> str:
    if trials.is_spent:
        return f"The search for remedies stopped after {MOST_SEARCHES} attempts."
    if trials.left_out:
        return (
            f"Each remedy was tried on the {MOST_NODES} nodes that came closest, of {len(nodes)}."
        )
    return ""
