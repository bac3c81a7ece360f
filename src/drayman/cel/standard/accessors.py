"""The parts of timestamps and durations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

from drayman.cel.functions import Function, Library, Overload
from drayman.cel.times import NANOS, Duration, LocalTime, Timestamp, zone_of
from drayman.cel.types import DURATION, INT, STRING, TIMESTAMP

_MILLISECOND = 1_000_000


def _accessor(
    name: str, id_: str, part: Callable[[LocalTime], int], with_zone: str = ""
) -> tuple[str, tuple[Overload, Overload]]:
    return name, (
        Overload(id_, (TIMESTAMP,), INT, lambda moment: part(moment.at(UTC)), member=True),
        Overload(
            with_zone or f"{id_}_with_tz",
            (TIMESTAMP, STRING),
            INT,
            lambda moment, zone: part(moment.at(zone_of(zone))),
            member=True,
        ),
    )


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    zone_of(zone)
    return moment.nanosecond // _MILLISECOND


def _whole(duration: Duration, unit: int) -> int:
    """In units, truncated toward zero."""
    units = abs(duration.nanos) // unit
    return -units if duration.nanos < 0 else units


def _of_duration(name: str, unit: int) -> Overload:
    return Overload(
        f"duration_to_{name}", (DURATION,), INT, lambda value: _whole(value, unit), member=True
    )


_ACCESSORS = dict(
    (
        _accessor("getFullYear", "timestamp_to_year", lambda t: t.year),
        _accessor("getMonth", "timestamp_to_month", lambda t: t.fields.month - 1),
        _accessor(
            "getDayOfYear", "timestamp_to_day_of_year", lambda t: t.fields.timetuple().tm_yday - 1
        ),
        _accessor("getDayOfMonth", "timestamp_to_day_of_month", lambda t: t.fields.day - 1),
        _accessor("getDate", "timestamp_to_day_of_month_1_based", lambda t: t.fields.day),
        _accessor("getDayOfWeek", "timestamp_to_day_of_week", lambda t: t.fields.isoweekday() % 7),
        _accessor("getHours", "timestamp_to_hours", lambda t: t.fields.hour),
        _accessor("getMinutes", "timestamp_to_minutes", lambda t: t.fields.minute),
        _accessor(
            "getSeconds",
            "timestamp_to_seconds",
            lambda t: t.fields.second,
            "timestamp_to_seconds_tz",
        ),
    )
)
_MILLISECONDS = (
    Overload("timestamp_to_milliseconds", (TIMESTAMP,), INT, _milliseconds, member=True),
    Overload(
        "timestamp_to_milliseconds_with_tz", (TIMESTAMP, STRING), INT, _milliseconds, member=True
    ),
)
_OF_DURATIONS = {
    "getHours": _of_duration("hours", 3600 * NANOS),
    "getMinutes": _of_duration("minutes", 60 * NANOS),
    "getSeconds": _of_duration("seconds", NANOS),
}

ACCESSORS = Library(
    "accessors",
    (
        *(
            Function(
                name, (*overloads, _OF_DURATIONS[name]) if name in _OF_DURATIONS else overloads
            )
            for name, overloads in _ACCESSORS.items()
        ),
        Function("getMilliseconds", (*_MILLISECONDS, _of_duration("milliseconds", _MILLISECOND))),
    ),
)
