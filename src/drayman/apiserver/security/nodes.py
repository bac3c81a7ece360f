"""What the agents of nodes may do: Kubernetes' node authorizer and its NodeRestriction.

An agent is the user `system:node:NAME` in the group `system:nodes`. It reads what the pods on its node name and nothing else of that kind,
and writes only what is about its own node: the Node, its lease, its slices, the status of its pods, and the devices in the status of claims
that its pods use. A Secret of a pod on another node is as far away as for any other user.

Unlike there, an agent may also read claims with devices in a pool of its node's name, and write the status of devices, because drivers may
run in its process and as its user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.protocol.access import (
    NODES,
    AccessDecision,
    Attributes,
    Authorizer,
    Grant,
    User,
)
from drayman.apiserver.protocol.errors import StatusError, forbidden
from drayman.apiserver.security.node_pods import (
    NodePods,
    account_of,
    claims_of,
    config_maps_of,
    node_of,
    secrets_of,
    volume_claims_of,
)
from drayman.apiserver.security.rbac import covers
from drayman.apiserver.security.tokens import NODE_USER
from drayman.apiserver.served.strategy import Object, ObjectReader
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted

LEASES: Final = "kube-node-lease"
RESTRICTED_LABELS: Final = "node-restriction.kubernetes.io/"
CLAIMS: Final = "resourceclaims.resource.k8s.io"
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "update", "patch"]


def _rule(group: str, resources: list[str], verbs: list[str]) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


_RULES: Final[tuple[Object, ...]] = (
    _rule("", ["nodes"], [*_READ, *_WRITE]),
    _rule("", ["nodes/status"], ["update", "patch"]),
    _rule("", ["pods"], [*_READ, "delete"]),
    _rule("", ["pods/status"], ["update", "patch"]),
    _rule("", ["pods/eviction"], ["create"]),
    _rule("", ["services", "endpoints"], _READ),
    _rule("", ["events"], _WRITE),
    _rule("events.k8s.io", ["events"], _WRITE),
    _rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
    _rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    _rule("coordination.k8s.io", ["leases"], ["get", *_WRITE, "delete"]),
    _rule("resource.k8s.io", ["resourceslices"], [*_READ, *_WRITE, "delete"]),
    _rule("resource.k8s.io", ["deviceclasses"], _READ),
    _rule("resource.k8s.io", ["resourceclaims/status"], ["update", "patch"]),
)
"""Which objects these rights reach is for `NodeRestriction` to say."""
_BY_POD: Final[Mapping[tuple[str, str, str], Callable[[Object], Iterator[str]]]] = {
    ("", "configmaps", "get"): config_maps_of,
    ("", "secrets", "get"): secrets_of,
    ("", "persistentvolumeclaims", "get"): volume_claims_of,
    ("resource.k8s.io", "resourceclaims", "get"): claims_of,
    ("", "serviceaccounts", "get"): lambda pod: iter((account_of(pod),)),
    ("", "serviceaccounts/token", "create"): lambda pod: iter((account_of(pod),)),
}
"""What may be done with an object that a pod on the node names."""


def node_name(user: User) -> str | None:
    """The node of which a user is the agent; None for anybody else."""
    if NODES in user.groups and user.name.startswith(NODE_USER):
        return user.name.removeprefix(NODE_USER)
    return None


@dataclass(frozen=True, slots=True)
class NodeAuthorizer:
    """Decides for the agents of nodes, and asks another one about what it does not allow."""

    pods: NodePods
    objects: ObjectReader
    others: Authorizer

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        node = node_name(user)
        if node is not None and self._allows(node, attributes):
            return AccessDecision(allowed=True, reason=f"node {node}")
        return self.others.authorize(user, attributes)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        if node_name(user) is not None:
            yield from (Grant(rule) for rule in _RULES)
        yield from self.others.grants(user, namespace)

    def _allows(self, node: str, attributes: Attributes) -> bool:
        if any(covers(rule, attributes) for rule in _RULES):
            return True
        part = f"/{attributes.subresource}" if attributes.subresource else ""
        key = (attributes.group, f"{attributes.resource}{part}", attributes.verb)
        named = _BY_POD.get(key)
        if named is None or not attributes.name:
            return False
        if any(attributes.name in named(pod) for pod in self.pods.of(node, attributes.namespace)):
            return True
        return attributes.resource == "resourceclaims" and self._is_drivers_own(node, attributes)

    def _is_drivers_own(self, node: str, attributes: Attributes) -> bool:
        """A driver on the node prepared the claim, or has to learn that it is gone."""
        claim = self.objects.get(CLAIMS, attributes.namespace, attributes.name)
        return claim is None or node in _pools(claim)


def _pools(claim: Object) -> set[str]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return {result.get("pool", "") for result in results}


@dataclass(frozen=True, slots=True)
class NodeRestriction(AdmissionPlugin):
    """Refuses what an agent writes about anything but its own node."""

    pods: NodePods

    def validate(self, write: Admitted) -> None:
        node = node_name(write.context.user)
        if node is None:
            return
        judge = _JUDGES.get(write.resource.storage_name)
        why = judge(self, write, node) if judge is not None else ""
        if why:
            raise self._refusal(write, node, why)

    def _refusal(self, write: Admitted, node: str, why: str) -> StatusError:
        return forbidden(write.resource.subject(write.name), f'node "{node}" {why}')

    def node(self, write: Admitted, node: str) -> str:
        if write.name != node:
            return f'is not allowed to modify node "{write.name}"'
        new, old = _labels(write.new), _labels(write.old)
        changed = {key for key in {*new, *old} if new.get(key) != old.get(key)}
        wrong = sorted(key for key in changed if RESTRICTED_LABELS in key)
        if wrong and not write.subresource:
            return f"is not allowed to modify labels: {', '.join(wrong)}"
        return ""

    def pod(self, write: Admitted, node: str) -> str:
        subject = write.old or write.new or {}
        if node_of(subject) != node:
            return "can only modify pods with spec.nodeName set to itself"
        return ""

    def lease(self, write: Admitted, node: str) -> str:
        if (write.namespace, write.name) != (LEASES, node):
            return f'can only access node lease "{node}" in namespace {LEASES}'
        return ""

    def slice(self, write: Admitted, node: str) -> str:
        for each in (write.new, write.old):
            if each is not None and each["spec"].get("nodeName") != node:
                return "can only modify ResourceSlices with spec.nodeName set to itself"
        return ""

    def claim(self, write: Admitted, node: str) -> str:
        old, new = write.old or {}, write.new or {}
        if write.subresource != "status" or _without_devices(old) != _without_devices(new):
            return "can only modify status.devices of ResourceClaims"
        pods = self.pods.of(node, write.namespace)
        if node not in _pools(old) and not any(write.name in claims_of(pod) for pod in pods):
            return "can only modify ResourceClaims that pods on it use"
        return ""


_Judge = Callable[[NodeRestriction, Admitted, str], str]
_JUDGES: Final[Mapping[str, _Judge]] = {
    "nodes": NodeRestriction.node,
    "pods": NodeRestriction.pod,
    "leases.coordination.k8s.io": NodeRestriction.lease,
    "resourceslices.resource.k8s.io": NodeRestriction.slice,
    CLAIMS: NodeRestriction.claim,
}
"""By resource: why a write is refused, or nothing."""


def _labels(value: Object | None) -> dict[str, Json]:
    return ((value or {}).get("metadata") or {}).get("labels") or {}


def _without_devices(claim: Object) -> Object:
    status = {key: part for key, part in (claim.get("status") or {}).items() if key != "devices"}
    return {"spec": claim.get("spec"), "status": status}
