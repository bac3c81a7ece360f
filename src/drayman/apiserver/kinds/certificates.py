"""CertificateSigningRequests: the request itself never changes; approvers and signers write different parts of the status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from drayman.api import formats
from drayman.api.certificates import APPROVED, DENIED, FAILED
from drayman.api.validation.field_errors import FieldError, forbidden
from drayman.api.validation.metadata import check_metadata_update
from drayman.apiserver.kinds.certificate_checks import (
    CERTIFICATE,
    CONDITIONS,
    FINAL,
    bytes_at,
    check,
    of_type,
)
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, member, text_at
from drayman.apiserver.kinds.rules import Errors, Rules, metadata_of
from drayman.apiserver.protocol.access import user_info
from drayman.apiserver.protocol.errors import forbidden as refused
from drayman.apiserver.served.strategy import Context, Object, restore
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.workloads.certificates.signers import CLIENT, SIGNERS
from drayman.workloads.certificates.texts import asks_for_masters

RESOURCE: Final = "certificatesigningrequests.certificates.k8s.io"


@dataclass(frozen=True, kw_only=True)
class SigningRequestRules(Rules):
    """A request as a whole, which changes only through its subresources."""

    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("spec",), ("status",))
    may_decide: ClassVar[bool] = False
    may_sign: ClassVar[bool] = False

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        obj.pop("status", None)
        spec = member(obj, "spec")
        for name in ("username", "uid", "groups", "extra"):
            spec.pop(name, None)
        spec.update(user_info(context.user))

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "spec")
        restore(new, old, "status")

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        return [
            *self._metadata_errors(new),
            *check(new, old),
            *self._kept_decisions(new, old),
            *self._kept_certificate(new, old),
            *check_metadata_update(metadata_of(new), metadata_of(old)),
        ]

    def _kept_decisions(self, new: Object, old: Object) -> Errors:
        for kind in FINAL:
            before, after = of_type(old, kind), of_type(new, kind)
            if len(after) < len(before):
                detail = f'updates may not remove a condition of type "{kind}"'
                yield forbidden(CONDITIONS, detail)
            elif kind != FAILED and not self.may_decide and after != before:
                verb = "add" if len(after) > len(before) else "modify"
                detail = f'updates may not {verb} a condition of type "{kind}"'
                yield forbidden(CONDITIONS, detail)

    def _kept_certificate(self, new: Object, old: Object) -> Errors:
        before, after = (bytes_at(each, "status", "certificate") for each in (old, new))
        if before == after:
            return
        if not self.may_sign:
            yield forbidden(CERTIFICATE, "updates may not set certificate content")
        elif before:
            yield forbidden(CERTIFICATE, "updates may not modify existing certificate content")


@dataclass(frozen=True, kw_only=True)
class ApprovalRules(SigningRequestRules):
    """The subresource for approval or denial."""

    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("spec",), ("status", "certificate"))
    may_decide: ClassVar[bool] = True

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        conditions = items_at(new, "status", "conditions")
        restore(new, old, "spec")
        status = {**map_at(old, "status")}
        status.pop("conditions", None)
        if conditions:
            status["conditions"] = conditions
        new["status"] = status
        _date_conditions(new, old, context.now)


@dataclass(frozen=True, kw_only=True)
class SignatureRules(SigningRequestRules):
    """The subresource in which the signer puts the certificate, or says why there is none. The decision stays as it is."""

    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("spec",), ("status", "conditions"))
    may_sign: ClassVar[bool] = True

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "spec")
        for kind in (APPROVED, DENIED):
            before, after = of_type(old, kind), of_type(new, kind)
            if len(before) == len(after):
                for was, now in zip(before, after, strict=True):
                    now.clear()
                    now.update(was)
        _date_conditions(new, old, context.now)


def _date_conditions(new: Object, old: Object, now: str) -> None:
    """Fill in when a condition was written and since when it holds, if not given."""
    since: dict[tuple[str, str], str] = {}
    for was in items_at(old, "status", "conditions"):
        if time := text_at(was, "lastTransitionTime"):
            since.setdefault((text_at(was, "type"), text_at(was, "status")), time)
    for _, condition in each_at(new, "", "status", "conditions"):
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now
        if not condition.get("lastTransitionTime"):
            same = (text_at(condition, "type"), text_at(condition, "status"))
            condition["lastTransitionTime"] = since.get(same, now)


def condition_of(obj: Object) -> str:
    """The state of a request, in words."""
    decided = next((word for word in (DENIED, APPROVED) if of_type(obj, word)), "Pending")
    failed = (FAILED,) if of_type(obj, FAILED) else ()
    issued = ("Issued",) if text_at(obj, "status", "certificate") else ()
    return ",".join((decided, *failed, *issued))


def is_for_nobody(obj: Object) -> bool:
    """Whether no signer that runs here is meant."""
    return text_at(obj, "spec", "signerName") not in SIGNERS


class NoMasters(AdmissionPlugin):
    """Refuses requests for certificates that would allow their holder everything."""

    def validate(self, write: Admitted) -> None:
        is_new = write.operation == "CREATE" and not write.subresource
        if not is_new or write.resource.storage_name != RESOURCE or write.new is None:
            return
        if text_at(write.new, "spec", "signerName") != CLIENT:
            return
        if asks_for_masters(bytes_at(write.new, "spec", "request")):
            why = f"use of {CLIENT} signer with system:masters group is not allowed"
            raise refused(write.resource.subject(write.name), why)


def _any_name(_name: str) -> formats.Problems:
    return ()


SIGNING_REQUEST: Final = SigningRequestRules(
    namespaced=False, name_problems=_any_name, checks=lambda obj, _context: check(obj, None)
)
APPROVAL: Final = ApprovalRules(namespaced=False, name_problems=_any_name)
STATUS: Final = SignatureRules(namespaced=False, name_problems=_any_name)
