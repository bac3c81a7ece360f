"""What a worker gets of a workload: the Workload, later its job, and the claim templates and device classes that its pods name.

A copy has a label that says who made it, the uid of its original and a hash of its content. What has not got the label is the worker's own:
it is used if it says the same as the original, and never changed.

The job keeps the labels and the selector that were generated for it on the manager, so that its pods are those of the Workload's templates;
a worker accepts that because `manualSelector` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from drayman.api import codec
from drayman.api.kueue_workload import PodSet, WorkloadSpec
from drayman.api.meta import ObjectMeta
from drayman.api.resource import DeviceClass, ResourceClaimTemplate
from drayman.api.struct import Json
from drayman.placement.extended import IMPLICIT_PREFIX
from drayman.workloads.dispatching.names import CONTENT, COPY_OF, ORIGIN, content_of, manager_path
from drayman.workloads.queued.composing import pod_set_body
from drayman.workloads.queued.kinds import JOB, QueuedKind
from drayman.workloads.queued.names import IN_USE, IS_GROUP, PREBUILT
from drayman.workloads.queued.places import Object, read
from drayman.workloads.queued.starting import original_template

_OF_THE_SERVER: Final = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "ownerReferences",
        "finalizers",
        "selfLink",
        "generateName",
    }
)
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def workload_copy(original: ObjectMeta, spec: WorkloadSpec, origin: str) -> Object:
    """The Workload as a worker gets it. It has no owner until the job is there."""
    body: Object = {
        "podSets": [pod_set_body(each) for each in spec.pod_sets],
        "queueName": spec.queue_name,
    }
    body |= _importance(spec)
    if spec.maximum_execution_time_seconds is not None:
        body["maximumExecutionTimeSeconds"] = spec.maximum_execution_time_seconds
    content = workload_content(spec)
    metadata = _metadata(original.namespace, original.name, original.uid, content, origin)
    if IS_GROUP in original.annotations:
        metadata["annotations"][IS_GROUP] = original.annotations[IS_GROUP]
    return {"metadata": {**metadata, "finalizers": [IN_USE]}, "spec": body}


def _importance(spec: WorkloadSpec) -> Object:
    body: Object = {}
    if spec.priority is not None:
        body["priority"] = spec.priority
    if spec.priority_class_ref is not None:
        body["priorityClassRef"] = codec.to_dict(spec.priority_class_ref)
    return body


def importance_changes(spec: WorkloadSpec) -> list[Object]:
    """What gives a copy the priority that its original has now, as a JSON patch."""
    return [
        {"op": "add", "path": f"/spec/{name}", "value": value}
        for name, value in _importance(spec).items()
    ]


def workload_content(spec: WorkloadSpec) -> str:
    """A hash of what a worker decides about: another one means another workload."""
    sets = [pod_set_body(each) for each in spec.pod_sets]
    return content_of([sets, spec.queue_name, spec.maximum_execution_time_seconds])


def is_copy_of(metadata: ObjectMeta, uid: str, content: str) -> bool:
    """Whether a copy is of this original, as it is now."""
    found = metadata.annotations
    return found.get(COPY_OF) == uid and found.get(CONTENT) == content


def _metadata(namespace: str, name: str, uid: str, content: str, origin: str) -> Object:
    found: Object = {
        "name": name,
        "labels": {ORIGIN: origin},
        "annotations": {COPY_OF: uid, CONTENT: content},
    }
    return {**found, "namespace": namespace} if namespace else found


def job_copy(
    kind: QueuedKind, obj: Object, workload: str, pod_sets: Sequence[PodSet], origin: str
) -> Object:
    """An object as a worker gets it: as it was described, suspended, with the name of its Workload."""
    made: Object = codec.parse_json(codec.encode_json(obj))
    made.pop("status", None)
    _describe_again(kind, made, pod_sets)
    made["metadata"] = metadata_copy(made, workload, origin)
    _put(made, kind.suspend, True)
    *way, last = manager_path(kind)
    (read(made, way) or {}).pop(last, None)
    if kind is JOB:
        made["spec"]["manualSelector"] = True
    return made


def metadata_copy(obj: Object, workload: str, origin: str) -> Object:
    """The metadata of an object as its copy has it, with the name of its Workload."""
    given = obj["metadata"]
    metadata = {name: value for name, value in given.items() if name not in _OF_THE_SERVER}
    metadata["labels"] = {**(given.get("labels") or {}), PREBUILT: workload, ORIGIN: origin}
    annotations = {
        name: value for name, value in (given.get("annotations") or {}).items() if name != _APPLIED
    }
    metadata["annotations"] = {**annotations, COPY_OF: given["uid"]}
    return metadata


def _describe_again(kind: QueuedKind, obj: Object, pod_sets: Sequence[PodSet]) -> None:
    """Undo what starting the object on the manager has added to it."""
    originals = {each.name: each for each in pod_sets}
    for place in kind.places(obj):
        original = originals.get(place.name)
        if original is not None:
            current = read(obj, place.template) or {}
            _put(obj, place.template, original_template(current, original.template))
            if place.count != original.count:
                for path in place.counts:
                    _put(obj, path, original.count)


def _put(obj: Object, path: Sequence[str | int], value: Json) -> None:
    *way, last = path
    read(obj, way)[last] = value


# Templates and classes.


class Match(Enum):
    """How something on a worker compares with what a workload needs."""

    SAME = auto()
    MISSING = auto()
    OUTDATED = auto()
    """A copy of ours of what it was before."""
    FOREIGN = auto()
    """The worker's own, and it says something else."""


