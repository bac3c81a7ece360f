"""Claims that go with their pod by other hands than the collector's.

The claim controller watches pods too. It gives back what a pod held and deletes the claim that was made for it, in one change. If the
collector were at it at the same time, one of the two would be refused; and all it could do is mark the claim, which the controller
then has to let go all the same. So for a while it leaves to the controller what the controller will surely delete.
"""

from __future__ import annotations

from typing import Final

from drayman.apiserver.lifecycle.graph import DependentObject
from drayman.cluster.embedded.model import Stored

CLAIMS: Final = "resourceclaims.resource.k8s.io"
PODS: Final = "pods"
PROTECTION: Final = "resource.kubernetes.io/delete-protection"
LEFT_TO_CONTROLLER_S: Final = 5.0
"""For how long. Then a claim is deleted as anything else, for there may be no such controller, or it is far behind."""


def may_be_left(claim: DependentObject, owner: DependentObject) -> bool:
    """Whether an object is a claim in use that has lost its pod, and no other owner."""
    return (
        claim.key.resource == CLAIMS
        and owner.key.resource == PODS
        and not claim.is_deleted
        and PROTECTION in claim.finalizers
        and len(claim.owners) == 1
    )


def is_released_with(stored: Stored, owner: DependentObject) -> bool:
    """Whether nobody but its pod uses a claim. What others use outlives the pod, but is marked at once."""
    users = (stored.value.get("status") or {}).get("reservedFor") or ()
    return all(user.get("uid") == owner.uid for user in users)
