"""The `token` subresource of service accounts: TokenRequest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from drayman.api.struct import Json
from drayman.api.times import timestamp
from drayman.api.validation import ErrorKind, FieldError
from drayman.apiserver.protocol.errors import Subject, conflict, invalid, not_found
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.security.tokens import ISSUER, BoundObject, ServiceAccountClaims, TokenIssuer
from drayman.apiserver.served.resources import GroupVersionKind, Subresource
from drayman.apiserver.served.strategy import Object

KIND: Final = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
SHORTEST: Final = 600
LONGEST: Final = 1 << 32
DEFAULT: Final = 3600
_BINDABLE: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@dataclass(frozen=True, slots=True)
class TokenRequests:
    """Issues tokens for service accounts."""

    issuer: TokenIssuer

    def subresource(self) -> Subresource:
        return Subresource(
            name="token", verbs=("create",), kind=KIND, handlers={"create": self.create}
        )

    async def create(self, call: Call) -> Result:
        body = dict(call.body or {})
        spec = dict(body.get("spec") or {})
        account = call.core.objects.get("serviceaccounts", call.namespace, call.name)
        if account is None:
            raise not_found(call.subject)
        seconds = spec.setdefault("expirationSeconds", DEFAULT)
        _refuse_lifetime(seconds)
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        claims = ServiceAccountClaims(
            namespace=call.namespace,
            name=call.name,
            uid=account["metadata"]["uid"],
            token_id=call.core.ids.uid(),
            audiences=tuple(spec["audiences"]),
            bound=_bound(call, spec.get("boundObjectRef")),
        )
        token, expires = self.issuer.issue(
            claims, call.core.clock.now(), timedelta(seconds=seconds)
        )
        metadata: Object = {"name": call.name, "namespace": call.namespace}
        metadata["creationTimestamp"] = timestamp(call.core.clock.now())
        value = {
            "kind": KIND.kind,
            "apiVersion": KIND.api_version,
            "metadata": metadata,
            "spec": spec,
            "status": {"token": token, "expirationTimestamp": timestamp(expires)},
        }
        return Result(value=value, status=201)


def _refuse_lifetime(seconds: Json) -> None:
    if seconds < SHORTEST:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST:
        detail = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    error = FieldError(ErrorKind.INVALID, "spec.expirationSeconds", seconds, detail)
    raise invalid(Subject("TokenRequest", "authentication.k8s.io"), [error])


def _bound(call: Call, reference: Json) -> BoundObject | None:
    """The object that the token is bound to. It must exist, and be the one that is meant."""
    if reference is None:
        return None
    kind, name = reference.get("kind", ""), reference.get("name", "")
    storage = _BINDABLE.get(kind)
    if storage is None:
        error = FieldError(
            ErrorKind.INVALID, "spec.boundObjectRef", kind, "cannot bind token for serviceaccount"
        )
        raise invalid(Subject("TokenRequest", "authentication.k8s.io"), [error])
    namespace = "" if kind == "Node" else call.namespace
    found = call.core.objects.get(storage, namespace, name)
    if found is None:
        raise not_found(Subject(storage, "", name))
    uid = found["metadata"]["uid"]
    if reference.get("uid") not in (None, "", uid):
        why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record"
        raise conflict(Subject(storage, "", name), f"{why} ({uid})")
    return BoundObject(kind, name, uid)
