"""The `token` subresource of service accounts: TokenRequest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from drayman.api.struct import Json
from drayman.api.syntax.json_scanner import quoted
from drayman.api.times import timestamp
from drayman.api.validation import ErrorKind, FieldError
from drayman.apiserver.protocol.errors import (
    Subject,
    bad_request,
    conflict,
    invalid,
    not_found,
)
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.security.tokens import (
    BINDABLE,
    ISSUER,
    BoundObject,
    ServiceAccountClaims,
    TokenIssuer,
)
from drayman.apiserver.served.resources import GroupVersionKind, Subresource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import Admitted

KIND: Final = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
SHORTEST: Final = 600
LONGEST: Final = 1 << 32
DEFAULT: Final = 3600


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
        _admit(call, body)
        spec = dict(body.get("spec") or {})
        _check_address(call, body.get("metadata") or {})
        account = call.core.objects.get("serviceaccounts", call.namespace, call.name)
        if account is None:
            raise not_found(call.subject)
        seconds = spec.setdefault("expirationSeconds", DEFAULT)
        _refuse_lifetime(seconds)
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        bound = _bound(call, spec.get("boundObjectRef"))
        claims = ServiceAccountClaims(
            namespace=call.namespace,
            name=call.name,
            uid=account["metadata"]["uid"],
            token_id=call.core.ids.uid(),
            audiences=tuple(spec["audiences"]),
            bound=bound,
            node=_node_of(call, bound),
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


def _admit(call: Call, body: Object) -> None:
    """Ask admission whether such a token may be issued. Raises StatusError if not."""
    write = Admitted(
        "CREATE", call.resource, "token", call.namespace, call.name, body, None, call.context
    )
    call.core.admission.admit(write)
    call.core.admission.validate(write)


def _refuse_lifetime(seconds: Json) -> None:
    if seconds < SHORTEST:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST:
        detail = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    error = FieldError(ErrorKind.INVALID, "spec.expirationSeconds", seconds, detail)
    raise invalid(Subject(KIND.kind, KIND.group), [error])


def _check_address(call: Call, metadata: Object) -> None:
    """A body may repeat the name and namespace of the address, and nothing else. Raises StatusError 422."""
    for name, wanted in (("name", call.name), ("namespace", call.namespace)):
        given = metadata.get(name)
        if given and given != wanted:
            detail = f"must match the service account {name} if specified"
            error = FieldError(ErrorKind.INVALID, f"metadata.{name}", given, detail)
            raise invalid(Subject(KIND.kind, KIND.group, call.name), [error])


def _bound(call: Call, reference: Json) -> BoundObject | None:
    """The object that the token is bound to. It must exist, be the one that is meant, and, if a pod, use the account."""
    if reference is None:
        return None
    kind, name, version = (reference.get(key, "") for key in ("kind", "name", "apiVersion"))
    storage = BINDABLE.get(kind)
    if storage is None or "/" in version:
        group, _, version = version.rpartition("/")
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    namespace = "" if kind == "Node" else call.namespace
    found = call.core.objects.get(storage, namespace, name)
    if found is None:
        raise not_found(Subject(storage, "", name))
    if kind == "Pod" and found["spec"].get("serviceAccountName", "") != call.name:
        why = "to pod running with different serviceaccount name."
        raise bad_request(f"cannot bind token for serviceaccount {quoted(call.name)} {why}")
    uid = found["metadata"]["uid"]
    if reference.get("uid") not in (None, "", uid):
        why = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise conflict(Subject(kind, "", name), why)
    return BoundObject(kind, name, uid)


def _node_of(call: Call, bound: BoundObject | None) -> BoundObject | None:
    """The node of the pod that a token is bound to."""
    if bound is None or bound.kind != "Pod":
        return None
    pod = call.core.objects.get(BINDABLE["Pod"], call.namespace, bound.name) or {}
    name = (pod.get("spec") or {}).get("nodeName", "")
    if not name:
        return None
    node = call.core.objects.get(BINDABLE["Node"], "", name)
    return BoundObject("Node", name, node["metadata"]["uid"] if node is not None else "")
