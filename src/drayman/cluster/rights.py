"""Permissions on a cluster: what a part of Drayman needs, as a role that grants it, and what of it a cluster does not grant."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from drayman.api.catalog import kind_of_type
from drayman.api.struct import Json
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.cluster.resources import JsonObject, generic
from drayman.placement.followed import HELD, RULES
from drayman.quota.settings import CONFIG_MAP

FOLLOW: Final = ("get", "list", "watch")
READER: Final = "drayman:reader"
"""The ClusterRole of users who ask questions about the whole cluster. The embedded cluster has it from the start."""
RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_ACCESS_REVIEWS: Final = generic(
    "authorization.k8s.io/v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
_SUBJECT_REVIEWS: Final = generic(
    "authentication.k8s.io/v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a resource, possibly on a subresource, possibly on a single object."""

    group: str
    resource: str
    """With the subresource after a slash."""
    verbs: tuple[str, ...]
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        """As in `get, update leases.coordination.k8s.io drayman-scheduler in kube-system`."""
        plural, slash, subresource = self.resource.partition("/")
        group = f".{self.group}" if self.group else ""
        name = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{', '.join(self.verbs)} {plural}{group}{slash}{subresource}{name}{where}"

    @property
    def rule(self) -> dict[str, Json]:
        """The rule of a role that grants it, in the namespaces for which the role is bound."""
        return {
            "apiGroups": [self.group],
            "resources": [self.resource],
            **({"resourceNames": [self.name]} if self.name else {}),
            "verbs": list(self.verbs),
        }


def _read() -> Iterator[Right]:
    for held in HELD:
        kind = kind_of_type(held.type)
        yield Right(kind.group, kind.plural, FOLLOW)
    for rule in RULES:
        group, _, _ = rule.api_version.rpartition("/")
        yield Right(group, rule.plural, FOLLOW)
    yield Right("", "configmaps", ("get",), name=CONFIG_MAP)


READING: Final = tuple(sorted(_read(), key=lambda right: (right.group, right.resource)))
"""What questions read, in the whole cluster: all that affects where pods go, and the configuration of Kueue."""


def role(kind: str, metadata: dict[str, str], rights: Iterable[Right]) -> JsonObject:
    """A Role or a ClusterRole that grants these rights."""
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": kind,
        "metadata": dict(metadata),
        "rules": [right.rule for right in rights],
    }


def reader_role() -> JsonObject:
    """The ClusterRole that is sufficient for every question."""
    return role("ClusterRole", {"name": READER}, READING)


def binding(kind: str, metadata: dict[str, str], subjects: Iterable[JsonObject]) -> JsonObject:
    """The binding of the role with these metadata to users."""
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": metadata["name"]},
        "subjects": [dict(subject) for subject in subjects],
    }


async def missing_rights(client: Client, wanted: Sequence[Right]) -> list[Right]:
    """The wanted rights that the cluster does not grant, in the same order. Raises ClusterError."""
    asked = [(right, verb) for right in wanted for verb in right.verbs]
    # One alone first, which shows whether the cluster can be reached; then all the others at once.
    answers = [await _may(client, *asked[0])]
    answers += await asyncio.gather(*(_may(client, *each) for each in asked[1:]))
    denied = [each for each, allowed in zip(asked, answers, strict=True) if not allowed]
    found: list[Right] = []
    for right in wanted:
        verbs = tuple(verb for of, verb in denied if of is right)
        if verbs:
            found.append(replace(right, verbs=verbs))
    return found


async def _may(client: Client, right: Right, verb: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    asked = {
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
        "name": right.name,
        "namespace": right.namespace,
    }
    answer = await client.create(_ACCESS_REVIEWS, {"spec": {"resourceAttributes": asked}})
    return bool(answer.get("status", {}).get("allowed"))


async def subject_of(client: Client) -> str:
    """The client's user as an option of `kubectl create clusterrolebinding`; empty if the cluster does not disclose it."""
    try:
        review = await client.create(_SUBJECT_REVIEWS, {})
    except ClusterError:
        return ""
    name = ((review.get("status") or {}).get("userInfo") or {}).get("username")
    if not isinstance(name, str) or not name:
        return ""
    if name.startswith(_SERVICE_ACCOUNT):
        return f"--serviceaccount={name.removeprefix(_SERVICE_ACCOUNT)}"
    return f"--user={name}"
