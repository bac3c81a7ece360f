"""An informer's handler that keeps what it was told, and checks it as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from drayman.cluster.informer import Notice
from drayman.cluster.resources import JsonObject


@dataclass(slots=True)
class Follower:
    """Replays notices. A notice that does not fit what was told before is raised by `until`."""

    told: list[tuple[str, str]] = field(default_factory=list)
    state: dict[str, JsonObject] = field(default_factory=dict)
    _problem: AssertionError | None = None
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _wakers: set[asyncio.Task[None]] = field(default_factory=set)

    def __call__(self, notice: Notice[JsonObject]) -> None:
        try:
            self._take(notice)
        except AssertionError as problem:
            self._problem = problem
        task = asyncio.get_running_loop().create_task(self._wake())
        self._wakers.add(task)
        task.add_done_callback(self._wakers.discard)

    def _take(self, notice: Notice[JsonObject]) -> None:
        meta = notice.object["metadata"]
        name = f"{meta.get('namespace', '')}/{meta['name']}"
        known = self.state.get(name)
        self.told.append((notice.type, meta["name"]))
        match notice.type:
            case "ADDED":
                assert known is None, f"{name} was added twice"
                assert notice.old is None
                self.state[name] = notice.object
            case "MODIFIED":
                assert known is not None, f"{name} was modified before it was added"
                assert notice.old == known
                assert known["metadata"]["resourceVersion"] != meta["resourceVersion"], "told twice"
                assert known["metadata"]["uid"] == meta["uid"]
                self.state[name] = notice.object
            case "DELETED":
                assert known is not None, f"{name} was deleted twice"
                del self.state[name]

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, done: Callable[[], bool]) -> None:
        """Waits until what was told makes `done` true. Raises what did not fit."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._problem is not None or done())
        if self._problem is not None:
            raise self._problem

    def versions(self) -> dict[str, str]:
        return {name: value["metadata"]["resourceVersion"] for name, value in self.state.items()}
