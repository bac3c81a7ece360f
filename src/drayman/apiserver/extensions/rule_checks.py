"""The rules of a schema: they compile, and no object can make them too expensive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, forbidden, invalid
from drayman.apiserver.extensions.rules import Compiled, RuleNode
from drayman.apiserver.extensions.schemas import LIST_TYPE, RULES, Schema, additional
from drayman.cel.costs import MAX

RULE_LIMIT: Final = 10_000_000
SCHEMA_LIMIT: Final = 100_000_000
_MOST_EXPENSIVE: Final = 4
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and"
    " strings are declared)"
)
_GO_NAMES: Final = {
    "Rule": ("rule", ""),
    "Message": ("message", ""),
    "MessageExpression": ("messageExpression", ""),
    "Reason": ("reason", None),
    "FieldPath": ("fieldPath", ""),
    "OptionalOldSelf": ("optionalOldSelf", None),
}


@dataclass(slots=True)
class _Total:
    cost: int = 0
    expensive: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: str, cost: int) -> None:
        self.cost = min(self.cost + cost, MAX)
        if cost >= SCHEMA_LIMIT // 100:
            self.expensive.append((cost, path))
            self.expensive.sort(key=lambda one: -one[0])
            del self.expensive[_MOST_EXPENSIVE:]


@dataclass(frozen=True, slots=True)
class _Place:
    path: str
    count: int | None = 1
    """How many values there can be at this place; None where nothing limits it."""
    uncorrelated: str | None = None
    """The list below which the old value of a value cannot be determined."""


def rule_errors(tree: RuleNode | None, path: str) -> Iterator[FieldError]:
    """The errors of all rules of a schema."""
    if tree is None:
        return
    total = _Total()
    yield from _node_errors(tree, _Place(path), total)
    if total.cost > SCHEMA_LIMIT:
        for _, where in total.expensive:
            text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(where, text)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _too_costly(what, total.cost, SCHEMA_LIMIT))


def _node_errors(node: RuleNode, place: _Place, total: _Total) -> Iterator[FieldError]:
    for position, rule in enumerate(node.rules):
        yield from _rule_errors(node, rule, place, f"{place.path}.{RULES}[{position}]", total)
    count = _times(place.count, _most_elements(node.schema))
    if node.additional is not None:
        below = _Place(f"{place.path}.additionalProperties", count, place.uncorrelated)
        yield from _node_errors(node.additional, below, total)
    for name, inner in node.fields.items():
        below = _Place(f"{place.path}.properties[{name}]", count, place.uncorrelated)
        yield from _node_errors(inner, below, total)
    if node.items is not None:
        uncorrelated = place.uncorrelated
        if uncorrelated is None and node.schema.get(LIST_TYPE) != "map":
            uncorrelated = place.path
        below = _Place(f"{place.path}.items", count, uncorrelated)
        yield from _node_errors(node.items, below, total)


def _most_elements(schema: Schema) -> int | None:
    match schema.get("type"):
        case "object" if additional(schema) is not None:
            limit: int | None = schema.get("maxProperties")
        case "array":
            limit = schema.get("maxItems")
        case _:
            return 1
    return None if limit is None else max(limit, 0)


def _times(count: int | None, each: int | None) -> int | None:
    return None if count is None or each is None else min(count * each, MAX)


def _rule_errors(
    node: RuleNode, rule: Compiled, place: _Place, path: str, total: _Total
) -> Iterator[FieldError]:
    if rule.problem:
        yield invalid(f"{path}.rule", _as_go(rule.rule), rule.problem)
    if rule.program is not None:
        count = node.max_cardinality if place.count is None else place.count
        cost = min(rule.program.max_cost * count, MAX)
        if cost > RULE_LIMIT:
            text = _too_costly("estimated rule cost", cost, RULE_LIMIT)
            yield forbidden(f"{path}.rule", text)
        total.add(f"{path}.rule", cost)
    if rule.message_problem:
        yield invalid(f"{path}.messageExpression", _as_go(rule.rule), rule.message_problem)
    if rule.message is not None:
        cost = rule.message.max_cost
        if cost > RULE_LIMIT:
            text = _too_costly("estimated messageExpression cost", cost, RULE_LIMIT)
            yield forbidden(f"{path}.messageExpression", text)
        total.add(f"{path}.messageExpression", cost)
    yield from _old_self_errors(rule, place, path)


def _old_self_errors(rule: Compiled, place: _Place, path: str) -> Iterator[FieldError]:
    if rule.uses_old_self:
        if place.uncorrelated is not None:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelated}"
            yield invalid(f"{path}.rule", rule.rule.get("rule"), text)
    elif rule.rule.get("optionalOldSelf") is not None and not rule.problem:
        text = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", rule.rule["optionalOldSelf"], text)


def _too_costly(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_ADVICE}"


def _as_go(rule: Mapping[str, Json]) -> dict[str, Json]:
    """A rule as the real server shows it, with its internal names."""
    return {shown: rule.get(name, absent) for shown, (name, absent) in _GO_NAMES.items()}
