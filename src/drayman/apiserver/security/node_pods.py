"""Which pods are on a node, and what they name: what the agent of the node may therefore read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from drayman.apiserver.served.strategy import Object, ObjectReader
from drayman.cluster.embedded.model import Event, EventType

PODS: Final = "pods"


class NodePods:
    """The pods of a cluster by node. Follows the store, so that no request has to look at all of them."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._pods: dict[str, set[tuple[str, str]]] = {}
        for pod in objects.list(PODS):
            self._add(pod)

    def applied(self, events: Sequence[Event]) -> None:
        """Take note of changes that are on disk now."""
        for event in events:
            if event.key.resource == PODS:
                if event.previous is not None:
                    self._remove(event.previous.value)
                if event.type is not EventType.DELETED:
                    self._add(event.stored.value)

    def of(self, node: str, namespace: str) -> Iterator[Object]:
        """The pods of a node in a namespace."""
        for where, name in self._pods.get(node, ()):
            if where == namespace:
                pod = self._objects.get(PODS, where, name)
                if pod is not None:
                    yield pod

    def _add(self, pod: Object) -> None:
        if node := node_of(pod):
            self._pods.setdefault(node, set()).add(_key(pod))

    def _remove(self, pod: Object) -> None:
        node = node_of(pod)
        found = self._pods.get(node, set())
        found.discard(_key(pod))
        if not found:
            self._pods.pop(node, None)


def node_of(pod: Object) -> str:
    """The name of the node of a pod; empty if it has none."""
    found: str = (pod.get("spec") or {}).get("nodeName") or ""
    return found


def _key(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def account_of(pod: Object) -> str:
    """The name of the service account of a pod."""
    found: str = pod["spec"].get("serviceAccountName") or "default"
    return found


def config_maps_of(pod: Object) -> Iterator[str]:
    """The names of the ConfigMaps that a pod reads."""
    yield from _named(pod, "configMap", "configMapKeyRef", "configMapRef", "name")


def secrets_of(pod: Object) -> Iterator[str]:
    """The names of the Secrets that a pod reads."""
    yield from _named(pod, "secret", "secretKeyRef", "secretRef", "secretName")
    for reference in pod["spec"].get("imagePullSecrets") or ():
        yield reference.get("name", "")


def claims_of(pod: Object) -> Iterator[str]:
    """The names of the ResourceClaims that a pod uses."""
    status = pod.get("status") or {}
    for entry in pod["spec"].get("resourceClaims") or ():
        yield entry.get("resourceClaimName") or ""
    for made in status.get("resourceClaimStatuses") or ():
        yield made.get("resourceClaimName") or ""
    yield (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName") or ""


def volume_claims_of(pod: Object) -> Iterator[str]:
    """The names of the PersistentVolumeClaims that a pod uses."""
    for volume in pod["spec"].get("volumes") or ():
        yield (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""


def _named(pod: Object, volume_kind: str, key: str, whole: str, name: str) -> Iterator[str]:
    spec = pod["spec"]
    for volume in spec.get("volumes") or ():
        yield (volume.get(volume_kind) or {}).get(name) or ""
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield (source.get(volume_kind) or {}).get("name") or ""
    for containers in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(containers) or ():
            for variable in container.get("env") or ():
                yield ((variable.get("valueFrom") or {}).get(key) or {}).get("name") or ""
            for source in container.get("envFrom") or ():
                yield (source.get(whole) or {}).get("name") or ""
