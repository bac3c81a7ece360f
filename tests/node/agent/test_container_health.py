"""What probes say about a container: laws for any answers, and cases."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.node.agent.handlers import Probe
from drayman.node.agent.probes.container_health import (
    NOT_FOUND,
    Found,
    Health,
    Kind,
    Outcome,
    answered,
    begin,
    leaving,
    probes_of,
)
from drayman.node.agent.spec import Container

STARTUP, LIVENESS, READINESS = Kind.STARTUP, Kind.LIVENESS, Kind.READINESS
YES, NO, UNKNOWN = Outcome.SUCCESS, Outcome.FAILURE, Outcome.UNKNOWN
BEGAN = 100.0


@dataclass
class History:
    """A container whose probes are asked as soon as they are due, and everything that they have said."""

    probes: dict[Kind, Probe]
    health: Health
    now: float = BEGAN
    said: dict[Kind, list[Outcome]] = field(default_factory=dict)
    asked: dict[Kind, list[float]] = field(default_factory=dict)

    def ask_next(self, outcome: Outcome, takes: float) -> Kind | None:
        """The probe that is due first answers; None if none will be asked."""
        due = [
            (at, kind.value, kind)
            for kind in self.probes
            if (at := self.health.due(kind)) is not None
        ]
        if not due:
            return None
        at, _, kind = min(due)
        asked_at = max(at, self.now)
        self.now = asked_at + takes
        self.said.setdefault(kind, []).append(outcome)
        self.asked.setdefault(kind, []).append(asked_at)
        self.health = answered(self.probes, self.health, kind, outcome, asked_at)
        return kind


def probe(*, success: int = 1, failure: int = 3, delay: int = 0, period: int = 10) -> Probe:
    return Probe(
        success_threshold=success,
        failure_threshold=failure,
        initial_delay_seconds=delay,
        period_seconds=period,
    )


def settings(kind: Kind) -> st.SearchStrategy[Probe]:
    """Only readiness may ask for several successes."""
    few = st.integers(1, 3)
    return st.builds(
        lambda success, failure, delay, period: probe(
            success=success, failure=failure, delay=delay, period=period
        ),
        few if kind is READINESS else st.just(1),
        few,
        st.integers(0, 20),
        st.integers(1, 10),
    )


PROBES = st.fixed_dictionaries({}, optional={kind: settings(kind) for kind in Kind})
ANSWERS = st.lists(
    st.tuples(st.sampled_from(Outcome), st.integers(0, 60).map(lambda quarters: quarters / 4)),
    max_size=40,
)
FOUND = st.sampled_from(
    [NOT_FOUND, Found(has_started=True, is_ready=False), Found(has_started=True, is_ready=True)]
)


def run_of(said: list[Outcome], outcome: Outcome, at_least: int) -> bool:
    """Whether there were ever so many of one answer in a row, not counting those that say nothing."""
    longest = length = 0
    for each in said:
        if each is not UNKNOWN:
            length = length + 1 if each is outcome else 0
            longest = max(longest, length)
    return longest >= at_least


def verdict(said: list[Outcome], probe: Probe, before: bool) -> bool:
    """What a row of answers makes of it: the last row that was long enough counts."""
    counted = [each for each in said if each is not UNKNOWN]
    for end in range(len(counted), 0, -1):
        for outcome, needed in ((YES, probe.success_threshold), (NO, probe.failure_threshold)):
            if end >= needed and set(counted[end - needed : end]) == {outcome}:
                return outcome is YES
    return before


@given(PROBES, ANSWERS, FOUND)
def test_answers_decide(
    probes: dict[Kind, Probe], answers: list[tuple[Outcome, float]], found: Found
) -> None:
    """Started, ready and failed are what an independent count of the answers says, after each of them."""
    history = History(probes, begin(probes, BEGAN, BEGAN, found))
    for outcome, takes in answers:
        history.ask_next(outcome, takes)
        health, said = history.health, history.said
        has_started = STARTUP not in probes or found.has_started or YES in said.get(STARTUP, [])
        assert health.has_started is has_started
        if READINESS in probes:
            before = found.is_ready
            assert health.is_ready is verdict(said.get(READINESS, []), probes[READINESS], before)
        else:
            assert health.is_ready is has_started
        for kind in (STARTUP, LIVENESS):
            if kind in probes:
                has_failed = run_of(said.get(kind, []), NO, probes[kind].failure_threshold)
                assert (health.failed is kind) is has_failed


@given(PROBES, ANSWERS, FOUND)
def test_nothing_is_asked_out_of_turn(
    probes: dict[Kind, Probe], answers: list[tuple[Outcome, float]], found: Found
) -> None:
    """Not before its delay, not before the start, not twice within a period, and not after a failure but for readiness."""
    history = History(probes, begin(probes, BEGAN, BEGAN, found))
    for outcome, takes in answers:
        before = history.health
        kind = history.ask_next(outcome, takes)
        if kind is None:
            assert history.health == before
            continue
        assert before.has_started is (kind is not STARTUP)
        assert before.failed is None or kind is READINESS
        assert not history.health.is_ready or history.health.has_started
        moments = history.asked[kind]
        assert moments[0] >= BEGAN + probes[kind].initial_delay_seconds
        if len(moments) > 1:
            assert moments[-1] - moments[-2] >= probes[kind].period_seconds


@given(PROBES, ANSWERS, ANSWERS)
def test_a_pod_that_leaves_is_asked_about_readiness_only(
    probes: dict[Kind, Probe],
    answers: list[tuple[Outcome, float]],
    more: list[tuple[Outcome, float]],
) -> None:
    """No container of it is ended because of a probe."""
    history = History(probes, begin(probes, BEGAN, BEGAN))
    for outcome, takes in answers:
        history.ask_next(outcome, takes)
    history.health = leaving(history.health)
    before = history.health
    for outcome, takes in more:
        assert history.ask_next(outcome, takes) in (None, READINESS)
    assert (history.health.failed, history.health.has_started) == (
        before.failed,
        before.has_started,
    )


@given(PROBES, FOUND)
def test_what_was_found_is_kept(probes: dict[Kind, Probe], found: Found) -> None:
    """Until a probe says otherwise, a container is what it was reported to be; none is less ready without having been asked."""
    health = begin(probes, BEGAN, BEGAN + 1000, found)
    assert health.has_started or not found.has_started
    assert health.is_ready or not found.is_ready


@dataclass(frozen=True)
class Case:
    says: str
    probes: dict[Kind, Probe]
    answers: tuple[tuple[Kind, Outcome], ...] = ()
    found: Found = NOT_FOUND
    started: bool = True
    ready: bool = False
    failed: Kind | None = None


def said(kind: Kind, *outcomes: Outcome) -> tuple[tuple[Kind, Outcome], ...]:
    return tuple((kind, each) for each in outcomes)


CASES = [
    Case("without probes a container is ready as it starts", {}, ready=True),
    Case("a liveness probe does not keep it from being ready", {LIVENESS: probe()}, ready=True),
    Case("it is not ready before it has been asked", {READINESS: probe()}),
    Case(
        "as many successes in a row as wanted make it ready",
        {READINESS: probe(success=2)},
        said(READINESS, YES, NO, YES, YES),
        ready=True,
    ),
    Case(
        "a success too few does not",
        {READINESS: probe(success=2)},
        said(READINESS, YES, NO, YES),
    ),
    Case(
        "a failure too few leaves it ready",
        {READINESS: probe(failure=2)},
        said(READINESS, YES, NO, YES, NO),
        ready=True,
    ),
    Case(
        "enough failures in a row end that, and not the container",
        {READINESS: probe(failure=2)},
        said(READINESS, YES, NO, NO),
    ),
    Case(
        "what could not be asked does not count",
        {LIVENESS: probe(failure=2)},
        said(LIVENESS, NO, UNKNOWN, UNKNOWN),
        ready=True,
    ),
    Case(
        "and does not break a row",
        {LIVENESS: probe(failure=2)},
        said(LIVENESS, NO, UNKNOWN, NO),
        ready=True,
        failed=LIVENESS,
    ),
    Case("a startup probe comes first", {STARTUP: probe(), READINESS: probe()}, started=False),
    Case(
        "started is not yet ready",
        {STARTUP: probe(), READINESS: probe()},
        said(STARTUP, NO, YES),
    ),
    Case(
        "without a readiness probe it is",
        {STARTUP: probe()},
        said(STARTUP, NO, NO, YES),
        ready=True,
    ),
    Case(
        "a startup probe that fails too often ends the container",
        {STARTUP: probe(failure=2), LIVENESS: probe()},
        said(STARTUP, NO, NO),
        started=False,
        failed=STARTUP,
    ),
    Case(
        "a container that was found ready stays so",
        {STARTUP: probe(), READINESS: probe(failure=2)},
        said(READINESS, NO),
        Found(has_started=True, is_ready=True),
        ready=True,
    ),
    Case(
        "one that was found starting starts anew",
        {STARTUP: probe(failure=2), READINESS: probe()},
        said(STARTUP, NO),
        started=False,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_cases(case: Case) -> None:
    """Each case says what holds."""
    health = begin(case.probes, BEGAN, BEGAN, case.found)
    for number, (kind, outcome) in enumerate(case.answers):
        assert health.due(kind) is not None
        health = answered(case.probes, health, kind, outcome, BEGAN + number)
    assert (health.has_started, health.is_ready, health.failed) == (
        case.started,
        case.ready,
        case.failed,
    )


def test_probes_of_a_container() -> None:
    """Those that it has."""
    assert probes_of(Container()) == {}
    assert probes_of(Container(startup_probe=probe())) == {STARTUP: probe()}
