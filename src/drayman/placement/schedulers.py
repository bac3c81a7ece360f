"""Which scheduler a pod is left to."""

from __future__ import annotations

from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import is_active

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""Meant by pods that name none."""
SERVED: Final = frozenset({DEFAULT_SCHEDULER, "drayman"})
"""The names that Drayman's scheduler goes by unless it is told otherwise."""


def scheduler_of(pod: Pod) -> str:
    """The name of the scheduler that a pod is left to."""
    return pod.spec.scheduler_name or DEFAULT_SCHEDULER


def awaits_scheduler(pod: Pod) -> bool:
    """Whether somebody is to find a node for a pod that has none."""
    return is_active(pod) and not pod.spec.scheduling_gates
