"""Resource quantities: exact numbers with Kubernetes' suffixes, rounding and canonical text.

A quantity is held as an `int` where it is whole and as a `Fraction` of billionths otherwise, never as a float. Texts are
parsed once: a cluster has millions of quantities and a few hundred different ones, so equal texts share one object.

Two things differ from upstream on purpose. Numbers of more than `MAX_DIGITS` digits are refused, because upstream accepts
`1e2000000000` and then needs gigabytes to compare it with anything. And a decimal quantity of 1000E or more prints with an
exponent, where upstream loses its magnitude.
"""

from __future__ import annotations

import re
from enum import Enum
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import ClassVar, Final, Never

from drayman.api.errors import QuantityError

MAX_DIGITS: Final = 100
"""Most digits before the decimal point. The largest number a node can report has 19."""

MAX_LENGTH: Final = 1024
"""Longest text that is looked at, so that parsing stays linear in something small."""

MAX_BINARY: Final = 2**63 - 1
"""Quantities with a binary suffix are capped here, as upstream does."""

_CACHE_SIZE: Final = 1 << 16
_NANO: Final = 9
_FAST_PATH_DIGITS: Final = 18
_FAST_PATH_BINARY_DIGITS: Final = 14
_MAX_EXPONENT: Final = 2**31 - 1

_PARTS: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<zeros>0*)(?P<whole>[0-9]*)(?P<point>\.?)(?P<fraction>(?<=\.)[0-9]*)?"
    r"(?P<suffix>[eEinumkKMGTP]*[+-]?[0-9]*)"
)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
DECIMAL_SUFFIXES: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
"""The exponents of ten that they stand for."""
BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
"""The exponents of two that they stand for."""
_DECIMAL_NAMES: Final = {exponent: name for name, exponent in DECIMAL_SUFFIXES.items()}
_BINARY_NAMES: Final = ("", *BINARY_SUFFIXES)

_FORMAT_MESSAGE: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class Format(Enum):
    """The family of suffixes a quantity was written with, and prints with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
class Quantity:
    """An exact, immutable amount. Equal, ordered and hashed by value; the format does not count."""

    __slots__ = ("_text", "amount", "format")

    ZERO: ClassVar[Quantity]

    amount: int | Fraction
    format: Format
    _text: str | None

    def __init__(
        self, amount: int | Fraction, form: Format = Format.DECIMAL_SI, text: str | None = None
    ) -> None:
        if isinstance(amount, Fraction) and amount.denominator == 1:
            amount = amount.numerator
        object.__setattr__(self, "amount", amount)
        object.__setattr__(self, "format", form)
        object.__setattr__(self, "_text", text)

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError("a Quantity is immutable")

    def __reduce__(self) -> tuple[type[Quantity], tuple[object, ...]]:
        return Quantity, (self.amount, self.format, self._text)

    @staticmethod
    def parse(text: str) -> Quantity:
        """The quantity a text stands for. Raises QuantityError; equal texts give the same object."""
        return _parse(text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.amount == other.amount

    def __lt__(self, other: Quantity) -> bool:
        return self.amount < other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount + other.amount, self._format_with(other))

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount - other.amount, self._format_with(other))

    def _format_with(self, other: Quantity) -> Format:
        """The left operand's format, unless that is zero: then it never had one worth keeping."""
        return self.format if self.amount else other.format

    def __str__(self) -> str:
        if self._text is None:
            object.__setattr__(self, "_text", _canonical(self.amount, self.format))
        return str(self._text)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def rounded_up(self) -> int:
        """The amount as a whole number, rounded away from zero."""
        return _away_from_zero(self.amount)

    def milli(self) -> int:
        """Thousandths, rounded away from zero."""
        return _away_from_zero(self.amount * 1000)


