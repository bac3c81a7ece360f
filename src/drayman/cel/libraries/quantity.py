"""`quantity()`: resource quantities in expressions.

`isInteger`, `asInteger` and `asApproximateFloat` do not depend on the amount alone. Upstream keeps a number that is short enough as 64 bits
and a power of ten, and looks at those: `1000m` is not an integer, nor is `1.5Gi`, which is too long. `FixedPoint` is that form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

from drayman.api.quantity import BINARY_SUFFIXES, DECIMAL_SUFFIXES, Quantity
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Library, member, priced, static, succeeds
from drayman.cel.libraries.rules import NOMINAL, TRAVERSAL, nominal_estimate
from drayman.cel.types import BOOL, DOUBLE, INT, STRING, object_type
from drayman.cel.values import INT_MAX, INT_MIN, Opaque, no_such_overload

QUANTITY = object_type("kubernetes.Quantity")

_PARTS = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?(.*)")
_MAX_DIGITS, _MAX_BINARY_DIGITS = 18, 14
_SMALLEST_SCALE = -9


class FixedPoint(NamedTuple):
    """`value` times ten to the `scale`."""

    value: int
    scale: int

    def __neg__(self) -> FixedPoint:
        return FixedPoint(-self.value, self.scale)

    def plus(self, other: FixedPoint) -> FixedPoint | None:
        """The sum at the smaller scale; None where that does not fit 64 bits."""
        if not other.value:
            return self
        if not self.value:
            return other
        scale = min(self.scale, other.scale)
        parts = [number.value * 10 ** (number.scale - scale) for number in (self, other)]
        fits = all(INT_MIN <= number <= INT_MAX for number in (*parts, sum(parts)))
        return FixedPoint(sum(parts), scale) if fits else None


@lru_cache(maxsize=1 << 12)
def fixed_point(text: str) -> FixedPoint | None:
    """The form upstream gives to a valid quantity; None if it needs more than 64 bits for it."""
    match = _PARTS.fullmatch(text)
    assert match is not None
    sign, whole, fraction, suffix = match[1], match[2] or "0", match[3] or "", match[4]
    factor, scale = 1, 0
    if suffix in BINARY_SUFFIXES:
        factor = 1 << BINARY_SUFFIXES[suffix]
        room = _MAX_BINARY_DIGITS - BINARY_SUFFIXES[suffix] * 3 // 10 if not fraction else -1
    else:
        room = _MAX_DIGITS - len(fraction)
        scale = DECIMAL_SUFFIXES[suffix] if suffix in DECIMAL_SUFFIXES else int(suffix[1:])
    value = int(whole + fraction) * factor
    scale -= len(fraction)
    if len(whole) > room or scale < _SMALLEST_SCALE or value > INT_MAX:
        return None
    return FixedPoint(-value if sign == "-" else value, scale)


@dataclass(frozen=True, slots=True, eq=False)
class QuantityValue(Opaque):
    type_name: ClassVar[str] = QUANTITY.name

    quantity: Quantity
    number: FixedPoint | None
    computed: bool = False  # by `add` or `sub`

    @classmethod
    def of(cls, quantity: Quantity) -> QuantityValue:
        """From a quantity of the API, which keeps its text."""
        return cls(quantity, fixed_point(str(quantity)))

    def equals(self, other: object) -> bool:
        # Upstream returns sums as pointers, which its equality does not recognise on the right-hand side.
        if not isinstance(other, QuantityValue) or other.computed:
            raise no_such_overload()
        return self.quantity == other.quantity


def parse_quantity(text: str) -> QuantityValue:
    try:
        return QuantityValue(Quantity.parse(text), fixed_point(text))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


is_quantity = succeeds(Quantity.parse)


def sign(value: QuantityValue) -> int:
    return compare_to(value, _ZERO)


def compare_to(left: QuantityValue, right: QuantityValue) -> int:
    a, b = left.quantity.amount, right.quantity.amount
    return (a > b) - (a < b)


def _is_greater(left: QuantityValue, right: QuantityValue) -> bool:
    return compare_to(left, right) > 0


def _is_less(left: QuantityValue, right: QuantityValue) -> bool:
    return compare_to(left, right) < 0


def is_integer(value: QuantityValue) -> bool:
    return _integer(value) is not None


def as_integer(value: QuantityValue) -> int:
    integer = _integer(value)
    if integer is None:
        raise EvaluationError("cannot convert value to integer")
    return integer


def _integer(value: QuantityValue) -> int | None:
    if value.number is None or value.number.scale < 0:
        return None
    amount = value.quantity.amount
    return amount if isinstance(amount, int) and INT_MIN <= amount <= INT_MAX else None


def as_approximate_float(value: QuantityValue) -> float:
    """Two roundings, of the digits and of the power of ten, as upstream does it: `0.7` gives 0.7000000000000001."""
    number = value.number
    if number is None:
        number = FixedPoint(int(value.quantity.amount * 10**-_SMALLEST_SCALE), _SMALLEST_SCALE)
    return float(number.value) * float(f"1e{number.scale}")


def add(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    number = None
    if left.number is not None and right.number is not None:
        number = left.number.plus(right.number)
    return QuantityValue(left.quantity + right.quantity, number, computed=True)


def sub(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    number = None
    if left.number is not None and right.number is not None:
        number = left.number.plus(-right.number)
    return QuantityValue(left.quantity - right.quantity, number, computed=True)


def _whole(number: int) -> QuantityValue:
    return QuantityValue(Quantity(number), FixedPoint(number, 0))


def add_int(left: QuantityValue, right: int) -> QuantityValue:
    return add(left, _whole(right))


def sub_int(left: QuantityValue, right: int) -> QuantityValue:
    # In 64 bits the smallest number is its own negative.
    return add(left, _whole(right if right == INT_MIN else -right))


_ZERO = _whole(0)


_ONE, _PAIR = (QUANTITY,), (QUANTITY, QUANTITY)
_WITH_INT = (QUANTITY, INT)

QUANTITIES = Library(
    "kubernetes.quantity",
    functions=(
        *priced(
            TRAVERSAL,
            static("quantity", "string_to_quantity", (STRING,), QUANTITY, parse_quantity),
            static("isQuantity", "is_quantity_string", (STRING,), BOOL, is_quantity),
        ),
        *priced(
            NOMINAL,
            static("sign", "quantity_sign", _ONE, INT, sign),
            member("isGreaterThan", "quantity_is_greater_than", _PAIR, BOOL, _is_greater),
            member("isLessThan", "quantity_is_less_than", _PAIR, BOOL, _is_less),
            member("compareTo", "quantity_compare_to", _PAIR, INT, compare_to),
            member("asApproximateFloat", "quantity_get_float", _ONE, DOUBLE, as_approximate_float),
            member("asInteger", "quantity_get_int", _ONE, INT, as_integer),
            member("isInteger", "quantity_is_integer", _ONE, BOOL, is_integer),
            member("add", "quantity_add", _PAIR, QUANTITY, add),
            member("add", "quantity_add_int", _WITH_INT, QUANTITY, add_int),
            member("sub", "quantity_sub", _PAIR, QUANTITY, sub),
            member("sub", "quantity_sub_int", _WITH_INT, QUANTITY, sub_int),
        ),
    ),
    equality={QUANTITY.name: nominal_estimate},
)
