"""Who sent a request: bearer tokens, and impersonation by users who may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from drayman.apiserver.protocol.access import ADMIN, ANONYMOUS, Attributes, Authorizer, User, denied
from drayman.apiserver.protocol.environment import Clock
from drayman.apiserver.protocol.errors import bad_request, unauthorized
from drayman.apiserver.protocol.exchange import Request
from drayman.apiserver.security.tokens import ISSUER, ServiceAccountClaims, TokenIssuer, same_secret
from drayman.apiserver.served.strategy import ObjectReader

_AUTHENTICATED: Final = "system:authenticated"
_UNAUTHENTICATED: Final = "system:unauthenticated"
_USER: Final = "impersonate-user"
_GROUP: Final = "impersonate-group"
_UID: Final = "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"
_STORAGE: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_IDENTITY_GROUP: Final = "authentication.k8s.io"
"""The API group of things that are not objects but can be impersonated: ids and extras of users."""
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"


@dataclass(frozen=True, slots=True)
class TokenAuthenticator:
    """Knows the administrator's token and those of service accounts. A caller without a token is anonymous."""

    admin_token: str
    issuer: TokenIssuer
    objects: ObjectReader
    authorizer: Authorizer
    clock: Clock

    async def authenticate(self, request: Request) -> User:
        user = self._sender(request)
        if any(name.startswith("impersonate-") for name in request.headers):
            return self._impersonated(user, request.headers)
        return user

    def _sender(self, request: Request) -> User:
        scheme, _, token = request.header("authorization").partition(" ")
        if not scheme:
            return ANONYMOUS
        user = self.user_of(token.strip(), (ISSUER,)) if scheme.lower() == "bearer" else None
        if user is None:
            raise unauthorized()
        return user

    def user_of(self, token: str, audiences: tuple[str, ...]) -> User | None:
        """The user of a token; None if it is not valid."""
        if same_secret(token, self.admin_token):
            return ADMIN
        claims = self.issuer.read(token, audiences, self.clock.now())
        if claims is None or not self._is_alive(claims):
            return None
        return service_account_user(claims)

    def _is_alive(self, claims: ServiceAccountClaims) -> bool:
        """Whether the account, and what its token is bound to, are still those the token was made for."""
        account = self.objects.get("serviceaccounts", claims.namespace, claims.name)
        if account is None or account["metadata"]["uid"] != claims.uid:
            return False
        if claims.bound is None:
            return True
        namespace = "" if claims.bound.kind == "Node" else claims.namespace
        bound = self.objects.get(_STORAGE[claims.bound.kind], namespace, claims.bound.name)
        return bound is not None and bound["metadata"]["uid"] == claims.bound.uid

    def _impersonated(self, user: User, headers: Mapping[str, str]) -> User:
        """The user to impersonate, if the caller may impersonate each part of that identity. Raises StatusError 400 or 403."""
        name, uid = headers.get(_USER, ""), headers.get(_UID, "")
        groups = tuple(g for g in headers.get(_GROUP, "").split("\n") if g)
        extra = {
            unquote(key.removeprefix(_EXTRA)): tuple(value.split("\n"))
            for key, value in headers.items()
            if key.startswith(_EXTRA)
        }
        if not name:
            raise bad_request(
                "requested impersonation of a group, uid or extra without impersonating a user"
            )
        for wanted in _parts_to_be(name, groups, extra, uid):
            decision = self.authorizer.authorize(user, wanted)
            if not decision.allowed:
                raise denied(user, wanted, decision.reason)
        return User(name, uid, _groups_of(name, groups), extra)


def _parts_to_be(
    name: str, groups: tuple[str, ...], extra: Mapping[str, tuple[str, ...]], uid: str
) -> Iterator[Attributes]:
    """Each part of an identity, as the attributes of the right to impersonate it."""
    account = _service_account(name)
    if account is not None:
        yield Attributes("impersonate", "", "v1", "serviceaccounts", "", *account)
    else:
        yield Attributes("impersonate", "", "v1", "users", name=name)
    for group in groups:
        yield Attributes("impersonate", "", "v1", "groups", name=group)
    for key, values in extra.items():
        for value in values:
            yield Attributes("impersonate", _IDENTITY_GROUP, "v1", "userextras", key, name=value)
    if uid:
        yield Attributes("impersonate", _IDENTITY_GROUP, "v1", "uids", name=uid)


def _service_account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account with this user name."""
    match name.split(":"):
        case ["system", "serviceaccount", namespace, account] if namespace and account:
            return namespace, account
    return None


def _groups_of(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups of an impersonated user: those requested, or the default groups of a service account."""
    account = _service_account(name)
    if not groups and account is not None:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if name == ANONYMOUS.name:
        return groups if _UNAUTHENTICATED in groups else (*groups, _UNAUTHENTICATED)
    if _AUTHENTICATED in groups or _UNAUTHENTICATED in groups:
        return groups
    return (*groups, _AUTHENTICATED)


def service_account_user(claims: ServiceAccountClaims) -> User:
    """The user that a service account acts as."""
    extra = {_CREDENTIAL: (f"JTI={claims.token_id}",)}
    if claims.bound is not None and claims.bound.kind in ("Pod", "Node"):
        kind = claims.bound.kind.lower()
        extra[f"authentication.kubernetes.io/{kind}-name"] = (claims.bound.name,)
        extra[f"authentication.kubernetes.io/{kind}-uid"] = (claims.bound.uid,)
    return User(
        f"system:serviceaccount:{claims.namespace}:{claims.name}",
        claims.uid,
        ("system:serviceaccounts", f"system:serviceaccounts:{claims.namespace}", _AUTHENTICATED),
        extra,
    )
