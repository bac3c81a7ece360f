"""Claims that are made from templates: their names and owners, and what each was made for.

The maker of a claim draws the end of its name itself, from the alphabet that Kubernetes uses, so that the claim and what refers to it can
be written together.
"""

from __future__ import annotations

from typing import Final

from drayman.api.core import Pod, PodResourceClaim
from drayman.api.meta import ObjectMeta, OwnerReference, controller_of
from drayman.api.pod_groups import GROUP_API, PodGroup
from drayman.api.pods import group_key
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation: for which entry of its pod, or of its pod group, a claim was made."""
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes generated names of: no vowels and nothing that looks like one, so no words."""
SUFFIX_LENGTH: Final = 5
_LONGEST_BASE: Final = 57


def make_claim(
    user: Pod | PodGroup, entry: PodResourceClaim, template: ResourceClaimTemplate, suffix: str
) -> ResourceClaim:
    """The claim of a pod, or of a group of pods, for one of its entries."""
    base = generated_base(user.metadata.name, entry.name)
    owner = OwnerReference(
        api_version=user.api_version,
        kind=user.kind,
        name=user.metadata.name,
        uid=user.metadata.uid,
        controller=True,
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            name=base + suffix,
            generate_name=base,
            namespace=user.metadata.namespace,
            labels=template.spec.metadata.labels,
            annotations=template.spec.metadata.annotations | {POD_CLAIM_NAME: entry.name},
            owner_references=(owner,),
        ),
        spec=template.spec.spec,
    )


def generated_base(pod: str, entry: str) -> str:
    """The fixed part of a generated name. Long names are cut in proportion and, as upstream does, end without a hyphen."""
    base = f"{pod}-{entry}-"
    if len(base) <= _LONGEST_BASE:
        return base
    length = len(base)
    return f"{pod[: len(pod) * _LONGEST_BASE // length]}-{entry[: len(entry) * _LONGEST_BASE // length]}"


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that a claim was made for."""
    owner = controller_of(claim.metadata)
    is_pod = owner is not None and owner.api_version == "v1" and owner.kind == "Pod"
    return owner if is_pod else None


def owning_group(claim: ResourceClaim) -> OwnerReference | None:
    """The group of pods that a claim was made for."""
    owner = controller_of(claim.metadata)
    is_group = (
        owner is not None
        and owner.kind == "PodGroup"
        and owner.api_version.partition("/")[0] == GROUP_API
    )
    return owner if is_group else None


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was generated for a pod, or for the group that the pod is in."""
    owner = controller_of(claim.metadata)
    if owner is None:
        return False
    if owner.uid == pod.metadata.uid:
        return True
    group = group_key(pod)
    return group is not None and owning_group(claim) is not None and owner.name == group[1]
