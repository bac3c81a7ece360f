"""Asks the scheduler to keep the room that is being made, and extends that while the work goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from drayman.api.core import Pod
from drayman.cluster import Client
from drayman.cluster.errors import ConflictError, InvalidError, NotFoundError
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import Patch, pod_condition_patch, strategic_merge_patch
from drayman.cluster.resources import PODS
from drayman.placement.kept_room import CONDITION, KeptRoom, condition_of, room_of
from drayman.simulate.moving.sequence import Moves

MANAGER: Final = "drayman-defrag"
LONGEST_S: Final = 120.0
"""For how long room is kept if nothing more is heard from us."""
_AT_ONCE: Final = 16


class Keeping:
    """The room that is kept for pods."""

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        """`clock` gives the seconds since the epoch."""
        self._client = client
        self._clock = clock
        self._kept: dict[str, tuple[Pod, KeptRoom]] = {}  # by uid
        self._writing = asyncio.Semaphore(_AT_ONCE)

    @property
    def promised(self) -> Mapping[str, KeptRoom]:
        """What the scheduler was asked to keep, by the uid of the pod."""
        return {uid: kept for uid, (_, kept) in self._kept.items()}

    async def keep(self, moves: Iterable[Moves]) -> None:
        """Have kept what units are to get. Raises ClusterError."""
        now = self._clock()
        wanted = {
            seat.demand.pod.metadata.uid: (seat.demand.pod, room_of(seat, now + LONGEST_S))
            for each in moves
            for seat in each.kept
        }
        changed = [
            (pod, kept) for uid, (pod, kept) in wanted.items() if self._has_changed(uid, kept, now)
        ]
        await asyncio.gather(*(self._ask(pod, kept, now) for pod, kept in changed))

    async def end(self) -> None:
        """Nothing is to be kept any more for any pod. Raises ClusterError."""
        pods = [pod for pod, _ in self._kept.values()]
        self._kept.clear()
        await asyncio.gather(*map(self._give_up, pods))

    def _has_changed(self, uid: str, kept: KeptRoom, now: float) -> bool:
        known = self._kept.get(uid)
        if known is None or known[1].until - now < LONGEST_S / 2:
            return True
        return (known[1].node, known[1].devices) != (kept.node, kept.devices)

    async def _ask(self, pod: Pod, kept: KeptRoom, now: float) -> None:
        patch = pod_condition_patch(
            pod.metadata.uid, condition_of(kept, now), nominatedNodeName=kept.node
        )
        if await self._write(pod, patch):
            self._kept[pod.metadata.uid] = (pod, kept)

    async def _give_up(self, pod: Pod) -> None:
        gone = [{"type": CONDITION, "$patch": "delete"}]
        status = {"conditions": gone, "nominatedNodeName": None}
        await self._write(
            pod, strategic_merge_patch({"metadata": {"uid": pod.metadata.uid}, "status": status})
        )

    async def _write(self, pod: Pod, patch: Patch) -> bool:
        """Returns whether the pod is still there, and waits."""
        metadata = pod.metadata
        async with self._writing:
            try:
                await self._client.patch(
                    PODS,
                    metadata.name,
                    patch,
                    metadata.namespace,
                    subresource="status",
                    options=WriteOptions(field_manager=MANAGER),
                )
            except (NotFoundError, ConflictError):  # another pod has its name
                return False
            except InvalidError:
                # Room can only be kept for a pod without a node: it may have got one in this moment.
                found = await self._client.get(PODS, metadata.name, metadata.namespace)
                if not found.spec.node_name:
                    raise
                return False
        return True
