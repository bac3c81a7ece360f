"""What is queued: a pod on its own, or those members of a gang that wait."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from drayman.api.core import Pod
from drayman.placement.gangs.gang import GangKey
from drayman.placement.gangs.importance import importance_of_waiting
from drayman.placement.hints import Hint
from drayman.placement.queueing.queues import Amount


@dataclass(slots=True)
class QueuedUnit:
    """Pods that are to be scheduled together."""

    key: str
    """The uid of a pod that is on its own; for a gang, text that no uid can be."""
    pods: dict[str, Pod]
    """By uid, in the order of arrival."""
    number: int  # the order of arrival
    gang: GangKey | None = None
    priority: int | None = None  # what the group says; otherwise the pods say it
    leaf: str | None = None  # the queue in the sense of KAI that it is in
    request: Amount | None = None  # how many GPUs its next start takes, once that was asked
    shape: Hashable = None
    hint: Hint | None = None  # which other pods may help it
    attempts: int = 0
    failures: int = 0  # errors in a row
    is_unfinished: bool = False  # whether the last decision is to be continued
    fruitless: int = 0  # parts of that decision in a row of which nothing could be kept
    ticket: int = -1  # of its position in line, if it is in line
    alarm: float | None = None  # when it is tried again even if nothing happens
    rests_until: float = 0.0  # it is not tried before
    lacks_since: float | None = None  # since when it cannot use the room that is kept for it
    woken_by_shape: bool = False

    @staticmethod
    def of(pod: Pod, number: int) -> QueuedUnit:
        """A pod on its own."""
        uid = pod.metadata.uid
        return QueuedUnit(uid, {uid: pod}, number)

    @property
    def pod(self) -> Pod:
        """The first of its pods."""
        return next(iter(self.pods.values()))

    @property
    def rank(self) -> tuple[int, int]:
        return -importance_of_waiting(self.priority, self.pods.values()), self.number

    def __str__(self) -> str:
        metadata = self.pod.metadata
        return str(self.gang or f"pod {metadata.namespace}/{metadata.name}")
