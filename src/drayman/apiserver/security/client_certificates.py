"""Who sent a request, by the certificate that the client has shown: its common name is the user, its organizations are the groups."""

from __future__ import annotations

from dataclasses import dataclass

from drayman.apiserver.protocol.access import AUTHENTICATED, Authenticator, User
from drayman.apiserver.protocol.environment import Clock
from drayman.apiserver.protocol.errors import unauthorized
from drayman.apiserver.protocol.exchange import Request


@dataclass(frozen=True, slots=True)
class CertificateAuthenticator:
    """Asks another one about requests that come without a certificate."""

    others: Authenticator
    clock: Clock

    async def authenticate(self, request: Request) -> User:
        shown = request.certificate
        if shown is None or not shown.name:
            return await self.others.authenticate(request)
        if shown.expires <= self.clock.now().timestamp():
            raise unauthorized()
        return User(shown.name, groups=(*shown.organizations, AUTHENTICATED))