Copied = ResourceClaimTemplate | DeviceClass


def match(original: Copied, there: Copied | None, origin: str) -> Match:
    """How an object on a worker compares with its original."""
    if there is None:
        return Match.MISSING
    if there.spec == original.spec:
        return Match.SAME
    return Match.OUTDATED if is_ours(there.metadata, origin) else Match.FOREIGN


def is_ours(metadata: ObjectMeta, origin: str) -> bool:
    return metadata.labels.get(ORIGIN) == origin


def copy_of(original: Copied, origin: str) -> Object:
    """A template or a class as a worker gets it."""
    body = codec.to_dict(original)
    metadata = original.metadata
    content = content_of(body.get("spec"))
    made = _metadata(metadata.namespace, metadata.name, metadata.uid, content, origin)
    return {**body, "metadata": made}


@dataclass(frozen=True, slots=True)
class Needs:
    """What the pods of a workload name, and what therefore has to be on a worker."""

    templates: tuple[ResourceClaimTemplate, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    missing: tuple[str, ...] = ()
    """What is not on the manager either, in words. A worker may have it."""


def named_templates(spec: WorkloadSpec) -> tuple[str, ...]:
    """The claim templates that the pods of a workload name."""
    found = (
        str(name)
        for pod_set in spec.pod_sets
        for entry in read(pod_set.template, ("spec", "resourceClaims")) or ()
        if (name := entry.get("resourceClaimTemplateName"))
    )
    return tuple(dict.fromkeys(found))


def named_classes(template: ResourceClaimTemplate) -> tuple[str, ...]:
    """The device classes that the claims of a template name."""
    requests = template.spec.spec.devices.requests
    named = (one.device_class_name for each in requests for _, one in each.alternatives())
    return tuple(dict.fromkeys(named))


def asked_resources(spec: WorkloadSpec) -> frozenset[str]:
    """The extended resources that the containers of a workload ask for."""
    return frozenset(
        name
        for pod_set in spec.pod_sets
        for member in ("containers", "initContainers")
        for container in read(pod_set.template, ("spec", member)) or ()
        for part in ("requests", "limits")
        for name in read(container, ("resources", part)) or {}
        if "/" in name
    )


def needs_of(
    spec: WorkloadSpec,
    templates: Mapping[str, ResourceClaimTemplate],
    classes: Mapping[str, DeviceClass],
) -> Needs:
    """What a workload needs. Templates are those of its namespace on the manager, by name; classes are all."""
    wanted = named_templates(spec)
    found = tuple(templates[name] for name in wanted if name in templates)
    names = dict.fromkeys(name for each in found for name in named_classes(each))
    for resource in sorted(asked_resources(spec)):
        names |= dict.fromkeys(_classes_behind(resource, classes))
    missing = [f"ResourceClaimTemplate {name}" for name in wanted if name not in templates]
    missing += [f"DeviceClass {name}" for name in names if name not in classes]
    chosen = tuple(classes[name] for name in names if name in classes)
    return Needs(found, chosen, tuple(missing))


def _classes_behind(resource: str, classes: Mapping[str, DeviceClass]) -> Iterable[str]:
    if resource.startswith(IMPLICIT_PREFIX):
        yield resource.removeprefix(IMPLICIT_PREFIX)
    for name, each in classes.items():
        if each.spec.extended_resource_name == resource:
            yield name
