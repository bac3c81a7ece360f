"""Evicts pods from nodes with a NoExecute taint, at once or when their toleration ends.

A pod that does not tolerate a taint is deleted at once; one that tolerates it for so many seconds is deleted that long after the taint was
added. Deleted means asked to go: on a node that does not answer, a pod stays, terminating and holding all its resources, until the node
answers or is removed. Only then is it certain that it no longer uses its devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from drayman.api.core import Node, Pod, Taint, Toleration
from drayman.api.pods import is_finished, is_leaving
from drayman.api.times import seconds_of, timestamp_at
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Notice
from drayman.cluster.patches import disruption_target
from drayman.cluster.resources import NODES, PODS
from drayman.controllers.nodes.pods_on_nodes import PodsOnNodes, delete, set_condition
from drayman.controllers.workloads.reconciling import Key, Reconciler
from drayman.placement.fit.taints import tolerates

_REASON: Final = "TaintManagerEviction"
_MESSAGE: Final = "Taint manager: deleting due to NoExecute taint"


def leaves_at(pod: Pod, taints: Mapping[Taint, float]) -> float | None:
    """When a pod has to leave a node with these NoExecute taints, each with its time; None if it may stay."""
    times = []
    for taint, since in taints.items():
        fitting = [t for t in pod.spec.tolerations if tolerates(t, taint)]
        if not fitting:
            times.append(since)
        elif (patience := _patience(fitting)) is not None:
            times.append(since + patience)
    return min(times, default=None)


def _patience(tolerations: Iterable[Toleration]) -> float | None:
    """The shortest time that one of several tolerations gives; None where all are unlimited."""
    limits = (t.toleration_seconds for t in tolerations)
    return min((float(max(0, limit)) for limit in limits if limit is not None), default=None)


class TaintedNodeController(Reconciler[Node]):
    """Evicts pods from tainted nodes."""

    resource = NODES
    component = "taint-eviction-controller"
    workers = 2

    def follow_others(self) -> None:
        self._tainted: dict[str, dict[Taint, float]] = {}
        """Nodes with their NoExecute taints, and since when each is there or, where it does not say, is known."""
        self._marked: dict[str, set[str]] = {}
        """The uids of pods that are to leave later, by node."""
        self._pods = PodsOnNodes(self.informers)
        self._pods.informer.add_handler(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        taints = self._tainted.get(key[1], {})
        marked = self._marked.pop(key[1], set())
        waiting: set[str] = set()
        now = self.clock()
        nearest: float | None = None
        for pod in self._pods.of(key[1]):
            if is_leaving(pod) or is_finished(pod):
                continue
            moment = leaves_at(pod, taints)
            if moment is None:
                if pod.metadata.uid in marked:
                    self._record(pod, "Cancelling deletion of Pod")
            elif moment <= now:
                await self._evict(pod, now)
            else:
                waiting.add(pod.metadata.uid)
                nearest = moment if nearest is None else min(nearest, moment)
        if waiting and nearest is not None:
            self._marked[key[1]] = waiting
            self.queue.add_after(key, nearest - now)

    def object_changed(self, notice: Notice[Node]) -> None:
        name = notice.object.metadata.name
        known = self._tainted.pop(name, {})
        if notice.type == "DELETED":
            return
        now = self.clock()
        taints = {
            # A time ahead of the clock is from before the clock was set back.
            taint: min(seconds_of(taint.time_added) or now, known.get(taint, now))
            for taint in notice.object.spec.taints
            if taint.effect == "NoExecute"
        }
        if taints:
            self._tainted[name] = taints

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        node = notice.object.spec.node_name
        if node in self._tainted and notice.type != "DELETED":
            self.queue.add(("", node))

    async def _evict(self, pod: Pod, now: float) -> None:
        self._record(pod, "Marking for deletion Pod")
        condition = disruption_target("DeletionByTaintManager", _MESSAGE, timestamp_at(now))
        if await set_condition(self.client, pod, condition):
            await delete(self.client, pod)

    def _record(self, pod: Pod, what: str) -> None:
        note = f"{what} {pod.metadata.namespace}/{pod.metadata.name}"
        self.recorder.record(Reference.to(PODS, pod), "Normal", _REASON, note, _REASON)
