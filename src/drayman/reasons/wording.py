"""Numbers and lists as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_MOST_NAMED: Final = 3
_SPANS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))
_LONGEST_QUOTE: Final = 120
_COMPILER_PREFIX: Final = re.compile(r"ERROR: <input>:\d+:\d+: ")


def counted(number: float, noun: str, plural: str = "") -> str:
    """1 device, 2 devices."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def lasting(seconds: float) -> str:
    """90 seconds, 12 minutes, 5 hours, 3 days: as exact as people would say it."""
    for noun, length in _SPANS:
        if seconds >= 2 * length:
            return counted(int(seconds // length), noun)
    return counted(int(seconds), "second")


def named(noun: str, names: Sequence[str]) -> str:
    """Claim a; claims a and b."""
    return f"{noun if len(names) == 1 else f'{noun}s'} {and_list(names)}"


def and_list(names: Sequence[str], most: int = _MOST_NAMED) -> str:
    """a, b and c; or the first few and how many more there are."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def continued(sentence: str) -> str:
    """A sentence as it stands within another one: in lower case, unless it begins with an abbreviation such as NVLink."""
    is_word = sentence[1:2].islower() or not sentence[1:2].isalpha()
    return f"{sentence[:1].lower()}{sentence[1:]}" if is_word else sentence


def quoted(expression: str) -> str:
    """An expression on one line, the end of a long one left out."""
    text = " ".join(expression.split())
    return f"`{text if len(text) <= _LONGEST_QUOTE else f'{text[: _LONGEST_QUOTE - 3]}...'}`"


def without_source(error: str) -> str:
    """What a compiler complains about, without the excerpt that shows where."""
    return _COMPILER_PREFIX.sub("", error.partition("\n")[0])
