"""How library functions look at the elements of lists: an order that never fails."""

from __future__ import annotations

from drayman.cel.errors import AbortError, EvaluationError
from drayman.cel.standard.comparison import compare
from drayman.cel.times import Duration, Timestamp
from drayman.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type

COMPARABLE_TYPES: dict[str, Type] = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
"""By the short names that overload ids have."""

_COMPARABLE = (bool, int, float, str, bytes, Timestamp, Duration)


def is_comparable(value: object) -> bool:
    return isinstance(value, _COMPARABLE)


def order(left: object, right: object) -> int:
    """-1, 0 or 1; 0 also where there is no order, such as between a number and a string or with NaN."""
    try:
        return compare(left, right)
    except AbortError:
        raise
    except EvaluationError:
        return 0
