"""A manager and workers: whole clusters in this process, each behind its own address, reached by their kubeconfigs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from drayman.api import codec
from drayman.api.kueue import (
    AdmissionCheck,
    ClusterQueue,
    LocalQueue,
    MultiKueueCluster,
    MultiKueueConfig,
    ResourceFlavor,
)
from drayman.api.kueue_workload import Workload
from drayman.apiserver.instance import Folder, Instance, Options, start
from drayman.apiserver.instance.control_plane import ControlPlane
from drayman.cluster import Client, HttpClient, Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    JOBS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    JsonObject,
    Resource,
    typed,
)
from drayman.controllers.quota.book import Known, known
from drayman.controllers.quota.configuration import configuration_of
from drayman.controllers.quota.source import ConfigurationSource
from drayman.drivers.profiles import parse_profiles, simulate
from drayman.testing.ports import kept_port
from patience import PATIENCE_S

NAMESPACE = "default"
WORKLOADS = typed(Workload)
CHECKS = typed(AdmissionCheck)
CLUSTERS = typed(MultiKueueCluster)
CONFIGS = typed(MultiKueueConfig)
CLUSTER_QUEUES = typed(ClusterQueue)
LOCAL_QUEUES = typed(LocalQueue)
FLAVORS = typed(ResourceFlavor)
CLASS = "gpu.example.com"
GPU = "example.com/gpu"
QUEUE = "kueue.x-k8s.io/queue-name"
ORIGIN = "kueue.x-k8s.io/multikueue-origin"


@dataclass(slots=True)
class Cluster:
    """A cluster of the test, over HTTP."""

    options: Options
    instance: Instance
    client: Client
    seen: Informers
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def kubeconfig(self) -> Path:
        return self.instance.kubeconfig

    async def stop(self) -> None:
        """Nobody answers any more."""
        await self.instance.stop()

    async def start(self) -> None:
        """As it was, at the same address. Hardware that was simulated before goes on."""
        assert self.options.control_plane is not None
        parts = replace(self.options.control_plane, hardware=None, queues=configuration())
        self.instance = await start(replace(self.options, control_plane=parts))

    async def create(self, resource: Resource[Any], value: JsonObject) -> JsonObject:
        where = NAMESPACE if resource.namespaced else None
        return await self.client.create(resource.as_values(), value, where)

    async def patch(
        self, resource: Resource[Any], name: str, change: JsonObject, **more: Any
    ) -> None:
        where = NAMESPACE if resource.namespaced else None
        await self.client.patch(resource.as_values(), name, merge_patch(change), where, **more)

    async def delete(self, resource: Resource[Any], name: str) -> None:
        where = NAMESPACE if resource.namespaced else None
        await self.client.delete(
            resource.as_values(), name, where, options=DeleteOptions(propagation="Background")
        )

    async def until(self, resource: Resource[Any], holds: Callable[[list[Any]], bool]) -> list[Any]:
        """The objects of the namespace, or of none, once something holds of them."""
        informer = self.seen.informer(resource)
        if not informer.is_synced:
            informer.add_handler(lambda _notice: self._changed.set())
            await self.seen.start()
            await self.seen.wait_synced()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    self._changed.clear()
                    found = [v for v in informer.cache if v.metadata.namespace in ("", NAMESPACE)]
                    if holds(found):
                        return found
                    await self._changed.wait()
        except TimeoutError:
            shown = "\n".join(map(repr, informer.cache))
            raise AssertionError(f"never came true of {resource.plural}:\n{shown}") from None

    async def until_one(
        self, resource: Resource[Any], name: str, holds: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        def held(values: list[Any]) -> bool:
            return any(v.metadata.name == name and holds(v) for v in values)

        found = await self.until(resource, held)
        return next(v for v in found if v.metadata.name == name)

    async def none(self, resource: Resource[Any], *, ours: bool = False) -> None:
        """No object is left; with `ours`, none that was copied here."""

        def gone(values: list[Any]) -> bool:
            return not [v for v in values if not ours or ORIGIN in v.metadata.labels]

        await self.until(resource, gone)

    async def workload(self, holds: Callable[[Known], bool], name: str = "") -> Known:
        """The only Workload, or the one of a job, once something holds of it."""

        def matching(values: list[Workload]) -> list[Known]:
            return [
                each
                for value in values
                if (not name or f"job-{name}-" in value.metadata.name)
                and holds(each := known(value))
            ]

        found = await self.until(WORKLOADS, lambda values: bool(matching(values)))
        return matching(found)[0]

    async def queue(self, *checks: str, cpu: int = 8, gpus: int = 64) -> None:
        """A queue `q`, with these checks."""
        quotas = [{"name": "cpu", "nominalQuota": cpu}, {"name": GPU, "nominalQuota": gpus}]
        group = {
            "coveredResources": ["cpu", GPU],
            "flavors": [{"name": "standard", "resources": quotas}],
        }
        body: JsonObject = {"namespaceSelector": {}, "resourceGroups": [group]}
        if checks:
            rules = [{"name": name} for name in checks]
            body["admissionChecksStrategy"] = {"admissionChecks": rules}
        await self.create(FLAVORS, {"metadata": {"name": "standard"}})
        await self.create(CLUSTER_QUEUES, {"metadata": {"name": "q"}, "spec": body})
        await self.create(LOCAL_QUEUES, {"metadata": {"name": "q"}, "spec": {"clusterQueue": "q"}})

    async def template(self, name: str = "one-gpu", **more: Any) -> None:
        """A template for devices of the class; `select` is a CEL expression that they must match."""
        await self.create(RESOURCE_CLAIM_TEMPLATES, template(name, **more))

    async def device_class(self, expression: str = "", name: str = CLASS) -> None:
        """The class that drivers of simulated hardware bring along, or one of the same name that says something else."""
        (found,) = (
            each
            for each in simulate(parse_profiles("example=1")).classes
            if each.metadata.name == CLASS
        )
        body = {**codec.to_dict(found), "metadata": {"name": name}}
        if expression:
            body["spec"] = {"selectors": [{"cel": {"expression": expression}}]}
        await self.create(DEVICE_CLASSES, body)

    async def job(self, name: str, **more: Any) -> None:
        await self.create(JOBS, job(name, **more))

    async def running_pod(self, **labels: str) -> Any:
        found = await self.until(PODS, lambda pods: any(p.status.phase == "Running" for p in pods))
        return next(p for p in found if p.status.phase == "Running")


def template(
    name: str = "one-gpu", count: int = 1, device_class: str = CLASS, select: str = ""
) -> JsonObject:
    exactly: JsonObject = {"deviceClassName": device_class, "count": count}
    if select:
        exactly["selectors"] = [{"cel": {"expression": select}}]
    requests = [{"name": "gpu", "exactly": exactly}]
    return {
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def job(
    name: str, *, cpu: int = 1, gpu: str = "", run_for: str = "", queue: str = "q", **more: Any
) -> JsonObject:
    container: JsonObject = {
        "name": "main",
        "image": "i",
        "resources": {"requests": {"cpu": cpu}},
    }
    spec: JsonObject = {"restartPolicy": "Never", "containers": [container]}
    if gpu:
        container["resources"]["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": gpu}]
    annotations = {"drayman.dev/run-for": run_for} if run_for else {}
    pod = {"metadata": {"annotations": annotations}, "spec": spec}
    return {
        "metadata": {"name": name, "labels": {QUEUE: queue}},
        "spec": {"template": pod, **more},
    }


@dataclass(slots=True)
class Clusters:
    """One that hands work over, and those that run it."""

    manager: Cluster
    workers: dict[str, Cluster]

    async def join(self, *names: str) -> None:
        """Have the manager hand the work of its queue to workers."""
        for name in names:
            source = {"location": str(self.workers[name].kubeconfig), "locationType": "Path"}
            await self.manager.create(
                CLUSTERS,
                {"metadata": {"name": name}, "spec": {"clusterSource": {"kubeConfig": source}}},
            )
        await self.manager.create(
            CONFIGS, {"metadata": {"name": "all"}, "spec": {"clusters": list(names)}}
        )
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
        await self.manager.create(
            CHECKS,
            {
                "metadata": {"name": "elsewhere"},
                "spec": {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters},
            },
        )
        await self.manager.queue("elsewhere")
        for name in names:
            await self.manager.until_one(CLUSTERS, name, is_active)


def is_active(value: Any) -> bool:
    return active(value)[0] == "True"


def active(value: Any) -> tuple[str, str]:
    """The Active condition: its status and its reason."""
    for each in (value.status or {}).get("conditions", ()):
        if each["type"] == "Active":
            return each["status"], each["reason"]
    return "", ""


def check(found: Known) -> tuple[str, str]:
    """The state of the check, and its message."""
    (state,) = found.status.admission_checks or (None,)
    return ("", "") if state is None else (state.state, state.message)


def runs_in(cluster: str) -> Callable[[Known], bool]:
    return lambda found: found.status.cluster_name == cluster and found.status.is_true("Admitted")


def configuration(**more: Any) -> ConfigurationSource:
    mappings = [{"name": GPU, "deviceClassNames": [CLASS, "ours"]}]
    given = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "resources": {"deviceClassMappings": mappings},
    }
    return ConfigurationSource(configuration_of({**given, **more}))


@asynccontextmanager
async def cluster(folder: Path, profile: str = "", **settings: Any) -> AsyncIterator[Cluster]:
    hardware = simulate(parse_profiles(profile)) if profile else None
    parts = ControlPlane(hardware=hardware, queues=configuration(**settings))
    async with AsyncExitStack() as end:
        port = end.enter_context(kept_port())
        options = Options(folder=Folder(folder), port=port, control_plane=parts)
        instance = await start(options)
        client = await end.enter_async_context(HttpClient.from_environment(instance.kubeconfig))
        seen = Informers(client)
        end.push_async_callback(seen.stop)
        made = Cluster(options, instance, client, seen)
        try:
            yield made
        finally:
            await made.stop()


@asynccontextmanager
async def clusters(
    folder: Path, workers: dict[str, str], *, gpus: int = 64, **settings: Any
) -> AsyncIterator[Clusters]:
    """A manager without hardware, and workers with theirs and quota for so many devices. The settings are those of `multiKueue`."""
    async with AsyncExitStack() as end:
        found = {
            name: await end.enter_async_context(cluster(folder / name, profile))
            for name, profile in workers.items()
        }
        for each in found.values():
            await each.queue(gpus=gpus)
        manager = await end.enter_async_context(cluster(folder / "manager", multiKueue=settings))
        yield Clusters(manager, found)
