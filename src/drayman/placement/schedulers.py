"""Which scheduler is responsible for a pod."""

from __future__ import annotations

from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import is_active

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""For pods that name none."""
SERVED: Final = frozenset({DEFAULT_SCHEDULER, "drayman"})
"""The names that Drayman's scheduler serves unless configured otherwise."""


def scheduler_of(pod: Pod) -> str:
    """The name of the scheduler that is responsible for a pod."""
    return pod.spec.scheduler_name or DEFAULT_SCHEDULER


def awaits_scheduler(pod: Pod) -> bool:
    """Whether the pod has no node and a scheduler is to find one."""
    return not pod.spec.node_name and is_active(pod) and not pod.spec.scheduling_gates
