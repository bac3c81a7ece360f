"""Claims that are deleted with their pod, but not by the collector.

The claim controller watches pods too. It releases what a pod held and deletes the claim that was made for it, in one change. If the
collector acted at the same time, one of the two would be refused; and all it could do is mark the claim, which the controller would
still have to release. So for a while it leaves claims alone that the controller will certainly delete.
"""

from __future__ import annotations

from typing import Final

from drayman.apiserver.holdings.exclusive import CLAIMS
from drayman.apiserver.lifecycle.graph import DependentObject
from drayman.cluster.embedded.model import Stored
from drayman.placement.claims import FINALIZER

PODS: Final = "pods"
LEFT_TO_CONTROLLER_S: Final = 5.0
"""For how long. After that a claim is deleted like any object, since there may be no such controller, or it may be far behind."""


def may_be_left(claim: DependentObject, owner: DependentObject) -> bool:
    """Whether an object is a claim in use that has lost its pod, and no other owner."""
    return (
        claim.key.resource == CLAIMS
        and owner.key.resource == PODS
        and not claim.is_deleted
        and FINALIZER in claim.finalizers
        and len(claim.owners) == 1
    )


def is_released_with(stored: Stored, owner: DependentObject) -> bool:
    """Whether only its pod uses a claim. A claim that others use outlives the pod, but is marked at once."""
    users = (stored.value.get("status") or {}).get("reservedFor") or ()
    return all(user.get("uid") == owner.uid for user in users)
