"""Who may use a node's own API: holders of certificates of the cluster's authority, if the cluster allows it.

That authority also signs for users and other nodes. So each is asked about, as kubelets do: for the right to the node's `proxy`.
"""

from __future__ import annotations

import time
from typing import Final

from drayman.bounded import Bounded
from drayman.cluster.client import Client
from drayman.cluster.resources import JsonObject, generic
from drayman.workloads.certificates.users import CertifiedUser

_REVIEWS: Final = generic(
    "authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_ALLOWED_S: Final = 300.0
_REFUSED_S: Final = 30.0
"""How long an answer counts."""
_REMEMBERED: Final = 256


class Gate:
    """Decides about callers of one node."""

    def __init__(self, client: Client, node: str) -> None:
        self._client = client
        self._node = node
        self._known: Bounded[tuple[CertifiedUser, str], tuple[bool, float]] = Bounded(_REMEMBERED)

    async def lets_in(self, caller: CertifiedUser, verb: str) -> bool:
        """Raises ClusterError if the cluster does not answer."""
        now = time.monotonic()
        known = self._known.get((caller, verb))
        if known is not None and now < known[1]:
            return known[0]
        is_allowed = await self._ask(caller, verb)
        lasts = _ALLOWED_S if is_allowed else _REFUSED_S
        self._known[caller, verb] = (is_allowed, now + lasts)
        return is_allowed

    async def _ask(self, caller: CertifiedUser, verb: str) -> bool:
        user, groups = caller
        attributes: JsonObject = {
            "verb": verb,
            "version": "v1",
            "resource": "nodes",
            "subresource": "proxy",
            "name": self._node,
        }
        spec: JsonObject = {
            "user": user,
            "groups": [*groups, "system:authenticated"],
            "resourceAttributes": attributes,
        }
        review = await self._client.create(_REVIEWS, {"spec": spec})
        return bool((review.get("status") or {}).get("allowed"))
