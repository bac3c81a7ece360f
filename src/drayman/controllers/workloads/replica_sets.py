"""Keeps replica sets, and the older replication controllers, at their number of pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from drayman.api.core import Pod
from drayman.api.meta import controller_of
from drayman.api.workloads import ReplicaSet, ReplicationController
from drayman.cluster.errors import ClusterError
from drayman.cluster.resources import REPLICA_SETS, REPLICATION_CONTROLLERS
from drayman.controllers.workloads.owning_pods import PodOwner
from drayman.controllers.workloads.reconciling import Key
from drayman.workloads.pod_bodies import MOST_PER_ROUND
from drayman.workloads.replica_sets import (
    ReplicaKeeper,
    ReplicaPlan,
    plan,
    pod_of,
    status_of,
)

K = TypeVar("K", bound=ReplicaKeeper)


class _ReplicaController(PodOwner[K]):
    """Makes and deletes the pods of objects that have a number of equal ones."""

    def selects(self, value: K) -> bool:
        return value.metadata.deletion_timestamp is None

    async def reconcile(self, key: Key) -> None:
        replica_set = self.find(key)
        if replica_set is None:
            return
        before = pods = await self.claim(replica_set)
        decided = plan(replica_set, pods, self._neighbours(replica_set), self.clock())
        refusal = await self._carry_out(replica_set, decided)
        pods = self.holdings.of(replica_set.metadata.uid)
        why = self.restraint(replica_set) if refusal is None else str(refusal)
        status = status_of(replica_set, pods, why, self.clock())
        if status != replica_set.status:
            await self.write_status(replica_set, status)
        if refusal is not None:
            raise refusal
        moved = bool(decided.delete) or len(pods) > len(before)
        self.look_again(key, pods, replica_set.spec.min_ready_seconds, at_once=moved)

    async def _carry_out(self, replica_set: K, decided: ReplicaPlan) -> ClusterError | None:
        """Writes the pods. Refusals are reported in the status too."""
        try:
            await self.delete_pods(replica_set, decided.delete)
            wanted = range(min(decided.create, MOST_PER_ROUND))
            made = self.allowed(replica_set, wanted, replica_set.spec.template)
            await self.create_pods(replica_set, [pod_of(replica_set) for _ in made])
        except ClusterError as error:
            return error
        return None

    def _neighbours(self, replica_set: K) -> Iterator[Pod]:
        yield from self.holdings.of(replica_set.metadata.uid)
        owner = controller_of(replica_set.metadata)
        if owner is None:
            return
        for other in self.in_namespace(replica_set.metadata.namespace):
            if other.metadata.uid != replica_set.metadata.uid:
                above = controller_of(other.metadata)
                if above is not None and above.uid == owner.uid:
                    yield from self.holdings.of(other.metadata.uid)


class ReplicaSetController(_ReplicaController[ReplicaSet]):
    """Makes and deletes the pods of replica sets."""

    resource = REPLICA_SETS
    component = "replicaset-controller"


class ReplicationManager(_ReplicaController[ReplicationController]):
    """Makes and deletes the pods of replication controllers."""

    resource = REPLICATION_CONTROLLERS
    component = "replication-controller"
