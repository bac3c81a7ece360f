"""Which pods are on a node, and what they name: what the agent of the node may therefore read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from drayman.api import volume_binding
from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.pod_sources import DEFAULT_ACCOUNT
from drayman.api.pods import used_claims
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
    found: str = pod["spec"].get("serviceAccountName") or DEFAULT_ACCOUNT
    return found


def claims_of(pod: Object) -> Iterator[str]:
    """The names of the ResourceClaims that a pod uses."""
    yield from used_claims(convert(Pod, pod))


def volume_claims_of(pod: Object) -> Iterator[str]:
    """The names of the PersistentVolumeClaims that a pod uses."""
    yield from volume_binding.volume_claims_of(convert(Pod, pod))
