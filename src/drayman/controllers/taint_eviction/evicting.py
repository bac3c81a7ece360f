"""Evicting one pod: its status says why, then it is deleted."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drayman.api.core import Pod
from drayman.api.times import timestamp
from drayman.cluster.client import Client
from drayman.cluster.errors import NotFoundError
from drayman.cluster.options import DeleteOptions, WriteOptions
from drayman.cluster.patches import disruption_target, pod_condition_patch
from drayman.cluster.resources import PODS
from drayman.cluster.together import write_in_turn
from drayman.cluster.writes import DeleteWrite, PatchWrite, Write

_AS_CONTROLLER: Final = WriteOptions(field_manager="kube-controller-manager")
_REASON: Final = "DeletionByDeviceTaintManager"
_MESSAGE: Final = "Device Taint manager: deleting due to NoExecute taint"


async def evict(client: Client, pod: Pod, now: datetime) -> None:
    """Sets the condition DisruptionTarget and deletes the pod, this one and no other of the same name."""
    meta = pod.metadata
    writes: list[Write] = []
    if not _is_marked(pod):
        condition = disruption_target(_REASON, _MESSAGE, timestamp(now))
        patch = pod_condition_patch(meta.uid, condition)
        writes.append(PatchWrite(PODS, meta.name, patch, meta.namespace, "status", _AS_CONTROLLER))
    writes.append(DeleteWrite(PODS, meta.name, meta.namespace, DeleteOptions(uid=meta.uid)))
    try:
        # A deletion that fails must not be reported as a patch that cannot be taken back.
        await write_in_turn(client, writes)
    except NotFoundError:
        return


def _is_marked(pod: Pod) -> bool:
    """Whether the pod's status already says so."""
    return any(
        condition.type_ == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == _REASON
        for condition in pod.status.conditions
    )
