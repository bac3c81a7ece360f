"""The control loop that hands work to other clusters: its parts, put together, and what wakes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from drayman.api.core import Pod
from drayman.api.custom_groups import spec_of
from drayman.api.errors import DecodeError
from drayman.api.kueue import MultiKueueCluster, MultiKueueClusterSpec
from drayman.api.kueue_workload import Workload
from drayman.cluster.client import Client
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.kube.client import HttpClient
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIM_TEMPLATES
from drayman.controllers.multikueue.connecting import Access, find_access
from drayman.controllers.multikueue.copying import Copying
from drayman.controllers.multikueue.dispatcher import Dispatcher
from drayman.controllers.multikueue.links import Link
from drayman.controllers.multikueue.mirroring import JobMirroring
from drayman.controllers.multikueue.pods import PodMirroring
from drayman.controllers.multikueue.routes import (
    CHECKS,
    CLUSTERS,
    CONFIGS,
    Routes,
    condition_of_check,
    condition_of_cluster,
    is_ours,
    silent_since,
    write_condition,
)
from drayman.controllers.multikueue.workers import Jobs, Worker
from drayman.controllers.quota.book import WORKLOADS, Known, known
from drayman.controllers.quota.configuration import QueueConfiguration
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.shared import Clock, Shared
from drayman.controllers.quota.source import ConfigurationSource
from drayman.controllers.quota.tally import QueueTally
from drayman.workloads.dispatching.life import is_elsewhere
from drayman.workloads.queued import life
from drayman.workloads.queued.places import Object
from drayman.workloads.queued.pods import is_managed

_GATHER_S: Final = 0.2
"""How long changes of workers gather before workloads that wait are looked at again."""
_DELETED: Final = "DELETED"


class DispatchController:
    """Work for other clusters. `run` may be called again after it failed."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        source: ConfigurationSource | None = None,
        clock: Clock = time.time,
        tally: QueueTally | None = None,
    ) -> None:
        source = source or ConfigurationSource()
        self._shared = Shared(client, informers, clock=clock, tally=tally)
        self._configure(source.current)
        source.listen(self._configure)
        self._links: dict[str, Link] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._specs: dict[str, MultiKueueClusterSpec] = {}
        self._group: asyncio.TaskGroup | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._handed: set[Key] = set()
        """Workloads that are to be handed over, or were."""
        self._routes = Routes(informers)
        self._copying = Copying(informers)
        jobs = JobMirroring(self._shared, Jobs(informers, self._owner_changed))
        mirroring = (jobs, PodMirroring(self._shared))
        self._dispatcher = Dispatcher(
            self._shared, self._copying, mirroring, self._links, self._routes.of, self._drained
        )
        self._clusters = Loop("worker clusters", self._attend_cluster, workers=1)
        self._checks = Loop("checks of worker clusters", self._attend_check, workers=1)
        self._collecting = Loop("copies on worker clusters", self._collect, workers=1)
        self._cluster_cache = informers.informer(CLUSTERS).cache
        self._workloads = informers.informer(WORKLOADS).cache
        self._shared.book.listen(self._workload_changed)
        for resource, handle in (
            (PODS, self._pod_changed),
            (CLUSTERS, self._cluster_changed),
            (CONFIGS, self._anything_changed),
            (CHECKS, self._anything_changed),
            (RESOURCE_CLAIM_TEMPLATES, self._anything_changed),
            (DEVICE_CLASSES, self._anything_changed),
        ):
            any_resource: Any = resource
            informers.informer(any_resource).add_handler(handle)

    @property
    def recorder(self) -> EventRecorder:
        return self._shared.recorder

    async def run(self) -> None:
        """Works until cancelled."""
        await self._shared.informers.wait_synced()
        self._links.clear()
        self._tasks.clear()
        self._specs.clear()
        async with self._shared.recorder, asyncio.TaskGroup() as group:
            self._group = group
            for loop in (self._dispatcher.loop, self._clusters, self._checks, self._collecting):
                loop.start(group)
            for each in self._cluster_cache:
                self._clusters.queue.add(("", each.metadata.name))
            self._wake()
            group.create_task(self._collect_regularly(), name="collection of copies")

    def _configure(self, configuration: QueueConfiguration) -> None:
        self._shared.configuration = configuration

    # What changed, and whom it concerns.

    def _workload_changed(self, notice: Notice[Workload]) -> None:
        metadata = notice.object.metadata
        key = (metadata.namespace, metadata.name)
        if notice.type == _DELETED:
            if key in self._handed:
                self._handed.discard(key)
                self._dispatcher.loop.queue.add(key)
            return
        if _may_be_handed(notice.object) and self._is_handed(known(notice.object)):
            self._handed.add(key)
        if key in self._handed:
            self._dispatcher.loop.queue.add(key)

    def _is_handed(self, workload: Known) -> bool:
        status = workload.status
        if life.is_finished(status):
            return False  # What is left of it elsewhere reports by itself.
        if is_elsewhere(status):
            return True
        return life.holds_quota(status) and self._routes.of(workload) is not None

    def _owner_changed(self, job: Object) -> None:
        """A job of the manager."""
        self._of_owner_changed(str(job["metadata"].get("uid", "")))

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        if self._handed and is_managed(notice.object):
            self._of_owner_changed(notice.object.metadata.uid)

    def _of_owner_changed(self, uid: str) -> None:
        for each in self._shared.book.of_owner(uid):
            if each.key in self._handed:
                self._dispatcher.loop.queue.add(each.key)

    def _cluster_changed(self, notice: Notice[Any]) -> None:
        self._clusters.queue.add(("", notice.object.metadata.name))

    def _anything_changed(self, _notice: Notice[Any]) -> None:
        self._wake()

    def _link_changed(self, name: str) -> None:
        self._clusters.queue.add(("", name))
        link = self._links.get(name)
        if link is not None and link.worker is not None:
            # What is there and should not be is removed before anything else is made of it.
            for key in link.worker.copied():
                self._dispatcher.loop.queue.add(key)
        self._wake()

    def _wake(self) -> None:
        """Look at all checks and at all workloads that were handed over, a moment later."""
        if self._timer is None and self._group is not None:
            self._timer = asyncio.get_running_loop().call_later(_GATHER_S, self._look)

    def _look(self) -> None:
        self._timer = None
        for check in self._routes.checks:
            self._checks.queue.add(("", check.metadata.name))
        self._handed.update(each.key for each in self._all_handed())
        for key in self._handed:
            self._dispatcher.loop.queue.add(key)

    def _all_handed(self) -> list[Known]:
        """Every Workload that is to be handed over, or was."""
        found = []
        for each in self._workloads:
            if _may_be_handed(each):
                workload = self._shared.book.find((each.metadata.namespace, each.metadata.name))
                if workload is not None and self._is_handed(workload):
                    found.append(workload)
        return found

    def _room_changed(self) -> None:
        if self._handed:
            self._wake()

    # Clusters and checks.

    async def _attend_cluster(self, key: Key) -> None:
        name = key[1]
        cluster = self._cluster_cache.get(name)
        if cluster is None:
            self._end_link(name)
            return
        problem = ""
        try:
            spec = spec_of(MultiKueueClusterSpec, cluster)
            self._begin_link(cluster, spec)
        except DecodeError as error:
            problem = str(error)
        said = condition_of_cluster(self._links.get(name), problem)
        if said is not None:
            client, now = self._shared.client, self._shared.clock()
            await write_condition(client, CLUSTERS, cluster, said, now)

    def _begin_link(self, cluster: MultiKueueCluster, spec: MultiKueueClusterSpec) -> None:
        name = cluster.metadata.name
        link = self._links.get(name)
        if link is not None and not link.is_removed and self._specs.get(name) == spec:
            return
        self._stop(name)
        since = silent_since(cluster)
        link = Link(
            name,
            partial(self._access, spec),
            partial(self._worker, name),
            self._link_changed,
            clock=self._shared.clock,
            silent_since=self._shared.clock() if since is None else since,
        )
        self._links[name], self._specs[name] = link, spec
        assert self._group is not None
        self._tasks[name] = self._group.create_task(link.run(), name=f"link {name}")

    def _end_link(self, name: str) -> None:
        """Its object is gone. The connection is kept until nothing of ours is left there."""
        link = self._links.get(name)
        if link is None:
            return
        link.is_removed = True
        if link.worker is None or not link.worker.copied():
            self._stop(name)
        self._wake()

    def _stop(self, name: str) -> None:
        self._links.pop(name, None)
        self._specs.pop(name, None)
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def _access(self, spec: MultiKueueClusterSpec) -> Access:
        namespace = self._shared.configuration.dispatching.namespace
        return await find_access(self._shared.client, spec, namespace)

    def _worker(self, name: str, client: HttpClient) -> Worker:
        origin = self._shared.configuration.dispatching.origin
        concerns: Callable[[Key], None] = self._dispatcher.loop.queue.add
        return Worker(name, client, origin, concerns=concerns, changed=self._room_changed)

    async def _attend_check(self, key: Key) -> None:
        check = self._routes.checks.get(key[1])
        if check is None or not is_ours(check):
            return
        said = condition_of_check(self._routes.clusters_of(check), self._links)
        client, now = self._shared.client, self._shared.clock()
        await write_condition(client, CHECKS, check, said, now)

    # Copies that nobody needs.

    def _drained(self, name: str) -> None:
        self._collecting.queue.add(("", name))
        link = self._links.get(name)
        if link is not None and link.is_removed:
            self._clusters.queue.add(("", name))

    async def _collect_regularly(self) -> None:
        while True:
            await asyncio.sleep(self._shared.configuration.dispatching.collect_every_s)
            for name in self._links:
                self._collecting.queue.add(("", name))
            self._handed &= {each.key for each in self._all_handed()}

    async def _collect(self, key: Key) -> None:
        link = self._links.get(key[1])
        if link is None or link.worker is None:
            return
        there = [
            each
            for each in self._all_handed()
            if link.name in (each.status.cluster_name, *each.status.nominated_cluster_names)
        ]
        needed = [self._copying.needs(each.key[0], each.spec) for each in there]
        origin = self._shared.configuration.dispatching.origin
        await self._copying.collect(link.worker, needed, origin)


def _may_be_handed(workload: Workload) -> bool:
    """Whether a Workload is worth being decoded: nearly none is where nothing is handed over."""
    status = workload.status
    return isinstance(status, dict) and any(
        status.get(name) for name in ("admissionChecks", "clusterName", "nominatedClusterNames")
    )
