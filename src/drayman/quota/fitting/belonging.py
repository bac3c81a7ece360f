"""Which workload a pod is one of, and in which of its pod sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.api.core import Pod
from drayman.placement.gangs.dialects.kueue import NAME, POD_SET, ROLE
from drayman.workloads.queued.names import MANAGED, WORKLOAD

_QUEUED: Final = frozenset({POD_SET, NAME, MANAGED})
"""Labels of which pods of workloads have one."""


def may_belong(pod: Pod) -> bool:
    """Whether a pod may be one of a workload."""
    return not pod.metadata.labels.keys().isdisjoint(_QUEUED)


def owners_of(pod: Pod) -> list[str]:
    """What a workload may be the workload of, if the pod is one of its pods: the pod, and what made it, by uid; and keys of workloads."""
    metadata = pod.metadata
    found = [metadata.uid, *(owner.uid for owner in metadata.owner_references)]
    names = (metadata.labels.get(NAME), metadata.annotations.get(WORKLOAD))
    return [*found, *(f"{metadata.namespace}/{name}" for name in names if name)]


def pod_set_of(pod: Pod, names: Sequence[str]) -> str:
    stated = pod.metadata.labels.get(POD_SET) or pod.metadata.annotations.get(ROLE, "")
    return names[0] if len(names) == 1 else stated
