"""The earliest moment at which something fits that does not fit now: when enough of the pods that are known to end have ended.

Pods of which nothing is known stay for ever. The moments at which something ends are looked at in ever larger steps, and the last step is
then halved: with more pods gone there is more room, and most units need few of them to go, so that most trials are small. Rules about other
pods can make it otherwise (a pod may need one that has left); what is found fits in any case, it may only not be the very first moment.

Each step is a decision on a trial. Between two of them a break may be due, and then the state is as it was.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from drayman.placement.pauses import never
from drayman.placement.runs.book import Departure
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial

F = TypeVar("F")


class Moment(Struct, Generic[F], frozen=True):
    """When something fits, what it gets then, and which pods have ended by then."""

    at: float
    found: F
    gone: tuple[Departure, ...]


Searching = Generator[None, None, Moment[F] | None]
"""Yields where a break is due."""


def earliest(
    state: ClusterState,
    departures: Sequence[Departure],
    fits: Callable[[float], F | None],
    is_due: Callable[[], bool] = never,
) -> Searching[F]:
    """The first moment at which something fits; None if there is none. `departures` are in the order of their ends.

    `fits` returns what there is to be had at a moment, in a state in which the pods that end by then are gone.
    """
    times = sorted({each.ending.at for each in departures})
    best: Moment[F] | None = None
    low, high = 0, 0
    while best is None:
        if low >= len(times):
            return None
        best = _at(state, departures, times[high], fits)
        if best is None:
            low, high = high + 1, min(2 * high + 1, len(times) - 1)
        if is_due():
            yield
    while low < high:
        middle = (low + high) // 2
        found = _at(state, departures, times[middle], fits)
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
        if is_due():
            yield
    return best


def leave(state: ClusterState, trial: Trial, departures: Sequence[Departure]) -> None:
    """In a trial: these pods have ended. Those that do not count any more make no difference."""
    for each in departures:
        uid = each.pod.metadata.uid
        if trial.counts(uid):
            trial.evict(uid, state.claims_used_by(each.pod))


def gone_by(departures: Sequence[Departure], at: float) -> tuple[Departure, ...]:
    """Those that have ended by then."""
    return tuple(departures[: bisect_right(departures, at, key=lambda each: each.ending.at)])


def _at(
    state: ClusterState,
    departures: Sequence[Departure],
    at: float,
    fits: Callable[[float], F | None],
) -> Moment[F] | None:
    gone = gone_by(departures, at)
    with state.trial() as trial:
        leave(state, trial, gone)
        found = fits(at)
    return None if found is None else Moment(at, found, gone)
