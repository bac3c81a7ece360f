"""Decides about the certificates that nodes ask for themselves. What others ask for waits for `kubectl certificate approve` or `deny`.

A node needs the right to have its requests decided, as in Kubernetes: to create the part `selfnodeserver` or `selfnodeclient` of
requests. Without it they wait, too.
"""

from __future__ import annotations

from typing import Final

from drayman.api import codec
from drayman.api.certificates import (
    APPROVED,
    DENIED,
    CertificateSigningRequest,
    CertificateSigningRequestSpec,
    SigningRequestCondition,
)
from drayman.api.struct import Json
from drayman.cluster.errors import NotFoundError
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import NODES, SIGNING_REQUESTS, JsonObject, generic
from drayman.controllers.workloads.reconciling import Key, Reconciler
from drayman.workloads.certificates.asking import RequestError, asked
from drayman.workloads.certificates.signers import (
    LEAVE,
    Approval,
    Decision,
    decide,
    requester,
    right_needed,
)

_REVIEWS: Final = generic(
    "authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_NODES: Final = NODES.as_values()
_CONDITIONS: Final = {
    Approval.APPROVE: (APPROVED, "AutoApproved"),
    Approval.DENY: (DENIED, "AutoDenied"),
}


class NodeCertificateApprover(Reconciler[CertificateSigningRequest]):
    """Approves what is a node's own, and denies it the rest."""

    resource = SIGNING_REQUESTS
    component = "certificate-approver"
    workers = 1

    async def reconcile(self, key: Key) -> None:
        request = self.find(key)
        if request is None or _is_decided(request):
            return
        decision = await self._decide(request.spec)
        if decision.approval is not Approval.LEAVE:
            await self._write(request, decision)

    async def _decide(self, spec: CertificateSigningRequestSpec) -> Decision:
        right, node = right_needed(spec), requester(spec)
        if not right or node is None or not await self._has_right(spec, right):
            return LEAVE
        try:
            return decide(spec, asked(spec.request), await self._addresses(node))
        except RequestError as error:
            return Decision(Approval.DENY, str(error))

    async def _has_right(self, spec: CertificateSigningRequestSpec, part: str) -> bool:
        attributes: JsonObject = {
            "group": SIGNING_REQUESTS.group,
            "resource": SIGNING_REQUESTS.plural,
            "subresource": part,
            "verb": "create",
        }
        asking: JsonObject = {
            "user": spec.username,
            "uid": spec.uid,
            "groups": list(spec.groups),
            "extra": {name: list(values) for name, values in spec.extra.items()},
            "resourceAttributes": attributes,
        }
        review = await self.client.create(_REVIEWS, {"spec": asking})
        return bool((review.get("status") or {}).get("allowed"))

    async def _addresses(self, node: str) -> list[str]:
        """Those of a node, from the server itself: it reported them a moment before it asked."""
        try:
            found = await self.client.get(_NODES, node)
        except NotFoundError:
            return []
        return [each["address"] for each in (found.get("status") or {}).get("addresses") or ()]

    async def _write(self, request: CertificateSigningRequest, decision: Decision) -> None:
        kind, reason = _CONDITIONS[decision.approval]
        condition = SigningRequestCondition(
            type_=kind, status="True", reason=reason, message=decision.message
        )
        conditions: list[Json] = [
            codec.to_dict(each) for each in (*request.status.conditions, condition)
        ]
        metadata = request.metadata
        change = json_patch(
            [
                {
                    "op": "replace",
                    "path": "/metadata/resourceVersion",
                    "value": metadata.resource_version,
                },
                {"op": "add", "path": "/status", "value": {"conditions": conditions}},
            ]
        )
        self.wrote(
            await self.client.patch(SIGNING_REQUESTS, metadata.name, change, subresource="approval")
        )


def _is_decided(request: CertificateSigningRequest) -> bool:
    status = request.status
    return any(status.condition(kind) is not None for kind in (APPROVED, DENIED))
