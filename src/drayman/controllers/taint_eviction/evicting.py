"""Evicting one pod: its status says why, then it is deleted."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drayman.api.core import Pod
from drayman.api.times import timestamp
from drayman.cluster.client import Client
from drayman.cluster.errors import NotFoundError
from drayman.cluster.options import DeleteOptions, WriteOptions
from drayman.cluster.patches import Patch, strategic_merge_patch
from drayman.cluster.resources import PODS
from drayman.cluster.together import write_in_turn
from drayman.cluster.writes import DeleteWrite, PatchWrite, Write

_AS_CONTROLLER: Final = WriteOptions(field_manager="kube-controller-manager")
_REASON: Final = "DeletionByDeviceTaintManager"
_MESSAGE: Final = "Device Taint manager: deleting due to NoExecute taint"


async def evict(client: Client, pod: Pod, now: datetime) -> None:
    """Sets the condition DisruptionTarget and deletes the pod, this one and no other of the same name."""
    try:
        # A deletion that fails must not be reported as a patch that cannot be taken back.
        await write_in_turn(client, _writes(pod, now))
    except NotFoundError:
        return


def _writes(pod: Pod, now: datetime) -> list[Write]:
    meta = pod.metadata
    gone = DeleteWrite(PODS, meta.name, meta.namespace, DeleteOptions(uid=meta.uid))
    if _knows(pod):
        return [gone]
    told = PatchWrite(
        PODS, meta.name, _condition(pod, now), meta.namespace, "status", _AS_CONTROLLER
    )
    return [told, gone]


def _knows(pod: Pod) -> bool:
    return any(
        condition.type_ == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == _REASON
        for condition in pod.status.conditions
    )


def _condition(pod: Pod, now: datetime) -> Patch:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": _REASON,
        "message": _MESSAGE,
        "lastTransitionTime": timestamp(now),
    }
    return strategic_merge_patch(
        {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
    )
