"""Integers in texts, as upstream reads them: decimal, ASCII, 64 bits. Texts of any length are read in time proportional to it."""

from __future__ import annotations

from typing import Final

INT64_MAX: Final = 2**63 - 1
_MOST_DIGITS: Final = 19


def parse_integer(text: str) -> int | None:
    """The integer that a text is, or None where it is not one or needs more than 64 bits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    magnitude = digits.lstrip("0") or "0"
    if len(magnitude) > _MOST_DIGITS:
        return None
    number = -int(magnitude) if text[0] == "-" else int(magnitude)
    return number if -INT64_MAX - 1 <= number <= INT64_MAX else None


def parse_count(text: str) -> int:
    """The number that a text of digits is; one that needs more than 64 bits counts as the largest that does not."""
    number = parse_integer(text)
    return INT64_MAX if number is None else number
