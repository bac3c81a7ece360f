"""Queries about users and rights through the API: TokenReview, the access reviews, SelfSubjectReview. Nothing is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation import ErrorKind, FieldError
from drayman.apiserver.protocol.access import (
    EVERYTHING,
    MASTERS,
    Attributes,
    Authorizer,
    User,
    user_info,
)
from drayman.apiserver.protocol.errors import bad_request, invalid
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.security.authentication import TokenAuthenticator
from drayman.apiserver.security.tokens import ISSUER
from drayman.apiserver.served.acting import Part, by
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object

_AUTHENTICATION: Final = "authentication.k8s.io"
_AUTHORIZATION: Final = "authorization.k8s.io"
_Answer = Callable[[Call, Object], Object]


@dataclass(frozen=True, slots=True)
class Reviews:
    """The review resources, over one authenticator and one authorizer."""

    authenticator: TokenAuthenticator
    authorizer: Authorizer

    def resources(self) -> list[ApiResource]:
        return [
            self._resource(_AUTHENTICATION, "TokenReview", self._token),
            self._resource(_AUTHENTICATION, "SelfSubjectReview", self._self),
            self._resource(_AUTHORIZATION, "SubjectAccessReview", self._subject_access),
            self._resource(_AUTHORIZATION, "SelfSubjectAccessReview", self._self_access),
            self._resource(_AUTHORIZATION, "SelfSubjectRulesReview", self._self_rules),
            self._resource(
                _AUTHORIZATION, "LocalSubjectAccessReview", self._subject_access, namespaced=True
            ),
        ]

    def _resource(
        self, group: str, kind: str, answer: _Answer, *, namespaced: bool = False
    ) -> ApiResource:
        async def create(call: Call) -> Result:
            body = call.body or {}
            return Result(value={**body, "status": answer(call, body)}, status=201)

        return ApiResource(
            group=group,
            kind=kind,
            namespaced=namespaced,
            verbs=("create",),
            create_handler=create,
            acting=by(Part.SERVER, effect="is answered; nothing is kept"),
        )

    def _token(self, call: Call, body: Object) -> Object:
        spec = body.get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        audiences = tuple(spec.get("audiences") or (ISSUER,))
        user = self.authenticator.user_of(spec["token"], audiences)
        if user is None:
            return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
        return {"authenticated": True, "user": user_info(user), "audiences": list(audiences)}

    def _self(self, call: Call, body: Object) -> Object:
        return {"userInfo": user_info(call.user)}

    def _self_access(self, call: Call, body: Object) -> Object:
        return self._decide(call, call.user, body.get("spec") or {})

    def _subject_access(self, call: Call, body: Object) -> Object:
        spec = body.get("spec") or {}
        if not spec.get("user") and not spec.get("groups"):
            detail = "at least one of user or group must be specified"
            raise invalid(
                call.resource.kind_subject(),
                [FieldError(ErrorKind.INVALID, "spec.user", spec.get("user", ""), detail)],
            )
        user = User(
            spec.get("user", ""),
            spec.get("uid", ""),
            tuple(spec.get("groups") or ()),
            {key: tuple(values) for key, values in (spec.get("extra") or {}).items()},
        )
        return self._decide(call, user, spec)

    def _decide(self, call: Call, user: User, spec: Mapping[str, Json]) -> Object:
        decision = self.authorizer.authorize(user, self._attributes(call, spec))
        status: Object = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return status

    def _attributes(self, call: Call, spec: Mapping[str, Json]) -> Attributes:
        wanted, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (wanted is None) == (path is None):
            detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            error = FieldError(ErrorKind.INVALID, "spec.resourceAttributes", wanted, detail)
            raise invalid(call.resource.kind_subject(), [error])
        if path is not None:
            return Attributes(verb=path.get("verb", ""), path=path.get("path", ""))
        wanted = wanted or {}
        return Attributes(
            verb=wanted.get("verb", ""),
            group=wanted.get("group", ""),
            version=wanted.get("version", ""),
            resource=wanted.get("resource", ""),
            subresource=wanted.get("subresource", ""),
            namespace=call.namespace or wanted.get("namespace", ""),
            name=wanted.get("name", ""),
        )

    def _self_rules(self, call: Call, body: Object) -> Object:
        namespace = (body.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        rules = [*EVERYTHING] if MASTERS in call.user.groups else []
        rules += (dict(grant.rule) for grant in self.authorizer.grants(call.user, namespace))
        return {
            "resourceRules": [rule for rule in rules if not rule.get("nonResourceURLs")],
            "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }
