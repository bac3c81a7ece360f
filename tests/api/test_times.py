"""Times and durations as the API has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.schema.times import canonical_micro_time, canonical_time
from drayman.api.times import (
    MomentRangeError,
    micro_timestamp,
    moment_of,
    parse_duration,
    seconds_of,
    time_left,
    timestamp,
    timestamp_at,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
moments = st.integers(-62 * 10**15, 253 * 10**15).map(
    lambda microseconds: EPOCH + timedelta(microseconds=microseconds)
)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(moments, zones)
def test_what_is_written_is_read(moment: datetime, zone: timezone) -> None:
    """A time reads as it was written, to the second or the microsecond, from whatever zone it was written in."""
    whole = moment.replace(microsecond=0)
    assert moment_of(timestamp(moment)) == whole
    assert moment_of(micro_timestamp(moment)) == moment
    assert moment_of(moment.astimezone(zone).isoformat()) == moment
    assert moment_of(timestamp(moment)).tzinfo is UTC


@given(moments)
def test_the_server_leaves_our_times_as_they_are(moment: datetime) -> None:
    """What is written here is what the API server would make of it."""
    assert canonical_time(timestamp(moment)) == timestamp(moment)
    assert canonical_micro_time(micro_timestamp(moment)) == micro_timestamp(moment)


@given(st.integers(0, 2**33))
def test_seconds_are_kept(seconds: int) -> None:
    """Seconds since the epoch come back, without their fraction."""
    assert seconds_of(timestamp_at(seconds)) == seconds
    assert timestamp_at(seconds + 0.75) == timestamp_at(seconds)


def test_no_time_is_none() -> None:
    """A field that is not set has no seconds."""
    assert seconds_of(None) is None


@pytest.mark.parametrize("text", ["", "soon", "2024-13-01T00:00:00Z"])
def test_texts_that_are_not_times(text: str) -> None:
    """They are refused."""
    with pytest.raises(ValueError, match=r"isoformat|month"):
        moment_of(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_times_that_have_no_year_in_utc(text: str) -> None:
    """They are refused, too, and told apart."""
    with pytest.raises(MomentRangeError, match="is not in the years 1 to 9999 of UTC"):
        moment_of(text)


DURATIONS = {"30s": 30.0, "1m30s": 90.0, "500ms": 0.5, "1.5h": 5400.0, "0s": 0.0}


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items(), ids=DURATIONS)
def test_durations(text: str, seconds: float) -> None:
    """Units may be combined and numbers have fractions."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "s",
        "-5s",
        "1d",
        "1m 30s",
        "nan",
        "inf",
        "1e308s",
        "\u0663s",
        "99999999999h",
        "9" * 60 + "h",
        "1s" * 33,
    ],
)
def test_texts_that_are_not_durations(text: str) -> None:
    """They are refused with a word on what is expected."""
    with pytest.raises(ValueError, match="write it like 30s"):
        parse_duration(text)


def test_what_is_no_duration_is_not_repeated_at_length() -> None:
    """What is said about an annotation of many characters is short: it is reported for every pod that has it."""
    with pytest.raises(ValueError, match="of 262144 characters") as caught:
        parse_duration("1s" * (1 << 17))
    assert len(str(caught.value)) < 200


def test_the_longest_duration_still_ends_at_a_date() -> None:
    """Whatever is a duration can be added to a time."""
    assert timestamp_at(2_000_000_000 + parse_duration("2562047h")).startswith("23")


def test_nothing_waits_for_a_clock_that_was_set_back() -> None:
    now = 1_000_000.0
    assert time_left(now - 3, 10, now) == 7
    assert time_left(now - 10, 10, now) == 0
    assert time_left(now + 2, 10, now) == 12  # another machine's clock may be a little ahead
    assert time_left(now + 7_200, 10, now) == 0
