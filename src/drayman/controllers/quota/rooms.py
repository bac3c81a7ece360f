"""Room for all pods of a workload before it is admitted (`quota/fitting`), and what becomes of room that is lost.

Quota comes first: whoever gets quota and finds no room is refused for that reason and left out of the queue, so that others are tried,
until something in the cluster may have made room. Where a cluster has no nodes at all, quota alone decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from drayman.api import codec
from drayman.api.core import Node, Pod
from drayman.api.kueue_workload import Admission
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceSlice
from drayman.cluster.breaks import Breaks
from drayman.cluster.errors import ClusterError
from drayman.cluster.informer import Notice
from drayman.cluster.patches import merge_patch
from drayman.controllers.quota.book import WORKLOADS, Known
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.view import DELETED, ClusterView
from drayman.quota.fitting.fitter import Moved, Unfit
from drayman.quota.fitting.reservation import record_of
from drayman.quota.fitting.rooms import ROOM, Rooms
from drayman.workloads.queued import life
from drayman.workloads.queued.conditions import BY_NODE

WAITING_FOR_ROOM: Final = "WaitingForRoom"
_GATHER_S: Final = 0.2
"""Changes of the cluster that come together are looked at once."""
_LOSING: Final = (Node, ResourceSlice, DeviceClass, DeviceTaintRule)
"""What room may be lost with."""
_log: Final = logging.getLogger(__name__)


class RoomKeeping:
    """Room, found and kept in the state of the loop."""

    def __init__(self, shared: Shared, view: ClusterView, improved: Callable[[], None]) -> None:
        """`improved` is called a moment after something may fit that did not."""
        self._shared = shared
        self._view = view
        self._improved = improved
        self._rooms: Rooms | None = None
        self._breaks = Breaks()
        self._timer: asyncio.TimerHandle | None = None
        self._lost = asyncio.Event()
        view.listen(self._changed)
        view.listen_to_improvements(self._something_improved)

    def admit(self, known: Known, admission: Admission) -> str | Unfit | None:
        """Find and keep room. Returns what to write down, why there is none, or None where the cluster has no nodes."""
        rooms = self._used()
        if not self._view.state.nodes:
            return None
        return rooms.admit(known.workload, admission, self._shared.flavors(), self._shared.clock())

    def follow(self, known: Known) -> None:
        """A Workload as it is known to be."""
        if ROOM in known.workload.metadata.annotations or self._rooms is not None:
            self._used().follow(known.workload)

    def forget(self, key: Key) -> None:
        if self._rooms is not None:
            self._rooms.forget("/".join(key))

    def _used(self) -> Rooms:
        if self._rooms is None:
            self._rooms = Rooms(self._view.state)
            for pod in self._view.objects(Pod):
                self._rooms.see(pod)
        return self._rooms

    def _changed(self, type_: type, notice: Notice[Any]) -> None:
        if self._rooms is None:
            return
        if type_ is Pod:
            if notice.type == DELETED:
                self._rooms.lose(notice.object)
            else:
                self._rooms.see(notice.object)
        elif type_ in _LOSING:
            self._lost.set()

    def _something_improved(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GATHER_S, self._tell)

    def _tell(self) -> None:
        self._timer = None
        self._improved()

    # Room that is lost.

    async def run(self) -> None:
        """Works until cancelled: looks at what is kept whenever nodes or devices change."""
        while True:
            await self._lost.wait()
            await asyncio.sleep(_GATHER_S)
            self._lost.clear()
            await self._review()

    async def _review(self) -> None:
        rooms = self._rooms
        for reservation in () if rooms is None else tuple(rooms.book):
            await self._breaks.between()
            if rooms is None or rooms.book.get(reservation.key) is not reservation:
                continue
            found = rooms.fitter.review(reservation, self._shared.clock())
            namespace, _, name = reservation.key.partition("/")
            known = self._shared.book.find((namespace, name))
            if known is None:
                continue
            try:
                if isinstance(found, Moved):
                    rooms.book.replace(found.reservation)
                    await self._note(known, codec.encode(record_of(found.reservation)).decode())
                elif isinstance(found, Unfit):
                    await self._evict(known, found.message)
            except ClusterError as error:
                _log.warning("Workload %s: %s; looking again", reservation.key, error)
                self._lost.set()

    async def _note(self, known: Known, text: str) -> None:
        patch = merge_patch({"metadata": {"annotations": {ROOM: text}}})
        await self._shared.client.patch(WORKLOADS, known.name, patch, known.key[0])

    async def _evict(self, known: Known, message: str) -> None:
        """What was admitted has no room any more: it waits again."""
        if not life.holds_quota(known.status) or life.is_evicted(known.status):
            return
        text = f"There is no room for its pods any more: {message}"
        status = life.evicted(
            known.status, BY_NODE, text, self._shared.clock(), generation=known.generation
        )
        written = await self._shared.book.write_status(known, status)
        self._shared.book.record(written, "Normal", f"EvictedDueTo{BY_NODE}", text)
