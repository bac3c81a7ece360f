"""CertificateSigningRequests: what approvers, signers and those who ask read and write of them."""

from __future__ import annotations

from typing import Final

from msgspec import field

from drayman.api.meta import ObjectMeta
from drayman.api.struct import ApiStruct, Int32, Timestamp, always

APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"
"""The conditions that say how a request was decided, and that its signer refused it."""


class SigningRequestCondition(ApiStruct, merge_key=("type",)):
    type_: str = field(name="type", default="")
    status: str = ""
    reason: str = ""
    message: str = ""
    last_update_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None


class CertificateSigningRequestSpec(ApiStruct):
    request: str = ""
    """PEM, in base64."""
    signer_name: str = ""
    expiration_seconds: Int32 | None = None
    usages: tuple[str, ...] = ()
    username: str = ""
    """Who asks. The server says so, not the request."""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


class CertificateSigningRequestStatus(ApiStruct):
    conditions: tuple[SigningRequestCondition, ...] = ()
    certificate: str = ""
    """PEM, in base64."""

    def condition(self, kind: str) -> SigningRequestCondition | None:
        return next((each for each in self.conditions if each.type_ == kind), None)


class CertificateSigningRequest(ApiStruct):
    api_version: str = always("certificates.k8s.io/v1")
    kind: str = always("CertificateSigningRequest")
    metadata: ObjectMeta = ObjectMeta()
    spec: CertificateSigningRequestSpec = CertificateSigningRequestSpec()
    status: CertificateSigningRequestStatus = CertificateSigningRequestStatus()
