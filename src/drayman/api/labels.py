"""Label selectors: the requirements on labels that pods, node affinity and spreading share.

A selector is parsed once into requirements that then match without looking at operators again. What upstream refuses to parse
raises SelectorError here too, rather than matching nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from drayman.api.errors import SelectorError
from drayman.api.formats import label_key_problems, label_value_problems
from drayman.api.integers import parse_integer

if TYPE_CHECKING:
    from drayman.api.meta import LabelSelector

Labels = Mapping[str, str]
Requirement = Callable[[Labels], bool]
"""A parsed requirement: whether labels meet it."""

_SELECTOR_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


class LabelMatcher(Struct, frozen=True):
    """A parsed label selector. Without requirements it matches everything."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Labels) -> bool:
        return all(meets(labels) for meets in self.requirements)


def compile_selector(selector: LabelSelector) -> LabelMatcher:
    """Parse a label selector. Raises SelectorError."""
    requirements = [
        parse_requirement(key, "In", (value,)) for key, value in selector.match_labels.items()
    ]
    for expression in selector.match_expressions:
        if expression.operator not in _SELECTOR_OPERATORS:
            raise SelectorError(f"{expression.operator!r} is not a valid label selector operator")
        requirements.append(
            parse_requirement(expression.key, expression.operator, expression.values)
        )
    return LabelMatcher(tuple(requirements))


def matches(selector: LabelSelector | None, labels: Labels) -> bool:
    """Whether labels meet a selector. An absent selector matches nothing, an empty one everything."""
    return selector is not None and compile_selector(selector).matches(labels)


@lru_cache(maxsize=1 << 12)
def parse_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """One requirement on a label. Raises SelectorError on an operator or on values that make no sense."""
    if problems := label_key_problems(key):
        raise SelectorError(f"label key {key!r}: {problems[0]}")
    for value in values:
        if problems := label_value_problems(value):
            raise SelectorError(f"value {value!r} of label {key!r}: {problems[0]}")
    match operator:
        case "In" | "NotIn":
            if not values:
                raise SelectorError(f"label {key!r}: operator {operator} needs values")
            return _membership(key, frozenset(values), wanted=operator == "In")
        case "Exists" | "DoesNotExist":
            if values:
                raise SelectorError(f"label {key!r}: operator {operator} takes no values")
            wanted = operator == "Exists"
            return lambda labels: (key in labels) is wanted
        case "Gt" | "Lt":
            return _comparison(key, operator, values)
        case _:
            raise SelectorError(f"{operator!r} is not a valid selector operator")


def _membership(key: str, values: frozenset[str], *, wanted: bool) -> Requirement:
    # An absent label is in no set: it meets NotIn and fails In.
    return lambda labels: (labels.get(key) in values) is wanted


def _comparison(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    bound = parse_integer(values[0]) if len(values) == 1 else None
    if bound is None:
        raise SelectorError(f"label {key!r}: operator {operator} needs exactly one integer")

    def compare(labels: Labels) -> bool:
        number = parse_integer(labels.get(key, ""))
        if number is None:
            return False
        return number > bound if operator == "Gt" else number < bound

    return compare
