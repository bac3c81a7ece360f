"""Keeps stateful sets: their pods in order, their claims, their revisions."""

from __future__ import annotations

from drayman.api.core import Pod
from drayman.api.workloads import ControllerRevision, StatefulSet
from drayman.cluster.errors import ClusterError
from drayman.cluster.resources import STATEFUL_SETS
from drayman.controllers.workloads.owning_pods import PodOwner
from drayman.controllers.workloads.reconciling import Key
from drayman.controllers.workloads.revisions import Revisions
from drayman.controllers.workloads.stateful_set_claims import VolumeClaims
from drayman.workloads.revisions import revision_of, template_of
from drayman.workloads.stateful_sets.identity import ordinal_of, pod_of
from drayman.workloads.stateful_sets.planning import (
    SetPlan,
    plan,
    status_of,
)


class StatefulSetController(PodOwner[StatefulSet]):
    """Makes, replaces and gives up the pods of stateful sets, each in its turn."""

    resource = STATEFUL_SETS
    component = "statefulset-controller"

    def follow_others(self) -> None:
        super().follow_others()
        self._revisions = Revisions(self.client, self.informers, self.resource.kind)
        self._claims = VolumeClaims(self.client, self.informers)

    def selects(self, value: StatefulSet) -> bool:
        return value.metadata.deletion_timestamp is None

    def creation_note(self, value: StatefulSet, name: str) -> str:
        return f"create Pod {name} in StatefulSet {value.metadata.name} successful"

    def deletion_note(self, value: StatefulSet, name: str) -> str:
        return f"delete Pod {name} in StatefulSet {value.metadata.name} successful"

    async def reconcile(self, key: Key) -> None:
        stateful_set = self.find(key)
        if stateful_set is None:
            return
        await self.claim(stateful_set)
        labels = stateful_set.spec.selector.match_labels
        updated = await self._revisions.present(stateful_set, labels)
        current = self._current_revision(stateful_set, updated.revision)
        before = len(self._members(stateful_set))
        decided = plan(
            stateful_set, self._members(stateful_set), updated.revision.metadata.name, self.clock()
        )
        refusal = await self._carry_out(stateful_set, decided, current, updated.revision)
        pods = self._members(stateful_set)
        names = (current.metadata.name, updated.revision.metadata.name)
        status = status_of(stateful_set, pods, *names, updated.collisions, self.clock())
        if status != stateful_set.status:
            await self.write_status(stateful_set, status)
        if refusal is not None:
            raise refusal
        live = {*names, *map(revision_of, pods)}
        limit = stateful_set.spec.revision_history_limit
        await self._revisions.truncate(stateful_set.metadata.uid, live, limit)
        moved = bool(decided.delete) or len(pods) > before
        self.look_again(key, pods, stateful_set.spec.min_ready_seconds, at_once=moved)

    def _members(self, stateful_set: StatefulSet) -> list[Pod]:
        name = stateful_set.metadata.name
        pods = self.holdings.of(stateful_set.metadata.uid)
        return [pod for pod in pods if ordinal_of(name, pod.metadata.name) is not None]

    def _current_revision(
        self, stateful_set: StatefulSet, updated: ControllerRevision
    ) -> ControllerRevision:
        """The revision that the last update ended with; the present one where that is not known."""
        for revision in self._revisions.of(stateful_set.metadata.uid):
            if revision.metadata.name == stateful_set.status.current_revision:
                return revision
        return updated

    async def _carry_out(
        self,
        stateful_set: StatefulSet,
        decided: SetPlan,
        current: ControllerRevision,
        updated: ControllerRevision,
    ) -> ClusterError | None:
        beyond = {pod.metadata.uid for pod in decided.condemned}
        try:
            for pod in self._members(stateful_set):
                condemned = pod.metadata.uid in beyond
                await self._claims.own(stateful_set, pod, condemned=condemned)
            self._record_ended(stateful_set, decided)
            await self.delete_pods(stateful_set, decided.delete)
            bodies = []
            claims = len(stateful_set.spec.volume_claim_templates)
            for fresh in self.allowed(
                stateful_set, decided.create, stateful_set.spec.template, claims=claims
            ):
                if await self._claims.ensure(stateful_set, fresh.ordinal):
                    revision = updated if fresh.updated else current
                    template, name = template_of(revision), revision.metadata.name
                    bodies.append(pod_of(stateful_set, template, name, fresh.ordinal))
            await self.create_pods(stateful_set, bodies)
        except ClusterError as error:
            return error
        return None

    def _record_ended(self, stateful_set: StatefulSet, decided: SetPlan) -> None:
        metadata = stateful_set.metadata
        for pod in decided.recreated:
            state = "failed" if pod.status.phase == "Failed" else "terminated"
            reason = "RecreatingFailedPod" if state == "failed" else "RecreatingTerminatedPod"
            note = (
                f"StatefulSet {metadata.namespace}/{metadata.name} is recreating {state} Pod "
                f"{pod.metadata.name}"
            )
            self.record(stateful_set, "Warning", reason, note)
