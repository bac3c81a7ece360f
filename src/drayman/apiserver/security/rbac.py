"""Role-based access control: whether some binding gives a user a role with a rule that covers a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.protocol.access import AccessDecision, Attributes, User
from drayman.apiserver.served.strategy import Object, ObjectReader

GROUP: Final = "rbac.authorization.k8s.io"
CLUSTER_ROLES: Final = f"clusterroles.{GROUP}"
CLUSTER_BINDINGS: Final = f"clusterrolebindings.{GROUP}"
ROLES: Final = f"roles.{GROUP}"
BINDINGS: Final = f"rolebindings.{GROUP}"
MASTERS: Final = "system:masters"


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule that applies to a user, and the binding it comes from."""

    rule: Object
    reason: str


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
        for binding in self._objects.list(CLUSTER_BINDINGS):
            name = binding["metadata"]["name"]
            yield from self._granted(binding, user, "", f'ClusterRoleBinding "{name}"')
        if not namespace:
            return
        for binding in self._objects.list(BINDINGS, namespace):
            name = binding["metadata"]["name"]
            yield from self._granted(binding, user, namespace, f'RoleBinding "{name}/{namespace}"')

    def _granted(
        self, binding: Object, user: User, namespace: str, described: str
    ) -> Iterator[Grant]:
        subject = next(
            (s for s in binding.get("subjects") or () if applies(s, user, namespace)), None
        )
        if subject is None:
            return
        reference = binding["roleRef"]
        who = _described(subject)
        reason = (
            f'RBAC: allowed by {described} of {reference["kind"]} "{reference["name"]}" to {who}'
        )
        for rule in self._rules(reference, namespace):
            yield Grant(rule, reason)

    def _rules(self, reference: Object, namespace: str) -> Iterable[Object]:
        if reference["kind"] == "ClusterRole":
            role = self._objects.get(CLUSTER_ROLES, "", reference["name"])
        else:
            role = self._objects.get(ROLES, namespace, reference["name"])
        return () if role is None else role.get("rules") or ()


def applies(subject: Object, user: User, namespace: str) -> bool:
    """Whether a subject of a binding is the user, or a group the user is in."""
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(user.name == name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            where = subject.get("namespace") or namespace
            return bool(user.name == f"system:serviceaccount:{where}:{name}")
        case _:
            return False


def _described(subject: Object) -> str:
    if subject.get("kind") == "ServiceAccount":
        return f'ServiceAccount "{subject.get("name")}/{subject.get("namespace", "")}"'
    return f'{subject.get("kind")} "{subject.get("name")}"'


def covers(rule: Object, attributes: Attributes) -> bool:
    """Whether a rule allows what a request wants."""
    if not _has(rule.get("verbs"), attributes.verb):
        return False
    if not attributes.is_resource_request:
        paths = rule.get("nonResourceURLs") or ()
        return any(_path_matches(path, attributes.path) for path in paths)
    if not _has(rule.get("apiGroups"), attributes.group):
        return False
    if not _resource_matches(rule.get("resources") or (), attributes):
        return False
    names = rule.get("resourceNames") or ()
    return not names or attributes.name in names


def _has(values: Json, wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values or ())


def _resource_matches(resources: Iterable[str], attributes: Attributes) -> bool:
    wanted = attributes.resource
    if attributes.subresource:
        wanted = f"{wanted}/{attributes.subresource}"
        return any(r in ("*", wanted, f"*/{attributes.subresource}") for r in resources)
    return any(resource in ("*", wanted) for resource in resources)


def _path_matches(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path
