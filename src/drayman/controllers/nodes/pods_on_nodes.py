"""The pods of each node, and what is written about a pod whose node is in trouble."""

from __future__ import annotations

from typing import Final

from drayman.api.core import Pod
from drayman.api.struct import Json
from drayman.cluster.client import Client
from drayman.cluster.errors import ConflictError, NotFoundError
from drayman.cluster.informer import Informer
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import pod_condition_patch
from drayman.cluster.resources import PODS

_NODE: Final = "node-controllers:node"


def _node_of(pod: Pod) -> tuple[str, ...]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


class PodsOnNodes:
    """Pods by the node that they are bound to."""

    def __init__(self, informers: Informers) -> None:
        self.informer: Informer[Pod] = informers.informer(PODS, indexers={_NODE: _node_of})

    def of(self, node: str) -> tuple[Pod, ...]:
        return self.informer.cache.by_index(_NODE, node)


async def set_condition(
    client: Client, pod: Pod, condition: dict[str, Json], *, phase: str = ""
) -> bool:
    """Sets a condition of a pod, and its phase where one is given. False where the pod is gone or another one has its name."""
    metadata, status = pod.metadata, {"phase": phase} if phase else {}
    patch = pod_condition_patch(metadata.uid, condition, **status)
    try:
        await client.patch(PODS, metadata.name, patch, metadata.namespace, subresource="status")
    except (NotFoundError, ConflictError):
        return False
    return True


async def delete(client: Client, pod: Pod, *, at_once: bool = False) -> None:
    """Deletes this very pod; with `at_once`, without waiting for a kubelet."""
    options = DeleteOptions(uid=pod.metadata.uid, grace_period_seconds=0 if at_once else None)
    try:
        await client.delete(PODS, pod.metadata.name, pod.metadata.namespace, options=options)
    except (NotFoundError, ConflictError):
        return
