"""What a node does next with a pod, case by case."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from drayman.node.agent.spec import Container, Spec
from drayman.node.agent.steps import Known, Steps, next_steps

NOW = 1000.0
RUNNING = Known(is_running=True, has_started=True)
STARTING = Known(is_running=True)


def ended(code: int, crashes: int = 0, at: float = NOW) -> Known:
    return Known(code=code, ended=at, crashes=crashes)


@dataclass(frozen=True)
class Case:
    says: str
    known: dict[str, Known] = field(default_factory=dict)
    init: tuple[str, ...] = ()
    sidecars: tuple[str, ...] = ()
    containers: tuple[str, ...] = ("a", "b")
    policy: str = "Always"
    want: Steps = field(default_factory=Steps)


CASES = [
    Case("all containers start together", want=Steps(start=("a", "b"))),
    Case("an init container comes first", init=("i",), want=Steps(start=("i",), phase="Pending")),
    Case(
        "the next init container waits for the one before",
        {"i": RUNNING},
        init=("i", "j"),
        want=Steps(phase="Pending"),
    ),
    Case(
        "containers start when the last init container has succeeded",
        {"i": ended(0)},
        init=("i",),
        want=Steps(start=("a", "b")),
    ),
    Case(
        "a failed init container fails the pod that never restarts",
        {"i": ended(1)},
        init=("i",),
        policy="Never",
        want=Steps(phase="Failed"),
    ),
    Case(
        "a failed init container is tried again at once the first time",
        {"i": ended(1)},
        init=("i",),
        want=Steps(start=("i",), phase="Pending"),
    ),
    Case(
        "and after ten seconds the second time",
        {"i": ended(1, crashes=1)},
        init=("i",),
        want=Steps(wait_until=NOW + 10, delayed=frozenset({"i"}), phase="Pending"),
    ),
    Case(
        "a sidecar has to have started before the containers come",
        {"s": STARTING},
        sidecars=("s",),
        want=Steps(phase="Pending"),
    ),
    Case(
        "containers start beside a sidecar",
        {"s": RUNNING},
        sidecars=("s",),
        want=Steps(start=("a", "b")),
    ),
    Case("what runs is left alone", {"a": RUNNING, "b": RUNNING}),
    Case(
        "one that succeeded stays ended on failure only",
        {"a": ended(0), "b": RUNNING},
        policy="OnFailure",
    ),
    Case(
        "one that failed is started again on failure",
        {"a": ended(1), "b": RUNNING},
        policy="OnFailure",
        want=Steps(start=("a",)),
    ),
    Case(
        "a pod whose containers have all succeeded has",
        {"a": ended(0), "b": ended(0)},
        policy="OnFailure",
        want=Steps(phase="Succeeded"),
    ),
    Case(
        "one failed container fails a pod that never restarts",
        {"a": ended(0), "b": ended(3)},
        policy="Never",
        want=Steps(phase="Failed"),
    ),
    Case(
        "sidecars are stopped when the rest has ended, the last one first",
        {"s": RUNNING, "t": RUNNING, "a": ended(0), "b": ended(0)},
        sidecars=("s", "t"),
        policy="Never",
        want=Steps(stop=("t", "s"), phase="Succeeded"),
    ),
    Case(
        "sidecars that were stopped stay so",
        {"s": ended(0), "a": ended(0), "b": ended(0)},
        sidecars=("s",),
        policy="Never",
        want=Steps(phase="Succeeded"),
    ),
    Case(
        "a sidecar that ends beside containers is started again and holds up nobody",
        {"s": ended(1), "a": ended(1), "b": RUNNING},
        sidecars=("s",),
        want=Steps(start=("s", "a")),
    ),
    Case(
        "init containers do not run again beside containers",
        {"a": RUNNING, "b": RUNNING},
        init=("i",),
    ),
    Case(
        "one that was ended for its probe has not succeeded",
        {"a": Known(code=0, ended=NOW, has_failed=True), "b": RUNNING},
        policy="OnFailure",
        want=Steps(start=("a",)),
    ),
    Case(
        "a container that waits does not keep others from starting",
        {"a": ended(1, crashes=2)},
        want=Steps(start=("b",), wait_until=NOW + 20, delayed=frozenset({"a"})),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_steps(case: Case) -> None:
    """Each case says what holds."""
    spec = Spec(
        init_containers=(
            *(Container(name=name, restart_policy="Always") for name in case.sidecars),
            *(Container(name=name) for name in case.init),
        ),
        containers=tuple(Container(name=name) for name in case.containers),
        restart_policy=case.policy,
    )
    assert next_steps(spec, case.known, NOW) == case.want
