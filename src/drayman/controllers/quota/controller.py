"""The control loop of queues: its parts, put together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from drayman.api.kueue_workload import Workload
from drayman.cluster.client import Client
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS
from drayman.controllers.quota.admitting import Admitting
from drayman.controllers.quota.ancestors import Ancestors
from drayman.controllers.quota.configuration import (
    ConfigurationFileError,
    QueueConfiguration,
    default_configuration,
    read_configuration,
)
from drayman.controllers.quota.jobs import QueuedJobs
from drayman.controllers.quota.lives import Lives
from drayman.controllers.quota.owners import Owners
from drayman.controllers.quota.pods import QueuedPods
from drayman.controllers.quota.queues import QueueStatus
from drayman.controllers.quota.seating import Seating
from drayman.controllers.quota.shared import Clock, Shared
from drayman.controllers.quota.tally import QueueTally
from drayman.workloads.queued.kinds import KINDS

_log: Final = logging.getLogger(__name__)
RELOAD_S: Final = 1.0
"""How often the file is looked at."""


class ConfigurationSource:
    """The configuration in use, and the file it is from."""

    def __init__(
        self, configuration: QueueConfiguration | None = None, path: Path | None = None
    ) -> None:
        self.current = configuration or default_configuration()
        self.path = path
        self._listeners: list[Callable[[QueueConfiguration], None]] = []
        self._seen = self._stamp()

    def listen(self, listener: Callable[[QueueConfiguration], None]) -> None:
        self._listeners.append(listener)

    def look(self) -> None:
        """Reads the file again if it has changed. One that cannot be used is reported, and the last one stays in use."""
        stamp = self._stamp()
        if stamp == self._seen or stamp is None or self.path is None:
            return
        self._seen = stamp
        try:
            found = read_configuration(str(self.path), self.path.read_bytes())
        except (ConfigurationFileError, OSError) as error:
            _log.warning("%s; the configuration of queues before it stays in use", error)
            return
        _log.info("%s: the configuration of queues was read again", self.path)
        self.use(found)

    def use(self, configuration: QueueConfiguration) -> None:
        """Have another configuration be in use from now on."""
        self.current = configuration
        for listener in self._listeners:
            listener(configuration)

    def _stamp(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


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
    ) -> None:
        self._source = source or ConfigurationSource()
        self._shared = Shared(client, informers, clock=clock, tally=tally)
        self._shared.configuration = self._source.current
        self._admitting = Admitting(self._shared)
        current = self._source.current
        self._admitting.devices.set_mappings(current.mappings, current.gates)
        owners, ancestors = Owners(client), Ancestors()
        self._jobs = {
            (kind.group, kind.kind): QueuedJobs(self._shared, kind, ancestors) for kind in KINDS
        }
        for jobs in self._jobs.values():
            owners.add(jobs.resource, jobs.exists)
        self._pods = QueuedPods(self._shared)
        owners.add(PODS.as_values(), self._pods.exists)
        self._seating = Seating(self._shared)
        self._lives = Lives(self._shared, self._admitting, owners)
        self._status = QueueStatus(self._shared, self._admitting)
        self._shared.book.listen(self._workload_changed)
        self._source.listen(self._configure)

    @property
    def recorder(self) -> EventRecorder:
        return self._shared.recorder

    async def run(self) -> None:
        """Works until cancelled."""
        await self._shared.informers.wait_synced()
        async with self._shared.recorder, asyncio.TaskGroup() as group:
            for jobs in self._jobs.values():
                jobs.loop.start(group)
            for loop in (
                self._pods.loop,
                self._pods.groups.loop,
                self._seating.loop,
                self._lives.loop,
                self._status.loop,
            ):
                loop.start(group)
            group.create_task(self._admitting.run(), name="admission")
            group.create_task(self._admitting.rooms.run(), name="room of admitted workloads")
            if self._source.path is not None:
                group.create_task(self._follow_file(), name="configuration of queues")

    async def _follow_file(self) -> None:
        while True:
            await asyncio.sleep(RELOAD_S)
            self._source.look()

    def _configure(self, configuration: QueueConfiguration) -> None:
        self._shared.configuration = configuration
        self._admitting.configure(configuration)

    def _workload_changed(self, notice: Notice[Workload]) -> None:
        """What owns a Workload has to be looked at when that changes."""
        metadata = notice.object.metadata
        self._seating.loop.queue.add((metadata.namespace, metadata.name))
        pods = []
        for owner in metadata.owner_references:
            group = owner.api_version.rpartition("/")[0]
            jobs = self._jobs.get((group, owner.kind))
            if jobs is not None:
                jobs.workload_changed(owner.name, metadata.namespace)
            elif (group, owner.kind) == ("", "Pod"):
                pods.append(owner.name)
        if pods:
            self._pods.workload_changed(pods, metadata.namespace)
