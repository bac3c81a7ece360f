"""Numbers as Go prints them in messages."""

from __future__ import annotations

from typing import Final

_LARGEST_PLAIN: Final = 1e21
_SMALLEST_PLAIN: Final = 1e-4


def go_number(value: float) -> str:
    """A number in the shortest form that reads back the same; large and tiny ones with an exponent."""
    if isinstance(value, int) and abs(value) < _LARGEST_PLAIN:
        return str(value)
    number = float(value)
    if number == 0 or _SMALLEST_PLAIN <= abs(number) < _LARGEST_PLAIN:
        return str(int(number)) if number.is_integer() else repr(number)
    mantissa, _, exponent = repr(number).partition("e")
    if not exponent:
        mantissa, _, exponent = f"{number:e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
    sign, digits = exponent[0], exponent.lstrip("+-").lstrip("0")
    return f"{mantissa.removesuffix('.0')}e{'-' if sign == '-' else '+'}{digits.zfill(2)}"
