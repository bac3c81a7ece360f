"""Reports claims that were taken from pods on nodes: in a condition of each pod, and in an event.

A pod that ends and the claim that it leaves are two watches, and the second may be shown before the first. So a loss is reported when it
still is one a moment later. The condition is what the next scheduler knows of it (`placement.lost_claims`), so it is written until the
pod is shown with it, or is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
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
from drayman.placement.lost_claims import CONDITION, LostClaim, Users, lost_claims_of, message_of
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
        self._noticed: dict[str, tuple[Users, float]] = {}  # by holder, with when that was
        self._counted: set[str] = set()  # holders
        self._writers: dict[str, asyncio.Task[None]] = {}  # by uid of the pod

    def notice(self, _: Notice[ResourceClaim]) -> None:
        """Look whether a change has taken a claim from a pod, or more from one that had lost it before."""
        now = asyncio.get_running_loop().time()
        lost = {users.claim.holder: users for users in self._state.lost_claims()}
        for holder, users in lost.items():
            if holder not in self._noticed or self._noticed[holder][0] != users:
                self._noticed[holder] = (users, now)
                for uid in users.pods:
                    self._begin(uid)
        if len(self._noticed) > len(lost):  # those that are over may happen again
            self._noticed = {holder: self._noticed[holder] for holder in lost}
            self._counted &= lost.keys()

    async def stop(self) -> None:
        tasks = tuple(self._writers.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, uid: str) -> None:
        """Each pod has one writer, so that no loss overwrites another."""
        if uid not in self._writers:
            self._writers[uid] = asyncio.create_task(self._write(uid), name=f"losses of {uid}")

    async def _write(self, uid: str) -> None:
        """Report the losses of a pod, until its condition shows all of them or it is gone."""
        reported: list[LostClaim] = []
        try:
            await asyncio.sleep(PATIENCE_S)
            pod = next((pod for pod in self._pods if pod.metadata.uid == uid), None)
            while pod is not None and pod.metadata.uid == uid:
                shown = lost_claims_of(pod)
                lost = [users.claim for users in self._state.lost_claims() if uid in users.pods]
                new = [each for each in lost if not _is_among(shown, each)]
                if not new:
                    return
                due = [each for each in new if self._is_certain(each)]
                if due:
                    self._report(pod, [each for each in due if each not in reported])
                    reported = due
                    await self._patch(
                        pod, [each for each in lost if each in due or each not in new]
                    )
                await asyncio.sleep(_PAUSE_S)
                pod = self._pods.get(pod.metadata.name, pod.metadata.namespace)
        except Exception:
            _log.exception("the losses of pod %s are not reported", uid)
        finally:
            del self._writers[uid]

    def _is_certain(self, lost: LostClaim) -> bool:
        noticed = self._noticed.get(lost.holder)
        now = asyncio.get_running_loop().time()
        return noticed is not None and now - noticed[1] >= PATIENCE_S

    def _report(self, pod: Pod, lost: Iterable[LostClaim]) -> None:
        for each in lost:
            if each.holder not in self._counted:
                self._counted.add(each.holder)
                self._tally.claims_lost += 1
            _log.error("%s", each)
            note = f"{each}; they stay with the pod until it has ended"
            self._recorder.record(Reference.to(PODS, pod), "Warning", REASON, note, "Scheduling")

    async def _patch(self, pod: Pod, lost: Iterable[LostClaim]) -> None:
        """Unless the pod has changed meanwhile: another scheduler may have reported more."""
        metadata = pod.metadata
        condition = {
            "type": CONDITION,
            "status": "True",
            "reason": REASON,
            "message": message_of(lost),
            "lastTransitionTime": timestamp_at(self._clock()),
        }
        try:
            await self._client.patch(
                PODS,
                metadata.name,
                pod_condition_patch(metadata.uid, condition, version=metadata.resource_version),
                metadata.namespace,
                subresource="status",
                options=WriteOptions(field_manager=MANAGER),
            )
        except (NotFoundError, ConflictError) as error:
            _log.info("pod %s: %s", metadata.name, error)
        except ClusterError as error:
            _log.warning("pod %s: %s", metadata.name, error)


def _is_among(shown: Iterable[LostClaim], lost: LostClaim) -> bool:
    """Whether a claim is reported with all devices of which it was lost."""
    return any(one.holder == lost.holder and one.joined_with(lost) == one for one in shown)
