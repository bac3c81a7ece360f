"""Timestamps and durations, to the nanosecond.

Python's own `datetime` stops at microseconds and its zone arithmetic is slower than what is needed here, so both are integers
of nanoseconds; `datetime` is used only to split an instant into calendar fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from drayman.cel.errors import EvaluationError

NANOS = 1_000_000_000
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_SECOND, _MAX_SECOND = -62_135_596_800, 253_402_300_799  # years 1 to 9999

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": NANOS,
    "m": 60 * NANOS,
    "h": 3600 * NANOS,
}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_OFFSET = re.compile(r"([+-]?\d{1,4}):([+-]?\d{1,4})", re.ASCII)
_CYCLE_YEARS = 400
_CALENDAR_CYCLE = timedelta(days=146_097)  # after which dates, weekdays and leap years repeat


# Python's own zones are limited to offsets of less than a day; the language has no such limit.
Zone: TypeAlias = tzinfo | timedelta


class LocalTime(NamedTuple):
    """Calendar fields of an instant. Zones can lead outside Python's years 1 to 9999; then `fields` are those of another cycle."""

    fields: datetime
    cycles: int = 0  # that `fields` are too early

    @property
    def year(self) -> int:
        return self.fields.year + self.cycles * _CYCLE_YEARS


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanos: int

    @classmethod
    def checked(cls, nanos: int) -> Duration:
        if _INT64_MIN <= nanos <= _INT64_MAX:
            return cls(nanos)
        raise EvaluationError("duration overflow")

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Go's duration syntax: `1h30m`, `-1.5s`, `0`. Raises ValueError."""
        sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
        if rest == "0":
            return cls(0)
        total, position = 0, 0
        while position < len(rest):
            match = _DURATION_PART.match(rest, position)
            if match is None or not (match[1] or match[2]):
                raise ValueError(f"invalid duration {text!r}")
            fraction = (match[2] or "")[:18]
            unit = _UNITS[match[3]]
            total += int(match[1][:30] or 0) * unit + int(fraction or 0) * unit // 10 ** len(
                fraction
            )
            position = match.end()
        if not rest or not _INT64_MIN <= sign * total <= _INT64_MAX:
            raise ValueError(f"invalid duration {text!r}")
        return cls(sign * total)

    @property
    def is_zero(self) -> bool:
        return self.nanos == 0

    @property
    def seconds(self) -> float:
        whole, rest = divmod(abs(self.nanos), NANOS)
        value = whole + rest / 1e9
        return -value if self.nanos < 0 else value

    def __str__(self) -> str:
        text = format(Decimal(repr(self.seconds)), "f")
        return f"{text.removesuffix('.0')}s"


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    nanos: int  # since the epoch
    offset: int = field(default=0, compare=False)  # seconds east of UTC in which it was written

    @classmethod
    def checked(cls, nanos: int, offset: int = 0) -> Timestamp:
        if _MIN_SECOND <= nanos // NANOS <= _MAX_SECOND:
            return cls(nanos, offset)
        raise EvaluationError("timestamp overflow")

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """RFC 3339. Raises ValueError."""
        match = _TIMESTAMP.fullmatch(text)
        if match is None:
            raise ValueError(f"invalid timestamp {text!r}")
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        offset = _signed_minutes(match[8], match[9], match[10]) * 60 if match[8] else 0
        seconds = (moment - _EPOCH) // timedelta(seconds=1) - offset
        fraction = (match[7] or "")[:9].ljust(9, "0")
        if not _MIN_SECOND <= seconds <= _MAX_SECOND:
            raise ValueError(f"timestamp {text!r} is out of range")
        return cls(seconds * NANOS + int(fraction), offset)

    @property
    def is_zero(self) -> bool:
        return self.nanos == _MIN_SECOND * NANOS

    @property
    def nanosecond(self) -> int:
        return self.nanos % NANOS

    def at(self, zone: Zone) -> LocalTime:
        """The calendar fields in a zone, to the second."""
        moment = _EPOCH + timedelta(seconds=self.nanos // NANOS)
        try:
            return LocalTime(_shown_in(zone, moment))
        except OverflowError:
            shift = 1 if moment.year < _CYCLE_YEARS else -1
            return LocalTime(_shown_in(zone, moment + shift * _CALENDAR_CYCLE), -shift)

    def __str__(self) -> str:
        local = self.at(timezone(timedelta(seconds=self.offset))).fields
        fraction = f".{self.nanosecond:09d}".rstrip("0").rstrip(".")
        zone = "Z" if not self.offset else local.isoformat()[-6:]
        return f"{local:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + zone


def _signed_minutes(sign: str, hours: str, minutes: str) -> int:
    if int(hours) > 24 or int(minutes) > 60:
        raise ValueError("time zone offset out of range")
    total = int(hours) * 60 + int(minutes)
    return -total if sign == "-" else total


def _shown_in(zone: Zone, moment: datetime) -> datetime:
    return moment + zone if isinstance(zone, timedelta) else moment.astimezone(zone)


def zone_of(name: str) -> Zone:
    """A zone from the time zone database or an offset such as `-08:00`. Raises EvaluationError."""
    if name in ("", "UTC", "Local"):
        return UTC
    if ":" in name:
        return _fixed_zone(name)
    from zoneinfo import ZoneInfo  # few expressions need it, and it takes a while to import

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _fixed_zone(name: str) -> timedelta:
    match = _OFFSET.fullmatch(name)
    if match is None:
        raise EvaluationError(f"invalid time zone offset: {name}")
    hours, minutes = int(match[1]), int(match[2])
    total = hours * 60 - minutes if name.startswith("-") else hours * 60 + minutes
    return timedelta(minutes=total)
