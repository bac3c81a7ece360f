"""`quantity()`: resource quantities in expressions.

`isInteger`, `asInteger` and `asApproximateFloat` do not depend on the amount alone. Upstream keeps a number that is short enough as 64 bits
and a power of ten, and looks at those: `1000m` is not an integer, nor is `1.5Gi`, which is too long. `FixedPoint` is that form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

from drayman.api.quantity import Quantity
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Library, Overload
from drayman.cel.libraries.rules import (
    nominal_cost,
    nominal_estimate,
    traversal_cost,
    traversal_estimate,
)
from drayman.cel.types import BOOL, DOUBLE, INT, STRING, Type, object_type
from drayman.cel.values import INT_MAX, INT_MIN, Opaque, no_such_overload

QUANTITY = object_type("kubernetes.Quantity")

_PARTS = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?(.*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
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
    if suffix in _BINARY:
        factor = 1 << _BINARY[suffix]
        room = _MAX_BINARY_DIGITS - _BINARY[suffix] * 3 // 10 if not fraction else -1
    else:
        room = _MAX_DIGITS - len(fraction)
        scale = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
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


def is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except ValueError:
        return False
    return True


def sign(value: QuantityValue) -> int:
    return compare_to(value, _ZERO)


def compare_to(left: QuantityValue, right: QuantityValue) -> int:
    a, b = left.quantity.amount, right.quantity.amount
    return (a > b) - (a < b)


def is_greater_than(left: QuantityValue, right: QuantityValue) -> bool:
    return left.quantity.amount > right.quantity.amount


def is_less_than(left: QuantityValue, right: QuantityValue) -> bool:
    return left.quantity.amount < right.quantity.amount


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


def _reading(name: str, id: str, implementation: Callable[[str], object], result: Type) -> Function:
    return Function(
        name,
        (Overload(id, (STRING,), result, implementation),),
        traversal_estimate(),
        traversal_cost(),
    )


def _member(
    name: str,
    *variants: tuple[str, Callable[..., object]],
    result: Type,
    others: tuple[Type, ...] = (),
) -> Function:
    """A member function; the variants differ in the type of the argument, if any, given by `others`."""
    arguments: list[tuple[Type, ...]] = [(other,) for other in others] or [()]
    overloads = tuple(
        Overload(id, (QUANTITY, *argument), result, implementation, member=True)
        for (id, implementation), argument in zip(variants, arguments, strict=True)
    )
    return Function(name, overloads, nominal_estimate, nominal_cost)


QUANTITIES = Library(
    "kubernetes.quantity",
    functions=(
        _reading("quantity", "string_to_quantity", parse_quantity, QUANTITY),
        _reading("isQuantity", "is_quantity_string", is_quantity, BOOL),
        Function(
            "sign",
            (Overload("quantity_sign", (QUANTITY,), INT, sign),),
            nominal_estimate,
            nominal_cost,
        ),
        _member(
            "isGreaterThan",
            ("quantity_is_greater_than", is_greater_than),
            result=BOOL,
            others=(QUANTITY,),
        ),
        _member(
            "isLessThan", ("quantity_is_less_than", is_less_than), result=BOOL, others=(QUANTITY,)
        ),
        _member("compareTo", ("quantity_compare_to", compare_to), result=INT, others=(QUANTITY,)),
        _member("asApproximateFloat", ("quantity_get_float", as_approximate_float), result=DOUBLE),
        _member("asInteger", ("quantity_get_int", as_integer), result=INT),
        _member("isInteger", ("quantity_is_integer", is_integer), result=BOOL),
        _member(
            "add",
            ("quantity_add", add),
            ("quantity_add_int", add_int),
            result=QUANTITY,
            others=(QUANTITY, INT),
        ),
        _member(
            "sub",
            ("quantity_sub", sub),
            ("quantity_sub_int", sub_int),
            result=QUANTITY,
            others=(QUANTITY, INT),
        ),
    ),
    equality={QUANTITY.name: nominal_estimate},
)
