"""How YAML 1.1 interprets unquoted text, as in Kubernetes' conversion to JSON.

`yes` and `on` are booleans, `0x10` and `010` numbers, dates and `12:30` just texts.
"""

from __future__ import annotations

import math
import re
from typing import Final

from drayman.api.struct import Json

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"})
_FALSE: Final = frozenset(
    {"n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"}
)
_NOT_JSON: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[0-9]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES: Final = {"0x": 16, "0o": 8, "0b": 2}
_LONGEST_NUMBER: Final = 400
_OCTAL_DIGITS: Final = frozenset("01234567")
_LARGEST_WRITTEN_OUT: Final = 1e21


def plain_value(text: str) -> Json:
    """What a text without quotes stands for. Raises ValueError for numbers that JSON does not have.

    A number that is too large for Kubernetes to hold remains a text, as it does there, and is refused where it is used.
    """
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "+-.0123456789":
        return text
    if _NOT_JSON.fullmatch(text):
        raise ValueError(f"{text} is not a number in JSON")
    digits = text.replace("_", "")
    if len(digits) > _LONGEST_NUMBER:
        return text
    number: float | None = _integer(digits) if _INTEGER.fullmatch(digits) else None
    if number is None and _FLOAT.fullmatch(digits):
        number = _finite(digits)
    return text if number is None else number


def _integer(digits: str) -> int | None:
    """A 64-bit integer in one of the notations of YAML 1.1, or None where it is larger or not an octal number after all."""
    magnitude = digits.lstrip("+-")
    base = _BASES.get(magnitude[:2].lower())
    if base is not None:
        number = int(magnitude[2:], base)
    elif magnitude[0] == "0":
        if not set(magnitude) <= _OCTAL_DIGITS:
            return None
        number = int(magnitude, 8)
    else:
        number = int(magnitude)
    if number >= 2**64:
        return None
    return -number if digits[0] == "-" else number


def _finite(digits: str) -> float | None:
    """A floating point number; a whole one becomes an integer, because that is how it would be written in JSON."""
    number = float(digits)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < _LARGEST_WRITTEN_OUT else number
