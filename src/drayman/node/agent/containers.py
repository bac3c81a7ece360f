"""The containers of one pod: their attempts, found again after a restart of the agent, and what is known of each."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import structs

from drayman.node.agent.processes.attempts import Attempt, Ended, Launch, attempts_of, forget_old
from drayman.node.agent.processes.marks import (
    Hook,
    ended_with_node,
    failure_of,
    hook_of,
    note_end_with_node,
)
from drayman.node.agent.processes.messages import last_words
from drayman.node.agent.spec import Container
from drayman.node.agent.status import UNSEEN, Seen, to_seconds
from drayman.node.agent.steps import Known
from drayman.node.restarting import crashes_after

_log: Final = logging.getLogger(__name__)
_CLEAR_AGAIN_S = 1.0


class Containers:
    """By name. `changed` is called when one has ended."""

    def __init__(
        self, folder: Path, containers: Iterable[Container], changed: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._specs = {each.name: each for each in containers}
        self._changed = changed
        self._current: dict[str, Attempt] = {}
        self._waiting: dict[str, asyncio.Task[Ended]] = {}
        self._crashes: dict[str, int] = {}
        self._started: dict[str, int] = {}
        """Attempts that were made, and have not been seen to run."""
        self.seen: dict[str, Seen] = {}
        for name in self._specs:
            self._find(name)

    def _find(self, name: str) -> None:
        """What an earlier agent has left of a container. One that runs goes on."""
        found = attempts_of(self._folder / name)
        previous: Ended | None = None
        for attempt in found:
            ended = attempt.settle(is_inherited=True)
            if ended is not None and ended.is_lost:
                continue  # unlike one whose end an earlier agent has seen, and maybe reported
            ended = ended and self._with_message(name, attempt, ended)
            self.seen[name] = Seen(
                attempt.number,
                ended=ended,
                previous=previous,
                awaits_hook=self._awaits_hook(name, attempt),
                has_failed=failure_of(attempt.folder) is not None,
            )
            self._current[name] = attempt
            if ended is None:
                self._follow(name, attempt)
            elif ended_with_node(attempt.folder):
                self._crashes[name] = 0
            else:
                self._count(name, ended)
            previous = ended

    def _awaits_hook(self, name: str, attempt: Attempt) -> bool:
        has_hook = self._specs[name].post_start is not None
        return has_hook and hook_of(attempt.folder) is Hook.DUE

    def _with_message(self, name: str, attempt: Attempt, ended: Ended) -> Ended:
        """What it left to say belongs to its end."""
        return structs.replace(ended, message=last_words(self._specs[name], attempt, ended))

    def attempt(self, name: str) -> Attempt | None:
        return self._current.get(name)

    def known(self) -> dict[str, Known]:
        """For the decision about the next steps."""
        return {
            name: Known(
                is_running=seen.is_running,
                has_started=seen.has_started,
                code=None if seen.ended is None else seen.ended.code,
                ended=0.0 if seen.ended is None else seconds_of(seen.ended.ended),
                crashes=max(0, self._crashes.get(name, 0) - 1),
                has_failed=seen.has_failed,
            )
            for name, seen in self.seen.items()
            if seen.attempt >= 0
        }

    def note(self, name: str, **changes: object) -> None:
        """Write down something about a container."""
        self.seen[name] = replace(self.seen.get(name, UNSEEN), **changes)  # type: ignore[arg-type]

    def next_number(self, name: str) -> int:
        """Of the attempt that would be started next."""
        numbers = [attempt.number for attempt in attempts_of(self._folder / name)]
        return max(numbers, default=-1) + 1

    async def start(self, name: str, launch: Launch) -> None:
        """Returns when somebody looks after it, who will have made its process soon. Raises OSError."""
        folder = self._folder / name
        attempt = Attempt(folder / str(self.next_number(name)))
        attempt.start(launch, self._specs[name].termination_message_path)
        forget_old(folder)
        before = self.seen.get(name, UNSEEN)
        self._current[name] = attempt
        self._started[name] = attempt.number
        self.seen[name] = Seen(
            attempt.number,
            previous=before.ended or before.previous,
            awaits_hook=self._awaits_hook(name, attempt),
        )
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
        # Last, for what a container leaves behind may be anything: that it has ended is known by now.
        self.note(name, ended=self._with_message(name, attempt, ended))

    def _count(self, name: str, ended: Ended) -> None:
        ran = seconds_of(ended.ended) - seconds_of(ended.began)
        self._crashes[name] = crashes_after(self._crashes.get(name, 0), ran)

    def observe(self) -> list[tuple[str, str]]:
        """Look which containers have come to run; those of them that this agent has started, also if they have ended since.

        With each of them comes why its program could not be run, if so.
        """
        for name, seen in self.seen.items():
            if seen.is_running and not seen.began:
                began = self._current[name].began()
                if began:
                    self.note(name, began=to_seconds(began), pid=self._current[name].pid or 0)
        came = [name for name, number in self._started.items() if self._has_run(name, number)]
        for name in came:
            del self._started[name]
        return [(name, self._start_error(name)) for name in came]

    @property
    def are_starting(self) -> bool:
        """Whether it is about to be known that a container runs."""
        return any(
            seen.is_running and (not seen.began or name in self._started)
            for name, seen in self.seen.items()
        )

    def _has_run(self, name: str, number: int) -> bool:
        seen = self.seen[name]
        if seen.attempt != number:
            return False
        if seen.ended is not None:
            return bool(seen.ended.began)
        return bool(seen.began) and self._current[name].is_program()

    def _start_error(self, name: str) -> str:
        ended = self.seen[name].ended
        return ended.failure if ended is not None and ended.is_start_error else ""

    async def ended(self, name: str, within_s: float | None = None) -> bool:
        """Returns when a container has ended, or after a while; whether it has."""
        task = self._waiting.get(name)
        if task is None:
            return True
        done, _ = await asyncio.wait((task,), timeout=within_s)
        return bool(done)

    def runs(self, name: str, attempt: Attempt) -> bool:
        """Whether a container still runs, and has not been started again."""
        return self._current.get(name) is attempt and self.seen[name].is_running

    async def kill(self, name: str, attempt: Attempt) -> None:
        """Returns when an attempt has ended."""
        while self.runs(name, attempt):
            attempt.signal(signal.SIGKILL)
            # Its process may not have been there yet.
            if await self.ended(name, within_s=0.05):
                await asyncio.sleep(0)

    def count_running(self) -> int:
        return sum(seen.is_running for seen in self.seen.values())

    async def kill_all(self) -> None:
        """End what runs with its node, though nobody follows it any more."""
        for name, attempt in self._current.items():
            if self.seen[name].is_running:
                try:
                    note_end_with_node(attempt.folder)
                except OSError as error:  # it only waits longer at the next start
                    _log.warning("%s: %s", attempt.folder, error)
                waiting = asyncio.create_task(attempt.wait())
                while not waiting.done():
                    attempt.signal(signal.SIGKILL)
                    await asyncio.wait((waiting,), timeout=0.05)

    async def clear(self) -> None:
        """Returns when nothing is left in the control groups of containers that have ended."""
        for name in self.seen:
            for attempt in attempts_of(self._folder / name):
                while not await asyncio.to_thread(attempt.remove_cgroups):
                    await asyncio.sleep(_CLEAR_AGAIN_S)

    def forget(self) -> None:
        """Leave the containers alone; they run on."""
        for task in self._waiting.values():
            task.cancel()


def seconds_of(stamp: str) -> float:
    """A moment as shims write it, in seconds since the epoch."""
    return datetime.fromisoformat(stamp[:26].rstrip("Z") + "+00:00").timestamp() if stamp else 0.0