@lru_cache(maxsize=_CACHE_SIZE)
def _parse(text: str) -> Quantity:
    if len(text) > MAX_LENGTH:
        raise QuantityError(f"quantities are limited to {MAX_LENGTH} characters")
    parts = _PARTS.fullmatch(text)
    if not text or parts is None:
        raise QuantityError(_FORMAT_MESSAGE)
    whole, fraction = parts["whole"], parts["fraction"] or ""
    negative = parts["sign"] == "-"
    form, exponent = _interpret_suffix(parts["suffix"])
    if form is Format.BINARY_SI:
        if not fraction and len(whole or "0") <= _FAST_PATH_BINARY_DIGITS - exponent * 3 // 10:
            return _short_binary(text, int(whole or "0"), exponent, negative)
        if not (parts["zeros"] or whole or fraction):
            raise QuantityError("unable to parse numeric part of quantity")
        return _long_binary(whole, fraction, exponent, negative)
    digits = (whole or "0") + fraction
    scale = exponent - len(fraction)
    is_short = len(digits) <= _FAST_PATH_DIGITS and scale >= -_NANO
    if not is_short and not (parts["zeros"] or whole or fraction):
        # Upstream takes a bare suffix for zero, but only as long as it need not look at the digits.
        raise QuantityError("unable to parse numeric part of quantity")
    amount = _scaled(digits, scale)
    # Upstream keeps the text of a number it takes for canonical already, `1.500` and `+5` included, and prints that.
    verbatim = is_short and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(-amount if negative else amount, form, text if verbatim else None)


def _interpret_suffix(suffix: str) -> tuple[Format, int]:
    """The format of a suffix and its exponent: of two for the binary ones, of ten otherwise."""
    if (exponent := DECIMAL_SUFFIXES.get(suffix)) is not None:
        return Format.DECIMAL_SI, exponent
    if (exponent := BINARY_SUFFIXES.get(suffix)) is not None:
        return Format.BINARY_SI, exponent
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise QuantityError("unable to parse quantity's suffix")
    exponent = int(match[1])
    if abs(exponent) > _MAX_EXPONENT:
        raise QuantityError(f"the exponent {match[1]} is out of range")
    return Format.DECIMAL_EXPONENT, exponent


def _scaled(digits: str, scale: int) -> int | Fraction:
    """`digits` times ten to the `scale`, rounded up to billionths, without ever building a number larger than the result."""
    significant = digits.lstrip("0")
    if not significant:
        return 0
    if len(significant) + scale > MAX_DIGITS:
        raise QuantityError(
            f"quantities are limited to {MAX_DIGITS} digits before the decimal point"
        )
    if scale >= 0:
        return int(significant) * int(10**scale)
    if len(significant) + scale < -_NANO:
        return Fraction(1, 10**_NANO)
    if scale < -_NANO:
        excess = -_NANO - scale
        kept, dropped = significant[:-excess], significant[-excess:]
        return Fraction(int(kept or "0") + any(d != "0" for d in dropped), 10**_NANO)
    return Fraction(int(significant), 10**-scale)


def _short_binary(text: str, whole: int, exponent: int, negative: bool) -> Quantity:
    amount = whole << exponent
    # As for decimal numbers: what upstream takes for canonical keeps its text.
    verbatim = bool(whole & 7)
    return Quantity(-amount if negative else amount, Format.BINARY_SI, text if verbatim else None)


def _long_binary(whole: str, fraction: str, exponent: int, negative: bool) -> Quantity:
    exact = Fraction(int(whole + fraction or "0") << exponent, 10 ** len(fraction))
    billionths = exact * 10**_NANO
    rounded = Fraction(-(-billionths.numerator // billionths.denominator), 10**_NANO)
    amount = rounded if rounded < MAX_BINARY else Fraction(MAX_BINARY)
    form = Format.DECIMAL_SI if 0 < amount < 1 else Format.BINARY_SI
    return Quantity(-amount if negative else amount, form)


def _away_from_zero(amount: int | Fraction) -> int:
    if isinstance(amount, int):
        return amount
    magnitude = -(-abs(amount.numerator) // amount.denominator)
    return magnitude if amount > 0 else -magnitude


def _canonical(amount: int | Fraction, form: Format) -> str:
    """No fraction, and the largest suffix of the format that allows that."""
    if not amount:
        return "0"
    if form is Format.BINARY_SI and isinstance(amount, int) and abs(amount) >= 1024:
        return _canonical_binary(amount)
    return _canonical_decimal(amount, form)


def _canonical_binary(amount: int) -> str:
    suffix = 0
    while amount % 1024 == 0 and suffix < len(_BINARY_NAMES) - 1:
        amount //= 1024
        suffix += 1
    return f"{amount}{_BINARY_NAMES[suffix]}"


def _canonical_decimal(amount: int | Fraction, form: Format) -> str:
    mantissa, exponent = _away_from_zero(amount * 10**_NANO), -_NANO
    while mantissa % 1000 == 0:
        mantissa //= 1000
        exponent += 3
    if form is Format.DECIMAL_EXPONENT or exponent not in _DECIMAL_NAMES:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_NAMES[exponent]}"


Quantity.ZERO = Quantity(0)
