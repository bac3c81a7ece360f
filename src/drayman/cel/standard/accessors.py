"""The parts of timestamps and durations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

from drayman.cel.functions import Function, Library, member
from drayman.cel.times import NANOS, Duration, LocalTime, Timestamp, zone_of
from drayman.cel.types import DURATION, INT, STRING, TIMESTAMP

_MILLISECOND = 1_000_000


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    zone_of(zone)
    return moment.nanosecond // _MILLISECOND


def _of_timestamp(name: str, id: str, part: Callable[[LocalTime], int]) -> tuple[Function, ...]:
    with_zone = f"{id}_tz" if name == "getSeconds" else f"{id}_with_tz"
    return (
        member(name, id, (TIMESTAMP,), INT, lambda moment: part(moment.at(UTC))),
        member(
            name,
            with_zone,
            (TIMESTAMP, STRING),
            INT,
            lambda moment, zone: part(moment.at(zone_of(zone))),
        ),
    )


def _of_duration(name: str, id: str, unit: int) -> Function:
    """In units, truncated toward zero."""

    def whole(duration: Duration) -> int:
        units = abs(duration.nanos) // unit
        return -units if duration.nanos < 0 else units

    return member(name, id, (DURATION,), INT, whole)


_MILLISECONDS_IN = "timestamp_to_milliseconds_with_tz"

ACCESSORS = Library(
    "accessors",
    (
        *_of_timestamp("getFullYear", "timestamp_to_year", lambda t: t.year),
        *_of_timestamp("getMonth", "timestamp_to_month", lambda t: t.fields.month - 1),
        *_of_timestamp(
            "getDayOfYear", "timestamp_to_day_of_year", lambda t: t.fields.timetuple().tm_yday - 1
        ),
        *_of_timestamp("getDayOfMonth", "timestamp_to_day_of_month", lambda t: t.fields.day - 1),
        *_of_timestamp("getDate", "timestamp_to_day_of_month_1_based", lambda t: t.fields.day),
        *_of_timestamp(
            "getDayOfWeek", "timestamp_to_day_of_week", lambda t: t.fields.isoweekday() % 7
        ),
        *_of_timestamp("getHours", "timestamp_to_hours", lambda t: t.fields.hour),
        *_of_timestamp("getMinutes", "timestamp_to_minutes", lambda t: t.fields.minute),
        *_of_timestamp("getSeconds", "timestamp_to_seconds", lambda t: t.fields.second),
        member("getMilliseconds", "timestamp_to_milliseconds", (TIMESTAMP,), INT, _milliseconds),
        member("getMilliseconds", _MILLISECONDS_IN, (TIMESTAMP, STRING), INT, _milliseconds),
        _of_duration("getHours", "duration_to_hours", 3600 * NANOS),
        _of_duration("getMinutes", "duration_to_minutes", 60 * NANOS),
        _of_duration("getSeconds", "duration_to_seconds", NANOS),
        _of_duration("getMilliseconds", "duration_to_milliseconds", _MILLISECOND),
    ),
)
