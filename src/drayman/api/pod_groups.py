"""The parts of a PodGroup that its claims need: which ones its pods share, and which ones were made for it.

An entry of a group has the fields of an entry of a pod, and so has what its status says of it: a pod's entry stands for the group's
claim where the two are equal.
"""

from __future__ import annotations

from drayman.api.core import PodResourceClaim, PodResourceClaimStatus
from drayman.api.meta import ObjectMeta
from drayman.api.struct import ApiStruct, always


class PodGroupSpec(ApiStruct):
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodGroupStatus(ApiStruct):
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(ApiStruct):
    """Pods that are scheduled together."""

    api_version: str = always("scheduling.k8s.io/v1alpha2")
    kind: str = always("PodGroup")
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
