"""Who sent a request, by its bearer token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.node_identity import NODES, user_of
from drayman.apiserver.protocol.access import ADMIN, ANONYMOUS, AUTHENTICATED, User
from drayman.apiserver.protocol.environment import Clock
from drayman.apiserver.protocol.errors import unauthorized
from drayman.apiserver.protocol.exchange import Request
from drayman.apiserver.security.tokens import (
    BINDABLE,
    ISSUER,
    ServiceAccountClaims,
    TokenIssuer,
    same_secret,
)
from drayman.apiserver.served.strategy import ObjectReader

_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"


@dataclass(frozen=True, slots=True)
class TokenAuthenticator:
    """Knows the administrator's token, those of nodes and those of service accounts. A caller without a token is anonymous."""

    admin_token: str
    issuer: TokenIssuer
    objects: ObjectReader
    clock: Clock

    async def authenticate(self, request: Request) -> User:
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
        now = self.clock.now()
        node = self.issuer.read_node(token, audiences, now)
        if node is not None:
            return User(user_of(node), groups=(NODES, AUTHENTICATED))
        claims = self.issuer.read(token, audiences, now)
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
        bound = self.objects.get(BINDABLE[claims.bound.kind], namespace, claims.bound.name)
        return bound is not None and bound["metadata"]["uid"] == claims.bound.uid


def service_account_user(claims: ServiceAccountClaims) -> User:
    """The user that a service account acts as."""
    extra = {_CREDENTIAL: (f"JTI={claims.token_id}",)}
    for bound in (claims.bound, claims.node):
        if bound is not None and bound.kind in ("Pod", "Node"):
            kind = bound.kind.lower()
            extra[f"authentication.kubernetes.io/{kind}-name"] = (bound.name,)
            if bound.uid:
                extra[f"authentication.kubernetes.io/{kind}-uid"] = (bound.uid,)
    return User(
        f"system:serviceaccount:{claims.namespace}:{claims.name}",
        claims.uid,
        ("system:serviceaccounts", f"system:serviceaccounts:{claims.namespace}", AUTHENTICATED),
        extra,
    )
