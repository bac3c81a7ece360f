"""Role-based access control: whether some binding gives a user a role with a rule that covers a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.kinds.access_control import GROUP
from drayman.apiserver.protocol.access import MASTERS, AccessDecision, Attributes, Grant, User
from drayman.apiserver.security.bindings import Bindings, Bound
from drayman.apiserver.security.permissions import path_includes, resources_include
from drayman.apiserver.served.strategy import Object, ObjectReader

CLUSTER_ROLES: Final = f"clusterroles.{GROUP}"
ROLES: Final = f"roles.{GROUP}"


class RbacAuthorizer:
    """Decides by roles and bindings. Members of `system:masters` may do everything."""

    def __init__(self, objects: ObjectReader, bindings: Bindings) -> None:
        self._objects = objects
        self._bindings = bindings

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        if MASTERS in user.groups:
            return AccessDecision(allowed=True)
        for bound, namespace in self._bound(user, attributes.namespace):
            for rule in self._rules(bound, namespace):
                if covers(rule, attributes):
                    return AccessDecision(allowed=True, reason=_reason(bound, namespace))
        return AccessDecision(allowed=False)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Every rule that a user has, cluster-wide and in a namespace."""
        for bound, where in self._bound(user, namespace):
            reason = _reason(bound, where)
            for rule in self._rules(bound, where):
                yield Grant(rule, reason)

    def _bound(self, user: User, namespace: str) -> Iterator[tuple[Bound, str]]:
        """The bindings that name a user, and the namespaces that they are for; an empty one for all."""
        for where in ("", namespace) if namespace else ("",):
            for bound in self._bindings.of(user, where):
                yield bound, where

    def _rules(self, bound: Bound, namespace: str) -> Iterable[Object]:
        role = referenced_role(self._objects, bound.role, namespace)
        return () if role is None else role.get("rules") or ()


def _reason(bound: Bound, namespace: str) -> str:
    if namespace:
        binding = f'RoleBinding "{bound.binding}/{namespace}"'
    else:
        binding = f'ClusterRoleBinding "{bound.binding}"'
    role = f'{bound.role["kind"]} "{bound.role["name"]}"'
    return f"RBAC: allowed by {binding} of {role} to {bound.subject}"


def referenced_role(objects: ObjectReader, reference: Object, namespace: str) -> Object | None:
    """The role that a binding in a namespace refers to; None if it does not exist."""
    if reference["kind"] == "ClusterRole":
        return objects.get(CLUSTER_ROLES, "", reference["name"])
    return objects.get(ROLES, namespace, reference["name"])


def covers(rule: Object, attributes: Attributes) -> bool:
    """Whether a rule allows what a request wants."""
    if not _has(rule.get("verbs"), attributes.verb):
        return False
    if not attributes.is_resource_request:
        paths = rule.get("nonResourceURLs") or ()
        return any(path_includes(path, attributes.path) for path in paths)
    if not _has(rule.get("apiGroups"), attributes.group):
        return False
    part = f"/{attributes.subresource}" if attributes.subresource else ""
    if not resources_include(rule.get("resources") or (), f"{attributes.resource}{part}"):
        return False
    names = rule.get("resourceNames") or ()
    return not names or attributes.name in names


def _has(values: Json, wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values or ())
