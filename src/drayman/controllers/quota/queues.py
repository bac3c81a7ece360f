"""The status of queues and cohorts: how many workloads wait in them and hold quota, how much of it, and whether they are active.

Numbers are those of the engine. They are written a moment after they change, and once a second while they keep changing, so that a burst of
workloads costs few writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.api.kueue import (
    AdmissionFairSharingStatus,
    ClusterQueue,
    ClusterQueueStatus,
    Cohort,
    CohortStatus,
    FairSharingStatus,
    FlavorUsage,
    LocalQueue,
    LocalQueueFairSharingStatus,
    LocalQueueStatus,
    QueueObject,
    ResourceUsage,
    status_of,
)
from drayman.api.meta import Condition
from drayman.api.struct import ApiStruct
from drayman.api.times import timestamp_at
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import JsonObject, Resource, typed
from drayman.controllers.quota.admitting import Admitting
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.shared import Shared
from drayman.quota.amounts import FlavorResource, amount_of, quantity_of
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.entries import Entry
from drayman.quota.reasons import FLAVOR_NOT_FOUND
from drayman.quota.tree.fairness import share_of
from drayman.quota.tree.nodes import Node
from drayman.workloads.queued.conditions import with_condition

CLUSTER_QUEUES: Final = typed(ClusterQueue)
LOCAL_QUEUES: Final = typed(LocalQueue)
COHORTS: Final = typed(Cohort)
_COHORTS: Final = "/cohorts"
"""In place of the namespace, in keys of cohorts: no namespace is called so."""
_ACTIVE: Final = "Active"
_GATHER_S: Final = 0.1
_PACE_S: Final = 1.0
"""The least time between two looks, while numbers keep changing."""
_NONE: Final = dict.fromkeys(("pendingWorkloads", "reservingWorkloads", "admittedWorkloads"), 0)
"""Numbers that people want to see even if they are zero."""
_MESSAGES: Final = {
    "Stopped": "is stopped",
    "Terminating": "clusterQueue is terminating",
    "FlavorNotFound": "it references missing ResourceFlavor(s)",
    "AdmissionCheckNotFound": "it references missing AdmissionCheck(s)",
    "AdmissionCheckInactive": "it references inactive AdmissionCheck(s)",
    "TopologyNotFound": "it references missing Topology(s)",
}


class QueueStatus:
    """Keeps the status of queues."""

    def __init__(self, shared: Shared, admitting: Admitting) -> None:
        self._shared = shared
        self._admitting = admitting
        self.loop = Loop("status of queues", self.attend, workers=1)
        self._cluster_queues = shared.informers.informer(CLUSTER_QUEUES).cache
        self._local_queues = shared.informers.informer(LOCAL_QUEUES).cache
        self._cohorts = shared.informers.informer(COHORTS).cache
        self._timer: asyncio.TimerHandle | None = None
        self._looked = -_PACE_S
        admitting.listen_to_counts(self._changed)

    def _changed(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            due = max(loop.time() + _GATHER_S, self._looked + _PACE_S)
            self._timer = loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        self._looked = asyncio.get_running_loop().time()
        touched = self._admitting.take_touched()
        for key in touched:
            self.loop.queue.add(key)
        if touched and self._admitting.state.settings.fair_sharing is not None:
            for _, name in self._cohorts.names():
                self.loop.queue.add((_COHORTS, name))

    async def attend(self, key: Key) -> None:
        if key[0] == _COHORTS:
            await self._attend_cohort(key[1])
        elif key[0]:
            await self._attend_local(key)
        else:
            await self._attend_cluster(key[1])

    # Cluster queues.

    async def _attend_cluster(self, name: str) -> None:
        value, queue = self._cluster_queues.get(name), self._admitting.state.books.queues.get(name)
        if value is None or queue is None:
            return
        old = _status(ClusterQueueStatus, value)
        holders = list(queue.holders.values())
        admitted = [each for each in holders if each.facts.admitted]
        new = ClusterQueueStatus(
            conditions=self._cluster_conditions(queue, old.conditions),
            flavors_reservation=self._usage(queue, holders),
            flavors_usage=self._usage(queue, admitted),
            pending_workloads=len(queue.waiting),
            reserving_workloads=len(holders),
            admitted_workloads=len(admitted),
            fair_sharing=self._share(queue.node),
        )
        await self._write(CLUSTER_QUEUES, value, old, new)

    def _share(self, node: Node | None) -> FairSharingStatus | None:
        """How much a queue or cohort borrows, where that counts."""
        if node is None or self._admitting.state.settings.fair_sharing is None:
            return None
        return FairSharingStatus(weighted_share=share_of(node).rounded)

    async def _attend_cohort(self, name: str) -> None:
        value = self._cohorts.get(name)
        if value is None:
            return
        node = self._admitting.state.books.forest.cohorts.get(name)
        old: CohortStatus = _status(CohortStatus, value)
        share = self._share(node)
        await self._write(COHORTS, value, old, replace(old, fair_sharing=share))

    def _cluster_conditions(
        self, queue: ClusterQueueState, conditions: tuple[Condition, ...]
    ) -> tuple[Condition, ...]:
        now = self._shared.clock()
        if queue.inactive:
            why = _MESSAGES.get(queue.inactive, queue.inactive)
            text = f"Can't admit new workloads: {why}{self._missing(queue)}"
            return with_condition(conditions, _ACTIVE, False, queue.inactive, text, now)
        if not self._admitting.state.books.is_active(queue):
            where = f"beginning with {queue.spec.cohort_name}"
            text = f"Can't admit new workloads: its cohorts form a circle, {where}"
            return with_condition(conditions, _ACTIVE, False, "Unknown", text, now)
        return with_condition(conditions, _ACTIVE, True, "Ready", "Can admit new workloads", now)

    def _missing(self, queue: ClusterQueueState) -> str:
        """The names of the flavors that a queue misses, as the end of a sentence."""
        known = self._admitting.state.books.flavors
        gone = [name for name in queue.flavors if name not in known]
        return f": {', '.join(gone)}" if gone and queue.inactive == FLAVOR_NOT_FOUND else ""

    def _usage(self, queue: ClusterQueueState, entries: Iterable[Entry]) -> tuple[FlavorUsage, ...]:
        """What entries use, for every flavor and resource of a queue."""
        used = _used(entries)
        borrows = bool(queue.spec.cohort_name)
        found = []
        for flavor in queue.flavors.values():
            resources = []
            for quota in flavor.resources:
                total = used.get(FlavorResource(flavor.name, quota.name), 0)
                over = max(0, total - amount_of(quota.name, quota.nominal_quota)) if borrows else 0
                resources.append(
                    ResourceUsage(
                        name=quota.name,
                        total=quantity_of(quota.name, total),
                        borrowed=quantity_of(quota.name, over),
                    )
                )
            found.append(FlavorUsage(name=flavor.name, resources=tuple(resources)))
        return tuple(found)

    # Local queues.

    async def _attend_local(self, key: Key) -> None:
        value = self._local_queues.get(key[1], key[0])
        if value is None:
            return
        state, old = self._admitting.state, _status(LocalQueueStatus, value)
        entries = [state.entries[each] for each in state.local_queues.members("/".join(key))]
        holders = [each for each in entries if each.holding is not None]
        admitted = [each for each in holders if each.facts.admitted]
        name = str((value.spec or {}).get("clusterQueue", ""))
        queue = state.books.queues.get(name)
        new = LocalQueueStatus(
            conditions=self._local_conditions(value, name, queue, old.conditions),
            pending_workloads=sum(
                1 for each in entries if each.holding is None and each.facts.active
            ),
            reserving_workloads=len(holders),
            admitted_workloads=len(admitted),
            flavors_reservation=() if queue is None else _plain(self._usage(queue, holders)),
            flavors_usage=() if queue is None else _plain(self._usage(queue, admitted)),
            fair_sharing=self._past_use("/".join(key), old.fair_sharing),
        )
        await self._write(LOCAL_QUEUES, value, old, new)

    def _past_use(
        self, key: str, old: LocalQueueFairSharingStatus | None
    ) -> LocalQueueFairSharingStatus | None:
        """What a local queue has used, where that decides who comes first: the next process goes on from it."""
        past = self._admitting.state.past_use
        if past is None:
            return old
        consumed = {
            name: quantity_of(name, round(amount)) for name, amount in past.consumed(key).items()
        }
        known = None if old is None else old.admission_fair_sharing_status
        if known is not None and known.consumed_resources == consumed:
            return old
        now = timestamp_at(self._shared.clock())
        status = AdmissionFairSharingStatus(consumed_resources=consumed, last_update=now)
        return LocalQueueFairSharingStatus(admission_fair_sharing_status=status)

    def _local_conditions(
        self,
        value: LocalQueue,
        name: str,
        queue: ClusterQueueState | None,
        conditions: tuple[Condition, ...],
    ) -> tuple[Condition, ...]:
        now = self._shared.clock()
        if (value.spec or {}).get("stopPolicy", "None") != "None":
            return with_condition(
                conditions, _ACTIVE, False, "Stopped", "LocalQueue is stopped", now
            )
        if queue is None:
            text = f"Can't submit new workloads to clusterQueue: {name} doesn't exist"
            return with_condition(conditions, _ACTIVE, False, "ClusterQueueDoesNotExist", text, now)
        if not self._admitting.state.books.is_active(queue):
            text = f"Can't submit new workloads to clusterQueue {name}: it is inactive"
            return with_condition(conditions, _ACTIVE, False, "ClusterQueueIsInactive", text, now)
        text = "Can submit new workloads to localQueue"
        return with_condition(conditions, _ACTIVE, True, "Ready", text, now)

    async def _write(
        self, resource: Resource[Any], value: QueueObject, old: ApiStruct, new: ApiStruct
    ) -> None:
        if old == new:
            return
        metadata = value.metadata
        body = codec.to_dict(new)
        if not isinstance(value, Cohort):
            body = {**_NONE, **body}
        operations: list[JsonObject] = [
            {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": metadata.resource_version,
            },
            {"op": "add", "path": "/status", "value": body},
        ]
        await self._shared.client.patch(
            resource,
            metadata.name,
            json_patch(operations),
            metadata.namespace or None,
            subresource="status",
        )


def _used(entries: Iterable[Entry]) -> dict[FlavorResource, int]:
    used: dict[FlavorResource, int] = {}
    for entry in entries:
        if entry.holding is not None:
            for what, amount in entry.holding.usage.quota.items():
                used[what] = used.get(what, 0) + amount
    return used


def _plain(usage: tuple[FlavorUsage, ...]) -> tuple[FlavorUsage, ...]:
    """Usage of a local queue, which borrows nothing itself."""
    return tuple(
        FlavorUsage(
            name=each.name,
            resources=tuple(ResourceUsage(name=r.name, total=r.total) for r in each.resources),
        )
        for each in usage
    )


def _status(type_: Any, value: QueueObject) -> Any:
    """A status as it was written; an empty one where it cannot be understood, which is then replaced."""
    try:
        return status_of(type_, value)
    except DecodeError:
        return type_()
