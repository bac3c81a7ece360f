"""Whole workloads on 500 nodes of eight devices, from the first request to the last pod bound, beside what KAI publishes for the same.

Objects are created through the HTTP API; the server is another process with a durable store. Nodes are plain objects in racks of sixteen,
and pods that are deleted go at once, as no kubelet runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from drayman.api.pod_groups import PodGroup
from drayman.cli.bench.scheduling import PATHS, Bindings, Progress, following, untaint
from drayman.cli.bench.wire import ConnectionPool
from drayman.cli.bench.workloads import NAMESPACE, Object
from drayman.cli.errors import UserError
from drayman.cluster import Client, ListOptions
from drayman.cluster.resources import POD_GROUPS, PODS, REPLICA_SETS

DEVICES: Final = 8
RACK: Final = 16
DRIVER: Final = "gpu.example.com"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
_TEMPLATES: Final = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaimtemplates"
_GROUPS: Final = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{NAMESPACE}/podgroups"
_PRIORITIES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_PRIORITY: Final = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
_SETS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
_MEMBERS: Final = 4
_MOVED_AT_ONCE: Final = 64
"""As `drayman defrag --apply` does it by default."""
_POLL_S: Final = 0.02
_LONGEST_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Figure:
    """What a scene has measured."""

    scene: str
    seconds: float
    bar: float
    """What it is to stay below."""
    published: float
    """What KAI publishes for the same, in seconds."""
    pods: int
    nodes: int


class Ground:
    """A cluster that is measured."""

    def __init__(
        self, nodes: int, connections: ConnectionPool, client: Client, progress: Progress
    ) -> None:
        self.nodes = nodes
        self._connections = connections
        self._client = client
        self._progress = progress

    async def prepare(self) -> None:
        """Nodes, slices, a class, and templates for one, four and eight devices."""
        send = self._connections.send
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await send("POST", "/api/v1/namespaces", namespace)
        expression = f'device.driver == "{DRIVER}"'
        spec: Object = {"selectors": [{"cel": {"expression": expression}}]}
        await send("POST", PATHS["device classes"], _object("DeviceClass", "gpu", spec))
        for number in (1, 4, DEVICES):
            exactly = {"deviceClassName": "gpu", "count": number}
            asked = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
            made = _object("ResourceClaimTemplate", f"gpus-{number}", {"spec": asked})
            await send("POST", _TEMPLATES, made)
        self._progress.begin("creating nodes", self.nodes)
        nodes = [_node(number) for number in range(self.nodes)]
        await self._connections.create_all(PATHS["nodes"], nodes, self._progress.advance, untaint)
        self._progress.begin("creating slices", self.nodes)
        slices = [_slice(number) for number in range(self.nodes)]
        await self._connections.create_all(PATHS["slices"], slices, self._progress.advance)

    async def make_gang(self, name: str, pods: int) -> None:
        spec = {"schedulingPolicy": {"gang": {"minCount": pods}}}
        group = _object("PodGroup", name, spec, "scheduling.k8s.io/v1alpha2")
        await self._connections.send("POST", _GROUPS, group)

    async def make_priority(self, name: str, value: int) -> None:
        made = {"metadata": {"name": name}, "value": value}
        await self._connections.send("POST", _PRIORITIES, {**made, **_PRIORITY})

    async def create(self, path: str, objects: Iterable[Object], what: str, number: int) -> None:
        self._progress.begin(what, number)
        await self._connections.create_all(path, objects, self._progress.advance)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Bindings]:
        async with following(self._client) as bindings:
            yield bindings

    async def refused(self, gang: str) -> PodGroup:
        """The group of a gang, once it says why there is no room."""
        ends = time.monotonic() + _LONGEST_S
        while time.monotonic() < ends:
            group = await self._client.get(POD_GROUPS, gang, NAMESPACE)
            if any(c.status == "False" and c.message for c in group.status.conditions):
                return group
            await asyncio.sleep(_POLL_S)
        raise UserError(f"the group {gang} did not say within {_LONGEST_S:g} s why it waits")

    async def end(self, labels: str) -> None:
        """Have the pods with these labels ended."""
        await self._client.delete_collection(
            PODS, NAMESPACE, selection=ListOptions(label_selector=labels)
        )

    async def adopted(self, name: str, pods: int) -> None:
        """Returns when a ReplicaSet has as many pods as it should, and no others."""
        ends = time.monotonic() + _LONGEST_S
        while time.monotonic() < ends:
            found = await self._client.get(REPLICA_SETS, name, NAMESPACE)
            if found.status.replicas == pods and found.status.observed_generation:
                return
            await asyncio.sleep(_POLL_S)
        raise UserError(f"the set {name} did not get {pods} pods within {_LONGEST_S:g} s")

    async def defragment(self) -> None:
        """As `drayman defrag --apply --yes` does it. Raises UserError if it ends early."""
        from drayman.cli.defrag.applying import applied

        self._progress.begin("moving pods", 1)
        report = await applied(self._client, NAMESPACE, at_once=_MOVED_AT_ONCE)
        if report.applied is None or report.applied.stopped or not report.fits:
            raise UserError(f"not all gangs got room: {report.applied}")


async def place_a_gang(ground: Ground) -> Figure:
    """A gang of 512 pods of four devices is bound."""
    pods = min(512, ground.nodes * 2)
    await ground.make_gang("gang", pods)
    names = [f"gang-{number}" for number in range(pods)]
    members = [_pod(name, 4, gang="gang") for name in names]
    async with ground.watched() as bindings:
        bindings.expect(names, lambda *_: None)
        started = time.monotonic()
        await ground.create(_PODS, members, "creating the gang", pods)
        await bindings.all_bound()
        return Figure("gang", bindings.last - started, 5.0, 49.0, pods, ground.nodes)


async def refuse_a_gang(ground: Ground) -> Figure:
    """The verdict that a gang with more members than there are nodes cannot fit, with its reason."""
    pods = ground.nodes + 12
    await ground.make_gang("large", pods)
    members = [_pod(f"large-{number}", DEVICES, gang="large") for number in range(pods)]
    await ground.create(_PODS, members[:-1], "creating the gang", pods)
    started = time.monotonic()
    await ground.create(_PODS, members[-1:], "waiting for the verdict", 1)
    await ground.refused("large")
    return Figure("refusal", time.monotonic() - started, 1.0, 249.5, pods, ground.nodes)


async def fill_with_jobs(ground: Ground) -> Figure:
    """As many jobs of one device as there are devices."""
    number = ground.nodes * DEVICES
    jobs = [_job(f"job-{index}") for index in range(number)]
    async with ground.watched() as bindings:
        bindings.expect_number(number)
        started = time.monotonic()
        await ground.create(_JOBS, jobs, "creating jobs", number)
        await bindings.all_bound()
        return Figure("jobs", bindings.last - started, 30.0, 398.0, number, ground.nodes)


async def preempt_for_a_gang(ground: Ground) -> Figure:
    """A gang of eight devices each on half of the nodes, all of which are full of less important pods."""
    number = ground.nodes * DEVICES
    names = [f"low-{index}" for index in range(number)]
    await ground.make_priority("high", 1000)
    async with ground.watched() as bindings:
        bindings.expect(names, lambda *_: None)
        await ground.create(_PODS, [_pod(name, 1) for name in names], "filling the cluster", number)
        await bindings.all_bound()
    pods = max(ground.nodes // 2, 1)
    await ground.make_gang("urgent", pods)
    names = [f"urgent-{index}" for index in range(pods)]
    members = [_pod(name, DEVICES, gang="urgent", priorityClassName="high") for name in names]
    async with ground.watched() as bindings:
        bindings.expect(names, lambda *_: None)
        started = time.monotonic()
        await ground.create(_PODS, members, "creating the gang", pods)
        await bindings.all_bound()
        return Figure("preemption", bindings.last - started, 10.0, 102.0, pods, ground.nodes)


async def defragment_for_gangs(ground: Ground) -> Figure:
    """Gangs of four pods that want a whole node each, on nodes that are half in use by pods of one device.

    Nodes are filled with pods of one device, and every second of them ends: what is left is that of a ReplicaSet, and can be moved.
    """
    nodes = ground.nodes
    names = [f"pod-{number}" for number in range(nodes * DEVICES)]
    async with ground.watched() as bindings:
        bindings.expect(names, lambda *_: None)
        pods = [_loose(name, "stays" if at % 2 else "goes") for at, name in enumerate(names)]
        await ground.create(_PODS, pods, "filling nodes", len(pods))
        await bindings.all_bound()
    await ground.end("app=goes")
    await ground.create(_SETS, [_set("stays", len(names) // 2)], "adopting what is left", 1)
    await ground.adopted("stays", len(names) // 2)
    gangs = max(1, nodes * 8 // 100)
    for number in range(gangs):
        await ground.make_gang(f"gang-{number}", _MEMBERS)
    names = [f"gang-{number}-{at}" for number in range(gangs) for at in range(_MEMBERS)]
    members = [_pod(name, DEVICES, gang=name.rpartition("-")[0]) for name in names]
    async with ground.watched() as bindings:
        bindings.expect(names, lambda *_: None)
        await ground.create(_PODS, members, "creating gangs", len(names))
        await ground.refused(f"gang-{gangs - 1}")
        started = time.monotonic()
        await ground.defragment()
        await bindings.all_bound()
        return Figure("defragmentation", bindings.last - started, 60.0, 456.0, len(names), nodes)


SCENES: Final[dict[str, Callable[[Ground], Awaitable[Figure]]]] = {
    "gang": place_a_gang,
    "refusal": refuse_a_gang,
    "jobs": fill_with_jobs,
    "preemption": preempt_for_a_gang,
    "defragmentation": defragment_for_gangs,
}


def _object(kind: str, name: str, spec: Any, version: str = "resource.k8s.io/v1") -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _node(number: int) -> Object:
    name = f"node-{number:04}"
    rack = {"topology.kubernetes.io/rack": f"rack-{number // RACK}"}
    labels = {"kubernetes.io/hostname": name, **rack}
    amounts = {"cpu": "192", "memory": "2Ti", "pods": "110"}
    status = {
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def _slice(number: int) -> Object:
    name = f"node-{number:04}"
    spec = {
        "driver": DRIVER,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{index}"} for index in range(DEVICES)],
    }
    return _object("ResourceSlice", name, spec)


def _pod_spec(devices: int) -> Object:
    container = {
        "name": "main",
        "image": "registry.example.com/train:1",
        "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
    }
    return {
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": f"gpus-{devices}"}],
    }


def _pod(name: str, devices: int, *, gang: str = "", **fields: Any) -> Object:
    spec = {**_pod_spec(devices), **fields}
    if gang:
        spec["schedulingGroup"] = {"podGroupName": gang}
    return _object("Pod", name, spec, "v1")


def _loose(name: str, app: str) -> Object:
    """A pod of one device that a ReplicaSet may adopt."""
    made = _object("Pod", name, _pod_spec(1), "v1")
    made["metadata"]["labels"] = {"app": app}
    return made


def _set(name: str, replicas: int) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {**_pod_spec(1), "restartPolicy": "Always"}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return _object("ReplicaSet", name, spec, "apps/v1")


def _job(name: str) -> Object:
    return _object("Job", name, {"template": {"spec": _pod_spec(1)}}, "batch/v1")
