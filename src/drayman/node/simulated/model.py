"""The names and numbers of the simulation: labels, annotations, how long things take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.core import Node
from drayman.api.resource import ResourceSlice
from drayman.node.restarting import FIRST_BACKOFF_S, LONGEST_BACKOFF_S

FAILED: Final = "drayman.dev/failed"
"""Annotation of a node that is to be silent: no heartbeats, and its pods stay as they are."""

RUN_FOR: Final = "drayman.dev/run-for"
"""Annotation of a pod: how long its containers run, such as `30s`. Without it they run until they are stopped."""
EXIT_CODE: Final = "drayman.dev/exit-code"
"""Annotation of a pod: the exit code of its containers, `0` by default."""
READY_AFTER: Final = "drayman.dev/ready-after"
"""Annotation of a pod: how long after their start its containers are ready. Without it at once."""
BINDING: Final = "drayman.dev/binding"
"""Annotation of a claim: `fail` or `never`, for devices that must be made ready before a pod is bound."""


def is_failed(node: Node) -> bool:
    """Whether a node is to be silent."""
    return node.metadata.annotations.get(FAILED) == "true"


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """A node to simulate, and what its drivers publish."""

    node: Node
    slices: tuple[ResourceSlice, ...]


@dataclass(frozen=True, slots=True)
class Timing:
    """How long things take, in seconds."""

    prepare: float = 0.05
    """From a pod's arrival until its claims are prepared."""
    start: float = 0.1
    """Of a container, or of an init container from start to end."""
    stop: float = 0.2
    """Of a container that is stopped, if its grace period is not shorter."""
    unprepare: float = 0.5
    """After a pod is gone until its devices are given back. Longer than the deletion, so that a quick successor meets a busy device."""
    bind: float = 0.2
    """Until a device that must be made ready before binding is."""
    retry: float = 1.0
    """Until what failed is tried again."""
    crash: float = FIRST_BACKOFF_S
    """Until a container is started again that has been started again before; doubles each time."""
    longest_crash: float = LONGEST_BACKOFF_S
    heartbeat: float = 10.0
    """Between the renewals of a node's lease."""
