"""Who sent a request: bearer tokens, and impersonation by those who may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from drayman.apiserver.access import ADMIN, ANONYMOUS, Attributes, Authorizer, User
from drayman.apiserver.environment import Clock
from drayman.apiserver.errors import Subject, bad_request, forbidden, unauthorized
from drayman.apiserver.exchange import Request
from drayman.apiserver.security.tokens import ISSUER, ServiceAccountClaims, TokenIssuer, same_secret
from drayman.apiserver.strategy import Objects

_AUTHENTICATED: Final = "system:authenticated"
_USER: Final = "impersonate-user"
_GROUP: Final = "impersonate-group"
_UID: Final = "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"
_STORAGE: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"


@dataclass(frozen=True, slots=True)
class TokenAuthenticator:
    """Knows the administrator's token and those of service accounts. Without a token somebody is anonymous."""

    admin_token: str
    issuer: TokenIssuer
    objects: Objects
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
        """Whose token it is; None if nobody's."""
        if same_secret(token, self.admin_token):
            return ADMIN
        claims = self.issuer.read(token, audiences, self.clock.now())
        if claims is None or not self._is_alive(claims):
            return None
        return service_account_user(claims)

    def _is_alive(self, claims: ServiceAccountClaims) -> bool:
        """Whether the account, and what its token is bound to, are still the ones that the token was made for."""
        account = self.objects.get("serviceaccounts", claims.namespace, claims.name)
        if account is None or account["metadata"]["uid"] != claims.uid:
            return False
        if claims.bound is None:
            return True
        namespace = "" if claims.bound.kind == "Node" else claims.namespace
        bound = self.objects.get(_STORAGE[claims.bound.kind], namespace, claims.bound.name)
        return bound is not None and bound["metadata"]["uid"] == claims.bound.uid

    def _impersonated(self, user: User, headers: Mapping[str, str]) -> User:
        name = headers.get(_USER, "")
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
        self._require(user, "users", name)
        for group in groups:
            self._require(user, "groups", group)
        for key, values in extra.items():
            for value in values:
                self._require(user, "userextras", value, key)
        return User(name, headers.get(_UID, ""), _groups_of(name, groups), extra)

    def _require(self, user: User, resource: str, name: str, subresource: str = "") -> None:
        group = "authentication.k8s.io" if resource == "userextras" else ""
        wanted = Attributes("impersonate", group, "", resource, subresource, "", name)
        if not self.authorizer.authorize(user, wanted).allowed:
            where = f'in API group "{group}" at the cluster scope'
            why = f'User "{user.name}" cannot impersonate resource "{resource}" {where}'
            raise forbidden(Subject(resource, group, name), why)


def _groups_of(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups of an impersonated user: those asked for, or those a service account has by itself."""
    parts = name.split(":")
    if not groups and parts[:2] == ["system", "serviceaccount"] and len(parts) == 4:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{parts[2]}")
    if name == ANONYMOUS.name:
        return (*groups, *ANONYMOUS.groups)
    return groups if _AUTHENTICATED in groups else (*groups, _AUTHENTICATED)


def service_account_user(claims: ServiceAccountClaims) -> User:
    """The user that a service account is."""
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
