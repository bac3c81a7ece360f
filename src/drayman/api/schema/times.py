"""Times as the API reads and writes them: RFC 3339, in UTC, whole seconds or microseconds.

Reading is as lenient as the API server's (hours of one digit, fractions after a comma) and its errors name the part of the
pattern that did not fit, in the notation clients know.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from drayman.api.syntax.json_scanner import quoted
from drayman.api.times import micro_timestamp, timestamp

SECONDS_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
MICROSECONDS_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
ZERO: Final = "0001-01-01T00:00:00Z"
"""The time that stands for none."""

_CACHE_SIZE: Final = 4096
_PARTS: Final = tuple(
    (element, re.compile(pattern))
    for element, pattern in (
        ("2006", r"[0-9]{4}"),
        ("-", r"-"),
        ("01", r"[0-9]{2}"),
        ("-", r"-"),
        ("02", r"[0-9]{2}"),
        ("T", r"T"),
        ("15", r"[0-9]{1,2}"),
        (":", r":"),
        ("04", r"[0-9]{2}"),
        (":", r":"),
        ("05", r"[0-9]{2}"),
    )
)
_FRACTION: Final = re.compile(r"[.,][0-9]+")
_MICROSECONDS: Final = re.compile(r"[.,][0-9]{6}(?![0-9])")
_ZONE: Final = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")
_LARGEST: Final = (
    ("01", 12, "month"),
    ("15", 23, "hour"),
    ("04", 59, "minute"),
    ("05", 59, "second"),
)


class TimeTextError(ValueError):
    """A text that is not a time. `str()` is what clients are shown."""


@lru_cache(maxsize=_CACHE_SIZE)
def canonical_time(text: str) -> str:
    """A time to the second as the API writes it; `ZERO` for none. Raises TimeTextError."""
    moment = _parse(text, SECONDS_LAYOUT)
    return timestamp(moment)


@lru_cache(maxsize=_CACHE_SIZE)
def canonical_micro_time(text: str) -> str:
    """A time to the microsecond as the API writes it. Raises TimeTextError."""
    moment = _parse(text, MICROSECONDS_LAYOUT)
    return micro_timestamp(moment)


def time_from_unix(seconds: int, nanoseconds: int, *, micro: bool) -> str:
    """The text of a point in time. Raises TimeTextError for one that no calendar has."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            seconds=seconds, microseconds=nanoseconds // 1000
        )
    except OverflowError as error:
        raise TimeTextError(f"{seconds} seconds since 1970 are out of range") from error
    return micro_timestamp(moment) if micro else timestamp(moment)


def _parse(text: str, layout: str) -> datetime:
    values: dict[str, int] = {}
    rest = text
    for element, pattern in _PARTS:
        match = pattern.match(rest)
        if match is None:
            raise _mismatch(text, layout, rest, element)
        if element[0].isdigit():
            values[element] = int(match[0])
            _check_range(text, element, values[element])
        rest = rest[match.end() :]
    fraction, rest = _fraction(text, layout, rest)
    zone = _ZONE.match(rest)
    if zone is None:
        raise _mismatch(text, layout, rest, "Z07:00")
    rest = rest[zone.end() :]
    if rest:
        raise TimeTextError(f"parsing time {quoted(text)}: extra text: {quoted(rest)}")
    return _moment(text, values, fraction, zone[0])


def _fraction(text: str, layout: str, rest: str) -> tuple[int, str]:
    """The microseconds at the start of what is left, and what follows them."""
    exact = layout == MICROSECONDS_LAYOUT
    match = (_MICROSECONDS if exact else _FRACTION).match(rest)
    if match is None:
        if exact:
            raise _mismatch(text, layout, rest, ".000000")
        return 0, rest
    return int(match[0][1:7].ljust(6, "0")), rest[match.end() :]


def _check_range(text: str, element: str, value: int) -> None:
    for name, largest, unit in _LARGEST:
        if element == name and (value > largest or (unit == "month" and value == 0)):
            raise TimeTextError(f"parsing time {quoted(text)}: {unit} out of range")


def _moment(text: str, values: dict[str, int], microsecond: int, zone: str) -> datetime:
    offset = timedelta(0)
    if zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        if hours > 24 or minutes > 59:
            unit = "hour" if hours > 24 else "minute"
            raise TimeTextError(
                f"parsing time {quoted(text)}: time zone offset {unit} out of range"
            )
        offset = timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)
    year, month, day = values["2006"], values["01"], values["02"]
    try:
        local = datetime(
            year, month, day, values["15"], values["04"], values["05"], microsecond, tzinfo=UTC
        )
        return local - offset
    except (ValueError, OverflowError) as error:
        raise TimeTextError(f"parsing time {quoted(text)}: day out of range") from error


def _mismatch(text: str, layout: str, rest: str, element: str) -> TimeTextError:
    return TimeTextError(
        f"parsing time {quoted(text)} as {quoted(layout)}:"
        f" cannot parse {quoted(rest)} as {quoted(element)}"
    )
