"""What a node does next with a pod: a function of its spec, of what is known about its containers, and of the time.

Init containers run one after the other, and each has to succeed; a sidecar only has to have started before the next one comes. Then all
others run side by side. One that has ended is started again as the restart policy says, after a while that doubles with each time. The pod
has ended when none of its containers will run again; its sidecars are stopped then, the last one first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from drayman.node.agent.spec import Container, Spec

FIRST_BACKOFF_S: Final = 10.0
LONGEST_BACKOFF_S: Final = 300.0
FORGIVEN_AFTER_S: Final = 600.0
"""A container that ran for so long is started again as if it had never ended before."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about a container: nothing, that it runs, or how it ended. Times are seconds since the epoch."""

    is_running: bool = False
    has_started: bool = False
    """Whether its startup probe has succeeded, or it has none."""
    code: int | None = None
    """The exit code of the last attempt, if that has ended."""
    ended: float = 0.0
    crashes: int = 0
    """How often it has ended and been started again without running for long."""

    @property
    def has_ended(self) -> bool:
        return self.code is not None and not self.is_running


NOTHING: Final = Known()


@dataclass(frozen=True, slots=True)
class Steps:
    """What is to be done now."""

    start: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    """Sidecars, in the order in which they are stopped."""
    wait_until: float | None = None
    """When to ask again, if nothing happens before."""
    delayed: frozenset[str] = frozenset()
    """Containers that wait to be started again."""
    phase: str = "Running"
    """`Pending` until every init container is done, and `Succeeded` or `Failed` when no container will run again."""

    @property
    def is_over(self) -> bool:
        return self.phase in ("Succeeded", "Failed") and not self.stop


def backoff(crashes: int) -> float:
    """How long a container waits that has ended, having been started again so often."""
    if crashes == 0:
        return 0.0
    return min(FIRST_BACKOFF_S * 2.0 ** min(crashes - 1, 10), LONGEST_BACKOFF_S)


def next_steps(spec: Spec, known: Mapping[str, Known], now: float) -> Steps:
    """What is to be done with a pod that nobody wants to stop."""
    plan = _Plan(spec.restart_policy, known, now)
    for container in spec.init_containers:
        if container.is_sidecar:
            plan.keep(container, "Always")
            if not known.get(container.name, NOTHING).has_started:
                return plan.steps("Pending")
            continue
        state = known.get(container.name, NOTHING)
        if state.code == 0 and not state.is_running:
            continue
        if state.has_ended and spec.restart_policy == "Never":
            return plan.ended("Failed", spec)
        # A failed init container is tried again under either of the other policies.
        plan.keep(container, "OnFailure")
        return plan.steps("Pending")
    for container in spec.containers:
        plan.keep(container, container.restart_policy or spec.restart_policy)
    states = [known.get(container.name, NOTHING) for container in spec.containers]
    if plan.start or plan.delayed or any(state.is_running for state in states):
        return plan.steps("Running")
    return plan.ended("Failed" if any(state.code for state in states) else "Succeeded", spec)


class _Plan:
    def __init__(self, policy: str, known: Mapping[str, Known], now: float) -> None:
        self._policy = policy
        self._known = known
        self._now = now
        self.start: list[str] = []
        self.delayed: set[str] = set()
        self._wait_until: float | None = None

    def keep(self, container: Container, policy: str) -> None:
        """Have a container run, unless it has ended for good or it is too early."""
        state = self._known.get(container.name, NOTHING)
        if state.is_running:
            return
        if state.code is not None:
            if policy == "Never" or (policy == "OnFailure" and state.code == 0):
                return
            due = state.ended + backoff(state.crashes)
            if due > self._now:
                self.delayed.add(container.name)
                self._wait_until = min(due, self._wait_until or due)
                return
        self.start.append(container.name)

    def steps(self, phase: str) -> Steps:
        return Steps(
            start=tuple(self.start),
            wait_until=self._wait_until,
            delayed=frozenset(self.delayed),
            phase=phase,
        )

    def ended(self, phase: str, spec: Spec) -> Steps:
        """Nothing runs again, and what still does is stopped."""
        return Steps(stop=running(spec, self._known), phase=phase)


def running(spec: Spec, known: Mapping[str, Known]) -> tuple[str, ...]:
    """The containers that run, in the order in which they are to be stopped: sidecars last, the last of them first."""
    return tuple(
        container.name
        for container in (*spec.containers, *reversed(spec.init_containers))
        if known.get(container.name, NOTHING).is_running
    )
