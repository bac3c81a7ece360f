"""Durations as Go writes them, which is how people write them in annotations: `30s`, `1m30s`, `500ms`."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+")


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError with a sentence that says what is expected."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is no duration; write it like 30s, 1m30s or 500ms")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
