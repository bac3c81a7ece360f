"""Who sent a request and whether they may do what it asks: the two questions the security layer answers for the server.

The server itself knows no credentials. Without a security layer, as in tests and behind `--insecure` tools, every caller is the
same privileged user and everything is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from drayman.apiserver.protocol.errors import StatusError, Subject, forbidden

if TYPE_CHECKING:
    from drayman.apiserver.protocol.exchange import Request


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated identity."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))
ADMIN: Final = User("kubernetes-admin", groups=("system:masters", "system:authenticated"))


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request wants to do, in the terms of authorization. `path` is set for requests that are not about a resource."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def is_resource_request(self) -> bool:
        return bool(self.resource)


@dataclass(frozen=True, slots=True)
class AccessDecision:
    allowed: bool
    reason: str = ""


class Authenticator(Protocol):
    """Identifies who sent a request. Raises StatusError: 401 for bad credentials, 403 for a refused impersonation."""

    async def authenticate(self, request: Request) -> User: ...


class Authorizer(Protocol):
    """Decides whether a user may do something."""

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision: ...


@dataclass(frozen=True, slots=True)
class SameUser:
    """Treats every caller as the same user."""

    user: User = ADMIN

    async def authenticate(self, request: Request) -> User:
        return self.user


class AllowAll:
    """Allows everything to every user."""

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        return AccessDecision(allowed=True)


def denied(user: User, attributes: Attributes, reason: str = "") -> StatusError:
    """The error for something a user may not do, worded like the real server."""
    because = f": {reason}" if reason else ""
    if not attributes.is_resource_request:
        why = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"{because}'
        return forbidden(Subject(), why)
    namespace, part = attributes.namespace, attributes.subresource
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    resource = f"{attributes.resource}/{part}" if part else attributes.resource
    why = (
        f'User "{user.name}" cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}" '
        f"{where}{because}"
    )
    return forbidden(Subject(attributes.resource, attributes.group, attributes.name), why)
