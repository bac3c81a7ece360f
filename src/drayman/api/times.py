"""Times and durations as the API has them: RFC 3339 text in UTC, and durations as Go writes them.

`api.schema.times` judges times that clients send. What has been stored is read and written here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, overload

_WHOLE_SECONDS: Final = len("2006-01-02T15:04:05")
_MICROSECONDS: Final = len("2006-01-02T15:04:05.000000")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")
_LONGEST_TEXT: Final = 64
"""Annotations have up to 256 KiB, and are read again and again."""
_LONGEST_S: Final = 2**63 / 1e9
"""What Go can express, about 292 years. With more, the end of a duration is no date."""


class MomentRangeError(ValueError):
    """A time that can be written in its own zone, and not in UTC."""


def moment_of(text: str) -> datetime:
    """A time of the API, in UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise MomentRangeError(f"{text} is not in the years 1 to 9999 of UTC") from None


@overload
def seconds_of(text: str) -> float: ...
@overload
def seconds_of(text: str | None) -> float | None: ...
def seconds_of(text: str | None) -> float | None:
    """A time of the API in seconds since the epoch; None where there is none. Raises ValueError."""
    return None if text is None else _seconds_of(text)


@lru_cache(maxsize=1 << 12)
def _seconds_of(text: str) -> float:
    return moment_of(text).timestamp()


def timestamp(moment: datetime) -> str:
    """A time in UTC as metadata and conditions have it: to the second."""
    return f"{moment.isoformat()[:_WHOLE_SECONDS]}Z"


def micro_timestamp(moment: datetime) -> str:
    """A time in UTC as leases and events have it: to the microsecond."""
    return f"{moment.isoformat(timespec='microseconds')[:_MICROSECONDS]}Z"


@lru_cache(maxsize=1 << 8)
def timestamp_at(seconds: float) -> str:
    """Seconds since the epoch as metadata and conditions have them."""
    return timestamp(datetime.fromtimestamp(int(seconds), UTC))


def time_left(since: float, wait: float, now: float) -> float:
    """Seconds until so much time has passed since a moment; 0 if it has.

    A moment that lies further ahead than the wait itself is from before the clock was set back. How long ago it was is not known, and
    nothing waits until the clock has caught up.
    """
    left = since + wait - now
    return left if 0.0 < left <= 2 * wait else 0.0


def parse_duration(text: str) -> float:
    """The seconds of a duration such as `1m30s`. Raises ValueError with a sentence that says what is expected."""
    if len(text) > _LONGEST_TEXT:
        shown = f"{text[:_LONGEST_TEXT]!r}, of {len(text)} characters,"
        raise ValueError(f"{shown} is not a duration; write it like 30s, 1m30s or 500ms")
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write it like 30s, 1m30s or 500ms")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if seconds >= _LONGEST_S:
        raise ValueError(f"{text!r} is longer than any duration; write it like 30s, 1m30s or 500ms")
    return seconds
