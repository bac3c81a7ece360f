"""Why something waits that would fit: the room is reserved for others that come first."""

from __future__ import annotations

from typing import Final

from drayman.api.times import timestamp_at
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.runs.book import Departure
from drayman.placement.runs.declaring import RUNTIME, Basis
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import counted

_MOST_NAMED: Final = 3
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 86400


def room_reserved(reservation: Reservation, end: float | None, noun: str = "pod") -> Headline:
    """`end` is when what waits would have ended if it started now, if that is known."""
    when = timestamp_at(reservation.at)
    if end is None:
        own = f"it is not known how long the {noun} runs"
        help_ = f"One that declares to end before then ({RUNTIME}) could run now"
    else:
        own = f"the {noun} would run until {timestamp_at(end)}"
        help_ = f"With a shorter {RUNTIME} that is kept to, it could run now"
    return Headline.of(
        Reason.ROOM_RESERVED,
        f"There is room, but it is reserved for {reservation.title}, which comes first and is"
        f" expected to start at {when}, and {own}. {help_}.",
    )


def estimated_start(reservation: Reservation, now: float) -> str:
    """When a unit will start, and what that rests on."""
    when = f"about {timestamp_at(reservation.at)}, in {span(reservation.at - now)}"
    rests_on = reservation.rests_on
    ends = [_ending(each) for each in rests_on[:_MOST_NAMED]]
    pods = "; ".join(ends)
    if len(rests_on) > _MOST_NAMED:
        pods += f"; and {counted(len(rests_on) - _MOST_NAMED, 'more pod')}"
    return f"{when}. This is an estimate: it rests on the end of {pods}."


def _ending(departure: Departure) -> str:
    metadata, ending = departure.pod.metadata, departure.ending
    basis = ending.basis.value
    if ending.basis is Basis.OBSERVED:
        basis = f"as in {counted(ending.runs, 'earlier run')}"
    if ending.is_overdue:
        basis = f"{basis}, but it is overdue, so that this is a guess"
    name = f"{metadata.namespace}/{metadata.name}"
    return f"pod {name} at {timestamp_at(ending.at)} ({basis})"


def span(seconds: float) -> str:
    """How long something takes, roughly: 40 seconds, 25 minutes, 3 hours, 2 days."""
    if seconds < 2 * _MINUTE_S:
        return counted(max(round(seconds), 1), "second")
    if seconds < 2 * _HOUR_S:
        return counted(round(seconds / _MINUTE_S), "minute")
    if seconds < 2 * _DAY_S:
        return counted(round(seconds / _HOUR_S), "hour")
    return counted(round(seconds / _DAY_S), "day")
