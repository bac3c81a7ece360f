"""The state of a cluster in the form of the records: what matters of each object, with generated names made equal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from conformance.records import JsonObject


class Names:
    """Generated names, each as `generateName` and a star; the second of its kind has a number."""

    def __init__(self) -> None:
        self._placeholders: dict[str, str] = {}
        self._met: dict[str, int] = {}

    def meet(self, objects: Iterable[JsonObject]) -> None:
        """Learn the names of objects that are new."""
        for obj in objects:
            metadata = obj["metadata"]
            base, name = metadata.get("generateName"), metadata["name"]
            if base and name not in self._placeholders:
                number = self._met[base] = self._met.get(base, 0) + 1
                self._placeholders[name] = f"{base}*{number if number > 1 else ''}"

    def placeholder(self, name: str) -> str:
        return self._placeholders.get(name, name)

    def real(self, placeholder: str) -> str:
        """The name that a placeholder stands for."""
        found = [real for real, each in self._placeholders.items() if each == placeholder]
        return found[0] if found else placeholder

    def key(self, obj: JsonObject) -> str:
        metadata = obj["metadata"]
        return f"{metadata['namespace']}/{self.placeholder(metadata['name'])}"


@dataclass(frozen=True, slots=True)
class Objects:
    """What a cluster holds, as it was read."""

    pods: list[JsonObject]
    claims: list[JsonObject]
    pod_groups: list[JsonObject]
    events: list[JsonObject]
    slices: list[JsonObject]


@dataclass(frozen=True, slots=True)
class State:
    """What the objects come to."""

    pods: dict[str, JsonObject]
    claims: dict[str, JsonObject]
    pod_groups: dict[str, JsonObject]
    events: set[tuple[str, str, str, str]]
    """Kind, name, type and reason."""
    counts: JsonObject


def state_of(objects: Objects, names: Names) -> State:
    """The state in which the objects are."""
    names.meet(objects.claims)
    names.meet(objects.pods)
    pods = {names.key(pod): _pod(pod, names) for pod in objects.pods}
    return State(
        pods=pods,
        claims={names.key(claim): _claim(claim, names) for claim in objects.claims},
        pod_groups={names.key(group): _group(group, names) for group in objects.pod_groups},
        events={_event(event, names) for event in objects.events},
        counts=_counts(pods),
    )


def _counts(pods: dict[str, JsonObject]) -> JsonObject:
    nodes = [pod["nodeName"] for pod in pods.values() if pod["nodeName"]]
    by_node = {node: nodes.count(node) for node in nodes}
    return {"bound": len(nodes), "pending": len(pods) - len(nodes), "byNode": by_node}


def _pod(pod: JsonObject, names: Names) -> JsonObject:
    status = pod.get("status", {})
    extended = status.get("extendedResourceClaimStatus")
    return _present(
        nodeName=pod["spec"].get("nodeName", ""),
        phase=status.get("phase", ""),
        deleting="deletionTimestamp" in pod["metadata"],
        scheduled=_condition(status, "PodScheduled"),
        disruption=_condition(status, "DisruptionTarget"),
        resourceClaimStatuses=_claim_statuses(status, names),
        extendedResourceClaimStatus=_extended(extended, names) if extended else None,
        nodeAllocatableResourceClaimStatuses=status.get("nodeAllocatableResourceClaimStatuses"),
    )


def _group(group: JsonObject, names: Names) -> JsonObject:
    status = group.get("status", {})
    return _present(
        deleting="deletionTimestamp" in group["metadata"],
        scheduled=_condition(status, "PodGroupScheduled"),
        resourceClaimStatuses=_claim_statuses(status, names),
    )


def _claim_statuses(status: JsonObject, names: Names) -> dict[str, str]:
    return {
        entry["name"]: names.placeholder(entry.get("resourceClaimName", ""))
        for entry in status.get("resourceClaimStatuses") or ()
    }


def _extended(status: JsonObject, names: Names) -> JsonObject:
    return {
        "resourceClaimName": names.placeholder(status["resourceClaimName"]),
        "requestMappings": sorted(status["requestMappings"], key=lambda each: sorted(each.items())),
    }


def _condition(status: JsonObject, kind: str) -> JsonObject | None:
    for condition in status.get("conditions") or ():
        if condition["type"] == kind:
            return {name: condition.get(name, "") for name in ("status", "reason", "message")}
    return None


def _claim(claim: JsonObject, names: Names) -> JsonObject:
    metadata, status = claim["metadata"], claim.get("status", {})
    users = status.get("reservedFor") or ()
    found = {
        "deleting": "deletionTimestamp" in metadata,
        "annotations": metadata.get("annotations", {}),
        "labels": metadata.get("labels", {}),
        "finalizers": sorted(metadata.get("finalizers", ())),
        "owners": [
            {name: owner[name] for name in ("kind", "name", "controller") if name in owner}
            for owner in metadata.get("ownerReferences", ())
        ],
        "allocation": _allocation(status.get("allocation")),
        "reservedFor": sorted(
            f"{u.get('apiGroup', '')}/{u['resource']}/{u['name']}" for u in users
        ),
    }
    if metadata.get("generateName"):
        found["spec"] = claim["spec"]
    if devices := status.get("devices"):
        found["devices"] = [_device_status(device) for device in devices]
    return found


def _allocation(allocation: JsonObject | None) -> JsonObject | None:
    if allocation is None:
        return None
    devices = allocation.get("devices", {})
    return {
        "results": [
            {name: value for name, value in entry.items() if value}
            for entry in devices.get("results") or ()
        ],
        "config": devices.get("config") or [],
        "nodeSelector": allocation.get("nodeSelector"),
        "timestamp": "allocationTimestamp" in allocation,
    }


def _device_status(device: JsonObject) -> JsonObject:
    conditions = {each["type"]: each["status"] for each in device.get("conditions") or ()}
    name = f"{device['driver']}/{device['pool']}/{device['device']}"
    return {"device": name, "conditions": conditions}


def _event(event: JsonObject, names: Names) -> tuple[str, str, str, str]:
    about = event["involvedObject"]
    return about["kind"], names.placeholder(about["name"]), event["type"], event["reason"]


def _present(**fields: Any) -> JsonObject:
    """The fields that are not None and not empty collections."""
    return {name: value for name, value in fields.items() if value not in (None, [], {})}
