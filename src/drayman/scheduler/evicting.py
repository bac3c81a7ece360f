"""Carries out preemption: records which nodes pods wait for, and evicts their victims.

There may be thousands of victims, so they are written in bundles: the condition that says why, and the deletion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.struct import Json
from drayman.api.times import timestamp_at
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import (
    disruption_target,
    strategic_merge_patch,
)
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import POD_GROUPS, PODS
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import Parts, PartsWrite, PatchWrite, Write
from drayman.placement.gangs.book import GangBook
from drayman.placement.gangs.gang import GangKey
from drayman.placement.nominations import Nomination, Nominations
from drayman.quota.shares.reach import Means, Reach
from drayman.scheduler.preempting import Preempted
from drayman.scheduler.writes import MANAGER, condition_write, deletion_write

_log: Final = logging.getLogger(__name__)
IN_PARALLEL: Final = 16
"""Requests that are under way at the same time where there are no transactions."""
AT_A_TIME: Final = 100
"""Victims that are evicted before it is looked at whether all of them go."""
_REASON: Final = "PreemptionByScheduler"
_OPTIONS: Final = WriteOptions(field_manager=MANAGER)


class Evictor:
    """Makes room for pods and gangs that are more important than others."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        nominations: Nominations,
        gangs: GangBook,
        hold_back: Callable[[str], None],
    ) -> None:
        """`hold_back` makes a pod, by uid, wait a while before it is tried again."""
        self._client = client
        self._recorder = recorder
        self._nominations = nominations
        self._gangs = gangs
        self._hold_back = hold_back

    async def carry_out(self, decision: Preempted, now: float) -> None:
        """Record in the pods which node they wait for, and evict those that are in their way."""
        nodes: dict[str, str | None] = {each.uid: each.node for each in decision.nominations}
        await self._write([_nominating(pod, nodes.get(pod.metadata.uid)) for pod in decision.pods])
        if not decision.nominations:
            return
        first = decision.nominations[0]
        failed: list[ClusterError] = []
        said = _because_of(first, decision.reach)
        await self._write(
            [each for key in decision.gangs for each in self._marking(key, said, now)]
        )
        for start in range(0, len(decision.victims), AT_A_TIME):
            some = decision.victims[start : start + AT_A_TIME]
            await self._evict(some, first, said, timestamp_at(now), failed)
            if failed:  # nobody else goes for nothing
                self._take_back(decision.nominations)
                return

    def _take_back(self, nominations: Sequence[Nomination]) -> None:
        """The room will not become free, so the pods must not wait for it."""
        kept = [each for each in nominations if self._nominations.get(each.uid) is each]
        if kept:
            self._hold_back(kept[0].uid)
        for each in kept:
            self._nominations.withdraw(each.uid)

    async def _evict(
        self,
        victims: Sequence[Pod],
        cause: Nomination,
        said: str,
        when: str,
        failed: list[ClusterError],
    ) -> None:
        """Evict victims, or note why they do not go."""
        condition = disruption_target(_REASON, said, when)
        changed: list[Pod] = []
        if self._client.transactional:
            bundles = [
                self._eviction(each, _whole_status(each, condition), cause, failed, changed)
                for each in victims
            ]
            await self._write(bundles)
        else:
            changed.extend(victims)
        bundles = [
            self._eviction(each, condition_write(each, condition), cause, failed)
            for each in changed
        ]
        await self._write(bundles)

    async def _write(self, bundles: Sequence[Bundle]) -> None:
        """Many writes in one transaction, or else several requests at a time."""
        if self._client.transactional:
            await write_together(self._client, bundles, largest=AT_A_TIME)
            return
        rows = (bundles[number::IN_PARALLEL] for number in range(IN_PARALLEL))
        await asyncio.gather(*(write_together(self._client, row) for row in rows if row))

    def _eviction(
        self,
        victim: Pod,
        explaining: Write,
        cause: Nomination,
        failed: list[ClusterError],
        changed: list[Pod] | None = None,
    ) -> Bundle:
        """Writes why a victim goes, and deletes it. One that has changed meanwhile is tried another way where that is asked for."""
        metadata = victim.metadata
        is_leaving = metadata.deletion_timestamp is not None

        def refused(error: ClusterError) -> None:
            if isinstance(error, ConflictError) and changed is not None:
                changed.append(victim)
                return
            if isinstance(error, NotFoundError | ConflictError):
                _log.info("pod %s has gone by itself: %s", metadata.name, error)
                return
            _log.warning("pod %s cannot be preempted: %s", metadata.name, error)
            failed.append(error)

        def written(_: Sequence[object]) -> None:
            who = f"pod {cause.uid}" if cause.gang is None else str(cause.gang)
            self._recorder.record(
                Reference.to(PODS, victim),
                "Normal",
                "Preempted",
                f"Preempted by {who} on node {victim.spec.node_name}",
                "Preempting",
                Reference.to(PODS, cause.pod),
            )

        return Bundle([] if is_leaving else [explaining, deletion_write(victim)], refused, written)

    def _marking(self, key: GangKey, said: str, now: float) -> list[Bundle]:
        """Says on a PodGroup of Kubernetes that it goes as one."""
        group = self._gangs.pod_group(key)
        if group is None:
            return []
        condition = disruption_target(_REASON, said, timestamp_at(now))
        body = {
            "metadata": {"uid": group.metadata.uid},
            "status": {"conditions": [condition]},
        }
        write = PatchWrite(
            POD_GROUPS,
            group.metadata.name,
            strategic_merge_patch(body),
            group.metadata.namespace,
            "status",
            _OPTIONS,
        )
        return [Bundle([write], lambda error: _log.info("%s cannot be marked: %s", key, error))]


def _because_of(cause: Nomination, reach: Reach | None) -> str:
    if cause.gang is None:
        name = f"pod {cause.pod.metadata.name}"
    else:
        name = f"pod group {cause.gang.name}"
    if reach is not None and reach.means is Means.RECLAIM:
        return f"default-scheduler: reclaiming for {name} what queue {reach.queue} is entitled to"
    return f"default-scheduler: preempting to accommodate a higher priority {name}"


def _whole_status(victim: Pod, condition: dict[str, Json]) -> Write:
    """The same for a pod that has not changed since it was seen: a third of the work of the server."""
    kept = [
        codec.to_dict(each) for each in victim.status.conditions if each.type_ != condition["type"]
    ]
    parts: Parts = {("status", "conditions"): [*kept, condition]}
    return PartsWrite.of(PODS, victim, parts, field_manager=MANAGER)


def _nominating(pod: Pod, node: str | None) -> Bundle:
    """Records which node the pod waits for, or that it no longer waits for one."""
    metadata = pod.metadata
    write = PartsWrite(
        PODS,
        metadata.name,
        metadata.namespace,
        {("status", "nominatedNodeName"): node},
        uid=metadata.uid,
        field_manager=MANAGER,
    )
    return Bundle(
        [write], lambda error: _log.info("pod %s cannot be nominated: %s", metadata.name, error)
    )
