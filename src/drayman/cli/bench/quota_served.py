"""Kueue's own load tests with everything written, as its runner does it: Workloads are created through the HTTP API, many at a time, the
queues of the server admit them, and whoever is seen to be admitted is finished at once.

The server is another process with a durable store. What is measured is from the first request to the last Workload that the client's
watch shows as admitted. There are no nodes and no pods.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Final

from drayman.api.kueue import KUEUE_VERSION
from drayman.api.kueue_workload import ADMITTED, FINISHED
from drayman.api.meta import Condition, ObjectMeta
from drayman.api.struct import ApiStruct
from drayman.api.times import timestamp_at
from drayman.cli.bench import quota_load as load
from drayman.cli.bench.measuring import percentile
from drayman.cli.bench.quota_load import NAMESPACE, PUBLISHED, Object, Suite
from drayman.cli.bench.scheduling import PATHS, Progress
from drayman.cli.bench.serving import Server
from drayman.cli.bench.wire import ConnectionPool
from drayman.cli.errors import UserError
from drayman.cluster import Client, Informer, Notice, Selection
from drayman.cluster.resources import Resource, StructCodec

_GROUP, _, _VERSION = KUEUE_VERSION.partition("/")
_KUEUE: Final = f"/apis/{KUEUE_VERSION}"
_WORKLOADS: Final = f"{_KUEUE}/namespaces/{NAMESPACE}/workloads"
_TEMPLATES: Final = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaimtemplates"
_STALLED_S: Final = 60.0
"""If nobody is admitted for this long, a run is aborted."""
_COUNTED: Final = {
    "transactions": "drayman_store_transactions_total",
    "commits": "drayman_store_commits_total",
}


class _Status(ApiStruct):
    conditions: tuple[Condition, ...] = ()

    def is_true(self, type_: str) -> bool:
        return any(each.type_ == type_ and each.status == "True" for each in self.conditions)


class _Workload(ApiStruct):
    metadata: ObjectMeta = ObjectMeta()
    status: _Status = _Status()


_LEAN_WORKLOADS: Final[Resource[_Workload]] = Resource(
    _GROUP,
    _VERSION,
    "workloads",
    "Workload",
    namespaced=True,
    codec=StructCodec(_Workload),
    complete=False,
)
"""Workloads, decoded only as far as needed for measuring."""


@dataclass(slots=True)
class Admissions:
    """Who has been admitted, and when, in seconds of one clock."""

    expected: int
    progress: Progress
    created: dict[str, float] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    last: float = field(default_factory=time.monotonic)
    evicted: int = 0
    to_finish: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    _seen: set[str] = field(default_factory=set)
    _event: asyncio.Event = field(default_factory=asyncio.Event)

    def saw(self, notice: Notice[_Workload]) -> None:
        name, status = notice.object.metadata.name, notice.object.status
        if notice.old is not None and notice.old.status.is_true(ADMITTED):
            self.evicted += not status.is_true(ADMITTED)
            return
        if not status.is_true(ADMITTED) or status.is_true(FINISHED):
            return
        if name not in self._seen:
            self._seen.add(name)
            self.to_finish.put_nowait(name)
            self.last = time.monotonic()
            self.latencies.append(self.last - self.created.pop(name))
            self.progress.advance()
            if len(self._seen) == self.expected:
                self._event.set()

    async def all_admitted(self) -> None:
        """Raises UserError when nothing happens for too long."""
        while len(self._seen) < self.expected:
            try:
                async with asyncio.timeout(1.0):
                    await self._event.wait()
            except TimeoutError:
                if time.monotonic() - self.last > _STALLED_S:
                    missing = self.expected - len(self._seen)
                    raise UserError(
                        f"{missing} workloads are still not admitted, and none was for {_STALLED_S:g} s"
                    ) from None


class Ground:
    """A server that is measured."""

    def __init__(
        self, server: Server, connections: ConnectionPool, client: Client, progress: Progress
    ) -> None:
        self._server = server
        self._connections = connections
        self._client = client
        self._progress = progress

    async def measure(self, name: str, suite: Suite, *, devices: bool) -> dict[str, Any]:
        """Run a suite on a server that has just started."""
        await self._prepare(suite, devices=devices)
        objects = list(load.workloads(suite, devices=devices))
        seen = Admissions(suite.total, self._progress)
        informer = Informer(self._client, Selection(_LEAN_WORKLOADS, NAMESPACE))
        informer.add_handler(seen.saw)
        async with informer:
            await informer.wait_synced()
            self._progress.begin("admitting", suite.total)
            before, cpu = await self._counts(), self._server.cpu_seconds()
            started = seen.last = time.monotonic()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._finish_all(seen))
                await self._create(objects, seen)
                created = time.monotonic()
                await seen.all_admitted()
                after, cpu_after = await self._counts(), self._server.cpu_seconds()
            finished = time.monotonic()
        seconds = seen.last - started
        return {
            "suite": f"{name} with devices" if devices else name,
            "workloads": suite.total,
            "queues": suite.cohorts * suite.queues,
            "seconds": round(seconds, 3),
            "per_second": round(suite.total / seconds, 1),
            "creating_seconds": round(created - started, 3),
            "finished_seconds": round(finished - started, 3),
            "latency_p50": round(percentile(seen.latencies, 50), 3),
            "latency_p99": round(percentile(seen.latencies, 99), 3),
            "evictions": seen.evicted,
            **{what: after[what] - before[what] for what in _COUNTED},
            "server_cpu_seconds": None
            if cpu is None or cpu_after is None
            else round(cpu_after - cpu, 2),
            "peak_memory_bytes": self._server.peak_memory(),
            "published": 0.0 if devices else PUBLISHED.get(name, 0.0),
        }

    async def _prepare(self, suite: Suite, *, devices: bool) -> None:
        create = self._connections.create_all
        await create("/api/v1/namespaces", [_object("v1", "Namespace", NAMESPACE)], _nothing)
        if devices:
            await create(PATHS["device classes"], [load.device_class()], _nothing)
            await create(PATHS["slices"], load.slices(), _nothing)
            await create(_TEMPLATES, load.claim_templates(), _nothing)
        flavor = _object(KUEUE_VERSION, "ResourceFlavor", "default")
        await create(f"{_KUEUE}/resourceflavors", [flavor], _nothing)
        self._progress.begin("creating queues", suite.cohorts * suite.queues)
        queues = (
            _typed(each, "ClusterQueue") for each in load.cluster_queues(suite, devices=devices)
        )
        await create(f"{_KUEUE}/clusterqueues", queues, _nothing)
        local = (_typed(each, "LocalQueue") for each in load.local_queues(suite))
        path = f"{_KUEUE}/namespaces/{NAMESPACE}/localqueues"
        await create(path, local, self._progress.advance)

    async def _create(self, objects: list[Object], seen: Admissions) -> None:
        def timed() -> Any:
            for each in objects:
                seen.created[each["metadata"]["name"]] = time.monotonic()
                yield _typed(each, "Workload")

        await self._connections.create_all(_WORKLOADS, timed(), _nothing)

    async def _finish_all(self, seen: Admissions) -> None:
        """Finish everybody, as they are admitted."""
        left = iter(range(seen.expected))

        async def share(connections: ConnectionPool) -> None:
            for _ in left:
                path = f"{_WORKLOADS}/{await seen.to_finish.get()}/status"
                await connections.send("PATCH", path, _finished(), "json-patch+json")

        async with (
            ConnectionPool(self._connections.address) as connections,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(connections.size):
                group.create_task(share(connections))

    async def _counts(self) -> dict[str, int]:
        text = await self._connections.text("/metrics")
        values = dict(line.split(" ", 1) for line in text.splitlines() if line[:1] not in ("", "#"))
        return {what: int(float(values[name])) for what, name in _COUNTED.items()}


def _finished() -> list[Object]:
    condition = {
        "type": FINISHED,
        "status": "True",
        "reason": "Succeeded",
        "message": "Job finished successfully",
        "lastTransitionTime": timestamp_at(time.time()),
    }
    return [{"op": "add", "path": "/status/conditions/-", "value": condition}]


def _typed(value: Object, kind: str) -> Object:
    return {"apiVersion": KUEUE_VERSION, "kind": kind, **value}


def _object(api_version: str, kind: str, name: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _nothing() -> None:
    return
