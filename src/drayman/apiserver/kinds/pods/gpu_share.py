"""The resource that a pod with KAI's annotations for shares of GPUs requests.

KAI's admission webhook changes such pods too. A kubelet gives a container the devices of a claim that a scheduler made only for extended
resources that the container requests, so the container that gets the share requests `kai.scheduler/gpu-share: 1`. The scheduler serves
that resource by a claim for the share that the annotations describe.
"""

from __future__ import annotations

from copy import deepcopy

from drayman.api.struct import Json
from drayman.apiserver.kinds.reading import items_at, map_at, member
from drayman.apiserver.served.strategy import Object
from drayman.placement.gpu_shares import CONTAINER, FRACTION, MEMORY, RESOURCE


def request_gpu_share(pod: Object) -> None:
    """Have the container that gets a share request it, unless a container does already."""
    annotations = map_at(pod, "metadata", "annotations")
    if FRACTION not in annotations and MEMORY not in annotations:
        return
    containers = [*_containers(pod, "containers"), *_containers(pod, "initContainers")]
    if any(RESOURCE in map_at(each, "resources", "requests") for each in containers):
        return
    named = annotations.get(CONTAINER)
    chosen = [name for each in containers if (name := each.get("name")) == named or named is None]
    if chosen:
        pod["spec"] = deepcopy(pod["spec"])  # pods that are alike share one
        for each in (*_containers(pod, "containers"), *_containers(pod, "initContainers")):
            if each.get("name") == chosen[0]:
                resources = member(each, "resources")
                for kind in ("requests", "limits"):
                    member(resources, kind)[RESOURCE] = "1"


def _containers(pod: Object, name: str) -> list[dict[str, Json]]:
    return [each for each in items_at(pod, "spec", name) if isinstance(each, dict)]
