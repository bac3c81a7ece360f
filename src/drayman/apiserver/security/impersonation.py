"""Acting as another user: who may, as whom, and for which requests.

There are two ways to have the right. The old one is the verb `impersonate` on each part of an identity, and then holds for any
request. The constrained one needs two rights: `impersonate:MODE` on the parts of the identity, and `impersonate-on:MODE:VERB` on what
the request itself is about. Which mode applies depends on whose identity it is: a node's, a service account's, or any other user's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from drayman.api.formats import dns_subdomain_problems
from drayman.api.node_identity import NODE_USER, NODES
from drayman.api.syntax.json_scanner import quoted
from drayman.api.validation.names import domain_prefixed_path
from drayman.apiserver.protocol.access import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    UNAUTHENTICATED,
    Attributes,
    Authorizer,
    User,
    denied,
)
from drayman.apiserver.protocol.errors import StatusError, bad_request
from drayman.apiserver.protocol.field_values import error_text

PREFIX: Final = "impersonate-"
_USER: Final = "impersonate-user"
_GROUP: Final = "impersonate-group"
_UID: Final = "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"
_IDENTITY_GROUP: Final = "authentication.k8s.io"
"""The API group of what is not an object but can be impersonated."""
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"
_MANY: Final = 4
"""From this many groups or extras, the right to all of them is looked for before the right to each."""


@dataclass(frozen=True, slots=True)
class Impersonated:
    """The user that a request acts as. `constraint` is the verb of the mode that allowed it, empty for the old way."""

    user: User
    constraint: str = ""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Decides whether a user may act as another."""

    authorizer: Authorizer

    def impersonated(
        self, requester: User, headers: Mapping[str, str], attributes: Attributes
    ) -> Impersonated | None:
        """The user that the headers of a request name; None if they name none. Raises StatusError 400 or 403."""
        wanted = wanted_user(headers)
        if wanted is None:
            return None
        refusal: StatusError | None = None
        for mode in _modes(requester, wanted):
            try:
                self._check_constrained(requester, wanted, mode, attributes)
            except StatusError as error:
                refusal = refusal or error
            else:
                return Impersonated(_completed(wanted, constrained=True), f"impersonate:{mode}")
        try:
            self._check(requester, wanted, _Way("impersonate", ""))
        except StatusError as error:
            raise refusal or error from None
        return Impersonated(_completed(wanted, constrained=False))

    def _check_constrained(
        self, requester: User, wanted: User, mode: str, attributes: Attributes
    ) -> None:
        on_request = replace(attributes, verb=f"impersonate-on:{mode}:{attributes.verb}")
        self._require(requester, on_request)
        self._check(requester, wanted, _Way(f"impersonate:{mode}", _IDENTITY_GROUP))

    def _check(self, requester: User, wanted: User, way: _Way) -> None:
        """Require the right to every part of an identity. Raises StatusError 403."""
        self._require(requester, way.name(wanted.name))
        if wanted.uid:
            self._require(requester, way.part("uids", _IDENTITY_GROUP, name=wanted.uid))
        if wanted.groups:
            self._check_groups(requester, wanted.groups, way)
        if wanted.extra:
            self._check_extras(requester, wanted.extra, way)

    def _check_groups(self, requester: User, groups: tuple[str, ...], way: _Way) -> None:
        right = way.part("groups", way.group)
        if way.is_constrained:
            if "" in groups:
                why = "impersonating the empty string group is not allowed"
                raise denied(requester, right, why)
            if MASTERS in groups:
                why = f"impersonating the {MASTERS} group is not allowed"
                raise denied(requester, replace(right, name=MASTERS), why)
            if len(groups) >= _MANY and self._may(requester, replace(right, name="*")):
                return
        for group in groups:
            self._require(requester, replace(right, name=group))

    def _check_extras(
        self, requester: User, extras: Mapping[str, tuple[str, ...]], way: _Way
    ) -> None:
        right = way.part("userextras", _IDENTITY_GROUP)
        if way.is_constrained:
            if (problem := _extras_problem(extras)) is not None:
                raise denied(requester, right, problem)
            is_many = len(extras) >= _MANY or sum(map(len, extras.values())) >= _MANY
            if is_many and self._may(requester, replace(right, subresource="*", name="*")):
                return
        for key, values in extras.items():
            for value in values:
                self._require(requester, replace(right, subresource=key, name=value))

    def _may(self, requester: User, right: Attributes) -> bool:
        return self.authorizer.authorize(requester, right).allowed

    def _require(self, requester: User, right: Attributes) -> None:
        decision = self.authorizer.authorize(requester, right)
        if not decision.allowed:
            raise denied(requester, right, decision.reason)


