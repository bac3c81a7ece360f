"""What is to be explained, named as for kubectl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from drayman.questions.errors import NamingError

CLUSTER: Final = "cluster"
NAMESPACE: Final = "namespace"
NODE: Final = "node"
POD_GROUP: Final = "podgroup"
WORKLOAD: Final = "workload"
_UNSCOPED: Final = (CLUSTER, NAMESPACE, NODE)

KINDS: Final = {
    "pod": ("pod", "pods", "po"),
    "resourceclaim": ("resourceclaim", "resourceclaims", "claim", "claims"),
    "job": ("job", "jobs"),
    "deployment": ("deployment", "deployments", "deploy"),
    "replicaset": ("replicaset", "replicasets", "rs"),
    "statefulset": ("statefulset", "statefulsets", "sts"),
    "daemonset": ("daemonset", "daemonsets", "ds"),
    POD_GROUP: ("podgroup", "podgroups"),
    WORKLOAD: ("workload", "workloads", "kwl"),
    NODE: ("node", "nodes", "no"),
    NAMESPACE: ("namespace", "namespaces", "ns"),
}
"""What can be explained, and the names that are accepted for it."""
BENEFICIARIES: Final = ("pod", "job", "deployment", "replicaset", "statefulset", POD_GROUP)
"""The kinds of objects for which room can be made by moving pods."""
_APPS: Final = ("deployment", "replicaset", "statefulset", "daemonset")
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "resourceclaim": ("resource.k8s.io",),
    "job": ("batch",),
    POD_GROUP: ("scheduling.k8s.io", "scheduling.x-k8s.io", "scheduling.run.ai"),
    WORKLOAD: ("kueue.x-k8s.io",),
    **dict.fromkeys(_APPS, ("apps",)),
}
"""The API groups of each kind."""
_LONGEST: Final = 400
"""Longer than any kind with any name."""
_SHOWN: Final = 40
_NAMES: Final = {name: kind for kind, names in KINDS.items() for name in names}


@dataclass(frozen=True, slots=True)
class Target:
    """An object by kind and name, or the whole cluster. The kind is one of `KINDS`, or `cluster`."""

    kind: str
    name: str
    group: str = ""
    """The API group, if it was named: several have a PodGroup."""

    @property
    def is_namespaced(self) -> bool:
        return self.kind not in _UNSCOPED

    @property
    def needs_workloads(self) -> bool:
        """Whether deployments, groups and the like have to be read for the answer."""
        return self.kind in (CLUSTER, NAMESPACE, POD_GROUP, *_APPS)

    def scope(self, namespace: str) -> str:
        """The namespace that has to be readable for the answer, where `namespace` is that of the user."""
        return self.name if self.kind == NAMESPACE else namespace

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def everything(namespace: str | None) -> Target:
    """All of a namespace, or of the cluster if none is named."""
    return Target(NAMESPACE, namespace) if namespace else Target(CLUSTER, "")


def parse_subject(text: str) -> Target:
    """From `KIND/NAME` or `KIND NAME`. Raises NamingError."""
    text = "/".join(text.split())
    if len(text) > _LONGEST:
        raise NamingError(f"{text[:_SHOWN]}... is too long for the name of an object.")
    kind, slash, name = text.partition("/")
    if not slash and kind.lower() in _NAMES:
        raise NamingError(f"which {kind}? Name it: {kind}/NAME.")
    if not slash:
        raise NamingError(f"what is {kind!r}? Say its kind too: pod/{kind}.")
    if not name or "/" in name:
        raise NamingError(f"{text!r} does not name an object; KIND/NAME does.")
    found, group = _kind(kind)
    return Target(found, name, group)


def _kind(word: str) -> tuple[str, str]:
    """The kind that is meant, and its group if that is named: `pods`, `Job`, `deploy`, `resourceclaims.resource.k8s.io`."""
    plural, _, group = word.lower().partition(".")
    kind = _NAMES.get(plural)
    if kind is None or (group and group not in _GROUPS.get(kind, ())):
        raise NamingError(f"{word!r} is no kind that is known here; these are: {', '.join(KINDS)}.")
    return kind, group
