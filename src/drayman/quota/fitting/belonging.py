"""Which workload a pod is one of, and in which of its pod sets.

A pod and its workload know each other by handles: the uids of what a workload was made for, which is the pod or has made it, and the key of
the workload, which a pod may have as the name of its group or in an annotation. A pod is one of a workload if they have a handle in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from drayman.api.core import Pod
from drayman.api.kueue_workload import Workload
from drayman.placement.gangs.dialects.kueue import NAME, POD_SET, ROLE, pod_set_stated_by
from drayman.workloads.queued.names import MANAGED, WORKLOAD

_QUEUED: Final = frozenset({POD_SET, NAME, MANAGED})
"""Labels of which pods of workloads have one."""


def may_belong(pod: Pod) -> bool:
    """Whether a pod may be one of a workload of ours."""
    return not pod.metadata.labels.keys().isdisjoint(_QUEUED)


def handles_of_pod(pod: Pod) -> list[str]:
    """By which a workload may be known whose pod this is."""
    metadata = pod.metadata
    found = [metadata.uid, *(owner.uid for owner in metadata.owner_references)]
    names = (metadata.labels.get(NAME), metadata.annotations.get(WORKLOAD))
    return [*found, *(f"{metadata.namespace}/{name}" for name in names if name)]


def handles_of(workload: Workload) -> list[str]:
    """By which a workload is known to its pods."""
    metadata = workload.metadata
    owners = (owner.uid for owner in metadata.owner_references)
    return [*owners, f"{metadata.namespace}/{metadata.name}"]


def pods_of(handles: Iterable[str], by_handle: Callable[[str], Iterable[Pod]]) -> dict[str, Pod]:
    """The pods of a workload with these handles, by uid; `by_handle` has those that may know it by one of them."""
    return {pod.metadata.uid: pod for handle in handles for pod in by_handle(handle)}


def pod_set_of(pod: Pod, names: Sequence[str]) -> str:
    """The pod set of a pod, of those that its workload has: the only one there is, or as the pod says."""
    stated = pod_set_stated_by(pod, pod.metadata.annotations.get(ROLE, ""))
    return names[0] if len(names) == 1 else stated
