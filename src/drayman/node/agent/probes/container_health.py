"""What probes say about a container that runs: a function of their answers and of the time, which is passed in.

Until the startup probe has succeeded, nothing else is asked. A readiness probe says whether the container is ready, time and again; a
container without one is ready when it has started. If the startup or the liveness probe fails too often, the container is to be ended, and
nothing is asked of its end any more but whether it is ready. A single answer that differs means little: it takes as many in a row as the
thresholds say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from drayman.node.agent.handlers import Probe
from drayman.node.agent.spec import Container


class Kind(Enum):
    """Of a probe; the values are the words for it in events."""

    STARTUP = "Startup"
    LIVENESS = "Liveness"
    READINESS = "Readiness"


class Outcome(Enum):
    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"
    """The probe could not be asked at all, which says nothing about the container."""


Probes = Mapping[Kind, Probe]


def probes_of(container: Container) -> dict[Kind, Probe]:
    given = {
        Kind.STARTUP: container.startup_probe,
        Kind.LIVENESS: container.liveness_probe,
        Kind.READINESS: container.readiness_probe,
    }
    return {kind: probe for kind, probe in given.items() if probe is not None}


@dataclass(frozen=True, slots=True)
class Tally:
    """The answers of one probe."""

    due: float
    """When it is asked next, if it may be asked then."""
    last: Outcome | None = None
    in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """Of one attempt of a container. Times are seconds of any one clock."""

    tallies: Mapping[Kind, Tally]
    has_started: bool
    is_ready: bool
    failed: Kind | None = None
    """The probe for whose sake the container is to be ended."""
    is_leaving: bool = False
    """Whether the pod is being ended anyway."""

    def may_be_asked(self, kind: Kind) -> bool:
        if kind is Kind.READINESS:
            return self.has_started
        if self.failed is not None or self.is_leaving:
            return False
        return self.has_started is (kind is Kind.LIVENESS)

    def due(self, kind: Kind) -> float | None:
        """When a probe is asked next; None if it is not as things are."""
        return self.tallies[kind].due if self.may_be_asked(kind) else None

    def can_be_asked_later(self, kind: Kind) -> bool:
        """Whether the time of a probe may come, though it has not."""
        is_ended = self.failed is not None or self.is_leaving
        return kind is not Kind.STARTUP and not self.has_started and not is_ended


@dataclass(frozen=True, slots=True)
class Found:
    """What was said about a container before anybody could ask it again."""

    has_started: bool
    is_ready: bool


NOT_FOUND: Final = Found(has_started=False, is_ready=False)


def begin(
    probes: Probes, began: float, now: float, found: Found = NOT_FOUND, spread: float = 0.0
) -> Health:
    """A container that began to run then. `spread`: how much of its period each probe waits in addition."""
    has_started = found.has_started or found.is_ready or Kind.STARTUP not in probes
    return Health(
        tallies={
            kind: Tally(
                max(now, began + probe.initial_delay_seconds) + spread * probe.period_seconds
            )
            for kind, probe in probes.items()
        },
        has_started=has_started,
        is_ready=found.is_ready if Kind.READINESS in probes else has_started,
    )


def answered(
    probes: Probes, health: Health, kind: Kind, outcome: Outcome, asked_at: float
) -> Health:
    """A probe that was asked then has answered."""
    probe, before = probes[kind], health.tallies[kind]
    due = asked_at + probe.period_seconds
    tally = replace(before, due=due)
    if outcome is not Outcome.UNKNOWN:
        in_a_row = before.in_a_row + 1 if outcome is before.last else 1
        tally = Tally(due, outcome, in_a_row)
    after = replace(health, tallies={**health.tallies, kind: tally})
    if not health.may_be_asked(kind):
        return after  # things have changed while it thought
    if outcome is Outcome.SUCCESS and tally.in_a_row >= probe.success_threshold:
        return _succeeded(probes, after, kind)
    if outcome is Outcome.FAILURE and tally.in_a_row >= probe.failure_threshold:
        return (
            replace(after, is_ready=False)
            if kind is Kind.READINESS
            else replace(after, failed=kind)
        )
    return after


def _succeeded(probes: Probes, health: Health, kind: Kind) -> Health:
    match kind:
        case Kind.STARTUP:
            is_ready = Kind.READINESS not in probes
            return replace(health, has_started=True, is_ready=is_ready)
        case Kind.READINESS:
            return replace(health, is_ready=True)
        case Kind.LIVENESS:
            return health


def leaving(health: Health) -> Health:
    """The pod is being ended: only whether it is ready still matters."""
    return replace(health, is_leaving=True)
