"""Claims for volumes that live as long as their pod."""

from __future__ import annotations

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.struct import Json
from drayman.api.volume_binding import ephemeral_claim
from drayman.workloads.pod_bodies import owner_reference


def claim_body(pod: Pod, volume: dict[str, Json]) -> dict[str, Json]:
    """The claim for a volume of a pod, given as the API server has it: whatever the template says reaches the claim."""
    template = volume["ephemeral"]["volumeClaimTemplate"]
    given = template.get("metadata") or {}
    metadata = {
        "name": ephemeral_claim(pod.metadata.name, volume["name"]),
        "namespace": pod.metadata.namespace,
        "labels": given.get("labels") or {},
        "annotations": given.get("annotations") or {},
        "ownerReferences": [codec.to_dict(owner_reference(pod))],
    }
    return {"metadata": metadata, "spec": template["spec"]}
