"""Which of the values that devices have come closest to one that is written in a selector."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, TypeAlias

from drayman.api.quantity import Quantity
from drayman.api.semver import Version
from drayman.explain.conditions import BOTTOM_UP, TOP_DOWN, Comparison, WrittenValue
from drayman.reasons.slips import edits

Existing: TypeAlias = str | int | bool | Quantity | Version

_NUMBERS: Final = re.compile(r"\d{1,18}")  # longer numbers are not compared in practice
_NUMBERED: Final = re.compile(r"\w*\d\w*")
_SIGNS: Final = re.compile(r"\W|_")
_LETTERS_PER_SLIP: Final = 6


def ranked(comparison: Comparison, existing: Counter[Existing]) -> list[Existing]:
    """The values that come closest first: for a bound those that come furthest."""
    values = sorted(existing, key=text_of)
    if comparison.operator in TOP_DOWN + BOTTOM_UP:
        return sorted(values, key=_order, reverse=comparison.operator in TOP_DOWN)
    return sorted(values, key=lambda value: min(distance(value, w) for w in comparison.values))


def slips(comparison: Comparison, existing: Counter[Existing]) -> Counter[Existing]:
    """Those of the values that may have been meant by one that is written."""
    near = {v: n for v, n in existing.items() if any(is_slip(v, w) for w in comparison.values)}
    return Counter(near)


def is_slip(value: Existing, written: WrittenValue) -> bool:
    """Whether one may have been written for the other by mistake. Words that contain numbers, like A100 and H100, are taken as intended."""
    if not isinstance(value, str):
        return False
    own, other = value.lower(), str(written.value).lower()
    if _SIGNS.sub("", own) == _SIGNS.sub("", other):
        return True
    same = _NUMBERED.findall(own) == _NUMBERED.findall(other)
    return same and edits(own, other) <= len(other) // _LETTERS_PER_SLIP


def _order(value: Existing) -> tuple[object, ...]:
    """Values of one attribute are mostly of one type. Where they are not, each type is sorted separately."""
    return (type(value).__name__, value)


def distance(value: Existing, written: WrittenValue) -> tuple[int, int]:
    """How far apart two values are: numbers by their difference, others by typing errors and then by the numbers in them."""
    if isinstance(value, int) and isinstance(written.value, int):
        return abs(value - written.value), 0
    own, other = text_of(value).lower(), str(written.value).lower()
    numbers = [[int(n) for n in _NUMBERS.findall(text)] for text in (own, other)]
    apart = sum(abs(a - b) for a, b in zip(*numbers, strict=False))
    return edits(own, other), apart


def text_of(value: Existing) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
