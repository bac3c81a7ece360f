"""Objects that wait in queues."""

from __future__ import annotations

from typing import Any

from drayman.api import codec
from drayman.api.core import Pod
from drayman.placement.gangs.dialects.kueue import FAST_ADMISSION, NAME, TOTAL
from drayman.workloads.queued.entering import hold_pod
from drayman.workloads.queued.groups import Member
from drayman.workloads.queued.names import GATE, QUEUE, RETRIABLE, SERVING
from drayman.workloads.queued.pods import role_of

Object = dict[str, Any]


def template(cpu: str = "1", **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container], **spec}}


def job(name: str = "train", **spec: Any) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {QUEUE: "team"},
        },
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "suspend": True,
            "template": template(),
            **spec,
        },
    }


def member(
    name: str,
    *,
    total: int | str = 2,
    queue: str = "team",
    phase: str = "Pending",
    cpu: str = "1",
    fast: bool = False,
    serving: bool = False,
    retriable: bool = True,
    gated: bool = True,
    deleted: bool = False,
    created: int = 0,
    node: str = "",
    counted: bool = True,
) -> Object:
    """A pod of a group as the server keeps it."""
    annotations = {TOTAL: str(total)}
    annotations |= {FAST_ADMISSION: "true"} if fast else {}
    annotations |= {SERVING: "true"} if serving else {}
    annotations |= {} if retriable else {RETRIABLE: "false"}
    body: Object = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": f"2026-01-01T00:00:{created:02d}Z",
            "labels": {NAME: "group", QUEUE: queue},
            "annotations": annotations,
        },
        "spec": template(cpu)["spec"],
    }
    hold_pod(body)
    if not counted:
        del body["metadata"]["finalizers"]
    if not gated:
        gates = [each for each in body["spec"]["schedulingGates"] if each["name"] != GATE]
        body["spec"]["schedulingGates"] = gates
    if node:
        body["spec"]["nodeName"] = node
    if deleted:
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    body["status"] = {"phase": phase}
    return body


def members(*bodies: Object) -> list[Member]:
    return [Member(codec.convert(Pod, body), role_of(body)) for body in bodies]


def by_uid(*bodies: Object) -> dict[str, Object]:
    return {body["metadata"]["uid"]: body for body in bodies}
