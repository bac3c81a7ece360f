"""Reports claims that were taken from pods on nodes: in a condition of each pod, and in an event.

A pod that ends and the claim that it leaves are two watches, and the second may be shown before the first. So a loss is reported when it
still is one a moment later. The condition is what the next scheduler knows of it (`placement.lost_claims`), so it is written until the
server accepts it, or the pod is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.api.times import timestamp_at
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Informer, Notice
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import pod_condition_patch
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS
from drayman.placement.lost_claims import CONDITION, LostClaim, lost_claims_of, message_of
from drayman.placement.state import ClusterState
from drayman.scheduler.tally import Tally
from drayman.scheduler.writes import MANAGER

_log: Final = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0
_PAUSE_S: Final = 1.0
REASON: Final = "ClaimLost"


class Losses:
    """The losses that one scheduler has noticed."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        pods: Informer[Pod],
        recorder: EventRecorder,
        tally: Tally,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._state = state
        self._pods = pods.cache
        self._recorder = recorder
        self._tally = tally
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by holder

    def notice(self, _: Notice[ResourceClaim]) -> None:
        """Look whether a change has taken a claim from a pod."""
        for users in self._state.lost_claims():
            holder = users.claim.holder
            if holder not in self._tasks:
                task = asyncio.create_task(self._report(users.claim), name=f"claim {holder}")
                self._tasks[holder] = task
        if len(self._tasks) > sum(1 for _ in self._state.lost_claims()):
            self._forget()

    async def stop(self) -> None:
        tasks = tuple(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self) -> None:
        """Losses that are over: they may happen again."""
        for holder, task in tuple(self._tasks.items()):
            if task.done() and self._state.lost_claim(holder) is None:
                del self._tasks[holder]

    async def _report(self, lost: LostClaim) -> None:
        await asyncio.sleep(PATIENCE_S)
        users = self._state.lost_claim(lost.holder)
        if users is None:
            return
        found = [pod for pod in self._pods if pod.metadata.uid in users.pods]
        new = [pod for pod in found if lost not in lost_claims_of(pod)]
        if not new:
            return  # reported by an earlier scheduler
        self._tally.claims_lost += 1
        _log.error("%s", lost)
        for pod in new:
            note = f"{lost}; they stay with the pod until it has ended"
            self._recorder.record(Reference.to(PODS, pod), "Warning", REASON, note, "Scheduling")
            await self._write(pod, lost)

    async def _write(self, pod: Pod, lost: LostClaim) -> None:
        metadata = pod.metadata
        while True:
            latest = self._pods.get(metadata.name, metadata.namespace)
            if latest is None or latest.metadata.uid != metadata.uid:
                return
            known = lost_claims_of(latest)
            if lost in known:
                return
            condition = {
                "type": CONDITION,
                "status": "True",
                "reason": REASON,
                "message": message_of((*known, lost)),
                "lastTransitionTime": timestamp_at(self._clock()),
            }
            try:
                await self._client.patch(
                    PODS,
                    metadata.name,
                    pod_condition_patch(metadata.uid, condition),
                    metadata.namespace,
                    subresource="status",
                    options=WriteOptions(field_manager=MANAGER),
                )
            except (NotFoundError, ConflictError) as error:
                _log.info("pod %s: %s", metadata.name, error)
                return
            except ClusterError as error:
                _log.warning("pod %s: %s", metadata.name, error)
            else:
                return
            await asyncio.sleep(_PAUSE_S)
