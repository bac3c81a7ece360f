"""A new engine takes the place of another one, as when the configuration changes: at once, with everything that has happened meanwhile."""

from __future__ import annotations

import asyncio

from controllers.quota.waiting_room import CLUSTER_QUEUES, Room, admitted, waiting_room
from drayman.api.kueue import ClusterQueue
from drayman.controllers.quota.admitting import Admitting
from drayman.controllers.quota.controller import QuotaController


class Deleting:
    """Deletes a queue when the engine has been told of the one before it, and notes what everybody else sees."""

    def __init__(self, room: Room, admitting: Admitting) -> None:
        self._room = room
        self._admitting = admitting
        self._calls = 0
        self.seen: list[tuple[int, int]] = []

    async def between(self) -> None:
        state = self._admitting.state
        self.seen.append((len(state.entries), len(list(state.local_queues.all()))))
        self._calls += 1
        if self._calls == 2:  # after the flavor and the first queue
            await self._room.place.client.delete(CLUSTER_QUEUES, "second", None)
            cache = self._admitting._caches[ClusterQueue]
            while cache.get("second") is not None:
                await asyncio.sleep(0)


async def test_nobody_sees_an_engine_that_does_not_know_everything() -> None:
    """A queue that is deleted while the new engine is told of everything is not in it. The old one is asked until then."""
    async with waiting_room() as room:
        for name in ("first", "second"):
            await room.queue(name=name)
        await room.job("job", queue="first")
        await room.workload(admitted, "job")
        (controller,) = (
            each for each in room.place.running.controllers if isinstance(each, QuotaController)
        )
        admitting = controller._admitting
        before, deleting = admitting.state, Deleting(room, admitting)
        admitting._breaks = deleting  # type: ignore[assignment]
        admitting.configure(admitting._shared.configuration)
        while admitting.state is before or admitting._changed:
            await asyncio.sleep(0)
        assert set(admitting.state.books.queues) == {"first"}
        assert set(deleting.seen) == {(1, 2)}
