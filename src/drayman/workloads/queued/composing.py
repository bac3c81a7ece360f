"""The Workload of an object: its pod sets as they are described, its queue, its importance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.api.integers import parse_integer
from drayman.api.kueue_workload import (
    PodSet,
    PriorityClassReference,
    SliceConstraint,
    TopologyRequest,
)
from drayman.api.struct import Json
from drayman.placement.gangs.dialects.kueue import (
    INDEX_LABEL,
    PREFERRED,
    REQUIRED,
    SLICE_LAYERS,
    SLICE_LEVEL,
    SLICE_SIZE,
    TOGETHER,
    UNCONSTRAINED,
)
from drayman.workloads.queued.kinds import QueuedKind
from drayman.workloads.queued.names import (
    IN_USE,
    JOB_UID,
    MAX_EXECUTION,
    labels_of,
    queue_of,
    workload_name,
)
from drayman.workloads.queued.places import Object, Place, read

MOST_POD_SETS: Final = 18


class CompositionError(Exception):
    """An object from which no Workload can be made; the text says why."""


@dataclass(frozen=True, slots=True)
class Importance:
    """The priority of a Workload, and the class it is from."""

    priority: int = 0
    source: PriorityClassReference | None = None


def pod_sets_of(kind: QueuedKind, obj: Object) -> tuple[PodSet, ...]:
    """What an object comes to. Raises CompositionError."""
    places = kind.places(obj)
    if not places:
        raise CompositionError(f"{kind.kind} describes no pods")
    if len(places) > MOST_POD_SETS:
        raise CompositionError(f"{len(places)} pod sets: a Workload has at most {MOST_POD_SETS}")
    names = [place.name for place in places]
    for name in names:
        if names.count(name) > 1:
            raise CompositionError(f"two pod sets are called {name}")
    return tuple(_pod_set(obj, place) for place in places)


def _pod_set(obj: Object, place: Place) -> PodSet:
    template = read(obj, place.template)
    return PodSet(
        name=place.name,
        template=bare_template(template),
        count=place.count,
        min_count=place.min_count,
        topology_request=topology_request(read(template, ("metadata", "annotations")) or {}, place),
    )


def bare_template(template: Json) -> dict[str, Json]:
    """A pod template with the metadata that a Workload may have."""
    metadata = {
        name: dict(value)
        for name in ("labels", "annotations")
        if (value := read(template, ("metadata", name)))
    }
    spec = dict(read(template, ("spec",)) or {})
    for name in ("initContainers", "containers"):
        if spec.get(name):
            spec[name] = [_with_requests(container) for container in spec[name]]
    return {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}


def _with_requests(container: Json) -> Json:
    """A container as its pods will have it: it asks for what it is limited to, unless it says what it asks for.

    The server fills this in for pods and not for templates, and whoever looks for room has the template only.
    """
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits.keys() - requests.keys():
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def topology_request(
    annotations: Mapping[str, str], place: Place | None = None
) -> TopologyRequest | None:
    """What pods say about how near each other they must be. Raises CompositionError."""
    required, preferred = annotations.get(REQUIRED), annotations.get(PREFERRED)
    unconstrained = annotations.get(UNCONSTRAINED) == "true"
    sliced = annotations.get(SLICE_LEVEL)
    layers = _layers(annotations.get(SLICE_LAYERS))
    together = annotations.get(TOGETHER)
    if not (required or preferred or unconstrained or sliced or layers or together):
        return None
    size = annotations.get(SLICE_SIZE)
    number = None if size is None else parse_integer(size)
    if size is not None and (number is None or number < 1):
        raise CompositionError(
            f"metadata.annotations[{SLICE_SIZE}]: {size!r} is not a positive number"
        )
    return TopologyRequest(
        required=required,
        preferred=preferred,
        unconstrained=True if unconstrained else None,
        pod_index_label=annotations.get(INDEX_LABEL) or (place.index_label if place else None),
        sub_group_index_label=place.subgroup_label if place else None,
        sub_group_count=place.subgroups if place else None,
        pod_set_group_name=together,
        pod_set_slice_required_topology=sliced,
        pod_set_slice_size=number,
        podset_slice_required_topology_constraints=layers,
    )


def _layers(text: str | None) -> tuple[SliceConstraint, ...]:
    if not text:
        return ()
    try:
        return tuple(
            codec.convert(SliceConstraint, each) for each in codec.parse_json(text.encode())
        )
    except (DecodeError, TypeError) as error:
        raise CompositionError(f"metadata.annotations[{SLICE_LAYERS}]: {error}") from error


def name_for(kind: QueuedKind, obj: Object) -> str:
    metadata = obj["metadata"]
    return workload_name(kind.group, kind.kind, metadata["name"], metadata["uid"])


def owner_reference(kind: QueuedKind, obj: Object) -> Object:
    """How a Workload names the object that it is for."""
    metadata = obj["metadata"]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def workload_for(
    kind: QueuedKind,
    obj: Object,
    importance: Importance,
    *,
    copied: Iterable[str] = (),
    name: str = "",
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """The Workload of an object, to be created. `copied` are labels that it takes over. Raises CompositionError."""
    metadata = obj["metadata"]
    labels = {name: value for name, value in labels_of(obj).items() if name in set(copied)}
    return workload_body(
        metadata["namespace"],
        name or name_for(kind, obj),
        [owner_reference(kind, obj)],
        pod_sets_of(kind, obj),
        queue=queue_of(obj),
        importance=importance,
        labels={**labels, JOB_UID: metadata["uid"]},
        annotations=annotations,
        longest=execution_limit(obj),
    )


def execution_limit(obj: Object) -> int | None:
    """For how many seconds an object may run, over all its starts."""
    limit = parse_integer(labels_of(obj).get(MAX_EXECUTION, ""))
    return limit if limit is not None and 0 < limit < 2**31 else None


def workload_body(
    namespace: str,
    name: str,
    owners: Sequence[Mapping[str, Json]],
    pod_sets: Sequence[PodSet],
    *,
    queue: str,
    importance: Importance,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    longest: int | None = None,
) -> Object:
    """A Workload to be created."""
    spec: Object = {
        "podSets": [pod_set_body(each) for each in pod_sets],
        "queueName": queue,
        "priority": importance.priority,
    }
    if importance.source is not None:
        spec["priorityClassRef"] = codec.to_dict(importance.source)
    if longest is not None:
        spec["maximumExecutionTimeSeconds"] = longest
    metadata: Object = {
        "namespace": namespace,
        "name": name,
        "ownerReferences": [dict(owner) for owner in owners],
        "finalizers": [IN_USE],
    }
    for member, given in (("labels", labels), ("annotations", annotations)):
        if given:
            metadata[member] = dict(given)
    return {"metadata": metadata, "spec": spec}


def pod_set_body(pod_set: PodSet) -> Object:
    """A pod set as it is written: with its name and count, which types leave out where they are the default."""
    return {**codec.to_dict(pod_set), "name": pod_set.name, "count": pod_set.count}
