"""Node selectors inside other objects."""

from __future__ import annotations

from drayman.api import formats
from drayman.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from drayman.api.validation.containers import Errors
from drayman.api.validation.field_errors import forbidden, invalid, invalid_each, required
from drayman.api.validation.names import label_key, label_value


def check_node_selector(selector: NodeSelector, path: str) -> Errors:
    terms = selector.node_selector_terms
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one term")
    for index, term in enumerate(terms):
        yield from _term(term, f"{path}.nodeSelectorTerms[{index}]")


def _term(term: NodeSelectorTerm, path: str) -> Errors:
    for index, expression in enumerate(term.match_expressions):
        yield from _expression(expression, f"{path}.matchExpressions[{index}]")
    for index, field in enumerate(term.match_fields):
        yield from _field(field, f"{path}.matchFields[{index}]")


def _expression(requirement: NodeSelectorRequirement, path: str) -> Errors:
    operator, values = requirement.operator, requirement.values
    match operator:
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", f"operator {operator} needs values")
        case "Exists" | "DoesNotExist":
            if values:
                yield forbidden(f"{path}.values", f"operator {operator} takes no values")
        case "Gt" | "Lt":
            if len(values) != 1:
                yield required(f"{path}.values", f"operator {operator} needs exactly one value")
        case _:
            yield invalid(f"{path}.operator", operator, "is not a node selector operator")
    yield from label_key(requirement.key, f"{path}.key")
    for index, value in enumerate(values):
        yield from label_value(value, f"{path}.values[{index}]")


def _field(requirement: NodeSelectorRequirement, path: str) -> Errors:
    operator, values = requirement.operator, requirement.values
    if operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", operator, "is not an operator for node fields")
    elif len(values) != 1:
        yield required(f"{path}.values", f"operator {operator} needs exactly one value")
    if requirement.key != "metadata.name":
        yield invalid(f"{path}.key", requirement.key, "is not a node field that can be selected")
        return
    for index, value in enumerate(values):
        problems = formats.dns_subdomain_problems(value)
        yield from invalid_each(f"{path}.values[{index}]", value, problems)
