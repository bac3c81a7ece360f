"""Whether a decision of the scheduler is right, found out without the scheduler and without the allocator.

Devices are judged by the checker of the allocator's laws; nodes by the few rules that the random pods of these laws touch.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from drayman.api.codec import to_dict
from drayman.api.core import Pod
from drayman.api.quantity import Quantity
from drayman.api.resource import ResourceClaim
from oracle.nodes import JsonObject, selects
from oracle.quantities import amount
from oracle.selectors import with_verdicts
from oracle.validity import violations
from scheduler.laws.fleet import FEATURES, GPU_RESOURCE


def misplaced(node: JsonObject | None, pod: Pod, others: Iterable[Pod], by_devices: bool) -> str:
    """Why a pod may not be on a node beside others; empty if it may. `by_devices`: its extended resources are devices."""
    if node is None:
        return "there is no such node"
    labels = node["metadata"]["labels"]
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return "the node selector does not match"
    if node["spec"].get("unschedulable"):
        return "the node takes no pods"
    tolerated = {toleration.key for toleration in pod.spec.tolerations}
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] == "NoSchedule" and taint["key"] not in tolerated:
            return f"taint {taint['key']} is not tolerated"
    there = [pod, *others]
    allocatable = node["status"]["allocatable"]
    if len(there) > int(allocatable["pods"]):
        return "too many pods"
    if sum(requested(each, "cpu") for each in there) > int(allocatable["cpu"]):
        return "too little cpu"
    offered = int(allocatable.get(GPU_RESOURCE, "0"))
    asked = requested(pod, GPU_RESOURCE)
    if asked and by_devices == bool(offered):
        return f"{offered} of {GPU_RESOURCE} are offered, and devices are {by_devices}"
    if asked and offered and sum(requested(each, GPU_RESOURCE) for each in there) > offered:
        return f"too little {GPU_RESOURCE}"
    return ""


def requested(pod: Pod, resource: str) -> int:
    none = Quantity(0)
    return sum(int(c.resources.requests.get(resource, none).amount) for c in pod.spec.containers)


def unreachable(claim: ResourceClaim, node: JsonObject) -> bool:
    """Whether the devices of a claim cannot be used from a node."""
    allocation = claim.status.allocation
    if allocation is None or allocation.node_selector is None:
        return False
    return not selects({"nodeSelector": to_dict(allocation.node_selector)}, node)


def wrong_devices(
    node: JsonObject,
    claims: list[ResourceClaim],
    holders: Iterable[ResourceClaim],
    slices: Iterable[JsonObject],
    classes: Iterable[JsonObject],
    rules: Iterable[JsonObject],
) -> list[str]:
    """What is wrong with devices that claims get on a node, beside those that have theirs already."""
    problem = with_verdicts(
        {
            "name": "law",
            "features": list(FEATURES),
            "node": node,
            "classes": list(classes),
            "slices": _with_rules(slices, rules),
            "claims": [
                {"metadata": {"name": claim.metadata.name}, "spec": to_dict(claim.spec)}
                for claim in claims
            ],
            "allocated": _in_use(holders),
        }
    )
    return violations(problem, [to_dict(claim.status.allocation) for claim in claims])


def _in_use(holders: Iterable[ResourceClaim]) -> JsonObject:
    devices, shared = [], []
    sums: dict[tuple[str, str, str], dict[str, Any]] = {}
    for claim in holders:
        allocation = claim.status.allocation
        for entry in allocation.devices.results if allocation else ():
            if entry.admin_access:
                continue
            key = {"driver": entry.driver, "pool": entry.pool, "device": entry.device}
            if entry.share_id is None:
                devices.append(key)
                continue
            shared.append({**key, "shareID": entry.share_id})
            total = sums.setdefault((entry.driver, entry.pool, entry.device), {})
            for name, quantity in entry.consumed_capacity.items():
                total[name] = total.get(name, 0) + amount(str(quantity))
    aggregated = [
        {
            "driver": driver,
            "pool": pool,
            "device": device,
            "consumedCapacity": {name: str(value) for name, value in total.items()},
        }
        for (driver, pool, device), total in sums.items()
        if total
    ]
    return {"devices": devices, "sharedDevices": shared, "aggregatedCapacity": aggregated}


def _with_rules(slices: Iterable[JsonObject], rules: Iterable[JsonObject]) -> list[JsonObject]:
    """The slices with the taints that rules add."""
    tainted = [deepcopy(item) for item in slices]
    for rule in rules:
        selected = rule["spec"]["deviceSelector"]
        for item in tainted:
            spec = item["spec"]
            if selected.get("driver") not in (None, spec["driver"]):
                continue
            for device in spec.get("devices") or ():
                if selected.get("device") in (None, device["name"]):
                    device["taints"] = [*(device.get("taints") or ()), rule["spec"]["taint"]]
    return tainted
