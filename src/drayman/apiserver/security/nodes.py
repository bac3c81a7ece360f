"""What the agents of nodes may ask for: Kubernetes' node authorizer.

An agent is the user `system:node:NAME` in the group `system:nodes`. It reads what the pods on its node name and nothing else of that
kind: a Secret of a pod on another node is as far away as for any other user. What it may write in the end is for `node_restriction.py` to
say, which sees the objects.

Unlike there, an agent may also read claims with devices in a pool of its node's name, and write the status of devices, because drivers may
run in its process and as its user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from drayman.api import node_identity
from drayman.api.pod_sources import config_maps_of, secrets_of
from drayman.apiserver.protocol.access import (
    AccessDecision,
    Attributes,
    Authorizer,
    Grant,
    User,
)
from drayman.apiserver.security.node_pods import (
    NodePods,
    account_of,
    claims_of,
    volume_claims_of,
)
from drayman.apiserver.security.rbac import covers
from drayman.apiserver.served.strategy import Object, ObjectReader
from drayman.node.reporting import LEASE_NAMESPACE

CLAIMS: Final = "resourceclaims.resource.k8s.io"
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "update", "patch"]


def _rule(group: str, resources: list[str], verbs: list[str]) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


_LEASES: Final = _rule("coordination.k8s.io", ["leases"], ["get", *_WRITE, "delete"])
"""For a node's own one: those of others tell when they are away, and leases elsewhere who leads."""
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
    _LEASES,
    _rule("resource.k8s.io", ["resourceslices"], [*_READ, *_WRITE, "delete"]),
    _rule("resource.k8s.io", ["deviceclasses"], _READ),
    _rule("resource.k8s.io", ["resourceclaims/status"], ["update", "patch"]),
    _rule("certificates.k8s.io", ["certificatesigningrequests"], [*_READ, "create"]),
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
    return node_identity.node_of(user.name, user.groups)


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
        if covers(_LEASES, attributes):
            return _is_own_lease(node, attributes)
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
        return claim is None or node in pools_of(claim)


def _is_own_lease(node: str, attributes: Attributes) -> bool:
    """The name of one that is created is for `NodeRestriction` to see."""
    if attributes.namespace != LEASE_NAMESPACE:
        return False
    return attributes.verb == "create" or attributes.name == node


def pools_of(claim: Object) -> set[str]:
    """The names of the pools that a claim has devices of."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return {result.get("pool", "") for result in results}
