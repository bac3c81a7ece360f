"""The containers of one pod: their attempts, found again after a restart of the agent, and what is known of each."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from drayman.node.agent.attempts import Attempt, Ended, Launch, attempts_of, forget_old
from drayman.node.agent.status import UNSEEN, Seen, to_seconds
from drayman.node.agent.steps import FORGIVEN_AFTER_S, Known


class Containers:
    """By name. `changed` is called when one has ended."""

    def __init__(self, folder: Path, names: Iterable[str], changed: Callable[[], None]) -> None:
        self._folder = folder
        self._changed = changed
        self._current: dict[str, Attempt] = {}
        self._waiting: dict[str, asyncio.Task[Ended]] = {}
        self._crashes: dict[str, int] = {}
        self.seen: dict[str, Seen] = {}
        for name in names:
            self._find(name)

    def _find(self, name: str) -> None:
        """What an earlier agent has left of a container. One that runs goes on."""
        found = attempts_of(self._folder / name)
        previous: Ended | None = None
        for attempt in found:
            ended = attempt.settle()
            if ended is not None and not ended.began:
                continue  # its shim never came to start it
            self.seen[name] = Seen(attempt.number, ended=ended, previous=previous)
            self._current[name] = attempt
            if ended is None:
                self._follow(name, attempt)
            else:
                self._count(name, ended)
            previous = ended

    def attempt(self, name: str) -> Attempt | None:
        return self._current.get(name)

    def known(self) -> dict[str, Known]:
        """For the decision about the next steps."""
        return {
            name: Known(
                is_running=seen.is_running,
                has_started=seen.has_started,
                code=None if seen.ended is None else seen.ended.code,
                ended=0.0 if seen.ended is None else _time(seen.ended.ended),
                crashes=max(0, self._crashes.get(name, 0) - 1),
            )
            for name, seen in self.seen.items()
            if seen.attempt >= 0
        }

    def note(self, name: str, **changes: object) -> None:
        """Write down something about a container."""
        self.seen[name] = replace(self.seen.get(name, UNSEEN), **changes)  # type: ignore[arg-type]

    async def start(self, name: str, launch: Launch) -> None:
        """Returns when the process is there or has ended at once. Raises OSError."""
        folder = self._folder / name
        numbers = [attempt.number for attempt in attempts_of(folder)]
        attempt = Attempt(folder / str(max(numbers, default=-1) + 1))
        attempt.start(launch)
        forget_old(folder)
        before = self.seen.get(name, UNSEEN)
        self._current[name] = attempt
        self.seen[name] = Seen(attempt.number, previous=before.ended or before.previous)
        self._follow(name, attempt)

    def _follow(self, name: str, attempt: Attempt) -> None:
        task = asyncio.create_task(attempt.wait(), name=f"container {attempt.folder}")
        task.add_done_callback(lambda done: self._ended(name, attempt, done))
        self._waiting[name] = task

    def _ended(self, name: str, attempt: Attempt, task: asyncio.Task[Ended]) -> None:
        if task.cancelled() or self._current.get(name) is not attempt:
            return
        ended = task.result()
        self.note(name, ended=ended, is_ready=False, has_started=False, began="")
        self._count(name, ended)
        self._changed()

    def _count(self, name: str, ended: Ended) -> None:
        ran = _time(ended.ended) - _time(ended.began)
        self._crashes[name] = 1 if ran > FORGIVEN_AFTER_S else self._crashes.get(name, 0) + 1

    def observe(self) -> None:
        """Look which containers have come to run."""
        for name, seen in self.seen.items():
            if seen.is_running and not seen.began:
                began = self._current[name].began()
                if began:
                    self.note(name, began=to_seconds(began), pid=self._current[name].pid or 0)

    def signal(self, name: str, number: int) -> None:
        self._current[name].signal(number)

    async def ended(self, name: str, within_s: float | None = None) -> bool:
        """Returns when a container has ended, or after a while; whether it has."""
        task = self._waiting.get(name)
        if task is None:
            return True
        done, _ = await asyncio.wait((task,), timeout=within_s)
        return bool(done)

    async def kill(self, name: str) -> None:
        """Returns when a container has ended."""
        while self.seen[name].is_running:
            self.signal(name, signal.SIGKILL)
            # Its process may not have been there yet.
            if await self.ended(name, within_s=0.05):
                await asyncio.sleep(0)

    def count_running(self) -> int:
        return sum(seen.is_running for seen in self.seen.values())

    async def kill_all(self) -> None:
        """End what runs, though nobody follows it any more."""
        for name, attempt in self._current.items():
            if self.seen[name].is_running:
                waiting = asyncio.create_task(attempt.wait())
                while not waiting.done():
                    attempt.signal(signal.SIGKILL)
                    await asyncio.wait((waiting,), timeout=0.05)

    def forget(self) -> None:
        """Leave the containers alone; they run on."""
        for task in self._waiting.values():
            task.cancel()


def _time(stamp: str) -> float:
    return datetime.fromisoformat(stamp[:26].rstrip("Z") + "+00:00").timestamp() if stamp else 0.0
