"""The control loop of queues: its parts, put together."""

from __future__ import annotations

import asyncio
import time

from drayman.api.kueue_workload import Workload
from drayman.api.meta import ObjectMeta
from drayman.cluster.client import Client
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS
from drayman.controllers.quota.admitting import Admitting
from drayman.controllers.quota.ancestors import Ancestors
from drayman.controllers.quota.charged import ChargedPods, ChargeGuard
from drayman.controllers.quota.configuration import QueueConfiguration
from drayman.controllers.quota.jobs import QueuedJobs
from drayman.controllers.quota.lives import Lives
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.owners import Owners
from drayman.controllers.quota.pods import QueuedPods
from drayman.controllers.quota.protecting import Protecting
from drayman.controllers.quota.published import PublishedConfiguration
from drayman.controllers.quota.queues import QueueStatus
from drayman.controllers.quota.seating import Seating
from drayman.controllers.quota.shared import Clock, Shared
from drayman.controllers.quota.slices import ElasticPods
from drayman.controllers.quota.source import ConfigurationSource
from drayman.controllers.quota.tally import QueueTally
from drayman.workloads.queued.kinds import KINDS
from drayman.workloads.queued.names import ELASTIC


class QuotaController:
    """Queues at work. `run` may be called again after it failed."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        source: ConfigurationSource | None = None,
        clock: Clock = time.time,
        tally: QueueTally | None = None,
        guard: ChargeGuard | None = None,
    ) -> None:
        """`guard`: what a scheduler in the same process asks which pods are charged."""
        self._source = source or ConfigurationSource()
        self._shared = Shared(client, informers, clock=clock, tally=tally)
        self._shared.configuration = self._source.current
        self._admitting = Admitting(self._shared)
        current = self._source.current
        self._admitting.devices.set_mappings(current.mappings, current.gates)
        owners, ancestors = Owners(client), Ancestors(client)
        self._jobs = {
            (kind.group, kind.kind): QueuedJobs(self._shared, kind, ancestors) for kind in KINDS
        }
        for jobs in self._jobs.values():
            owners.add(jobs.resource, jobs.exists)
        self._charged = ChargedPods(
            self._shared, self._admitting, ancestors, guard or ChargeGuard()
        )
        for jobs in self._jobs.values():
            jobs.listen(self._charged.object_changed)
        self._pods = QueuedPods(self._shared)
        owners.add(PODS.as_values(), self._pods.exists)
        self._seating = Seating(self._shared)
        self._elastic = ElasticPods(self._shared)
        self._lives = Lives(self._shared, self._admitting, owners, self._charged.is_in_use)
        self._charged.listen(self._look_again)
        self._status = QueueStatus(self._shared, self._admitting)
        self._protecting = Protecting(self._shared, self._admitting)
        self._published = PublishedConfiguration(self._shared, self._source)
        self._shared.book.listen(self._workload_changed)
        self._source.listen(self._configure)

    @property
    def recorder(self) -> EventRecorder:
        return self._shared.recorder

    async def run(self) -> None:
        """Works until cancelled."""
        await self._shared.informers.wait_synced()
        await self._published.begin()
        async with self._shared.recorder, asyncio.TaskGroup() as group:
            for jobs in self._jobs.values():
                jobs.loop.start(group)
            for loop in (
                self._pods.loop,
                self._pods.groups.loop,
                self._seating.loop,
                self._elastic.loop,
                self._lives.loop,
                self._status.loop,
                self._protecting.loop,
                self._charged.loop,
            ):
                loop.start(group)
            group.create_task(self._admitting.run(), name="admission")
            group.create_task(self._admitting.rooms.run(), name="room of admitted workloads")
            group.create_task(self._published.run(), name="configuration of queues")

    def _configure(self, configuration: QueueConfiguration) -> None:
        self._shared.configuration = configuration
        self._admitting.configure(configuration)

    def _look_again(self, key: Key) -> None:
        """The quota of a Workload may be released by now."""
        self._lives.loop.queue.add(key)
        known = self._shared.book.find(key)
        if known is not None:
            self._look_at_owners(known.metadata)

    def _workload_changed(self, notice: Notice[Workload]) -> None:
        self._look_at_owners(notice.object.metadata)

    def _look_at_owners(self, metadata: ObjectMeta) -> None:
        """What owns a Workload has to be looked at when that changes."""
        self._seating.loop.queue.add((metadata.namespace, metadata.name))
        pods = []
        for owner in metadata.owner_references:
            group = owner.api_version.rpartition("/")[0]
            jobs = self._jobs.get((group, owner.kind))
            if jobs is not None:
                jobs.workload_changed(owner.name, metadata.namespace)
                if ELASTIC in metadata.annotations:
                    self._elastic.loop.queue.add((metadata.namespace, owner.name))
            elif (group, owner.kind) == ("", "Pod"):
                pods.append(owner.name)
        if pods:
            self._pods.workload_changed(pods, metadata.namespace)
