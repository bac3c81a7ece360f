"""Asks the probes of one attempt of a container, each at its own pace, and keeps what they say about it (`container_health`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, Self

from drayman.api.core import EventType
from drayman.node.agent.handlers import Probe
from drayman.node.agent.probes.answers import Answer
from drayman.node.agent.probes.container_health import (
    Health,
    Kind,
    Outcome,
    Probes,
    answered,
    leaving,
)


class Record(Protocol):
    """Writes an event of the pod."""

    def __call__(self, type_: EventType, reason: str, note: str, /) -> None: ...


class Prober:
    """Use it in `async with`. `changed` is called when the container has started, or is ready, or no longer is."""

    def __init__(
        self,
        probes: Probes,
        health: Health,
        ask: Callable[[Probe], Awaitable[Answer]],
        record: Record,
        changed: Callable[[Health], None],
    ) -> None:
        self.health = health
        self._probes = probes
        self._ask = ask
        self._record = record
        self._changed = changed
        self._turn = asyncio.Event()
        """Set when it has started, fails or leaves: what may be asked changes then."""
        self._failed = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for kind in self._probes:
            task = asyncio.create_task(self._keep_asking(kind), name=f"{kind.value} probe")
            task.add_done_callback(self._ended)
            self._tasks.append(task)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def failed(self) -> Kind:
        """Returns when the container has to be ended, and because of which probe."""
        found: Kind = await self._failed
        return found

    def leave(self) -> None:
        """The pod is being ended."""
        self._become(leaving(self.health))

    def _ended(self, task: asyncio.Task[None]) -> None:
        """An error in asking is one of this program, and whoever awaits the outcome gets it."""
        if not task.cancelled() and (error := task.exception()) and not self._failed.done():
            self._failed.set_exception(error)

    async def _keep_asking(self, kind: Kind) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due = self.health.due(kind)
            if due is None:
                if not self.health.can_be_asked_later(kind):
                    return
                self._turn.clear()
                await self._turn.wait()
            elif due > clock():
                await asyncio.sleep(due - clock())
            else:
                asked_at = clock()
                answer = await self._ask(self._probes[kind])
                self._tell(kind, answer)
                self._become(answered(self._probes, self.health, kind, answer.outcome, asked_at))

    def _tell(self, kind: Kind, answer: Answer) -> None:
        if not self.health.may_be_asked(kind):
            return
        match answer.outcome:
            case Outcome.FAILURE:
                self._record("Warning", "Unhealthy", f"{kind.value} probe failed: {answer.text}")
            case Outcome.UNKNOWN:
                self._record("Warning", "Unhealthy", f"{kind.value} probe errored: {answer.text}")
            case Outcome.SUCCESS if answer.text:
                note = f"{kind.value} probe warning: {answer.text}"
                self._record("Warning", "ProbeWarning", note)

    def _become(self, health: Health) -> None:
        before, self.health = self.health, health
        if (before.has_started, before.is_ready) != (health.has_started, health.is_ready):
            self._changed(health)
        if before.has_started != health.has_started or before.is_leaving != health.is_leaving:
            self._turn.set()
        if health.failed is not None and not self._failed.done():
            self._turn.set()
            self._failed.set_result(health.failed)
