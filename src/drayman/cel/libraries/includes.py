"""`x.includes(v)`, for attributes that may be lists or single values. Part of DRAListTypeAttributes."""

from __future__ import annotations

from drayman.cel.costs import UNIT, CallEstimate, SizeEstimate
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Library, Rule, member
from drayman.cel.types import BOOL, DYN
from drayman.cel.values import LISTS, same

MAX_VALUES = 48
"""The maximum number of values that all attributes of a device may have together."""


def includes(target: object, value: object) -> bool:
    if not isinstance(target, LISTS):
        return same(target, value)
    for index, item in enumerate(target):
        if index >= MAX_VALUES:
            raise EvaluationError(
                f"'includes' function cannot be applied to lists longer than {MAX_VALUES} values"
            )
        if same(item, value):
            return True
    return False


_RULE = Rule(lambda args: CallEstimate(SizeEstimate(0, MAX_VALUES).times(UNIT)))

INCLUDES = Library(
    "dra.includes", (member("includes", "dra_includes_dyn_dyn", (DYN, DYN), BOOL, includes, _RULE),)
)
