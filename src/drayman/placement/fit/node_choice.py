"""Which nodes a pod may go to and which it prefers, by their labels and names.

Unlike elsewhere, a term that cannot be understood is not an error here: as upstream, it matches no node and the other terms still count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from drayman.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from drayman.api.errors import SelectorError
from drayman.api.nodeselector import TermMatcher, compile_selector

HOSTNAME: Final = "kubernetes.io/hostname"

Labels = Mapping[str, str]


class NodeChoice(Struct, frozen=True):
    """The parsed selector and affinity of a pod. `by_name` says that they look at something unique to each node."""

    labels: tuple[tuple[str, str], ...] = ()
    terms: tuple[TermMatcher, ...] | None = None
    preferred: tuple[tuple[int, TermMatcher], ...] = ()
    by_name: bool = False

    def allows(self, labels: Labels, name: str) -> bool:
        for key, value in self.labels:
            if labels.get(key) != value:
                return False
        if self.terms is None:
            return True
        return any(term.matches(labels, name) for term in self.terms)

    def weight(self, labels: Labels, name: str) -> int:
        """The sum of the weights of the preferences that a node meets."""
        return sum(weight for weight, term in self.preferred if term.matches(labels, name))


ANY_NODE: Final = NodeChoice()


def node_choice(selector: Mapping[str, str], affinity: Affinity | None) -> NodeChoice:
    node_affinity = affinity.node_affinity if affinity is not None else None
    if node_affinity is None:
        if not selector:
            return ANY_NODE
        return NodeChoice(tuple(sorted(selector.items())), by_name=HOSTNAME in selector)
    required = node_affinity.required_during_scheduling_ignored_during_execution
    preferred = node_affinity.preferred_during_scheduling_ignored_during_execution
    return NodeChoice(
        tuple(sorted(selector.items())),
        None if required is None else _required(required),
        _preferred(preferred),
        HOSTNAME in selector or _looks_at_names(node_affinity),
    )


def _required(selector: NodeSelector) -> tuple[TermMatcher, ...]:
    found = (_parse(term) for term in selector.node_selector_terms)
    return tuple(term for term in found if term is not None)


def _preferred(terms: tuple[PreferredSchedulingTerm, ...]) -> tuple[tuple[int, TermMatcher], ...]:
    found = ((term.weight, _parse(term.preference)) for term in terms if term.weight)
    return tuple((weight, term) for weight, term in found if term is not None)


def _parse(term: NodeSelectorTerm) -> TermMatcher | None:
    """The term, or None where it is empty or makes no sense: both match nothing."""
    try:
        terms = compile_selector(NodeSelector(node_selector_terms=(term,))).terms
    except SelectorError:
        return None
    return terms[0] if terms else None


def _looks_at_names(affinity: NodeAffinity) -> bool:
    required = affinity.required_during_scheduling_ignored_during_execution
    terms = [
        *(required.node_selector_terms if required is not None else ()),
        *(
            term.preference
            for term in affinity.preferred_during_scheduling_ignored_during_execution
        ),
    ]
    return any(
        term.match_fields or any(e.key == HOSTNAME for e in term.match_expressions)
        for term in terms
    )
