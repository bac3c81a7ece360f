"""A cluster with queues: the real server, the controllers of jobs, sets and queues, and hands that do a kubelet's work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from controllers.workloads.stage import NAMESPACE, Stage, stage
from drayman.api.kueue import (
    AdmissionCheck,
    ClusterQueue,
    LocalQueue,
    ResourceFlavor,
    WorkloadPriorityClass,
)
from drayman.api.kueue_workload import Workload
from drayman.apiserver.instance.first_objects import create_builtin_definitions
from drayman.apiserver.kinds.queued_work import QueuedWork
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import JOBS, PODS, JsonObject, typed
from drayman.controllers.quota.book import Known, known
from drayman.controllers.quota.configuration import configuration_of
from drayman.controllers.quota.controller import QuotaController
from drayman.controllers.quota.source import ConfigurationSource
from drayman.controllers.workloads.deployments import DeploymentController
from drayman.controllers.workloads.jobs import JobController
from drayman.controllers.workloads.replica_sets import ReplicaSetController
from drayman.controllers.workloads.stateful_sets import StatefulSetController

WORKLOADS = typed(Workload)
CLUSTER_QUEUES = typed(ClusterQueue)
LOCAL_QUEUES = typed(LocalQueue)
FLAVORS = typed(ResourceFlavor)
CHECKS = typed(AdmissionCheck)
CLASSES = typed(WorkloadPriorityClass)
QUEUE = "kueue.x-k8s.io/queue-name"
CLASS = "kueue.x-k8s.io/priority-class"


class Room:
    """A stage with queues."""

    def __init__(self, place: Stage, source: ConfigurationSource) -> None:
        self.place = place
        self.source = source

    async def start(self) -> None:
        await self.place.start(
            JobController,
            ReplicaSetController,
            DeploymentController,
            StatefulSetController,
            partial(QuotaController, source=self.source),
        )

    async def restart(self) -> None:
        """As after a crash of the process."""
        await self.place.crash()
        await self.start()

    async def queue(self, cpu: int = 2, name: str = "q", **spec: Any) -> None:
        """A cluster queue with so many CPUs of a flavor, and a local queue of the same name that leads to it."""
        quota = {"name": "cpu", "nominalQuota": cpu}
        group = {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "standard", "resources": [quota]}],
        }
        body = {"namespaceSelector": {}, "resourceGroups": [group], **spec}
        await self.place.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": body})
        local = {"metadata": {"name": name}, "spec": {"clusterQueue": name}}
        await self.place.create(LOCAL_QUEUES, local)

    async def flavor(self, name: str = "standard", **spec: Any) -> None:
        await self.place.create(FLAVORS, {"metadata": {"name": name}, "spec": spec})

    async def job(self, name: str, **more: Any) -> None:
        await self.place.create(JOBS, job(name, **more))

    async def workload(self, holds: Callable[[Known], bool], of: str = "") -> Known:
        """The Workload of an object, or the only one, once something holds of it."""

        def matching(values: list[Workload]) -> list[Known]:
            return [each for value in values if is_of(value, of) and holds(each := known(value))]

        found = await self.place.until(WORKLOADS, lambda values: bool(matching(values)))
        return matching(found)[0]

    async def no_workload(self, of: str = "") -> None:
        await self.place.until(WORKLOADS, lambda values: not any(is_of(v, of) for v in values))

    async def touch(self, found: Known) -> None:
        """Have a Workload be looked at again, as time alone would."""
        change = {"metadata": {"annotations": {"touched": str(self.place.clock.ahead)}}}
        with suppress(NotFoundError):  # Somebody else may have had it looked at, and it is gone.
            await self.place.patch(WORKLOADS, found.name, change)

    async def pass_time(self, seconds: float, found: Known) -> None:
        self.place.clock.ahead += seconds
        await self.touch(found)

    async def pods(self, number: int, labels: dict[str, str] | None = None) -> list[Any]:
        """That many pods that are not being deleted."""

        def present(pods: list[Any]) -> list[Any]:
            return [
                pod
                for pod in pods
                if pod.metadata.deletion_timestamp is None
                and (labels or {}).items() <= pod.metadata.labels.items()
            ]

        return present(await self.place.until(PODS, lambda pods: len(present(pods)) == number))

    async def finish(self, name: str) -> None:
        """All pods of a job succeed."""
        await self.place.until_one(JOBS, name, lambda found: found.status.active > 0)
        for pod in await self.place.pods():
            if pod.metadata.labels.get("job-name") == name and pod.status.phase != "Succeeded":
                await self.place.set_phase(pod, "Succeeded")


def is_of(workload: Workload, name: str) -> bool:
    owners = [owner.name for owner in workload.metadata.owner_references]
    return not name or name in owners or workload.metadata.name == name


def job(name: str, *, cpu: int = 1, pods: int = 1, queue: str = "q", **more: Any) -> JsonObject:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    labels = {QUEUE: queue} if queue else {}
    spec = {"restartPolicy": "Never", "containers": [container]}
    required = more.pop("required", "")
    template = {"spec": spec}
    if required:
        annotations = {"kueue.x-k8s.io/podset-required-topology": required}
        template["metadata"] = {"annotations": annotations}
    return {
        "metadata": {
            "name": name,
            "labels": labels | more.pop("labels", {}),
            "annotations": more.pop("annotations", {}),
        },
        "spec": {"parallelism": pods, "completions": pods, "template": template, **more},
    }


def pod(name: str, *, cpu: int = 1, queue: str = "q", **more: Any) -> JsonObject:
    made = job(name, cpu=cpu, queue=queue, **more)
    return {"metadata": made["metadata"], "spec": made["spec"]["template"]["spec"]}


def admitted(found: Known) -> bool:
    return found.status.is_true("Admitted")


def waiting(reason: str) -> Callable[[Known], bool]:
    """Whether a Workload has no quota for a reason."""

    def holds(found: Known) -> bool:
        condition = found.status.condition("QuotaReserved")
        return condition is not None and (condition.status, condition.reason) == ("False", reason)

    return holds


def has(type_: str, status: str, reason: str) -> Callable[[Known], bool]:
    def holds(found: Known) -> bool:
        condition = found.status.condition(type_)
        return condition is not None and (condition.status, condition.reason) == (status, reason)

    return holds


@asynccontextmanager
async def waiting_room(
    source: ConfigurationSource | None = None, **configuration: Any
) -> AsyncIterator[Room]:
    """A cluster with a flavor, and queues at work. The configuration is what the file would have, unless its source is given."""
    given = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    if source is None:
        source = ConfigurationSource(configuration_of({**given, **configuration}))
    async with stage(collecting=True) as place:
        place.core.admission.plugins.append(QueuedWork(lambda: source.current.intake))
        await create_builtin_definitions(place.core)
        room = Room(place, source)
        await room.start()
        await room.flavor()
        yield room


__all__ = ["NAMESPACE", "Room", "admitted", "job", "pod", "waiting", "waiting_room"]
