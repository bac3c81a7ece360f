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
from drayman.node.restarting import backoff, restarts


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
    has_failed: bool = False
    """Whether it was ended because of its probe or hook, with whatever code."""

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


def next_steps(spec: Spec, known: Mapping[str, Known], now: float) -> Steps:
    """What is to be done with a pod that nobody wants to stop."""
    plan = _Plan(spec.restart_policy, known, now)
    states = [known.get(container.name, NOTHING) for container in spec.containers]
    if all(map(_is_over, states, (_policy(spec, each) for each in spec.containers))):
        # Also when sidecars have ended: they are not wanted without the others.
        return plan.ended("Failed" if any(state.code for state in states) else "Succeeded", spec)
    is_initialised = any(state != NOTHING for state in states)
    for container in spec.init_containers:
        state = known.get(container.name, NOTHING)
        if container.is_sidecar:
            plan.keep(container, "Always")
            if not state.has_started and not is_initialised:
                return plan.steps("Pending")
            continue
        if is_initialised:
            continue
        if state.code == 0 and not state.is_running:
            continue
        if state.has_ended and spec.restart_policy == "Never":
            return plan.ended("Failed", spec)
        # A failed init container is tried again under either of the other policies.
        plan.keep(container, "OnFailure")
        return plan.steps("Pending")
    for container in spec.containers:
        plan.keep(container, _policy(spec, container))
    return plan.steps("Running")


def _policy(spec: Spec, container: Container) -> str:
    return container.restart_policy or spec.restart_policy


def _is_over(state: Known, policy: str) -> bool:
    """Whether a container has ended for good."""
    has_succeeded = state.code == 0 and not state.has_failed
    return state.has_ended and not restarts(policy, has_succeeded=has_succeeded)


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
            if _is_over(state, policy):
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


def phase_after(spec: Spec, known: Mapping[str, Known]) -> str:
    """The phase of a pod that was stopped: it counts as done if all its containers ended well, whatever its restart policy."""
    states = [known.get(container.name, NOTHING) for container in spec.containers]
    return "Succeeded" if all(state.has_ended and state.code == 0 for state in states) else "Failed"


def running(spec: Spec, known: Mapping[str, Known]) -> tuple[str, ...]:
    """The containers that run, in the order in which they are to be stopped: sidecars last, the last of them first."""
    return tuple(
        container.name
        for container in (*spec.containers, *reversed(spec.init_containers))
        if known.get(container.name, NOTHING).is_running
    )
