"""The identity of a pod of a stateful set: its ordinal, and the names, labels and volumes that follow from it."""

from __future__ import annotations

from typing import Final

from drayman.api import codec
from drayman.api.struct import Json
from drayman.api.workloads import StatefulSet
from drayman.workloads.pod_bodies import owner_reference, pod_body
from drayman.workloads.revisions import POD_LABEL

NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"


def ordinal_of(set_name: str, pod_name: str) -> int | None:
    """The ordinal in a pod's name; None for a pod that is not of the set."""
    prefix, _, digits = pod_name.rpartition("-")
    if prefix != set_name or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits) if str(int(digits)) == digits else None


def ordinals_of(stateful_set: StatefulSet) -> range:
    """The places that pods are to have."""
    start = stateful_set.spec.ordinals.start
    return range(start, start + stateful_set.spec.replicas)


def pod_name(stateful_set: StatefulSet, ordinal: int) -> str:
    return f"{stateful_set.metadata.name}-{ordinal}"


def pod_of(
    stateful_set: StatefulSet, template: dict[str, Json], revision: str, ordinal: int
) -> dict[str, Json]:
    """A pod with its identity, from the template of a revision."""
    name = pod_name(stateful_set, ordinal)
    pod = pod_body(stateful_set, template, name=name)
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
    return {name: f"{name}-{pod_name(stateful_set, ordinal)}" for name in names}


def claim_bodies(stateful_set: StatefulSet, ordinal: int) -> list[dict[str, Json]]:
    """The volume claims of a pod, to be made before it."""
    bodies = []
    names = claim_names(stateful_set, ordinal)
    selected = stateful_set.spec.selector.match_labels
    for template in stateful_set.spec.volume_claim_templates:
        given = template["metadata"]
        metadata: dict[str, Json] = {
            "name": names[given["name"]],
            "namespace": stateful_set.metadata.namespace,
            "labels": {**(given.get("labels") or {}), **selected},
            "annotations": dict(given.get("annotations") or {}),
        }
        if stateful_set.spec.persistent_volume_claim_retention_policy.when_deleted == "Delete":
            metadata["ownerReferences"] = [codec.to_dict(owner_reference(stateful_set))]
        bodies.append({"metadata": metadata, "spec": template.get("spec") or {}})
    return bodies
