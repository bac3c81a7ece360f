"""For whom a claim was made."""

from __future__ import annotations

import pytest

from drayman.api.claim_generation import is_made_for, owning_group, owning_pod
from drayman.api.core import Pod, PodSchedulingGroup, PodSpec
from drayman.api.meta import ObjectMeta, OwnerReference
from drayman.api.resource import ResourceClaim

LONE = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="pod"))
GROUPED = Pod(
    metadata=LONE.metadata,
    spec=PodSpec(scheduling_group=PodSchedulingGroup(pod_group_name="gang")),
)
POD = OwnerReference(api_version="v1", kind="Pod", name="p", uid="pod", controller=True)
GANG = OwnerReference(
    api_version="scheduling.k8s.io/v1alpha2",
    kind="PodGroup",
    name="gang",
    uid="group",
    controller=True,
)
CASES = {
    # owner: for a pod without a group, for one in the group `gang`
    "nobody": (None, False, False),
    "the pod": (POD, True, True),
    "an earlier pod of that name": (
        OwnerReference(api_version="v1", kind="Pod", name="p", uid="old", controller=True),
        False,
        False,
    ),
    "the pod, which does not control it": (
        OwnerReference(api_version="v1", kind="Pod", name="p", uid="pod"),
        False,
        False,
    ),
    "the group": (GANG, False, True),
    "another group": (
        OwnerReference(
            api_version=GANG.api_version, kind="PodGroup", name="band", uid="g", controller=True
        ),
        False,
        False,
    ),
    "a group of another API": (
        OwnerReference(
            api_version="scheduling.x-k8s.io/v1alpha1",
            kind="PodGroup",
            name="gang",
            uid="g",
            controller=True,
        ),
        False,
        False,
    ),
}


@pytest.mark.parametrize(("owner", "lone", "grouped"), CASES.values(), ids=CASES)
def test_for_whom_a_claim_was_made(owner: OwnerReference | None, lone: bool, grouped: bool) -> None:
    """A claim is a pod's own if that very pod controls it, or the group that the pod says it is in."""
    owners = () if owner is None else (owner,)
    claim = ResourceClaim(metadata=ObjectMeta(namespace="ns", owner_references=owners))
    assert is_made_for(claim, LONE) is lone
    assert is_made_for(claim, GROUPED) is grouped


def test_owners() -> None:
    """A claim is made for a pod or for a group, never for both."""
    own = ResourceClaim(metadata=ObjectMeta(owner_references=(POD,)))
    shared = ResourceClaim(metadata=ObjectMeta(owner_references=(GANG,)))
    assert (owning_pod(own), owning_group(own)) == (POD, None)
    assert (owning_pod(shared), owning_group(shared)) == (None, GANG)