@dataclass(frozen=True, slots=True)
class _Way:
    """How the rights to an identity are spelled: the verb, and the API group of users and groups."""

    verb: str
    group: str

    @property
    def is_constrained(self) -> bool:
        return bool(self.group)

    def part(self, resource: str, group: str, *, namespace: str = "", name: str = "") -> Attributes:
        return Attributes(self.verb, group, "v1", resource, "", namespace, name)

    def name(self, user: str) -> Attributes:
        if (account := _service_account(user)) is not None:
            namespace, name = account
            return self.part("serviceaccounts", self.group, namespace=namespace, name=name)
        if self.is_constrained and (node := _node(user)) is not None:
            # A daemon that may act as its own node may do so on every node.
            own = self.verb == "impersonate:associated-node"
            return self.part("nodes", self.group, name="*" if own else node)
        return self.part("users", self.group, name=user)


def wanted_user(headers: Mapping[str, str]) -> User | None:
    """The user that the headers of a request name, exactly as they do. Raises StatusError 400 for a part without a name."""
    if not any(name.startswith(PREFIX) for name in headers):
        return None
    name, uid = (headers.get(header, "").partition("\n")[0] for header in (_USER, _UID))
    groups = tuple(headers[_GROUP].split("\n")) if _GROUP in headers else ()
    extra = {
        unquote(key.removeprefix(_EXTRA)): tuple(value.split("\n"))
        for key, value in headers.items()
        if key.startswith(_EXTRA)
    }
    if name:
        return User(name, uid, groups, extra)
    if uid or groups or extra:
        shown = f"Name:{quoted(name)}, UID:{quoted(uid)}, {_go_lists(groups, extra)}"
        raise bad_request(
            f"requested &user.DefaultInfo{{{shown}}} without impersonating a user name"
        )
    return None


def _go_lists(groups: tuple[str, ...], extra: Mapping[str, tuple[str, ...]]) -> str:
    """Groups and extras as Go prints the members of a struct."""
    members = ", ".join(
        f"{quoted(key)}:{_go_list(values)}" for key, values in sorted(extra.items())
    )
    shown = f"{{{members}}}" if extra else "(nil)"
    return f"Groups:{_go_list(groups)}, Extra:map[string][]string{shown}"


def _go_list(texts: tuple[str, ...]) -> str:
    return f"[]string{{{', '.join(map(quoted, texts))}}}" if texts else "[]string(nil)"


def _modes(requester: User, wanted: User) -> Iterator[str]:
    """The constrained modes that an identity can be impersonated in. Those of nodes and service accounts are fixed but for the name."""
    node, account = _node(wanted.name), _service_account(wanted.name)
    has_only_name = not (wanted.uid or wanted.groups or wanted.extra)
    if node is not None and has_only_name:
        is_agent = _service_account(requester.name) is not None
        if is_agent and requester.extra.get(_NODE_NAME) == (node,):
            yield "associated-node"
        yield "arbitrary-node"
    if account is not None and has_only_name:
        yield "serviceaccount"
    if node is None and account is None:
        yield "user-info"


def _completed(user: User, *, constrained: bool) -> User:
    """An identity with the groups that follow from its name."""
    account, groups = _service_account(user.name), user.groups
    if constrained and _node(user.name) is not None:
        groups = (NODES,)
    elif not groups and account is not None:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    usual = UNAUTHENTICATED if user.name == ANONYMOUS.name else AUTHENTICATED
    if usual in groups or UNAUTHENTICATED in groups:
        return replace(user, groups=groups)
    return replace(user, groups=(*groups, usual))


def _extras_problem(extras: Mapping[str, tuple[str, ...]]) -> str | None:
    """Why the extras of an identity cannot be impersonated in a constrained mode."""
    for key, values in extras.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if problems := list(map(error_text, domain_prefixed_path(key, "extra.key"))):
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            return f"impersonating an invalid key in extra is not allowed: {text}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quoted(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return None


def _service_account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account with this user name."""
    match name.split(":"):
        case ["system", "serviceaccount", namespace, account] if namespace and account:
            return namespace, account
    return None


def _node(user: str) -> str | None:
    """The node with this user name."""
    name = user.removeprefix(NODE_USER)
    return name if name != user and not dns_subdomain_problems(name) else None
