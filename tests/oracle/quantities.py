"""Kubernetes quantities as exact fractions."""

from __future__ import annotations

from fractions import Fraction

_BINARY = {
    unit: Fraction(1024) ** (n + 1) for n, unit in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
}
_DECIMAL = {
    unit: Fraction(10) ** power
    for unit, power in {
        "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
    }.items()
}  # fmt: skip


def amount(text: str | int) -> Fraction:
    """The value of a quantity, whatever its suffix."""
    digits = str(text)
    for suffix, factor in (*_BINARY.items(), *_DECIMAL.items()):
        if digits.endswith(suffix):
            return Fraction(digits[: -len(suffix)]) * factor
    return Fraction(digits)
