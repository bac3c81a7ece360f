"""Pods that wait in a queue: on their own, or as members of a group.

A pod is held by a scheduling gate. It cannot be suspended again once it runs, so eviction deletes it, and whoever made it makes another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

import msgspec

from drayman.api.core import Pod
from drayman.api.integers import parse_integer
from drayman.api.kueue_workload import PodSet
from drayman.api.pods import is_finished
from drayman.api.struct import Json
from drayman.api.times import seconds_of
from drayman.placement.gangs.dialects.kueue import FAST_ADMISSION, NAME, ROLE, TOTAL
from drayman.workloads.queued.composing import (
    Importance,
    bare_template,
    execution_limit,
    topology_request,
    workload_body,
)
from drayman.workloads.queued.kinds import Ended
from drayman.workloads.queued.names import (
    GATE,
    JOB_UID,
    MANAGED,
    QUEUE,
    RETRIABLE,
    SERVING,
    queue_of,
    workload_name,
)
from drayman.workloads.queued.places import MAIN, Object
from drayman.workloads.queued.starting import Additions, Operation, with_additions

_SHAPE: Final = (
    "initContainers",
    "containers",
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
    "priority",
    "priorityClassName",
    "topologySpreadConstraints",
    "overhead",
    "resourceClaims",
)
"""What makes pods of a group different for quota and placement."""
_CONTAINER: Final = ("resources", "ports", "restartPolicy")
_ROLE_LENGTH: Final = 8
_encoder: Final = msgspec.json.Encoder(order="deterministic")


def is_managed(pod: Pod) -> bool:
    return pod.metadata.labels.get(MANAGED) == "true"


def is_gated(pod: Pod) -> bool:
    """Whether the queue still holds a pod."""
    return any(gate.name == GATE for gate in pod.spec.scheduling_gates)


def group_of(pod: Pod) -> str:
    """The group that a pod waits with; empty if it waits alone."""
    return pod.metadata.labels.get(NAME) or ""


def queue_of_pod(pod: Pod) -> str:
    return pod.metadata.labels.get(QUEUE, "")


def total_of(pod: Pod) -> int | None:
    """How many pods the group of a pod has."""
    return parse_integer(pod.metadata.annotations.get(TOTAL, ""))


def is_fast(pod: Pod) -> bool:
    """Whether the group is admitted with its first pod."""
    return pod.metadata.annotations.get(FAST_ADMISSION) == "true"


def is_serving(pod: Pod) -> bool:
    """Whether the group goes on when its pods end."""
    return pod.metadata.annotations.get(SERVING) == "true"


def is_retriable(pod: Pod) -> bool:
    return pod.metadata.annotations.get(RETRIABLE) != "false"


def role_hash(spec: Mapping[str, Json]) -> str:
    """Pods with the same one are one pod set of their group."""
    shape = {name: value for name in _SHAPE if (value := spec.get(name)) not in (None, [], {})}
    for name in ("initContainers", "containers"):
        if name in shape:
            shape[name] = [
                {part: each[part] for part in _CONTAINER if each.get(part)} for each in shape[name]
            ]
    return sha256(_encoder.encode(shape)).hexdigest()[:_ROLE_LENGTH]


def role_of(body: Mapping[str, Json]) -> str:
    """The role of a pod in its decoded form, as it was noted when it was created."""
    noted = ((body.get("metadata") or {}).get("annotations") or {}).get(ROLE)
    return str(noted) if noted else role_hash(body.get("spec") or {})


def is_over(pod: Pod, now: float) -> bool:
    """Whether a pod uses nothing any more: it has ended, or it is being deleted and had its time to end."""
    if is_finished(pod):
        return True
    if pod.metadata.deletion_timestamp is None:
        return False
    return not pod.spec.node_name or seconds_of(pod.metadata.deletion_timestamp) <= now


def bare_spec(spec: Mapping[str, Json]) -> dict[str, Json]:
    """The spec of a pod as a template would have it: without the gate, and without what only concerns this one pod."""
    gates = [each for each in spec.get("schedulingGates") or () if each.get("name") != GATE]
    kept = {
        name: value for name, value in spec.items() if name not in ("schedulingGates", "hostname")
    }
    return {**kept, "schedulingGates": gates} if gates else kept


def pod_set_of(body: Object, name: str = MAIN, count: int = 1) -> PodSet:
    """The pod set of a pod, of which there are so many. Raises CompositionError."""
    template = bare_template({**body, "spec": bare_spec(body.get("spec") or {})})
    annotations = (body["metadata"].get("annotations")) or {}
    return PodSet(
        name=name, template=template, count=count, topology_request=topology_request(annotations)
    )


def owner_of(body: Object, *, controller: bool) -> Object:
    metadata = body["metadata"]
    owner: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {**owner, "controller": True, "blockOwnerDeletion": True} if controller else owner


def name_for_pod(name: str, uid: str) -> str:
    return workload_name("", "Pod", name, uid)


def workload_for_pod(body: Object, importance: Importance) -> Object:
    """The Workload of a pod that waits alone, to be created. Raises CompositionError."""
    metadata = body["metadata"]
    return workload_body(
        metadata["namespace"],
        name_for_pod(metadata["name"], metadata["uid"]),
        [owner_of(body, controller=True)],
        [pod_set_of(body)],
        queue=queue_of(body),
        importance=importance,
        labels={JOB_UID: metadata["uid"]},
        longest=execution_limit(body),
    )


def ended(pod: Pod) -> Ended | None:
    """How a pod that waits alone ended."""
    if not is_finished(pod):
        return None
    return Ended(
        pod.status.phase == "Succeeded", f"Pod {pod.metadata.name} {pod.status.phase.lower()}"
    )


def release(body: Object, added: Additions) -> list[Operation]:
    """The changes that let a pod start, as a JSON patch. Raises StartError."""
    spec = body.get("spec") or {}
    held = {**spec, "schedulingGates": bare_spec(spec).get("schedulingGates") or []}
    # A pod gets no gates later: one without the gate for its place in a topology goes where its flavor lets it.
    known = {each.get("name") for each in held["schedulingGates"]}
    added = replace(added, gates=tuple(gate for gate in added.gates if gate in known))
    started = with_additions({"metadata": body["metadata"], "spec": held}, added)
    changes: list[Operation] = [
        {
            "op": "add",
            "path": "/spec/schedulingGates",
            "value": started["spec"].get("schedulingGates") or [],
        }
    ]
    for part, name in (
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("spec", "nodeSelector"),
        ("spec", "tolerations"),
    ):
        value = started[part].get(name)
        if value and value != (body[part].get(name)):
            changes.append({"op": "add", "path": f"/{part}/{name}", "value": value})
    return changes


def importance_of(pods: Sequence[Pod]) -> int:
    """The priority of pods that have no class of a queue: what the server gave the first."""
    return pods[0].spec.priority or 0 if pods else 0
