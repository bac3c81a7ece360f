"""What must hold of volumes and the claims for them. Where nobody asked for them there is nothing to say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from faults.snapshot import Object, Snapshot, is_finished, name_of

_COMPLETED: Final = "pv.kubernetes.io/bind-completed"


def broken_volumes(now: Snapshot) -> Iterator[str]:
    """What may never be seen: a claim and a volume that contradict each other, a pod on a node that does not reach its volume."""
    volumes = {volume["metadata"]["name"]: volume for volume in now.volumes}
    owners: dict[str, str] = {}
    for claim in now.volume_claims:
        name = _volume_of(claim)
        if not name or claim["metadata"].get("deletionTimestamp"):
            continue
        if name in owners:
            yield f"volume {name} has two claims: {owners[name]} and {name_of(claim)}"
        owners[name] = name_of(claim)
        reference = volumes[name]["spec"].get("claimRef", {}) if name in volumes else {}
        if reference.get("uid") != claim["metadata"]["uid"]:
            yield f"volume claim {name_of(claim)} has volume {name}, which has {reference or 'none'}"
    claims = {name_of(claim): claim for claim in now.volume_claims}
    nodes = {node["metadata"]["name"]: node for node in now.nodes}
    for pod in now.pods if now.volumes else ():
        yield from _out_of_reach(pod, claims, volumes, nodes)


def leaked_volumes(now: Snapshot) -> Iterator[str]:
    """What is left over: volumes that were made for claims that are gone, claims of pods that are."""
    claims = {claim["metadata"]["uid"] for claim in now.volume_claims}
    pods = {pod["metadata"]["uid"] for pod in now.pods}
    for volume in now.volumes:
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid") and reference["uid"] not in claims:
            yield f"volume {volume['metadata']['name']} is left of claim {reference.get('name')}"
    for claim in now.volume_claims:
        for owner in claim["metadata"].get("ownerReferences", ()):
            if owner["kind"] == "Pod" and owner["uid"] not in pods:
                yield f"volume claim {name_of(claim)} is left of pod {owner['name']}"


def _volume_of(claim: Object) -> str:
    completed = _COMPLETED in claim["metadata"].get("annotations", {})
    return str(claim["spec"].get("volumeName", "")) if completed else ""


def _out_of_reach(
    pod: Object, claims: dict[str, Object], volumes: dict[str, Object], nodes: dict[str, Object]
) -> Iterator[str]:
    node = nodes.get(pod["spec"].get("nodeName", ""))
    if node is None or is_finished(pod) or pod["metadata"].get("deletionTimestamp"):
        return
    for entry in pod["spec"].get("volumes", ()):
        if "ephemeral" not in entry:
            continue
        claim = claims.get(f"{name_of(pod)}-{entry['name']}")
        volume = volumes.get(_volume_of(claim)) if claim is not None else None
        if volume is None:
            yield f"pod {name_of(pod)} is on a node without its volume {entry['name']}"
        elif not _reaches(volume, node):
            yield f"pod {name_of(pod)} cannot reach its volume {entry['name']} from its node"


def _reaches(volume: Object, node: Object) -> bool:
    affinity = volume["spec"].get("nodeAffinity")
    if affinity is None:
        return True
    labels = node["metadata"].get("labels", {})
    return any(
        all(labels.get(e["key"]) in e["values"] for e in term["matchExpressions"])
        for term in affinity["required"]["nodeSelectorTerms"]
    )
