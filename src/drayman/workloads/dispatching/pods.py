"""Pods that run in another cluster: what a worker gets of each, and what its original on the manager shows meanwhile.

The original stays behind its gate, so nobody on the manager schedules it; it shows the status of its copy, without what only means
something on the worker: addresses, and the names of claims there. A condition names the worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.pods import is_leaving
from drayman.api.struct import Json
from drayman.api.times import timestamp_at
from drayman.workloads.dispatching.copies import metadata_copy
from drayman.workloads.queued.names import GATE, MANAGED, TOPOLOGY_GATE
from drayman.workloads.queued.places import Object

RUNS_ELSEWHERE: Final = "drayman.dev/RunsElsewhere"
"""Condition of an original whose copy runs in another cluster. Its message says where."""
_SHOWN: Final = (
    "phase",
    "conditions",
    "message",
    "reason",
    "startTime",
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
)
"""What an original shows of its copy."""
_OF_THE_QUEUE: Final = frozenset({GATE, TOPOLOGY_GATE})
_PLACED: Final = ("nodeName", "ephemeralContainers")


def pod_copy(pod: Object, workload: str, origin: str) -> Object:
    """A pod as a worker gets it: as it was described, with the name of its Workload. The worker's own queue holds it again."""
    metadata = metadata_copy(pod, workload, origin)
    metadata["labels"].pop(MANAGED, None)
    spec: Object = codec.parse_json(codec.encode_json(pod["spec"]))
    for name in _PLACED:
        spec.pop(name, None)
    gates = [
        each for each in spec.pop("schedulingGates", ()) if each.get("name") not in _OF_THE_QUEUE
    ]
    if gates:
        spec["schedulingGates"] = gates
    return {"metadata": metadata, "spec": spec}


def is_wanted(pod: Pod) -> bool:
    """Whether there has to be a copy of an original: not of what failed, which is replaced by another pod, nor of what is being deleted."""
    return not is_leaving(pod) and pod.status.phase != "Failed"


def cluster_of(status: Mapping[str, Json] | None) -> str:
    """The cluster that a pod's status, in its decoded form, says it runs in; empty if it runs here."""
    for each in (status or {}).get("conditions") or ():
        if each.get("type") == RUNS_ELSEWHERE and each.get("status") == "True":
            return str(each.get("reason") or "")
    return ""


def shows_copy(pod: Pod) -> bool:
    return any(each.type_ == RUNS_ELSEWHERE for each in pod.status.conditions)


def shown_status(there: Mapping[str, Json], cluster: str, now: float) -> Object:
    """The status of an original while its copy is as given, as a merge patch."""
    status: Object = {name: there.get(name) for name in _SHOWN}
    where = {
        "type": RUNS_ELSEWHERE,
        "status": "True",
        "reason": cluster,
        "message": f"It runs in cluster {cluster}: its log is there",
        "lastTransitionTime": there.get("startTime") or timestamp_at(now),
    }
    status["conditions"] = [*(there.get("conditions") or ()), where]
    return status


def waiting_status(now: float) -> Object:
    """The status of an original that has no copy any more, as a merge patch: as if it had never begun."""
    gated = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastTransitionTime": timestamp_at(now),
    }
    nothing: Object = dict.fromkeys(_SHOWN)
    return {**nothing, "phase": "Pending", "conditions": [gated]}
