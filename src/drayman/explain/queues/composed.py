"""The Workload of a Job or a pod that names a queue, where no control loop has made it: as one would be made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.custom_groups import KUEUE
from drayman.api.jobs import Job
from drayman.api.kueue_workload import PriorityClassReference, Workload
from drayman.api.pods import is_finished
from drayman.api.struct import Json
from drayman.placement.world import World
from drayman.workloads.queued.composing import CompositionError, Importance, workload_for
from drayman.workloads.queued.groups import Member, workload_for_group
from drayman.workloads.queued.kinds import JOB, QueuedKind
from drayman.workloads.queued.names import PRIORITY_CLASS, labels_of
from drayman.workloads.queued.places import Object, read
from drayman.workloads.queued.pods import group_of, role_of, workload_for_pod

_UNNAMED = "planned"


def of_job(world: World, job: Job) -> Workload:
    """The Workload of a Job. Raises CompositionError."""
    return of_object(world, JOB, codec.to_dict(job))


def of_object(world: World, kind: QueuedKind, obj: Object) -> Workload:
    """The Workload of an object that is queued as a whole, in its decoded form. Raises CompositionError."""
    given = _with_identity(obj)
    places = kind.places(given)
    spec = read(given, (*places[0].template, "spec")) if places else {}
    importance = importance_of(world, labels_of(given), spec or {})
    return _made(workload_for(kind, given, importance), given)


def of_pod(world: World, pod: Pod) -> Workload:
    """The Workload of a pod, or of the group that it is in. Raises CompositionError."""
    group = group_of(pod)
    body = _with_identity(codec.to_dict(pod))
    if not group:
        importance = importance_of(world, labels_of(body), body.get("spec") or {})
        return _made(workload_for_pod(body, importance), body)
    namespace = pod.metadata.namespace
    return of_group(
        world,
        namespace,
        group,
        [
            each
            for each in world.objects.pods
            if group_of(each) == group
            and each.metadata.namespace == namespace
            and not is_finished(each)
        ],
    )


def of_group(world: World, namespace: str, group: str, pods: Iterable[Pod]) -> Workload:
    """The Workload of pods that are one group. Raises CompositionError."""
    bodies = [_with_identity(codec.to_dict(each)) for each in pods]
    members = [Member(codec.convert(Pod, each), role_of(each)) for each in bodies]
    first = bodies[0]
    importance = importance_of(world, labels_of(first), first.get("spec") or {})
    by_uid = {each["metadata"]["uid"]: each for each in bodies}
    return _made(workload_for_group(namespace, group, members, by_uid, importance), first)


def importance_of(
    world: World, labels: Mapping[str, str], pod_spec: Mapping[str, Json]
) -> Importance:
    """How important an object is: by its class of queues, or by that of its pods. Raises CompositionError."""
    name = labels.get(PRIORITY_CLASS)
    if name:
        for each in world.objects.workload_classes:
            if each.metadata.name == name:
                reference = PriorityClassReference(
                    group=KUEUE, kind="WorkloadPriorityClass", name=name
                )
                return Importance(each.value, reference)
        raise CompositionError(f"there is no WorkloadPriorityClass {name}")
    if isinstance(pod_spec.get("priority"), int):
        return Importance(pod_spec["priority"])
    wanted = pod_spec.get("priorityClassName")
    for rule in world.objects.rules:
        if rule.get("kind") == "PriorityClass":
            found = (rule.get("metadata") or {}).get("name")
            if found == wanted or (not wanted and rule.get("globalDefault")):
                return Importance(int(rule.get("value") or 0))
    if wanted:
        raise CompositionError(f"there is no PriorityClass {wanted}")
    return Importance()


def _with_identity(obj: Object) -> Object:
    """An object that may not exist yet, as if it had just been created."""
    metadata = dict(obj.get("metadata") or {})
    name = metadata.get("name") or metadata.get("generateName") or _UNNAMED
    metadata["name"] = str(name)
    metadata.setdefault("namespace", "default")
    metadata["uid"] = metadata.get("uid") or f"{_UNNAMED}-{metadata['namespace']}-{name}"
    return {**obj, "metadata": metadata}


def _made(body: Object, owner: Object) -> Workload:
    """The Workload, as old as what it is for."""
    workload = codec.convert(Workload, body)
    created = owner["metadata"].get("creationTimestamp")
    metadata = replace(
        workload.metadata, uid=f"for-{owner['metadata']['uid']}", creation_timestamp=created
    )
    return replace(workload, metadata=metadata)
