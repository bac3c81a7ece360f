"""Doubles as text."""

from __future__ import annotations

import math
from decimal import Decimal

_SCIENTIFIC_FROM, _SCIENTIFIC_BELOW = 6, -4


def not_finite(value: float) -> str:
    """The name of a value that is not finite."""
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def shortest_double(value: float) -> str:
    """The fewest digits that identify the number; with an exponent from a million on and below 0.0001."""
    if not math.isfinite(value):
        return not_finite(value)
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if _SCIENTIFIC_BELOW <= exponent < _SCIENTIFIC_FROM:
        return f"{number:f}"
    return f"{number.scaleb(-exponent):f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def grouped_double(value: float, precision: int) -> str:
    """With commas between thousands."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value + 0.0:,.{precision}f}"  # adding zero drops the sign of a negative zero
