"""The life of the containers of one pod while they run: the hook at their start, their probes, and their end.

Each attempt that has come to run has a task, which goes through that in order. A container whose hook fails, or whose startup or liveness
probe fails too often, is ended there; that it is started again is a matter of the next steps of the pod (`steps`).
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from drayman.cluster.background import in_background
from drayman.node.agent.containers import Containers, seconds_of
from drayman.node.agent.handlers import Handler
from drayman.node.agent.probes.answers import Asked
from drayman.node.agent.probes.asking import ask
from drayman.node.agent.probes.container_health import (
    NOT_FOUND,
    Found,
    Health,
    Kind,
    begin,
    probes_of,
)
from drayman.node.agent.probes.hooks import run_hook
from drayman.node.agent.probes.probing import Prober, Record
from drayman.node.agent.processes.attempts import Attempt
from drayman.node.agent.processes.marks import (
    Failure,
    Hook,
    failure_of,
    hook_of,
    note_failure,
    note_hook,
)
from drayman.node.agent.spec import Container, RunnablePod
from drayman.node.agent.status import container_id
from drayman.node.agent.stopping import Stops

_FAILURES: Final = {Kind.STARTUP: Failure.STARTUP, Kind.LIVENESS: Failure.LIVENESS}
_log: Final = logging.getLogger(__name__)


class Lives:
    """`grace_s` says how long the pod gives its containers to end. `changed` is called when there is something to report or to do."""

    def __init__(
        self,
        pod: RunnablePod,
        containers: Containers,
        pod_ip: str,
        *,
        grace_s: Callable[[], float],
        record: Record,
        changed: Callable[[], None],
    ) -> None:
        self._pod = pod
        self._specs = {each.name: each for each in pod.spec.all_containers}
        self._containers = containers
        self._pod_ip = pod_ip
        self._grace_s = grace_s
        self._record = record
        self._changed = changed
        signals = {name: each.stop_signal for name, each in self._specs.items()}
        self._stops = Stops(containers, self._before_end, signals)
        self._found = {
            name: seen.attempt for name, seen in containers.seen.items() if seen.is_running
        }
        """Attempts that an earlier agent has started."""
        self._tasks: dict[str, tuple[int, asyncio.Task[None]]] = {}
        self._left: set[asyncio.Task[None]] = set()
        self._probers: dict[Attempt, Prober] = {}
        self._is_leaving = False

    @property
    def awaits_hook(self) -> bool:
        """Whether a container was started whose hook has not returned: no other is started until then."""
        return any(each.is_running and each.awaits_hook for each in self._containers.seen.values())

    def observe(self) -> None:
        """Begin with containers that have come to run, and leave alone those that have ended."""
        for name, seen in tuple(self._containers.seen.items()):
            number, task = self._tasks.get(name, (-1, None))
            if task is not None and (not seen.is_running or number != seen.attempt):
                del self._tasks[name]
                self._leave(task)
            if seen.is_running and seen.began and name not in self._tasks and not self._is_leaving:
                self._begin(self._specs[name])

    def leave(self) -> None:
        """The pod is being ended: its containers are not ended for any other reason, and no hook begins."""
        self._is_leaving = True
        for prober in self._probers.values():
            prober.leave()

    async def stop(self, name: str, grace_s: float) -> None:
        """Returns when a container has ended."""
        await self._stops.stop(name, grace_s)

    def shorten(self, grace_s: float) -> None:
        """Leave no more time than this to containers that are being ended."""
        self._stops.shorten(grace_s)

    async def close(self) -> None:
        """Ask and tell nothing any more; what runs runs on."""
        for _, task in self._tasks.values():
            self._leave(task)
        self._tasks.clear()
        await asyncio.gather(*self._left, return_exceptions=True)
        await self._stops.close()

    def _leave(self, task: asyncio.Task[None]) -> None:
        if not task.done():
            task.cancel()
            self._left.add(task)
            task.add_done_callback(self._left.discard)

    # --- One attempt ----------------------------------------------------------------------------

    def _begin(self, container: Container) -> None:
        name = container.name
        attempt = self._containers.attempt(name)
        assert attempt is not None
        seen = self._containers.seen[name]
        # Without a hook it counts from now on, and not when its task comes to its turn.
        health = None if seen.awaits_hook or seen.has_failed else self._health(container, attempt)
        life = self._live(Asked(container, attempt, self._pod_ip), health)
        task = in_background(life, f"the life of {attempt.folder}", _log)
        self._tasks[name] = attempt.number, task

    async def _live(self, asked: Asked, health: Health | None) -> None:
        """Until it has to be ended, and has been."""
        container, attempt = asked.container, asked.attempt
        failure = failure_of(attempt.folder)
        if failure is None and container.post_start is not None:
            failure = await self._run_post_start(asked, container.post_start)
        if failure is not None:
            await self._end(asked, failure)
            return
        if health is None:
            self._containers.note(container.name, awaits_hook=False)
            health = self._health(container, attempt)
        async with Prober(
            probes_of(container),
            health,
            partial(ask, asked),
            self._record,
            partial(self._note, container.name),
        ) as prober:
            self._probers[attempt] = prober
            if self._is_leaving:
                prober.leave()
            try:
                failure = _FAILURES[await prober.failed()]
                # Whether it is ready is asked until it has ended.
                await self._end(asked, failure)
            finally:
                del self._probers[attempt]

    def _health(self, container: Container, attempt: Attempt) -> Health:
        """What is known of a container before its probes are asked. What was reported of it still counts if another agent did that."""
        now = asyncio.get_running_loop().time()
        began = now - (time.time() - seconds_of(attempt.began()))
        found, spread = NOT_FOUND, 0.0
        if self._found.get(container.name) == attempt.number:
            reported = self._pod.status.container(
                container_id(self._pod, container.name, attempt.number)
            )
            if reported is not None:
                found = Found(has_started=reported.started, is_ready=reported.ready)
                # An agent that comes back does not ask everybody at once who is well.
                spread = random.random() if reported.ready else 0.0
        health = begin(probes_of(container), began, now, found, spread)
        self._note(container.name, health)
        return health

    def _note(self, name: str, health: Health) -> None:
        self._containers.note(name, has_started=health.has_started, is_ready=health.is_ready)
        self._changed()

    # --- Hooks and ends -------------------------------------------------------------------------

    async def _run_post_start(self, asked: Asked, hook: Handler) -> Failure | None:
        """Once for each attempt, whoever begins it (`marks`)."""
        folder = asked.attempt.folder
        about = f"container {asked.container.name}"
        match hook_of(folder):
            case Hook.RETURNED | Hook.CUT_OFF:
                return None
            case Hook.BEGUN:
                note_hook(folder, Hook.CUT_OFF)
                note = f"{about}: the agent ended during postStart; it is not run again"
                self._record("Warning", "PostStartHookCutOff", note)
                return None
            case Hook.DUE:
                note_hook(folder, Hook.BEGUN)
                why = await run_hook(asked, hook)
                if why:
                    self._record("Warning", "FailedPostStartHook", f"{about}: {why}")
                    return Failure.POST_START
                note_hook(folder, Hook.RETURNED)
                return None

    async def _end(self, asked: Asked, failure: Failure) -> None:
        """End a container because of its hook or probe, and write that down first."""
        container = asked.container
        if not self._containers.seen[container.name].has_failed:
            note_failure(asked.attempt.folder, failure)
            self._containers.note(container.name, has_failed=True)
            policy = container.restart_policy or self._pod.spec.restart_policy
            future = "" if policy == "Never" else ", will be restarted"
            about = f"Container {container.name} failed {failure.value}{future}"
            self._record("Normal", "Killing", about)
        await self._stops.stop(container.name, self._grace_for(container, failure))

    def _grace_for(self, container: Container, failure: Failure) -> float:
        """A probe may leave its container less or more time than the pod, unless that ends."""
        probes = {
            Failure.STARTUP: container.startup_probe,
            Failure.LIVENESS: container.liveness_probe,
        }
        probe = probes.get(failure)
        own = None if probe is None else probe.termination_grace_period_seconds
        return self._grace_s() if own is None or self._is_leaving else float(own)

    async def _before_end(self, name: str) -> None:
        container, attempt = self._specs[name], self._containers.attempt(name)
        if container.pre_stop is None or attempt is None:
            return
        why = await run_hook(Asked(container, attempt, self._pod_ip), container.pre_stop)
        if why:
            self._record("Warning", "FailedPreStopHook", f"container {name}: {why}")
