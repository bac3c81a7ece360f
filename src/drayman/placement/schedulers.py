"""Which scheduler is responsible for a pod."""

from __future__ import annotations

from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import is_active

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""For pods that name none."""
OWN_SCHEDULER: Final = "drayman"
"""For pods that name Drayman's scheduler, where another is the default."""
KAI_SCHEDULER: Final = "kai-scheduler"
"""For pods that were written for KAI."""
SERVED: Final = frozenset({DEFAULT_SCHEDULER, OWN_SCHEDULER, KAI_SCHEDULER})
"""The names that the scheduler of `drayman up` serves unless configured otherwise."""


def scheduler_of(pod: Pod) -> str:
    """The name of the scheduler that is responsible for a pod."""
    return pod.spec.scheduler_name or DEFAULT_SCHEDULER


def awaits_scheduler(pod: Pod) -> bool:
    """Whether the pod has no node and a scheduler is to find one."""
    return not pod.spec.node_name and is_active(pod) and not pod.spec.scheduling_gates
