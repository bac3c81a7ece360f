"""Node selectors: which nodes a slice, a device or an allocation is for.

Terms are alternatives; a term's expressions and fields must all hold; a term without any matches no node. As upstream, an
operator or value that cannot be understood makes the whole selector an error. Selectors are compared by value, so equal
ones are parsed once, however many objects carry them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from drayman.api.errors import SelectorError
from drayman.api.labels import Labels, Requirement, parse_requirement

if TYPE_CHECKING:
    from drayman.api.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm


class FieldRequirement(Struct, frozen=True):
    """A requirement on a field of the node. Only `metadata.name` has a value."""

    key: str
    value: str
    equal: bool

    def meets(self, name: str) -> bool:
        actual = name if self.key == "metadata.name" else ""
        return (actual == self.value) is self.equal


class TermMatcher(Struct, frozen=True):
    labels: tuple[Requirement, ...]
    fields: tuple[FieldRequirement, ...]

    def matches(self, labels: Labels, name: str) -> bool:
        if not all(meets(labels) for meets in self.labels):
            return False
        # Upstream ignores fields on a node without a name.
        return not name or all(field.meets(name) for field in self.fields)


class NodeMatcher(Struct, frozen=True):
    """A parsed node selector."""

    terms: tuple[TermMatcher, ...]

    def matches(self, node: Node) -> bool:
        labels, name = node.metadata.labels, node.metadata.name
        return any(term.matches(labels, name) for term in self.terms)


def matches(selector: NodeSelector, node: Node) -> bool:
    """Whether a node meets a selector. Raises SelectorError where the selector cannot be understood."""
    return compile_selector(selector).matches(node)


@lru_cache(maxsize=1 << 14)
def compile_selector(selector: NodeSelector) -> NodeMatcher:
    """Parse a node selector. Raises SelectorError."""
    return NodeMatcher(
        tuple(
            _parse_term(term)
            for term in selector.node_selector_terms
            if term.match_expressions or term.match_fields
        )
    )


def _parse_term(term: NodeSelectorTerm) -> TermMatcher:
    return TermMatcher(
        tuple(parse_requirement(r.key, r.operator, r.values) for r in term.match_expressions),
        tuple(map(_parse_field, term.match_fields)),
    )


def _parse_field(requirement: NodeSelectorRequirement) -> FieldRequirement:
    if requirement.operator not in ("In", "NotIn"):
        raise SelectorError(
            f"field {requirement.key!r}: {requirement.operator!r} is not a valid operator here,"
            " only In and NotIn are"
        )
    if len(requirement.values) != 1:
        raise SelectorError(f"field {requirement.key!r} needs exactly one value")
    return FieldRequirement(
        requirement.key, requirement.values[0], equal=requirement.operator == "In"
    )
