"""What the agents of nodes may write: Kubernetes' NodeRestriction.

An agent writes only what is about its own node: the Node, its lease, its slices, the status of its pods, and the devices in the status of
claims that its pods use. Two sorts of fields are not for it even there. What its pods name decides what it may read, so it does not write
which claims they have, and it gets tokens only for them. And labels and taints of its Node decide which pods come to it, so it does not
write those that mean trust, nor have itself deleted by an owner, to come back with others. Nor does it say where its settings come from,
by which it could read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from drayman.api import node_identity
from drayman.api.struct import Json
from drayman.apiserver.kinds.reading import at, items_at, map_at, text_at
from drayman.apiserver.protocol.errors import StatusError, forbidden
from drayman.apiserver.security.node_pods import PODS, NodePods, claims_of, node_of
from drayman.apiserver.security.nodes import CLAIMS, node_name, pools_of
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.node.reporting import LEASE_NAMESPACE
from drayman.workloads.certificates.asking import RequestError, asked
from drayman.workloads.certificates.signers import NODE_CLIENT, SERVING

SIGNING_REQUESTS: Final = "certificatesigningrequests.certificates.k8s.io"
_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
"""Labels of these domains and those below them have a meaning, of which trust may be a part."""
_OWN_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
    }
)
_OWN_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
"""What a node may nevertheless say about itself there, as a kubelet may."""


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
        new, old = write.new or {}, write.old or {}
        source = at(new, "spec", "configSource")
        if source is not None and source != at(old, "spec", "configSource"):
            return "is not allowed to set configSource"
        if wrong := sorted(filter(_means_trust, _changed_labels(new, old))):
            return f"is not allowed to modify labels: {', '.join(wrong)}"
        if write.operation != "UPDATE":
            return ""
        for holder, name in (("spec", "taints"), ("metadata", "ownerReferences")):
            if items_at(new, holder, name) != items_at(old, holder, name):
                return f"is not allowed to modify {name}"
        return ""

    def pod(self, write: Admitted, node: str) -> str:
        if write.operation != "DELETE" and write.subresource != "status":
            return "can only delete pods and modify their status"
        new, old = write.new, write.old or {}
        if node_of(old) != node:
            return "can only modify pods with spec.nodeName set to itself"
        if new is None:
            return ""
        if _changed_labels(new, old):
            return "cannot update labels through pod status"
        if list(_claim_statuses(new)) != list(_claim_statuses(old)):
            return "cannot update resource claim statuses"
        extended = ("status", "extendedResourceClaimStatus")
        if map_at(new, *extended) != map_at(old, *extended):
            return "cannot update extended resource claim status"
        return ""

    def token(self, write: Admitted, node: str) -> str:
        """Whether pod and account fit together, and whether the pod exists at all, is for TokenRequests to say."""
        if write.subresource != "token":
            return ""
        request = write.new or {}
        bound = map_at(request, "spec", "boundObjectRef")
        name = text_at(bound, "name")
        if (text_at(bound, "apiVersion"), text_at(bound, "kind")) != ("v1", "Pod") or not name:
            return "requested a token that is not bound to a pod"
        if not text_at(bound, "uid"):
            return "requested a token that is bound to a pod without a uid"
        pod = write.context.objects.get(PODS, write.namespace, name)
        if pod is None:
            return ""
        if node_of(pod) != node:
            return "requested a token that is bound to a pod on a different node"
        wanted = items_at(request, "spec", "audiences") or [""]
        for audience in wanted:
            if audience not in _audiences(pod):
                return (
                    f'requested a token for audience "{audience}", which is in no volume of the pod'
                )
        return ""

    def lease(self, write: Admitted, node: str) -> str:
        if (write.namespace, write.name) != (LEASE_NAMESPACE, node):
            return f'can only access node lease "{node}" in namespace {LEASE_NAMESPACE}'
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
        if node not in pools_of(old) and not any(write.name in claims_of(pod) for pod in pods):
            return "can only modify ResourceClaims that pods on it use"
        return ""

    def signing_request(self, write: Admitted, node: str) -> str:
        """It asks for itself. What else it asks for is for those to judge who approve and sign."""
        spec = (write.new or {}).get("spec") or {}
        if write.operation != "CREATE" or spec.get("signerName") not in (SERVING, NODE_CLIENT):
            return ""
        own = node_identity.user_of(node)
        try:
            is_own = asked(spec["request"]).common_name == own
        except RequestError as error:
            return f"cannot have it signed: {error}"
        return "" if is_own else f"can only create a node CSR with CN={own}"


_Judge = Callable[[NodeRestriction, Admitted, str], str]
_JUDGES: Final[Mapping[str, _Judge]] = {
    "nodes": NodeRestriction.node,
    PODS: NodeRestriction.pod,
    "serviceaccounts": NodeRestriction.token,
    "leases.coordination.k8s.io": NodeRestriction.lease,
    "resourceslices.resource.k8s.io": NodeRestriction.slice,
    CLAIMS: NodeRestriction.claim,
    SIGNING_REQUESTS: NodeRestriction.signing_request,
}
"""By resource: why a write is refused, or nothing."""


def _changed_labels(new: Object, old: Object) -> set[str]:
    after, before = (map_at(each, "metadata", "labels") for each in (new, old))
    return {key for key in {*after, *before} if after.get(key) != before.get(key)}


def _means_trust(label: str) -> bool:
    domain = label.rpartition("/")[0]
    if not _is_below(domain, _KUBERNETES):
        return False
    return label not in _OWN_LABELS and not _is_below(domain, _OWN_DOMAINS)


def _is_below(domain: str, domains: tuple[str, ...]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in domains)


def _claim_statuses(pod: Object) -> Iterator[tuple[str, str]]:
    """Which claims were made for a pod."""
    for each in items_at(pod, "status", "resourceClaimStatuses"):
        yield text_at(each, "name"), text_at(each, "resourceClaimName")


def _audiences(pod: Object) -> Iterator[str]:
    """For whom a pod has tokens in its volumes; empty for the API server itself."""
    for volume in items_at(pod, "spec", "volumes"):
        for source in items_at(volume, "projected", "sources"):
            if at(source, "serviceAccountToken") is not None:
                yield text_at(source, "serviceAccountToken", "audience")


def _without_devices(claim: Object) -> dict[str, Json]:
    status = {key: part for key, part in (claim.get("status") or {}).items() if key != "devices"}
    return {"spec": claim.get("spec"), "status": status}
