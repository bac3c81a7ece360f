"""Claims for volumes that live as long as their pod."""

from __future__ import annotations

from collections.abc import Iterator

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.struct import Json
from drayman.api.volume_binding import ephemeral_claim
from drayman.workloads.pod_bodies import owner_reference


def claims_for(pod: Pod) -> Iterator[dict[str, Json]]:
    """The claims that a pod is to have to itself. They go with the pod, which owns them."""
    for volume in pod.spec.volumes:
        if volume.ephemeral is None:
            continue
        template = volume.ephemeral.volume_claim_template
        given = template.get("metadata") or {}
        metadata = {
            "name": ephemeral_claim(pod.metadata.name, volume.name),
            "namespace": pod.metadata.namespace,
            "labels": given.get("labels") or {},
            "annotations": given.get("annotations") or {},
            "ownerReferences": [codec.to_dict(owner_reference(pod))],
        }
        yield {"metadata": metadata, "spec": template.get("spec") or {}}
