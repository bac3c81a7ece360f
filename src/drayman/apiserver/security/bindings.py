"""Which bindings name a user, without looking at all of them for each request.

Clusters with many tenants have thousands of bindings, and every request is authorized. The index follows the bindings as they are on
disk: it keeps what a decision needs of each subject, so a binding of very many subjects is read once, when it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from drayman.apiserver.kinds.access_control import GROUP
from drayman.apiserver.protocol.access import User
from drayman.apiserver.served.strategy import Object, ObjectReader
from drayman.cluster.embedded.model import Event, EventType

CLUSTER_BINDINGS: Final = f"clusterrolebindings.{GROUP}"
BINDINGS: Final = f"rolebindings.{GROUP}"

_Subject: TypeAlias = tuple[str, str, str]
"""The namespace of a binding, or none; User or Group; and its name. A service account is a user."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding, as far as one of its subjects is concerned."""

    binding: str
    position: int
    """Of the subject in the binding."""
    subject: str
    """The subject, in words."""
    role: Object
    """The reference to the role."""


class Bindings:
    """The bindings of a cluster by the users and groups that they name."""

    def __init__(self, objects: ObjectReader) -> None:
        self._bound: dict[_Subject, dict[str, Bound]] = {}
        """By subject and binding."""
        for resource in (CLUSTER_BINDINGS, BINDINGS):
            for binding in objects.list(resource):
                self._add(binding)

    def of(self, user: User, namespace: str) -> list[Bound]:
        """The bindings in a namespace that name a user, or a group the user is in, by name; each as of the first subject that does."""
        found: dict[str, Bound] = {}
        names = (namespace, "User", user.name), *((namespace, "Group", g) for g in user.groups)
        for name in names:
            for binding, bound in self._bound.get(name, {}).items():
                if binding not in found or bound.position < found[binding].position:
                    found[binding] = bound
        return [found[binding] for binding in sorted(found)]

    def applied(self, events: Sequence[Event]) -> None:
        """Take note of changes that are on disk now."""
        for event in events:
            if event.key.resource in (CLUSTER_BINDINGS, BINDINGS):
                if event.previous is not None:
                    self._remove(event.previous.value)
                if event.type is not EventType.DELETED:
                    self._add(event.stored.value)

    def _add(self, binding: Object) -> None:
        name, namespace = _identity(binding)
        for position, subject in enumerate(binding.get("subjects") or ()):
            if (key := _key(subject, namespace)) is not None:
                bound = Bound(name, position, _described(subject, namespace), binding["roleRef"])
                # The first of several subjects that are the same one is what a decision names.
                self._bound.setdefault(key, {}).setdefault(name, bound)

    def _remove(self, binding: Object) -> None:
        name, namespace = _identity(binding)
        keys = {_key(subject, namespace) for subject in binding.get("subjects") or ()}
        for key in filter(None, keys):
            bound = self._bound.get(key, {})
            bound.pop(name, None)
            if not bound:
                self._bound.pop(key, None)


def _identity(binding: Object) -> tuple[str, str]:
    metadata = binding["metadata"]
    return metadata["name"], metadata.get("namespace") or ""


def _key(subject: Object, namespace: str) -> _Subject | None:
    """What a subject of a binding names; None if that can be no user."""
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind in ("User", "Group"):
        return namespace, kind, name
    where = subject.get("namespace") or namespace
    if kind == "ServiceAccount" and where:
        return namespace, "User", f"system:serviceaccount:{where}:{name}"
    return None


def _described(subject: Object, namespace: str) -> str:
    if subject.get("kind") == "ServiceAccount":
        return f'ServiceAccount "{subject.get("name")}/{subject.get("namespace") or namespace}"'
    return f'{subject.get("kind")} "{subject.get("name")}"'
