"""Equality, order, and the logical operators.

`&&`, `||`, `?:` and `@not_strictly_false` see errors as values, so the interpreter runs
them itself and the functions declared here only carry their signatures.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from drayman.cel import types
from drayman.cel.costs import STRING_TRAVERSAL, CallEstimate, CostEstimate, CostNode, actual_size
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import NO_RULE, Function, Library, Rule, static
from drayman.cel.times import Duration, Timestamp
from drayman.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, TypeKind
from drayman.cel.values import Opaque, equal, is_number, no_such_overload

_A = types.parameter("A")
_SCALARS = {
    "bool": BOOL,
    "int64": INT,
    "uint64": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
}
_NUMBERS = ("int64", "uint64", "double")
_ORDERED = (bool, str, bytes, Timestamp, Duration)


def compare(left: object, right: object) -> int:
    """-1, 0 or 1. Raises EvaluationError for values that have no order between them."""
    if is_number(left) and is_number(right):
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)  # type: ignore[arg-type]
            if left != left or right != right:
                raise EvaluationError("NaN values cannot be ordered")
    elif type(left) is not type(right) or not isinstance(left, _ORDERED):
        raise no_such_overload()
    return bool(left > right) - bool(left < right)  # type: ignore[operator]


def comparison_estimate(args: Sequence[CostNode]) -> CallEstimate:
    smallest = min(args[0].size.max, args[1].size.max)
    bounds = CostEstimate(1 if smallest > 0 else 0, smallest)
    return CallEstimate(bounds.scaled(STRING_TRAVERSAL))


def comparison_cost(args: Sequence[object], result: object) -> int:
    smallest = min(actual_size(args[0]), actual_size(args[1]))
    return math.ceil(smallest * STRING_TRAVERSAL)


_COMPARED = Rule(comparison_estimate, comparison_cost)


def _equality_cost(args: Sequence[object], result: object) -> int:
    return 1 if isinstance(args[0], Opaque) else comparison_cost(args, result)


def _ordering(name: str, function: str, direct: Callable[..., bool]) -> Iterator[Function]:
    """`direct` is Python's own operator, used where both values have the same, totally ordered type."""

    def run(left: object, right: object) -> bool:
        return direct(compare(left, right), 0)

    for scalar, type_ in _SCALARS.items():
        rule = _COMPARED if type_.kind in (TypeKind.STRING, TypeKind.BYTES) else NO_RULE
        implementation = run if scalar == "double" else direct
        yield static(function, f"{name}_{scalar}", (type_, type_), BOOL, implementation, rule)
    for left, right in permutations(_NUMBERS, 2):
        params = (_SCALARS[left], _SCALARS[right])
        yield static(function, f"{name}_{left}_{right}", params, BOOL, run)


def _only_interpreted(*args: object) -> object:
    raise no_such_overload()


_EQUAL = Rule(comparison_estimate, _equality_cost)

COMPARISON = Library(
    "comparison",
    (
        static("_&&_", "logical_and", (BOOL, BOOL), BOOL, _only_interpreted),
        static("_||_", "logical_or", (BOOL, BOOL), BOOL, _only_interpreted),
        static("_?_:_", "conditional", (BOOL, _A, _A), _A, _only_interpreted),
        static("!_", "logical_not", (BOOL,), BOOL, operator.not_),
        static("@not_strictly_false", "not_strictly_false", (BOOL,), BOOL, _only_interpreted),
        static("_==_", "equals", (_A, _A), BOOL, equal, _EQUAL),
        static("_!=_", "not_equals", (_A, _A), BOOL, lambda a, b: not equal(a, b), _COMPARED),
        *_ordering("less", "_<_", operator.lt),
        *_ordering("less_equals", "_<=_", operator.le),
        *_ordering("greater", "_>_", operator.gt),
        *_ordering("greater_equals", "_>=_", operator.ge),
    ),
)
