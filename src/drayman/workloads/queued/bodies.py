"""The status of a Workload as it is written: with the members that definitions require, which types leave out where they are empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api import codec
from drayman.api.kueue_workload import WorkloadStatus
from drayman.api.struct import Json
from drayman.workloads.queued.places import MAIN, Object, read

_REQUIRED: Final[Mapping[tuple[str, ...], Mapping[str, Json]]] = {
    ("conditions",): {"reason": "", "message": ""},
    ("admissionChecks",): {"state": "Pending", "message": ""},
    ("admission", "podSetAssignments"): {"name": MAIN},
    ("reclaimablePods",): {"count": 0},
    ("resourceRequests",): {"name": MAIN},
    ("schedulingStats", "evictions"): {"underlyingCause": "", "count": 0},
    ("preemptionGates",): {"position": "Closed"},
}


def status_body(status: WorkloadStatus) -> Object:
    body = codec.to_dict(status)
    for path, defaults in _REQUIRED.items():
        for item in read(body, path) or ():
            for name, value in defaults.items():
                item.setdefault(name, value)
    if "admission" in body:
        body["admission"].setdefault("podSetAssignments", [])
    return body
