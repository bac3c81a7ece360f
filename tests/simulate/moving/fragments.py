"""Clusters in which enough is free, but in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim
from drayman.api.workloads import PodDisruptionBudget
from drayman.placement.world import World
from simulate.cluster import DRIVER, cluster, held, node, pod

NAMES = {1: "one", 2: "two", 3: "three", 4: "four"}
RACK = "topology.kubernetes.io/rack"
STARTED = "2030-03-17T17:00:00Z"


def running(
    name: str, where: str, devices: Sequence[int], owner: str = "Job", **fields: Any
) -> tuple[Pod, ResourceClaim]:
    """A pod on a node with devices of it, from a template, and the claim that was made for it."""
    uid = f"{name}-uid"
    claim_name = f"{name}-gpu"
    metadata = {"uid": uid, **fields.pop("metadata", {})}
    if owner:
        made_by = {"apiVersion": "v1", "kind": owner, "name": f"{name}-owner", "uid": f"{name}-o"}
        metadata["ownerReferences"] = [{**made_by, "controller": True}]
    status = {
        "phase": "Running",
        "startTime": STARTED,
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim_name}],
        **fields.pop("status", {}),
    }
    made = pod(
        name,
        NAMES[len(devices)],
        nodeName=where,
        metadata=metadata,
        status=status,
        **fields,
    )
    return made, made_claim(claim_name, name, uid, where, devices)


def made_claim(
    claim: str, pod_name: str, uid: str, where: str, devices: Sequence[int]
) -> ResourceClaim:
    """A claim that was made for a pod from a template, with devices of a node."""
    bare = held(claim, where, *(f"gpu-{number}" for number in devices))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": uid, "controller": True}
    user = {"resource": "pods", "name": pod_name, "uid": uid}
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": where, "device": f"gpu-{number}"}
        for number in devices
    ]
    return convert(
        ResourceClaim,
        {
            "metadata": {
                "name": claim,
                "namespace": "default",
                "uid": f"{claim}-uid",
                "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
                "ownerReferences": [owner],
            },
            "spec": {"devices": {"requests": [_request(bare)]}},
            "status": {"allocation": {"devices": {"results": results}}, "reservedFor": [user]},
        },
    )


def _request(claim: ResourceClaim) -> dict[str, Any]:
    (request,) = claim.spec.devices.requests
    assert request.exactly is not None
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount"}
    return {"name": "gpu", "exactly": {**exactly, "count": request.exactly.count}}


def fragmented(
    devices: Mapping[str, int],
    present: Sequence[tuple[Pod, ResourceClaim]],
    waiting: Sequence[Pod],
    racks: Mapping[str, str] | None = None,
    **objects: Any,
) -> World:
    """Nodes with so many devices each, pods that run, and pods that wait."""
    if racks is not None:
        labelled = tuple(node(name, labels={RACK: racks[name]}) for name in devices)
        objects["nodes"] = labelled
    return cluster(
        dict(devices),
        pods=(*(each for each, _ in present), *waiting),
        claims=tuple(each for _, each in present),
        **objects,
    )


def group(name: str, least: int, **spec: Any) -> PodGroup:
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert(PodGroup, {"metadata": metadata, "spec": {**policy, **spec}})


def member(name: str, gang: str, template: str, **fields: Any) -> Pod:
    return pod(name, template, schedulingGroup={"podGroupName": gang}, **fields)


def budget(name: str, allowed: int, **labels: str) -> PodDisruptionBudget:
    return convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"selector": {"matchLabels": labels}, "minAvailable": 1},
            "status": {"disruptionsAllowed": allowed},
        },
    )
