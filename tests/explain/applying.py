"""Carries out what a remedy says on the objects of a cluster, as an API server and its controllers would.

Patches are applied by the API server's own code. Pods that are deleted, or that have ended with their job or workload, no longer use their
claims: those that were made for them go with them, the others lose their devices if nobody else uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from msgspec import structs

from drayman.api.codec import convert, to_dict
from drayman.api.core import Pod
from drayman.api.kueue_workload import Workload
from drayman.api.resource import ResourceClaim, ResourceClaimStatus
from drayman.apiserver.patching.json_patch import apply_json_patch
from drayman.explain.answer import Operation, Remedy
from drayman.placement.world import Objects
from drayman.quota.fitting.belonging import handles_of, handles_of_pod

_FIELDS = {
    "Pod": "pods",
    "Node": "nodes",
    "Job": "jobs",
    "DeviceClass": "classes",
    "DeviceTaintRule": "taint_rules",
    "ResourceClaim": "claims",
    "ResourceClaimTemplate": "templates",
    "ResourceSlice": "slices",
    "PodGroup": "pod_groups",
    "ClusterQueue": "cluster_queues",
    "LocalQueue": "local_queues",
    "Workload": "queued_workloads",
}


def apply(objects: Objects, remedy: Remedy) -> Objects:
    """The objects after everything that the remedy says was done."""
    for operation in remedy.operations:
        objects = _HANDLERS[operation.verb](objects, operation)
    return objects


def _patch(objects: Objects, operation: Operation) -> Objects:
    field = _FIELDS[operation.kind]
    target = _named(getattr(objects, field), operation)
    patch = [dict(step) for step in operation.patch]
    changed = convert(type(target), apply_json_patch(to_dict(target), patch))
    kept = tuple(changed if each is target else each for each in getattr(objects, field))
    return replace(objects, **{field: kept})


def _delete(objects: Objects, operation: Operation) -> Objects:
    field = _FIELDS[operation.kind]
    target = _named(getattr(objects, field), operation)
    if isinstance(target, Pod):
        return _without_pods(objects, [target])
    kept = tuple(each for each in getattr(objects, field) if each is not target)
    return replace(objects, **{field: kept})


def _wait(objects: Objects, operation: Operation) -> Objects:
    if operation.kind == "Pod":
        return _delete(objects, operation)
    if operation.kind == "Workload":
        return _without_workload(objects, _named(objects.queued_workloads, operation))
    job = _named(objects.jobs, operation)
    ended = [pod for pod in objects.pods if _is_owned(pod, job.metadata.uid)]
    assert ended, f"job {operation.name} has no pods to wait for"
    return _without_pods(objects, ended)


_HANDLERS: dict[str, Callable[[Objects, Operation], Objects]] = {
    "patch": _patch,
    "delete": _delete,
    "wait": _wait,
}


def _named(objects: Iterable[Any], operation: Operation) -> Any:
    for each in objects:
        found = each.metadata
        if (found.namespace, found.name) == (operation.namespace, operation.name):
            return each
    raise AssertionError(f"there is no {operation.kind} {operation.namespace}/{operation.name}")


def _without_pods(objects: Objects, gone: list[Pod]) -> Objects:
    uids = {pod.metadata.uid for pod in gone}
    pods = tuple(pod for pod in objects.pods if pod.metadata.uid not in uids)
    claims = (_released(claim, uids) for claim in objects.claims)
    return replace(objects, pods=pods, claims=tuple(c for c in claims if c is not None))


def _released(claim: ResourceClaim, gone: set[str]) -> ResourceClaim | None:
    if any(owner.uid in gone for owner in claim.metadata.owner_references):
        return None
    rest = tuple(user for user in claim.status.reserved_for if user.uid not in gone)
    if len(rest) == len(claim.status.reserved_for):
        return claim
    status = structs.replace(claim.status, reserved_for=rest) if rest else ResourceClaimStatus()
    return structs.replace(claim, status=status)


def _without_workload(objects: Objects, ended: Workload) -> Objects:
    handles = set(handles_of(ended))
    pods = [pod for pod in objects.pods if not handles.isdisjoint(handles_of_pod(pod))]
    kept = tuple(each for each in objects.queued_workloads if each is not ended)
    return replace(_without_pods(objects, pods), queued_workloads=kept)


def _is_owned(pod: Pod, uid: str) -> bool:
    return any(owner.uid == uid for owner in pod.metadata.owner_references)
