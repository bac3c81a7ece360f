"""Times as the API reads and writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.schema.times import (
    TimeTextError,
    canonical_micro_time,
    canonical_time,
    time_from_unix,
)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
        ("2024-05-01T10:00:00.999Z", "2024-05-01T10:00:00Z"),
        ("2024-05-01T1:00:00,5Z", "2024-05-01T01:00:00Z"),
        ("2024-05-01T00:30:00+01:00", "2024-04-30T23:30:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_seconds(text: str, written: str) -> None:
    """Times are brought to UTC and cut to the second."""
    assert canonical_time(text) == written


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        (
            "2024-05",
            'parsing time "2024-05" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "-"',
        ),
        (
            "2024-05-01T10:00:00",
            'parsing time "2024-05-01T10:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
        ),
        ("2024-13-01T10:00:00Z", 'parsing time "2024-13-01T10:00:00Z": month out of range'),
        ("2024-02-30T10:00:00Z", 'parsing time "2024-02-30T10:00:00Z": day out of range'),
        ("2024-02-03T24:00:00Z", 'parsing time "2024-02-03T24:00:00Z": hour out of range'),
        ("2024-02-03T10:00:00Zx", 'parsing time "2024-02-03T10:00:00Zx": extra text: "x"'),
    ],
)
def test_errors(text: str, error: str) -> None:
    """A text that is no time is refused with the part that does not fit."""
    with pytest.raises(TimeTextError) as caught:
        canonical_time(text)
    assert str(caught.value) == error


def test_microseconds_are_required() -> None:
    """Where microseconds are kept, exactly six digits are expected."""
    assert canonical_micro_time("2024-05-01T10:00:00.000001Z") == "2024-05-01T10:00:00.000001Z"
    with pytest.raises(TimeTextError, match=r'cannot parse "Z" as ".000000"'):
        canonical_micro_time("2024-05-01T10:00:00Z")


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(
    st.integers(-62_000_000_000, 253_000_000_000),
    st.integers(0, 999_999),
    st.integers(-23 * 60, 23 * 60),
)
def test_any_zone_is_the_same_moment(seconds: int, microseconds: int, minutes: int) -> None:
    """However a moment is written, it is written again in UTC, and its number of seconds gives the same text."""
    moment = EPOCH + timedelta(seconds=seconds, microseconds=microseconds)
    local = moment.astimezone(timezone(timedelta(minutes=minutes)))
    expected = moment.replace(tzinfo=None, microsecond=0).isoformat() + "Z"
    assert canonical_time(local.isoformat()) == expected
    assert time_from_unix(seconds, 999, micro=False) == expected


def test_times_beyond_the_calendar_are_refused() -> None:
    """A number of seconds that no year has is an error, not a crash."""
    with pytest.raises(TimeTextError, match="out of range"):
        time_from_unix(2**62, 0, micro=False)
