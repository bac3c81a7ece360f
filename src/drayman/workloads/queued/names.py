"""The labels, annotations, gates and finalizers of queued work, and the names of Workloads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from drayman.api.struct import Json

QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""Label: the local queue that an object waits in."""
PRIORITY_CLASS: Final = "kueue.x-k8s.io/priority-class"
PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
MAX_EXECUTION: Final = "kueue.x-k8s.io/max-exec-time-seconds"
MANAGED: Final = "kueue.x-k8s.io/managed"
"""Label of pods that wait in a queue on their own or as a group."""
GATE: Final = "kueue.x-k8s.io/admission"
TOPOLOGY_GATE: Final = "kueue.x-k8s.io/topology"
FINALIZER: Final = "kueue.x-k8s.io/managed"
"""Of pods: they are kept until it is counted how they ended."""
IN_USE: Final = "kueue.x-k8s.io/resource-in-use"
"""Finalizer of what must not go while something depends on it."""
JOB_UID: Final = "kueue.x-k8s.io/job-uid"
"""Label of Workloads: the uid of what they were made for."""
WORKLOAD: Final = "kueue.x-k8s.io/workload"
"""Annotation of pod templates whose pods get their nodes from the Workload."""
MIN_PARALLELISM: Final = "kueue.x-k8s.io/job-min-parallelism"
COMPLETIONS_FOLLOW: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
ELASTIC: Final = "kueue.x-k8s.io/elastic-job"
"""Annotation of Jobs, and of their Workloads, whose number of pods may change while they run; and the gate that holds pods for which there
is no quota yet."""
REPLACES: Final = "kueue.x-k8s.io/workload-slice-replacement-for"
"""Annotation of Workloads: the key of the smaller one of the same Job whose place this one takes when it gets quota."""
PODS_THERE: Final = "drayman.dev/pods-there"
"""Annotation of such Workloads: how many pods the smaller one has, which need no room any more."""
GATES: Final = frozenset({GATE, TOPOLOGY_GATE, ELASTIC})
"""Of pods that wait for quota, or for a place that comes with it."""
IS_GROUP: Final = "kueue.x-k8s.io/is-group-workload"
SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
RETRIABLE: Final = "kueue.x-k8s.io/retriable-in-group"
SUSPENDED_BY_PARENT: Final = "kueue.x-k8s.io/pod-suspending-parent"
LABELS_AND_ANNOTATIONS: Final = frozenset(
    {QUEUE, PRIORITY_CLASS, PREBUILT, MAX_EXECUTION, MANAGED, JOB_UID, WORKLOAD, MIN_PARALLELISM}
    | {COMPLETIONS_FOLLOW, ELASTIC, REPLACES, PODS_THERE, IS_GROUP, SERVING, RETRIABLE}
    | {SUSPENDED_BY_PARENT}
)
"""Of queued work, its pods and its Workloads."""
DEFAULT_QUEUE: Final = "default"
"""The local queue of what names none, where the namespace has one."""

_HASH: Final = 5
_LONGEST: Final = 253


def workload_name(group: str, kind: str, name: str, uid: str) -> str:
    """What the Workload of an object is called: its kind, its name, and a hash of what identifies it."""
    digest = hashlib.sha1(
        "\n".join((kind, group, name, uid)).encode(), usedforsecurity=False
    ).hexdigest()
    # A dot at the end, where a long name is cut, would begin a label with the hyphen that follows.
    prefix = f"{kind.lower()}-{name}"[: _LONGEST - _HASH - 1].rstrip(".")
    return f"{prefix}-{digest[:_HASH]}"


def labels_of(obj: Mapping[str, Json]) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Mapping[str, Json]) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def queue_of(obj: Mapping[str, Json]) -> str:
    """The local queue that an object names; empty if it names none."""
    return labels_of(obj).get(QUEUE) or annotations_of(obj).get(QUEUE) or ""
