"""Node selectors inside other objects."""

from __future__ import annotations

from typing import Final

from drayman.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from drayman.api.validation.containers import Errors
from drayman.api.validation.field_errors import forbidden, invalid, required
from drayman.api.validation.names import dns_subdomain, label_key, label_value

_BAD_OPERATOR: Final = "not a valid selector operator"


def check_node_selector(selector: NodeSelector, path: str, *, check_values: bool = True) -> Errors:
    """A selector. Values that no label can have match nothing, which some places accept."""
    terms = selector.node_selector_terms
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from _term(term, f"{path}.nodeSelectorTerms[{index}]", check_values)


def _term(term: NodeSelectorTerm, path: str, check_values: bool) -> Errors:
    for index, expression in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{index}]"
        yield from _expression(expression, where)
        for place, value in enumerate(expression.values if check_values else ()):
            yield from label_value(value, f"{where}.values[{place}]")
    for index, field in enumerate(term.match_fields):
        yield from _field(field, f"{path}.matchFields[{index}]")


def _expression(requirement: NodeSelectorRequirement, path: str) -> Errors:
    operator, values = requirement.operator, requirement.values
    match operator:
        case "In" | "NotIn":
            if not values:
                yield required(
                    f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"
                )
        case "Exists" | "DoesNotExist":
            if values:
                yield forbidden(
                    f"{path}.values",
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )
        case "Gt" | "Lt":
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{path}.values", detail)
        case _:
            yield invalid(f"{path}.operator", operator, _BAD_OPERATOR)
    yield from label_key(requirement.key, f"{path}.key")


def _field(requirement: NodeSelectorRequirement, path: str) -> Errors:
    operator, values = requirement.operator, requirement.values
    if operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", operator, _BAD_OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if requirement.key != "metadata.name":
        yield invalid(f"{path}.key", requirement.key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from dns_subdomain(value, f"{path}.values[{index}]")
