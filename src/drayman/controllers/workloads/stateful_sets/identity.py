"""Who a pod of a stateful set is: its ordinal, and the names, labels and volumes that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api import codec
from drayman.api.meta import OwnerReference
from drayman.api.struct import Json
from drayman.api.workloads import StatefulSet
from drayman.cluster.resources import JsonObject
from drayman.controllers.workloads.owning_pods import pod_body
from drayman.controllers.workloads.revisions import POD_LABEL

NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"


def ordinal_of(set_name: str, pod_name: str) -> int | None:
    """The ordinal in a pod's name; None for a pod that is not of the set."""
    prefix, _, digits = pod_name.rpartition("-")
    if prefix != set_name or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits) if str(int(digits)) == digits else None


def pod_of(
    stateful_set: StatefulSet,
    owner: OwnerReference,
    template: Mapping[str, Json],
    revision: str,
    ordinal: int,
) -> JsonObject:
    """A pod with its identity."""
    metadata = stateful_set.metadata
    name = f"{metadata.name}-{ordinal}"
    pod = pod_body(dict(template), owner, metadata.namespace, name=name)
    pod["metadata"]["labels"].update(
        {NAME_LABEL: name, INDEX_LABEL: str(ordinal), POD_LABEL: revision}
    )
    spec = pod["spec"]
    spec["hostname"] = name
    if stateful_set.spec.service_name:
        spec["subdomain"] = stateful_set.spec.service_name
    claims = claim_names(stateful_set, ordinal)
    if claims:
        others = [v for v in spec.get("volumes") or () if v.get("name") not in claims]
        own = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
            for volume, claim in claims.items()
        ]
        spec["volumes"] = [*own, *others]
    return pod


def claim_names(stateful_set: StatefulSet, ordinal: int) -> dict[str, str]:
    """The names of a pod's volume claims, by the name of the volume."""
    names = [t["metadata"]["name"] for t in stateful_set.spec.volume_claim_templates]
    return {name: f"{name}-{stateful_set.metadata.name}-{ordinal}" for name in names}


def claim_bodies(
    stateful_set: StatefulSet, owner: OwnerReference, ordinal: int
) -> list[JsonObject]:
    """The volume claims of a pod, to be made before it."""
    bodies = []
    selected = stateful_set.spec.selector.match_labels
    for template in stateful_set.spec.volume_claim_templates:
        given = template["metadata"]
        metadata: JsonObject = {
            "name": f"{given['name']}-{stateful_set.metadata.name}-{ordinal}",
            "namespace": stateful_set.metadata.namespace,
            "labels": {**(given.get("labels") or {}), **selected},
            "annotations": dict(given.get("annotations") or {}),
        }
        if stateful_set.spec.persistent_volume_claim_retention_policy.when_deleted == "Delete":
            metadata["ownerReferences"] = [codec.to_dict(owner)]
        bodies.append({"metadata": metadata, "spec": template.get("spec") or {}})
    return bodies
