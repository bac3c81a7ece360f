"""Carries out preemption: records which node a pod waits for, and evicts its victims."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from drayman.api.core import Pod
from drayman.api.times import timestamp_at
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.options import DeleteOptions, WriteOptions
from drayman.cluster.patches import disruption_target, merge_patch, pod_condition_patch
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS
from drayman.placement.nominations import Nominations
from drayman.scheduler.preempting import Preempted
from drayman.scheduler.writes import MANAGER

_log: Final = logging.getLogger(__name__)


class Evictor:
    """Makes room for pods that are more important than others."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        nominations: Nominations,
        hold_back: Callable[[str], None],
    ) -> None:
        """`hold_back` makes a pod, by uid, wait a while before it is tried again."""
        self._client = client
        self._recorder = recorder
        self._nominations = nominations
        self._hold_back = hold_back

    async def carry_out(self, decision: Preempted, now: float) -> None:
        """Record in the pod which node it waits for, and evict the pods that are in its way."""
        nomination = decision.nomination
        if nomination is None:
            await self._nominate(decision.pod, None)
            return
        await self._nominate(nomination.pod, nomination.node)
        for victim in decision.victims:
            if not await self._evict(victim, nomination.pod, nomination.node, now):
                # The room will not become free, so the pod must not wait for it.
                if self._nominations.get(nomination.uid) is nomination:
                    self._hold_back(nomination.uid)
                    self._nominations.withdraw(nomination.uid)
                return

    async def _evict(self, victim: Pod, pod: Pod, node: str, now: float) -> bool:
        """Evict the victim. Returns whether it goes."""
        metadata = victim.metadata
        condition = disruption_target(
            "PreemptionByScheduler",
            f"default-scheduler: preempting to accommodate a higher priority pod {pod.metadata.name}",
            timestamp_at(now),
        )
        try:
            if metadata.deletion_timestamp is None:
                await self._client.patch(
                    PODS,
                    metadata.name,
                    pod_condition_patch(metadata.uid, condition),
                    metadata.namespace,
                    subresource="status",
                    options=WriteOptions(field_manager=MANAGER),
                )
                await self._client.delete(
                    PODS,
                    metadata.name,
                    metadata.namespace,
                    options=DeleteOptions(uid=metadata.uid),
                )
        except (NotFoundError, ConflictError) as error:
            _log.info("pod %s has gone by itself: %s", metadata.name, error)
            return True
        except ClusterError as error:
            _log.warning("pod %s cannot be preempted: %s", metadata.name, error)
            return False
        note = f"Preempted by pod {pod.metadata.uid} on node {node}"
        self._recorder.record(
            Reference.to(PODS, victim),
            "Normal",
            "Preempted",
            note,
            "Preempting",
            Reference.to(PODS, pod),
        )
        return True

    async def _nominate(self, pod: Pod, node: str | None) -> None:
        """Record which node the pod waits for, or that it no longer waits for one."""
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"nominatedNodeName": node}}
        try:
            await self._client.patch(
                PODS,
                pod.metadata.name,
                merge_patch(patch),
                pod.metadata.namespace,
                subresource="status",
                options=WriteOptions(field_manager=MANAGER),
            )
        except ClusterError as error:
            _log.info("pod %s cannot be nominated: %s", pod.metadata.name, error)
