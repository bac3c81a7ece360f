"""Who sent a request and whether they may do what it asks: the two questions the security layer answers for the server.

The server itself knows no credentials. Without a security layer, as in tests and behind `--insecure` tools, every caller is the
same privileged user and everything is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from drayman.api.node_identity import NODES
from drayman.api.struct import Json
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


MASTERS: Final = "system:masters"
"""The group whose members may do everything."""
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = User("system:anonymous", groups=(UNAUTHENTICATED,))
ADMIN: Final = User("kubernetes-admin", groups=(MASTERS, AUTHENTICATED))


def is_system(user: User) -> bool:
    """Whether a user belongs to the cluster itself: an administrator, or a node."""
    return MASTERS in user.groups or NODES in user.groups


def user_info(user: User) -> dict[str, Json]:
    """A user as shown in reviews and in the audit log."""
    info: dict[str, Json] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


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


@dataclass(frozen=True, slots=True)
class Grant:
    """A PolicyRule that applies to a user, and the binding it comes from."""

    rule: dict[str, Json]
    reason: str = ""


class Authenticator(Protocol):
    """Identifies who sent a request. Raises StatusError 401 for bad credentials."""

    async def authenticate(self, request: Request) -> User: ...


class Authorizer(Protocol):
    """Decides whether a user may do something."""

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision: ...

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Every rule that a user has, cluster-wide and in a namespace."""


EVERYTHING: Final[tuple[dict[str, Json], ...]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
"""The rules of an administrator."""


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

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        return map(Grant, EVERYTHING)


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
