"""What pods say about other pods: affinity, anti-affinity and spreading, parsed.

Equal terms are the same object, so that an index can count by term: a hundred replicas with the same anti-affinity are one entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, Protocol

from msgspec import Struct

from drayman.api.core import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from drayman.api.errors import SelectorError
from drayman.api.labels import LabelMatcher, parse_requirement
from drayman.api.meta import LabelSelector
from drayman.placement.fit.needs import PodNeeds

Labels = Mapping[str, str]
Requirement = tuple[str, str, tuple[str, ...]]
Requirements = tuple[Requirement, ...] | None
"""Key, operator and values of each. None: no selector at all, which matches nothing."""

_HARD_AFFINITY_WEIGHT: Final = 1
"""The weight of a placed pod's required affinity in the score of pods that it wants near."""


class Selector(Struct, frozen=True, eq=False):
    """A parsed label selector."""

    matcher: LabelMatcher | None
    empty: bool

    def matches(self, labels: Labels) -> bool:
        return self.matcher is not None and self.matcher.matches(labels)


class AffinityTerm(Struct, frozen=True, eq=False):
    """Pods with these labels in these namespaces, in the domain of a topology."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        if namespace not in self.namespaces and not self.namespace_selector.matches(
            namespace_labels
        ):
            return False
        return self.selector.matches(labels)


class Counted(Protocol):
    """A pod, or pods that no selector can distinguish."""

    @property
    def namespace(self) -> str: ...

    @property
    def labels(self) -> Labels: ...

    @property
    def terminating(self) -> bool: ...


class SpreadTerm(Struct, frozen=True, eq=False):
    """Pods with these labels are to be spread over the domains of a topology."""

    topology_key: str
    selector: Selector
    max_skew: int
    min_domains: int
    honour_affinity: bool
    honour_taints: bool

    def counts(self, namespace: str, pod: Counted) -> bool:
        """Whether a pod counts for pods of a namespace that have this term."""
        return (
            not pod.terminating
            and pod.namespace == namespace
            and not self.selector.empty
            and self.selector.matches(pod.labels)
        )


class PodTerms(Struct, frozen=True):
    """Everything that a pod says about others."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[tuple[int, AffinityTerm], ...] = ()
    """With their weights, which are negative for anti-affinity."""
    hard_spread: tuple[SpreadTerm, ...] = ()
    soft_spread: tuple[SpreadTerm, ...] = ()
    problem: str = ""
    """Why the terms cannot be understood. Validation prevents that, but pods may come from any server."""

    @property
    def attraction(self) -> Iterable[tuple[int, AffinityTerm]]:
        """What the pod, once placed, adds to the score of pods that its terms match."""
        yield from ((_HARD_AFFINITY_WEIGHT, term) for term in self.affinity)
        yield from self.preferred


NO_TERMS: Final = PodTerms()


def terms_of(needs: PodNeeds) -> PodTerms:
    """The terms of a pod, or the problem with them."""
    if not needs.shape.depends_on_pods:
        return NO_TERMS
    try:
        return _parse(needs)
    except SelectorError as error:
        return PodTerms(problem=f"parsing pod: {error}")


def _parse(needs: PodNeeds) -> PodTerms:
    shape = needs.shape
    affinity = shape.affinity or Affinity()
    attract, repel = affinity.pod_affinity, affinity.pod_anti_affinity
    return PodTerms(
        tuple(_affinity_term(needs, term) for term in _required(attract)),
        tuple(_affinity_term(needs, term) for term in _required(repel)),
        (*_preferred(needs, attract, 1), *_preferred(needs, repel, -1)),
        tuple(_spread_terms(needs, DO_NOT_SCHEDULE)),
        tuple(_spread_terms(needs, SCHEDULE_ANYWAY)),
    )


def _required(affinity: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


def _preferred(
    needs: PodNeeds, affinity: PodAffinity | None, sign: int
) -> Iterable[tuple[int, AffinityTerm]]:
    if affinity is None:
        return
    for term in affinity.preferred_during_scheduling_ignored_during_execution:
        yield sign * term.weight, _affinity_term(needs, term.pod_affinity_term)


def _affinity_term(needs: PodNeeds, term: PodAffinityTerm) -> AffinityTerm:
    requirements = _requirements(term.label_selector)
    if requirements is not None:
        requirements += _same_as_own(needs, term.match_label_keys, "In")
        requirements += _same_as_own(needs, term.mismatch_label_keys, "NotIn")
    namespaces = frozenset(term.namespaces)
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((needs.namespace,))
    return _interned_affinity(
        term.topology_key, requirements, namespaces, _requirements(term.namespace_selector)
    )


def _spread_terms(needs: PodNeeds, when: str) -> Iterable[SpreadTerm]:
    for constraint in needs.shape.spread:
        if constraint.when_unsatisfiable == when:
            yield _spread_term(needs, constraint)


def _spread_term(needs: PodNeeds, constraint: TopologySpreadConstraint) -> SpreadTerm:
    requirements = _requirements(constraint.label_selector)
    if requirements is not None:
        requirements += _same_as_own(needs, constraint.match_label_keys, "In")
    return _interned_spread(
        constraint.topology_key,
        requirements,
        constraint.max_skew,
        1 if constraint.min_domains is None else constraint.min_domains,
        constraint.node_affinity_policy != "Ignore",
        constraint.node_taints_policy == "Honor",
    )


def _requirements(selector: LabelSelector | None) -> Requirements:
    if selector is None:
        return None
    labels = ((key, "In", (value,)) for key, value in selector.match_labels.items())
    expressions = ((e.key, e.operator, e.values) for e in selector.match_expressions)
    return *labels, *expressions


def _same_as_own(needs: PodNeeds, keys: Iterable[str], operator: str) -> tuple[Requirement, ...]:
    """Requirements on the values that the pod itself has for some labels. Keys that it lacks are ignored."""
    return tuple((key, operator, (needs.labels[key],)) for key in keys if key in needs.labels)


@lru_cache(maxsize=1 << 12)
def _interned_affinity(
    topology_key: str,
    requirements: Requirements,
    namespaces: frozenset[str],
    namespace_requirements: Requirements,
) -> AffinityTerm:
    return AffinityTerm(
        topology_key,
        _selector(requirements),
        namespaces,
        _selector(namespace_requirements),
    )


@lru_cache(maxsize=1 << 12)
def _interned_spread(
    topology_key: str,
    requirements: Requirements,
    max_skew: int,
    min_domains: int,
    honour_affinity: bool,
    honour_taints: bool,
) -> SpreadTerm:
    return SpreadTerm(
        topology_key,
        _selector(requirements),
        max_skew,
        min_domains,
        honour_affinity,
        honour_taints,
    )


@lru_cache(maxsize=1 << 12)
def _selector(requirements: Requirements) -> Selector:
    if requirements is None:
        return Selector(None, empty=True)
    for key, operator, _ in requirements:
        if operator in ("Gt", "Lt"):
            raise SelectorError(f"label {key!r}: {operator!r} is for node selectors only")
    return Selector(
        LabelMatcher(tuple(parse_requirement(*requirement) for requirement in requirements)),
        empty=not requirements,
    )
