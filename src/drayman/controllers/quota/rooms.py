"""Room for all pods of a workload before it is admitted (`quota/fitting`), and what becomes of room that is lost.

Quota comes first: whoever gets quota and finds no room has others driven out, where its queue may (`quota/preemption/for_room.py`), or is
refused for that reason and left out of the queue, so that others are tried, until something in the cluster may have made room. Nobody is
driven out for quota either if there would be no room afterwards. Where a cluster has no nodes at all, quota alone decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from drayman.api.core import Node, Pod
from drayman.api.kueue_workload import Admission
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.cluster.breaks import Breaks
from drayman.cluster.errors import ClusterError
from drayman.cluster.informer import Notice
from drayman.cluster.patches import merge_patch
from drayman.controllers.quota.book import WORKLOADS, Known
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.view import DELETED, ClusterView
from drayman.quota.entries import Entry
from drayman.quota.fitting.clearing import Queued, RoomClearing
from drayman.quota.fitting.departing import Departing
from drayman.quota.fitting.fitter import Moved, Unfit
from drayman.quota.fitting.rearranging import rearranged
from drayman.quota.fitting.rooms import ROOM, Rooms
from drayman.workloads.queued import life
from drayman.workloads.queued.conditions import BY_NODE

_GATHER_S: Final = 0.2
"""Changes of the cluster that come together are looked at once."""
_LOSING: Final = (Node, ResourceSlice, DeviceClass, DeviceTaintRule)
"""What room may be lost with."""
_log: Final = logging.getLogger(__name__)


class _Used:
    """What there is once room was asked for: whose it is, what is about to come free, and who waits for that."""

    def __init__(self, shared: Shared, view: ClusterView, queued: Callable[[], Queued]) -> None:
        state = view.state
        self.rooms = Rooms(state)
        self.departing = Departing(state)
        pods = view.objects(Pod)
        for pod in pods:
            self.rooms.see(pod)
        self.departing.begin(pods)
        self.clearing = RoomClearing(
            self.rooms, self.departing, shared.flavors, shared.clock, queued
        )


class RoomKeeping:
    """Room, found and kept in the state of the loop."""

    def __init__(
        self,
        shared: Shared,
        view: ClusterView,
        improved: Callable[[], None],
        queued: Callable[[], Queued],
        runs_elsewhere: Callable[[Admission], bool],
    ) -> None:
        """`improved` is called a moment after something may fit that did not; `queued` knows where workloads stand
        in their queues, and `runs_elsewhere` says whether pods with an admission run in another cluster, so that they need no room here.
        """
        self._shared = shared
        self._view = view
        self._improved = improved
        self._queued = queued
        self._runs_elsewhere = runs_elsewhere
        self._in_use: _Used | None = None
        self._unwritten: dict[Key, str] = {}
        """What is to be written down about room: pods have moved, or somebody else has changed it."""
        self._breaks = Breaks()
        self._timer: asyncio.TimerHandle | None = None
        self._due = asyncio.Event()
        self._is_lost = False
        """Whether room may be lost, rather than only written down otherwise."""
        self._first: list[Callable[[], Awaitable[None]]] = []
        view.listen(self._changed)
        view.listen_to_improvements(self._something_improved)

    def look_first(self, looks: Callable[[], Awaitable[None]]) -> None:
        """Have somebody look at what is lost before room is looked at."""
        self._first.append(looks)

    def look_again(self) -> None:
        """Something may be lost."""
        self._is_lost = True
        self._due.set()

    def rearrange(self, known: Known, admission: Admission) -> str | Unfit | None:
        """Find and keep room for a workload whose places have changed. Returns as `admit` does."""
        if not self._is_needed(admission):
            return None
        rooms, flavors = self._used().rooms, self._shared.flavors()
        state, now = self._view.state, self._shared.clock()
        found = rearranged(rooms, state, known.workload, admission, flavors, now)
        return found if isinstance(found, Unfit) else rooms.rearrange(known.workload, found)

    def admit(self, entry: Entry, admission: Admission) -> str | Unfit | None:
        """Find and keep room. Returns what to write down, why there is none, or None where none is needed."""
        if not self._is_needed(admission):
            return None
        return self._used().clearing.admit(entry, admission)

    def fits(self, entry: Entry, admission: Admission, without: frozenset[str]) -> bool:
        """Whether there would be room for a workload if others, by key, were gone."""
        if not self._is_needed(admission):
            return True
        return self._used().clearing.fits(entry, admission, without)

    def unseated(self, entry: Entry, admission: Admission) -> int:
        """How many pods of a workload find no room as things are."""
        return self._used().clearing.unseated(entry, admission)

    def seats(self, entry: Entry, admission: Admission, node: str, without: frozenset[str]) -> int:
        """How many pods of a workload find room on a node if others, by key, are gone."""
        return self._used().clearing.seats(entry, admission, node, without)

    def nodes_of(self, key: str) -> frozenset[str]:
        """The nodes on which a workload has pods or room."""
        return self._used().clearing.nodes_of(key)

    def speaks_for_shape(self, entry: Entry) -> bool:
        """Whether what is said of a workload holds for all of its queue that have its shape."""
        return self._in_use is not None and self._in_use.clearing.speaks_for_shape(entry)

    def awaits(self, entry: Entry, admission: Admission, victims: frozenset[str]) -> None:
        """A workload has others driven out, and waits for their room."""
        if self._is_needed(admission):
            self._used().clearing.awaits(entry, admission, victims)

    def is_awaited(self, key: str) -> bool:
        """Whether a workload waits for the room of others that it had driven out."""
        return self._in_use is not None and self._in_use.clearing.is_awaited(key)

    def gives_up(self, key: str) -> None:
        """A workload does not wait for the room of others any more."""
        if self._in_use is not None:
            self._in_use.clearing.gives_up(key)

    def _is_needed(self, admission: Admission) -> bool:
        return bool(self._view.state.nodes) and not self._runs_elsewhere(admission)

    def follow(self, known: Known) -> None:
        """A Workload as it is known to be."""
        text = known.workload.metadata.annotations.get(ROOM)
        if text is None and self._in_use is None:
            return
        rooms = self._used().rooms
        own = rooms.text_of("/".join(known.key))
        is_over = life.is_evicted(known.status) or life.is_finished(known.status)
        if own and own != text and life.holds_quota(known.status) and not is_over:
            # Another client has changed or removed what was written, or the pods have moved.
            self._unwritten[known.key] = own
            self._due.set()
            return
        rooms.follow(known.workload)

    def forget(self, key: Key) -> None:
        if self._in_use is not None:
            self._in_use.rooms.forget("/".join(key))

    def _used(self) -> _Used:
        if self._in_use is None:
            self._in_use = _Used(self._shared, self._view, self._queued)
            for known in self._shared.book.all():
                self._in_use.rooms.follow(known.workload)
        return self._in_use

    def _changed(self, type_: type, notice: Notice[Any]) -> None:
        used, gone = self._in_use, notice.type == DELETED
        if used is None:
            return
        if type_ is Pod:
            for each in (used.rooms, used.departing):
                each.lose(notice.object) if gone else each.see(notice.object)
            if used.rooms.has_moved:
                self._due.set()
        elif type_ is ResourceClaim:
            if gone:
                used.departing.lose_claim(notice.object)
            else:
                used.departing.see_claim(notice.object)
        elif type_ in _LOSING:
            self.look_again()

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
            await self._due.wait()
            await asyncio.sleep(_GATHER_S)
            self._due.clear()
            await self._write_down()
            if self._is_lost:
                self._is_lost = False
                for first in self._first:
                    await first()
                await self._review()
                await self._write_down()

    async def _write_down(self) -> None:
        if self._in_use is not None:
            for name, text in self._in_use.rooms.take_moved().items():
                namespace, _, own = name.partition("/")
                self._unwritten[namespace, own] = text
        unwritten, self._unwritten = self._unwritten, {}
        for key, text in unwritten.items():
            known = self._shared.book.find(key)
            if known is None or known.workload.metadata.annotations.get(ROOM) == text:
                continue
            try:
                await self._note(known, text)
            except ClusterError as error:
                _log.warning("Workload %s/%s: %s; looking again", *key, error)
                self._unwritten.setdefault(key, text)
                self._due.set()

    async def _review(self) -> None:
        if self._in_use is None:
            return
        rooms, departing = self._in_use.rooms, self._in_use.departing
        for reservation in tuple(rooms.book):
            await self._breaks.between()
            if rooms.book.get(reservation.key) is not reservation:
                continue
            with self._view.state.trial() as trial:
                # What pods that are gone still hold is about to be free, and may be this room.
                departing.leave(trial)
                found = rooms.fitter.review(reservation, self._shared.clock())
            namespace, _, name = reservation.key.partition("/")
            known = self._shared.book.find((namespace, name))
            if known is None:
                continue
            if isinstance(found, Moved):
                self._unwritten[known.key] = rooms.replace(found.reservation)
                continue
            if not isinstance(found, Unfit):
                continue
            try:
                await self.evict(known, no_room_for(found.message))
            except ClusterError as error:
                _log.warning("Workload %s: %s; looking again", reservation.key, error)
                self.look_again()

    async def _note(self, known: Known, text: str) -> None:
        patch = merge_patch({"metadata": {"annotations": {ROOM: text}}})
        await self._shared.client.patch(WORKLOADS, known.name, patch, known.key[0])

    async def evict(self, known: Known, text: str) -> None:
        """What was admitted has lost nodes or devices that it needs: it waits again."""
        if not life.holds_quota(known.status) or life.is_evicted(known.status):
            return
        status = life.evicted(
            known.status, BY_NODE, text, self._shared.clock(), generation=known.generation
        )
        written = await self._shared.book.write_status(known, status)
        self._shared.book.record(written, "Normal", f"EvictedDueTo{BY_NODE}", text)


def no_room_for(message: str) -> str:
    """What an evicted workload is told whose pods have no room any more."""
    return f"There is no room for its pods any more: {message}"
