"""Reports pods that name a scheduler that does not run here and so wait for it.

Only for a cluster in which no other scheduler is known: elsewhere another one may serve the name, and its pods do not concern us. A
scheduler that does run alongside gets a moment to take the pod before anything is reported.
"""

from __future__ import annotations

import asyncio
from typing import Final

from drayman.api.core import Pod
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS
from drayman.placement.schedulers import awaits_scheduler, scheduler_of
from drayman.reasons.waiting import left_to_another
from drayman.scheduler.following import DELETED

REASON: Final = "FailedScheduling"
UNSERVED_AFTER_S: Final = 2.0
"""How long a scheduler that runs alongside has to take a pod."""


class UnservedPods:
    """Records one event for each pod that names another scheduler."""

    def __init__(
        self, recorder: EventRecorder, names: frozenset[str], after_s: float = UNSERVED_AFTER_S
    ) -> None:
        self._recorder = recorder
        self._names = names
        self._after_s = after_s
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._reported: set[str] = set()

    def follow(self, handlers: Handlers) -> None:
        handlers.add(PODS, self._pod)

    def stop(self) -> None:
        for timer in self._due.values():
            timer.cancel()
        self._due.clear()

    def _pod(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        uid = pod.metadata.uid
        if notice.type == DELETED:
            self._reported.discard(uid)
        if notice.type == DELETED or not self._is_unserved(pod):
            timer = self._due.pop(uid, None)
            if timer is not None:
                timer.cancel()
        elif uid not in self._reported and uid not in self._due:
            loop = asyncio.get_running_loop()
            self._due[uid] = loop.call_later(self._after_s, self._report, pod)

    def _is_unserved(self, pod: Pod) -> bool:
        return awaits_scheduler(pod) and scheduler_of(pod) not in self._names

    def _report(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self._due.pop(uid, None)
        self._reported.add(uid)
        note = str(left_to_another(pod, self._names))
        self._recorder.record(Reference.to(PODS, pod), "Warning", REASON, note, "Scheduling")
