"""Reports what cannot be understood of what nodes and pods say about prices, and pods and Jobs about run times: once for each, in an event.

A label that makes no sense must not keep a node from work, nor an annotation a pod: both are used as if they said nothing, and the event
says why it has no effect.
"""

from __future__ import annotations

from typing import Final

from drayman.api.core import Node, Pod
from drayman.api.jobs import Job
from drayman.bounded import Bounded
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import JOBS, NODES, PODS
from drayman.placement.min_runtime import MIN_RUNTIME
from drayman.placement.min_runtime import misstated as misstated_min_runtime
from drayman.placement.prices import label_faults
from drayman.placement.runs.declaring import RUNTIME
from drayman.placement.runs.declaring import misstated as misstated_runtime
from drayman.placement.schedulers import awaits_scheduler, scheduler_of
from drayman.placement.spending import misstated
from drayman.placement.state import ClusterState
from drayman.scheduler.following import DELETED

NODE_REASON: Final = "InvalidNodePrice"
POD_REASON: Final = "InvalidPodCost"
RUNTIME_REASON: Final = "InvalidRuntime"
MIN_RUNTIME_REASON: Final = "InvalidMinRuntime"
_MOST_REPORTED: Final = 4096


class Terms:
    """Looks at nodes, at the run times of pods, and at pods of these schedulers where there are prices."""

    def __init__(self, recorder: EventRecorder, state: ClusterState, names: frozenset[str]) -> None:
        self._recorder = recorder
        self._state = state
        self._names = names
        self._reported: Bounded[tuple[str, str], None] = Bounded(_MOST_REPORTED)

    def follow(self, handlers: Handlers) -> None:
        handlers.add(NODES, self._node)
        handlers.add(PODS, self._pod)
        handlers.add(JOBS, self._job)

    def _node(self, notice: Notice[Node]) -> None:
        node = notice.object
        if notice.type == DELETED:
            return
        for fault in label_faults((node,)):
            self._report(Reference.to(NODES, node), NODE_REASON, str(fault))

    def _pod(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        if notice.type == DELETED or pod.spec.node_name:
            return
        is_priced, annotations = self._state.has_offers, pod.metadata.annotations
        if not is_priced and RUNTIME not in annotations and MIN_RUNTIME not in annotations:
            return
        if awaits_scheduler(pod) and scheduler_of(pod) in self._names:
            for fault in misstated(pod) if is_priced else ():
                self._report(Reference.to(PODS, pod), POD_REASON, fault)
            for fault in misstated_runtime(annotations):
                self._report(Reference.to(PODS, pod), RUNTIME_REASON, fault)
            for fault in misstated_min_runtime(annotations):
                self._report(Reference.to(PODS, pod), MIN_RUNTIME_REASON, fault)

    def _job(self, notice: Notice[Job]) -> None:
        job = notice.object
        if notice.type != DELETED:
            for fault in misstated_runtime(job.metadata.annotations):
                self._report(Reference.to(JOBS, job), RUNTIME_REASON, fault)
            for fault in misstated_min_runtime(job.metadata.annotations):
                self._report(Reference.to(JOBS, job), MIN_RUNTIME_REASON, fault)

    def _report(self, regarding: Reference, reason: str, note: str) -> None:
        if (regarding.uid, note) not in self._reported:
            self._reported[regarding.uid, note] = None
            self._recorder.record(regarding, "Warning", reason, note, "Scheduling")
