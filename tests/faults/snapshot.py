"""What the API shows of a cluster at one moment: the objects that the invariants are about, all of the same revision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from apiserver.e2e.writing import Connection

Object = dict[str, Any]
DeviceKey = tuple[str, str, str]
"""Driver, pool and device."""

PATHS: Final = {
    "pods": "/api/v1/pods",
    "claims": "/apis/resource.k8s.io/v1/resourceclaims",
    "nodes": "/api/v1/nodes",
    "slices": "/apis/resource.k8s.io/v1/resourceslices",
    "jobs": "/apis/batch/v1/jobs",
    "deployments": "/apis/apps/v1/deployments",
    "sets": "/apis/apps/v1/statefulsets",
    "templates": "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "namespaces": "/api/v1/namespaces",
    "volumes": "/api/v1/persistentvolumes",
    "volume_claims": "/api/v1/persistentvolumeclaims",
    "workloads": "/apis/kueue.x-k8s.io/v1beta2/workloads",
    "cluster_queues": "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
    "local_queues": "/apis/kueue.x-k8s.io/v1beta2/localqueues",
    "cohorts": "/apis/kueue.x-k8s.io/v1beta2/cohorts",
}
_FINISHED: Final = ("Succeeded", "Failed")
_SUFFIXES: Final = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Objects of one moment. Kinds that nobody asked for are empty."""

    pods: Sequence[Object] = ()
    claims: Sequence[Object] = ()
    nodes: Sequence[Object] = ()
    slices: Sequence[Object] = ()
    jobs: Sequence[Object] = ()
    deployments: Sequence[Object] = ()
    sets: Sequence[Object] = ()
    """StatefulSets."""
    templates: Sequence[Object] = ()
    namespaces: Sequence[Object] = ()
    volumes: Sequence[Object] = ()
    volume_claims: Sequence[Object] = ()
    workloads: Sequence[Object] = ()
    """What queues admit."""
    cluster_queues: Sequence[Object] = ()
    local_queues: Sequence[Object] = ()
    cohorts: Sequence[Object] = ()
    version: int = 0

    def versions(self) -> dict[str, int]:
        """Of everything, by uid."""
        every = (item["metadata"] for kind in PATHS for item in getattr(self, kind))
        return {meta["uid"]: int(meta["resourceVersion"]) for meta in every}

    def pods_by_uid(self) -> dict[str, Object]:
        return {pod["metadata"]["uid"]: pod for pod in self.pods}

    def claims_by_name(self) -> dict[tuple[str, str], Object]:
        return {(c["metadata"]["namespace"], c["metadata"]["name"]): c for c in self.claims}


def take(connection: Connection, kinds: Sequence[str]) -> Snapshot:
    """Read kinds of objects, all as they are at the revision of the first list."""
    found: dict[str, Sequence[Object]] = {}
    version = ""
    for kind in kinds:
        exactly = f"?resourceVersion={version}&resourceVersionMatch=Exact" if version else ""
        status, page = connection.request("GET", f"{PATHS[kind]}{exactly}")
        assert status == 200, page
        version = version or page["metadata"]["resourceVersion"]
        found[kind] = page["items"]
    return Snapshot(**found, version=int(version))


def is_finished(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in _FINISHED


def has_condition(item: Object, kind: str) -> bool:
    conditions = item.get("status", {}).get("conditions") or ()
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def name_of(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def results_of(claim: Object) -> list[Object]:
    """The devices that a claim has."""
    allocation = claim.get("status", {}).get("allocation") or {}
    results: list[Object] = allocation.get("devices", {}).get("results", [])
    return results


def device_of(result: Object) -> DeviceKey:
    return result["driver"], result["pool"], result["device"]


def consumers_of(claim: Object) -> list[Object]:
    consumers: list[Object] = claim.get("status", {}).get("reservedFor") or []
    return consumers


def owning_pod(claim: Object) -> Object | None:
    """The pod for which a claim was made, as the claim names it."""
    for owner in claim["metadata"].get("ownerReferences", ()):
        if owner.get("controller") and owner["kind"] == "Pod":
            found: Object = owner
            return found
    return None


def claim_names(pod: Object) -> Iterator[tuple[str, str | None]]:
    """Of each entry of a pod the claim that stands for it, None where there is none yet. Last comes that of extended resources."""
    status = pod.get("status", {})
    made = {s["name"]: s.get("resourceClaimName") for s in status.get("resourceClaimStatuses", ())}
    for entry in pod["spec"].get("resourceClaims", ()):
        name = entry.get("resourceClaimName") or made.get(entry["name"])
        yield entry["name"], name
    extended = status.get("extendedResourceClaimStatus")
    if extended is not None:
        yield "extended resources", extended["resourceClaimName"]


def amount(text: str | int) -> Fraction:
    """A quantity as a number."""
    text = str(text)
    suffix = text.lstrip("+-0123456789.")
    if suffix[:1] in ("e", "E") and suffix[1:]:
        return Fraction(text)
    return Fraction(text.removesuffix(suffix)) * _SUFFIXES[suffix]
