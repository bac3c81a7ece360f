"""What the parts of the loop share: the client, the time, the configuration, and the objects that say how work is queued."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from drayman.api.core import EventType
from drayman.api.custom_groups import KUEUE, spec_of
from drayman.api.errors import DecodeError
from drayman.api.kueue import ResourceFlavor, ResourceFlavorSpec, WorkloadPriorityClass
from drayman.api.kueue_workload import PriorityClassReference
from drayman.api.struct import Json
from drayman.cluster.client import Client
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informers import Informers
from drayman.cluster.recording import PER_OBJECT, EventRecorder
from drayman.cluster.resources import NAMESPACES, JsonObject, Resource, generic, typed
from drayman.controllers.quota.book import WorkloadBook
from drayman.controllers.quota.configuration import QueueConfiguration, default_configuration
from drayman.controllers.quota.tally import QueueTally
from drayman.workloads.queued.composing import CompositionError, Importance
from drayman.workloads.queued.names import PRIORITY_CLASS, labels_of

COMPONENT: Final = "drayman-queues"
FLAVORS: Final = typed(ResourceFlavor)
_QUEUE_CLASSES: Final = typed(WorkloadPriorityClass)
_POD_CLASSES: Final = generic(
    "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False
)

Clock = Callable[[], float]
"""Seconds since the epoch."""


class Shared:
    """What every part needs."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        clock: Clock = time.time,
        tally: QueueTally | None = None,
    ) -> None:
        self.client = client
        self.tally = tally or QueueTally()
        self.informers = informers
        self.clock = clock
        self.configuration: QueueConfiguration = default_configuration()
        self.recorder = EventRecorder(client, COMPONENT, per_object=PER_OBJECT)
        self.book = WorkloadBook(client, informers, self.recorder, self.tally)
        self._flavors = informers.informer(FLAVORS).cache
        self._queue_classes = informers.informer(_QUEUE_CLASSES).cache
        self._pod_classes = informers.informer(_POD_CLASSES).cache
        self._namespaces = informers.informer(NAMESPACES).cache

    def record(
        self,
        resource: Resource[JsonObject],
        obj: JsonObject,
        type_: EventType,
        reason: str,
        note: str,
    ) -> None:
        """Records an event about an object in its decoded form."""
        self.recorder.record(Reference.to(resource, obj), type_, reason, note, reason)

    def flavors(self) -> Mapping[str, ResourceFlavorSpec]:
        """What flavors say, by name. Those that cannot be understood are left out."""
        found = {}
        for flavor in self._flavors:
            try:
                found[flavor.metadata.name] = spec_of(ResourceFlavorSpec, flavor)
            except DecodeError:
                continue
        return found

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        found = self._namespaces.get(name)
        return {} if found is None else found.metadata.labels

    def importance(self, obj: Mapping[str, Json], pod_spec: Mapping[str, Json]) -> Importance:
        """How important an object is: by its class of queues, or by that of its pods. Raises CompositionError."""
        name = labels_of(obj).get(PRIORITY_CLASS)
        if name:
            chosen = self._queue_classes.get(name)
            if chosen is None:
                raise CompositionError(f"there is no WorkloadPriorityClass {name}")
            return Importance(chosen.value, _reference(KUEUE, "WorkloadPriorityClass", name))
        name = pod_spec.get("priorityClassName")
        if not name:
            return self._default_importance()
        of_pods = self._pod_classes.get(str(name))
        if of_pods is None:
            raise CompositionError(f"there is no PriorityClass {name}")
        return _importance_of(of_pods)

    def _default_importance(self) -> Importance:
        """Of pods that name no class. The lowest of several defaults counts."""
        defaults = [each for each in self._pod_classes if each.get("globalDefault")]
        if not defaults:
            return Importance()
        return _importance_of(min(defaults, key=lambda each: each.get("value") or 0))


def _importance_of(pod_class: JsonObject) -> Importance:
    name = str(pod_class["metadata"]["name"])
    return Importance(
        int(pod_class.get("value") or 0), _reference("scheduling.k8s.io", "PriorityClass", name)
    )


def _reference(group: str, kind: str, name: str) -> PriorityClassReference:
    return PriorityClassReference(group=group, kind=kind, name=name)
