"""The parts of a PodGroup that its claims need: which ones its pods share, and which ones were made for it.

An entry of a group, and its status, have the same fields as those of a pod. A pod's entry stands for the group's claim where the
two entries are equal.
"""

from __future__ import annotations

from typing import Final

from drayman.api.core import PodResourceClaim, PodResourceClaimStatus
from drayman.api.meta import ObjectMeta
from drayman.api.struct import ApiStruct, always

GROUP_API: Final = "scheduling.k8s.io"


class PodGroupSpec(ApiStruct):
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodGroupStatus(ApiStruct):
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(ApiStruct):
    """Pods that are scheduled together."""

    api_version: str = always(f"{GROUP_API}/v1alpha2")
    kind: str = always("PodGroup")
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
