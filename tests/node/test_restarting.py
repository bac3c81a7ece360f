"""When containers are started again, on any node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.core import Container, Pod, PodSpec
from drayman.node.agent.spec import Container as RunContainer
from drayman.node.agent.spec import Spec
from drayman.node.agent.steps import Known, next_steps
from drayman.node.restarting import (
    FORGIVEN_AFTER_S,
    LONGEST_BACKOFF_S,
    backoff,
    crashes_after,
)
from drayman.node.simulated.model import Timing
from drayman.node.simulated.pod_status import status_of
from drayman.node.simulated.runs import PodRun, Wishes

TIMING = Timing()


def test_backoff_doubles_up_to_five_minutes() -> None:
    """The first restart is immediate, as with a kubelet."""
    assert [backoff(count) for count in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]


@given(st.integers(0, 10**6), st.floats(1e-3, 60))
def test_backoff_grows_and_ends(count: int, first_s: float) -> None:
    """However often a container has ended, the wait is no shorter than the one before, and no longer than the longest."""
    waits = [backoff(each, first_s) for each in (count, count + 1)]
    assert 0 <= waits[0] <= waits[1] <= LONGEST_BACKOFF_S


def test_a_container_that_ran_for_long_is_forgiven() -> None:
    """Its ends are counted anew."""
    assert crashes_after(7, FORGIVEN_AFTER_S) == 8
    assert crashes_after(7, FORGIVEN_AFTER_S + 1) == 1


def simulated(policy: str, code: int, ran_s: float = 1.0, **own: str) -> PodRun:
    containers = tuple(Container(name=name, restart_policy=own[name]) for name in own)
    spec = PodSpec(restart_policy=policy, containers=containers or (Container(name="main"),))
    return PodRun(Pod(spec=spec), Wishes(run_for=ran_s, exit_code=code))


def waits(run: PodRun, count: int) -> list[float | None]:
    found = []
    for _ in range(count):
        run.start("", 0.0)
        found.append(run.end("", TIMING))
    return found


def test_a_simulated_container_never_ends_too_often() -> None:
    """More often than a number can be doubled."""
    assert waits(simulated("Always", 1), 1100)[-1] == LONGEST_BACKOFF_S


def test_a_simulated_container_waits_as_a_real_one_does() -> None:
    """Not at all the first time, and not at all if it ran for long."""
    assert waits(simulated("Always", 1), 4) == [0, 10, 20, 40]
    assert waits(simulated("Always", 1, FORGIVEN_AFTER_S + 1), 3) == [0, 0, 0]


@dataclass(frozen=True)
class Case:
    says: str
    policy: str
    code: int
    restarted: set[str]
    own: dict[str, str] = field(default_factory=lambda: {"main": ""})


CASES = [
    Case("whatever has ended is started again", "Always", 0, {"main"}),
    Case("what has failed is started again", "OnFailure", 1, {"main"}),
    Case("what has succeeded is not", "OnFailure", 0, set()),
    Case("nothing is", "Never", 1, set()),
    Case("the policy of a container counts", "Never", 1, {"a"}, {"a": "Always", "b": ""}),
    Case("it may also keep it down", "Always", 1, {"b"}, {"a": "Never", "b": ""}),
    Case("it may depend", "Always", 0, {"b"}, {"a": "OnFailure", "b": ""}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_both_sorts_of_nodes_restart_the_same(case: Case) -> None:
    """Each case says what a real and a simulated node start again of containers that have ended."""
    spec = Spec(
        containers=tuple(RunContainer(name=n, restart_policy=p) for n, p in case.own.items()),
        restart_policy=case.policy,
    )
    known = {name: Known(code=case.code) for name in case.own}
    assert set(next_steps(spec, known, 0.0).start) == case.restarted

    run = simulated(case.policy, case.code, **case.own)
    run.start("begin", 0.0)
    assert (run.end("end", TIMING) is None) == run.is_over == (not case.restarted)
    if not run.is_over:
        run.start("again", 0.0)
        shown = {each["name"]: each for each in reported(run)["containerStatuses"]}
        assert {n for n, each in shown.items() if "running" in each["state"]} == case.restarted
        assert {n for n, each in shown.items() if each["restartCount"]} == case.restarted
        is_ready = {each["type"]: each["status"] for each in reported(run)["conditions"]}["Ready"]
        assert (is_ready == "True") == (case.restarted == {*case.own})


def reported(run: PodRun) -> dict[str, Any]:
    return status_of(run.pod, run.progress)


def test_a_simulated_container_waits_visibly_only_if_it_waits() -> None:
    """Between its end and an immediate restart it has ended; later it backs off, and its restarts are those that have been."""
    run = simulated("Always", 1)
    shown = []
    for _ in range(2):
        run.start("begin", 0.0)
        run.end("end", TIMING)
        (container,) = reported(run)["containerStatuses"]
        shown.append((*container["state"], container["restartCount"]))
    assert shown == [("terminated", 0), ("waiting", 1)]
