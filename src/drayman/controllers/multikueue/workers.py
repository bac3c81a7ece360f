"""A worker that answers: its objects as they are followed, and what of them was copied there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from drayman.api import codec
from drayman.api.core import Namespace, Pod
from drayman.api.jobs import Job
from drayman.api.kueue_workload import Workload
from drayman.api.resource import DeviceClass, ResourceClaimTemplate
from drayman.api.struct import Json
from drayman.cluster.cache import Cache
from drayman.cluster.client import Client
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    JOBS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    JsonObject,
    Resource,
    generic,
    typed,
)
from drayman.controllers.multikueue.rooms import WorkerRoom
from drayman.controllers.quota.book import Known, WorkloadBook
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.tally import QueueTally
from drayman.workloads.dispatching.names import ORIGIN
from drayman.workloads.queued.kinds import JOB, KINDS, QueuedKind
from drayman.workloads.queued.names import PREBUILT, labels_of
from drayman.workloads.queued.places import Object

COMPONENT: Final = "drayman-multikueue"
_NAMED: Final = "multikueue:workloads"
POD_VALUES: Final = PODS.as_values()

Copy = tuple[Resource[JsonObject], Object]
"""Something on a worker that was copied there."""


def resource_of(kind: QueuedKind) -> Resource[JsonObject]:
    return generic(kind.api_version, kind.plural, kind.kind)


def _named_by_job(job: Job) -> Iterable[str]:
    return _named(job.metadata.labels, job.metadata.namespace)


def _named_by_object(obj: JsonObject) -> Iterable[str]:
    return _named(labels_of(obj), obj["metadata"].get("namespace", ""))


def _named(labels: Mapping[str, str], namespace: str) -> Iterable[str]:
    """The Workload that a copy of a job names, with who has copied it."""
    if ORIGIN in labels and PREBUILT in labels:
        yield f"{labels[ORIGIN]}/{namespace}/{labels[PREBUILT]}"


class Jobs:
    """The jobs of all kinds in one cluster."""

    def __init__(self, informers: Informers, changed: Callable[[Object], None]) -> None:
        self._changed = changed
        jobs = informers.informer(JOBS, indexers={_NAMED: _named_by_job})
        jobs.add_handler(self._job)
        self._typed = jobs.cache
        self._others: dict[str, Cache[JsonObject]] = {}
        for kind in KINDS:
            if kind is not JOB:
                resource = replace(resource_of(kind), optional=True)
                found = informers.informer(resource, indexers={_NAMED: _named_by_object})
                found.add_handler(self._object)
                self._others[kind.framework] = found.cache

    def find(self, kind: QueuedKind, key: Key) -> Object | None:
        namespace, name = key
        if kind is JOB:
            found = self._typed.get(name, namespace)
            return None if found is None else codec.to_dict(found)
        return self._others[kind.framework].get(name, namespace)

    def of_workload(self, named: str) -> Iterator[Copy]:
        """The copies of jobs that name a Workload."""
        for job in self._typed.by_index(_NAMED, named):
            yield resource_of(JOB), codec.to_dict(job)
        for kind in KINDS:
            if kind is not JOB:
                for obj in self._others[kind.framework].by_index(_NAMED, named):
                    yield resource_of(kind), obj

    def named(self) -> Iterator[str]:
        """The Workloads that copies of jobs name, with who has copied them."""
        for job in self._typed:
            yield from _named_by_job(job)
        for cache in self._others.values():
            for obj in cache:
                yield from _named_by_object(obj)

    def _job(self, notice: Notice[Job]) -> None:
        metadata = notice.object.metadata
        self._changed({"metadata": codec.to_dict(metadata)})

    def _object(self, notice: Notice[JsonObject]) -> None:
        self._changed(notice.object)


class Worker:
    """What is known of a worker."""

    def __init__(
        self,
        name: str,
        client: Client,
        origin: str,
        *,
        concerns: Callable[[Key], None],
        changed: Callable[[], None],
    ) -> None:
        """`concerns` is called with a Workload whose copy, or whose job's copy, changed; `changed` when there may be other room."""
        self.name = name
        self.client = client
        self._origin = origin
        self._concerns = concerns
        self.informers = Informers(client)
        # What happens in a worker is counted there.
        self.book = WorkloadBook(
            client, self.informers, EventRecorder(client, COMPONENT), QueueTally()
        )
        self.book.listen(self._workload_changed)
        self.jobs = Jobs(self.informers, self._job_changed)
        copied = self.informers.informer(
            POD_VALUES,
            indexers={_NAMED: _named_by_object},
            label_selector=f"{ORIGIN}={origin}",
        )
        copied.add_handler(lambda notice: self._job_changed(notice.object))
        self._copied_pods = copied.cache
        self._pods: Cache[Pod] = self._cache(PODS)
        self.room = WorkerRoom(self.informers, changed)
        self.templates: Cache[ResourceClaimTemplate] = self._cache(RESOURCE_CLAIM_TEMPLATES)
        self.classes: Cache[DeviceClass] = self._cache(DEVICE_CLASSES)
        self._namespaces: Cache[Namespace] = self._cache(typed(Namespace))

    def _cache(self, resource: Resource[Any]) -> Cache[Any]:
        return self.informers.informer(resource).cache

    def copy(self, key: Key) -> Known | None:
        """The copy of a Workload."""
        found = self.book.find(key)
        return found if found is not None and self._is_copy(found.workload) else None

    def has_other(self, key: Key) -> bool:
        """Whether there is a Workload of that name that is not a copy."""
        found = self.book.find(key)
        return found is not None and not self._is_copy(found.workload)

    def has_namespace(self, name: str) -> bool:
        return self._namespaces.get(name) is not None

    def copied(self) -> set[Key]:
        """All Workloads of which something is here."""
        found = {each.key for each in self.book.all() if self._is_copy(each.workload)}
        named = [*self.jobs.named()]
        named += [name for pod in self._copied_pods for name in _named_by_object(pod)]
        parts = (name.split("/") for name in named)
        return found | {(namespace, name) for by, namespace, name in parts if by == self._origin}

    def objects_of(self, key: Key) -> list[Copy]:
        """The copies of the job, or of the pods, that a Workload was made for."""
        named = f"{self._origin}/{key[0]}/{key[1]}"
        return [*self.jobs.of_workload(named), *((POD_VALUES, pod) for pod in self.pods_of(key))]

    def pods_of(self, key: Key) -> tuple[Object, ...]:
        """The copies of the pods that a Workload was made for."""
        return self._copied_pods.by_index(_NAMED, f"{self._origin}/{key[0]}/{key[1]}")

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """A pod of the worker, copied or not."""
        return self._pods.get(name, namespace)

    def _is_copy(self, workload: Workload) -> bool:
        return workload.metadata.labels.get(ORIGIN) == self._origin

    def _workload_changed(self, notice: Notice[Workload]) -> None:
        if self._is_copy(notice.object):
            metadata = notice.object.metadata
            self._concerns((metadata.namespace, metadata.name))

    def _job_changed(self, obj: Object) -> None:
        labels: Mapping[str, Json] = labels_of(obj)
        if labels.get(ORIGIN) == self._origin and PREBUILT in labels:
            self._concerns((obj["metadata"].get("namespace", ""), str(labels[PREBUILT])))
