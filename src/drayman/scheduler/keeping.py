"""Keeps room for pods that wait, where somebody has asked for it (`placement/kept_room.py`), for as long as that was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from drayman.api.core import Pod
from drayman.placement.kept_room import KeptRoom, is_over, kept_room_of
from drayman.placement.nominations import Nominations


class RoomKeeper:
    """Follows what waiting pods ask for."""

    def __init__(self, nominations: Nominations, clock: Callable[[], float]) -> None:
        """`clock` gives the seconds since the epoch."""
        self._nominations = nominations
        self._clock = clock
        self._kept: dict[str, tuple[KeptRoom, asyncio.TimerHandle]] = {}  # by uid

    def note(self, pod: Pod) -> None:
        """A pod of ours waits, as the server shows it now."""
        uid, kept = pod.metadata.uid, kept_room_of(pod)
        known = self._kept.get(uid)
        if kept is None or is_over(kept, self._clock()):
            self.end(uid)
            return
        if known is not None:
            known[1].cancel()
        timer = asyncio.get_running_loop().call_later(kept.until - self._clock(), self.end, uid)
        self._kept[uid] = (kept, timer)
        same_room = known is not None and (known[0].node, known[0].devices) == (
            kept.node,
            kept.devices,
        )
        if not same_room or uid not in self._nominations:
            self._nominations.keep(pod, kept.node, kept.allocations)

    def end(self, uid: str) -> None:
        """The time is over, the pod has its node, or nothing is asked for any more."""
        known = self._kept.pop(uid, None)
        if known is not None:
            known[1].cancel()
            self._nominations.withdraw(uid)
