"""Keeps a pod of each daemon set on each node where it belongs."""

from __future__ import annotations

from drayman.api.core import Node
from drayman.api.workloads import DaemonSet
from drayman.cluster.errors import ClusterError
from drayman.cluster.informer import Notice
from drayman.cluster.resources import DAEMON_SETS, NODES
from drayman.controllers.workloads.owning_pods import PodOwner
from drayman.controllers.workloads.reconciling import Key
from drayman.controllers.workloads.revisions import Revisions
from drayman.workloads.daemon_sets.placement import node_of, pod_of
from drayman.workloads.daemon_sets.planning import (
    DaemonPlan,
    plan,
    status_of,
    survey,
)
from drayman.workloads.revisions import HASH, revision_of


class DaemonSetController(PodOwner[DaemonSet]):
    """Makes, replaces and removes the pods of daemon sets."""

    resource = DAEMON_SETS
    component = "daemonset-controller"

    def follow_others(self) -> None:
        super().follow_others()
        self._revisions = Revisions(self.client, self.informers, self.resource.kind)
        self._nodes = self.follow(NODES, self._node_changed)

    def selects(self, value: DaemonSet) -> bool:
        return value.metadata.deletion_timestamp is None

    async def reconcile(self, key: Key) -> None:
        daemon_set = self.find(key)
        if daemon_set is None:
            return
        await self.claim(daemon_set)
        labels = (daemon_set.spec.template.get("metadata") or {}).get("labels") or {}
        present = await self._revisions.present(daemon_set, labels)
        revision = present.revision.metadata.labels[HASH]
        uid = daemon_set.metadata.uid
        before = len(self.holdings.of(uid))
        ground = survey(daemon_set, self._nodes, self.holdings.of(uid))
        decided = plan(daemon_set, ground, revision, self.clock())
        refusal = await self._carry_out(daemon_set, decided, revision)
        pods = self.holdings.of(uid)
        ground = survey(daemon_set, self._nodes, pods)
        status = status_of(daemon_set, ground, revision, present.collisions, self.clock())
        if status != daemon_set.status:
            await self.write_status(daemon_set, status)
        if refusal is not None:
            raise refusal
        live = {f"{daemon_set.metadata.name}-{revision_of(pod)}" for pod in pods}
        live.add(present.revision.metadata.name)
        limit = daemon_set.spec.revision_history_limit
        await self._revisions.truncate(uid, live, limit)
        moved = bool(decided.delete) or len(pods) > before
        self.look_again(key, pods, daemon_set.spec.min_ready_seconds, at_once=moved)

    async def _carry_out(
        self, daemon_set: DaemonSet, decided: DaemonPlan, revision: str
    ) -> ClusterError | None:
        self._record_ended(daemon_set, decided)
        bodies = [pod_of(daemon_set, revision, name) for name in decided.create]
        try:
            await self.delete_pods(daemon_set, decided.delete)
            await self.create_pods(daemon_set, bodies)
        except ClusterError as error:
            return error
        return None

    def _record_ended(self, daemon_set: DaemonSet, decided: DaemonPlan) -> None:
        for pod in decided.ended:
            where = f"{pod.metadata.namespace}/{pod.metadata.name} on node {node_of(pod)}"
            if pod.status.phase == "Failed":
                note = f"Found failed daemon pod {where}, will try to kill it"
                self.record(daemon_set, "Warning", "FailedDaemonPod", note)
            else:
                note = f"Found succeeded daemon pod {where}, will try to delete it"
                self.record(daemon_set, "Normal", "SucceededDaemonPod", note)

    def _node_changed(self, notice: Notice[Node]) -> None:
        """A node that came, went or changed in a way that affects placement concerns every daemon set."""
        node, old = notice.object, notice.old
        if (
            old is not None
            and node.metadata.labels == old.metadata.labels
            and node.spec.taints == old.spec.taints
        ):
            return
        for key in self.informer.cache.names():
            self.queue.add(key)
