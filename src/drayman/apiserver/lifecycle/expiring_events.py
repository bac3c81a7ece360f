"""Events are removed an hour after they were last written, as in Kubernetes. Nothing else would ever remove them.

How old an event is follows from its revision: the revision of the store is noted from time to time, and what has not been written since one
that was noted an hour ago is older. So no event has to be read, and a clock that is set does not matter. After a restart every event has
its full time again.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from drayman.apiserver.lifecycle.collecting import unless_gone
from drayman.apiserver.protocol.options import DeleteOptions
from drayman.apiserver.requests.calls import own_call
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.verbs.core import Core
from drayman.apiserver.verbs.deleting import delete
from drayman.cluster.embedded.model import Key
from drayman.cluster.together import LARGEST

EVENTS: Final = "events"
LIFETIME_S: Final = 3600.0
NOTED_EVERY_S: Final = 60.0


class EventExpiry:
    """Removes events of a store whose time is over."""

    def __init__(self) -> None:
        self._noted: deque[tuple[float, int]] = deque()
        """Times and the revision of the store at each, the oldest first."""
        self._over = 0
        """The newest revision whose objects are older than their lifetime."""
        self._expired: deque[Key] = deque()

    def is_due(self, now: float) -> bool:
        """Whether it is time to note the revision again."""
        return not self._noted or self._noted[-1][0] <= now - NOTED_EVERY_S

    async def attend(self, core: Core, now: float) -> bool:
        """Remove some events that have expired. False if there are more."""
        if not self._expired:
            self._look(core, now)
        resource = core.resources.named("", EVENTS)
        assert resource is not None, "events are always served"
        for _ in range(min(LARGEST, len(self._expired))):
            await self._remove(core, resource, self._expired.popleft())
        return not self._expired

    def _look(self, core: Core, now: float) -> None:
        self._noted.append((now, core.store.revision))
        while self._noted[0][0] <= now - LIFETIME_S:
            self._over = self._noted.popleft()[1]
        if self._over:
            found = core.store.list(EVENTS)
            self._expired.extend(event.key for event in found if event.revision <= self._over)

    async def _remove(self, core: Core, resource: ApiResource, key: Key) -> None:
        stored = core.store.latest(key)
        if stored is None or stored.revision > self._over:
            return  # it has been written again
        call = own_call(core, resource, "delete", key)
        call.delete = DeleteOptions(propagation="Background")
        await unless_gone(delete, call)
