"""Role-based access control: whether some binding gives a user a role with a rule that covers a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.protocol.access import MASTERS, AccessDecision, Attributes, Grant, User
from drayman.apiserver.security.permissions import path_includes, resources_include
from drayman.apiserver.served.strategy import Object, ObjectReader

GROUP: Final = "rbac.authorization.k8s.io"
CLUSTER_ROLES: Final = f"clusterroles.{GROUP}"
CLUSTER_BINDINGS: Final = f"clusterrolebindings.{GROUP}"
ROLES: Final = f"roles.{GROUP}"
BINDINGS: Final = f"rolebindings.{GROUP}"


class RbacAuthorizer:
    """Decides by the roles and bindings in the store. Members of `system:masters` may do everything."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        if MASTERS in user.groups:
            return AccessDecision(allowed=True)
        for grant in self.grants(user, attributes.namespace):
            if covers(grant.rule, attributes):
                return AccessDecision(allowed=True, reason=grant.reason)
        return AccessDecision(allowed=False)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Every rule that a user has, cluster-wide and in a namespace."""
        groups = frozenset(user.groups)
        for binding in self._objects.list(CLUSTER_BINDINGS):
            name = binding["metadata"]["name"]
            yield from self._granted(binding, user, groups, "", f'ClusterRoleBinding "{name}"')
        if not namespace:
            return
        for binding in self._objects.list(BINDINGS, namespace):
            name = binding["metadata"]["name"]
            yield from self._granted(
                binding, user, groups, namespace, f'RoleBinding "{name}/{namespace}"'
            )

    def _granted(
        self, binding: Object, user: User, groups: frozenset[str], namespace: str, described: str
    ) -> Iterator[Grant]:
        subject = next(
            (s for s in binding.get("subjects") or () if applies(s, user, groups, namespace)),
            None,
        )
        if subject is None:
            return
        reference = binding["roleRef"]
        who = _described(subject, namespace)
        reason = (
            f'RBAC: allowed by {described} of {reference["kind"]} "{reference["name"]}" to {who}'
        )
        for rule in self._rules(reference, namespace):
            yield Grant(rule, reason)

    def _rules(self, reference: Object, namespace: str) -> Iterable[Object]:
        role = referenced_role(self._objects, reference, namespace)
        return () if role is None else role.get("rules") or ()


def referenced_role(objects: ObjectReader, reference: Object, namespace: str) -> Object | None:
    """The role that a binding in a namespace refers to; None if it does not exist."""
    if reference["kind"] == "ClusterRole":
        return objects.get(CLUSTER_ROLES, "", reference["name"])
    return objects.get(ROLES, namespace, reference["name"])


def applies(subject: Object, user: User, groups: frozenset[str], namespace: str) -> bool:
    """Whether a subject of a binding is the user, or a group the user is in."""
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(user.name == name)
        case "Group":
            return name in groups
        case "ServiceAccount":
            where = subject.get("namespace") or namespace
            return bool(where) and bool(user.name == f"system:serviceaccount:{where}:{name}")
        case _:
            return False


def _described(subject: Object, namespace: str) -> str:
    if subject.get("kind") == "ServiceAccount":
        return f'ServiceAccount "{subject.get("name")}/{subject.get("namespace") or namespace}"'
    return f'{subject.get("kind")} "{subject.get("name")}"'


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
