"""Certificates are approved and signed by users who may do so for their signer, with the texts of Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass

from drayman.api.syntax.json_scanner import quoted
from drayman.apiserver.kinds.certificates import RESOURCE
from drayman.apiserver.kinds.reading import at, text_at
from drayman.apiserver.protocol.access import Attributes, Authorizer, User
from drayman.apiserver.protocol.errors import forbidden
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted


@dataclass(frozen=True, slots=True)
class SignerPermissions(AdmissionPlugin):
    """Requires `approve` or `sign` on a signer of whoever decides about a request to it."""

    authorizer: Authorizer

    def validate(self, write: Admitted) -> None:
        if write.resource.storage_name != RESOURCE or write.old is None or write.new is None:
            return
        if write.subresource == "approval":
            verb = "approve"
        elif write.subresource == "status" and _signs(write.new, write.old):
            verb = "sign"
        else:
            return
        # The signer of a request cannot be changed, but an attempt must not decide whose right counts.
        signer = text_at(write.old, "spec", "signerName")
        if not self._may(write.context.user, verb, signer):
            why = f"user not permitted to {verb} requests with signerName {quoted(signer)}"
            raise forbidden(write.resource.subject(write.name), why)

    def _may(self, user: User, verb: str, signer: str) -> bool:
        domain = signer.partition("/")[0]
        return any(
            self.authorizer.authorize(
                user, Attributes(verb, "certificates.k8s.io", "*", "signers", name=name)
            ).allowed
            for name in (signer, f"{domain}/*")
        )


def _signs(new: Object, old: Object) -> bool:
    """Whether the part that only a signer writes is changed."""
    return any(
        (at(new, "status", name) or None) != (at(old, "status", name) or None)
        for name in ("certificate", "conditions")
    )
