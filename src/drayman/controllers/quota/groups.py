"""Groups of pods in queues: one Workload for all, which are let go together, replaced one by one, and deleted together when evicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from drayman.api.core import Pod
from drayman.api.kueue_workload import PodSet
from drayman.api.pods import is_active, is_leaving
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import PODS, JsonObject
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.pod_writes import PodWrites
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.standing import is_stopped, may_run, release_quota, why_not
from drayman.placement.gangs.dialects.kueue import ROLE
from drayman.workloads.dispatching.life import is_elsewhere
from drayman.workloads.queued import groups as rules
from drayman.workloads.queued import life
from drayman.workloads.queued.composing import CompositionError
from drayman.workloads.queued.conditions import WAITING_FOR_REPLACEMENT, setting
from drayman.workloads.queued.groups import Member
from drayman.workloads.queued.names import FINALIZER, PREBUILT
from drayman.workloads.queued.pods import group_of, is_gated, is_managed, is_over, owner_of
from drayman.workloads.queued.starting import StartError

_GROUPS: Final = "quota:pod-groups"
_SOON_S: Final = 1.0


def _group_keys(pod: Pod) -> Iterable[str]:
    group = group_of(pod) if is_managed(pod) else ""
    return [f"{pod.metadata.namespace}/{group}"] if group else []


class PodGroups:
    """All groups of pods."""

    def __init__(self, shared: Shared, writes: PodWrites) -> None:
        self._shared = shared
        self._writes = writes
        self.loop = Loop("queued pod groups", self.reconcile)
        self._cache = shared.informers.informer(PODS, indexers={_GROUPS: _group_keys}).cache

    def _members(self, key: Key) -> list[Member]:
        found = self._cache.by_index(_GROUPS, "/".join(key))
        ordered = sorted(
            found, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name)
        )
        return [Member(pod, pod.metadata.annotations.get(ROLE, "")) for pod in ordered]

    async def reconcile(self, key: Key) -> None:
        members = self._members(key)
        if not members:
            return
        workload = self._shared.book.find(key)
        if workload is not None and not rules.is_group_workload(
            workload.workload.metadata.annotations
        ):
            text = f"there is a Workload {key[1]} that is not the group's"
            self._writes.record(members[0].pod, "Warning", "ErrWorkloadCompose", text)
            return
        if workload is None:
            await self._without_workload(key, members)
        elif workload.is_leaving:
            await self._leave(key, members, workload)
        elif life.is_finished(workload.status):
            await self._ended(members, workload)
        else:
            await self._with_workload(key, members, workload)

    # Before there is a Workload.

    async def _without_workload(self, key: Key, members: Sequence[Member]) -> None:
        await self._uncount_over(members)
        able = rules.runnable(members)
        if not able:
            return
        loose = [each for each in able if not is_gated(each.pod)]
        if loose:
            for member in loose:
                await self._writes.delete(
                    member.pod, "Stopped", "the Workload of its group does not exist"
                )
            return
        if any(PREBUILT in each.pod.metadata.labels for each in able):
            return  # Somebody else makes it.
        try:
            rules.check_whole(able, rules.statement_of(able))
        except CompositionError as error:
            self._writes.record(able[0].pod, "Warning", "ErrWorkloadCompose", str(error))
            return
        bodies = await self._writes.bodies([each.pod for each in able])
        present = [each for each in able if each.pod.metadata.uid in bodies]
        if not present:
            return
        try:
            first = bodies[present[0].pod.metadata.uid]
            importance = self._shared.importance(first, first["spec"])
            body = rules.workload_for_group(key[0], key[1], present, bodies, importance)
        except CompositionError as error:
            self._writes.record(present[0].pod, "Warning", "ErrWorkloadCompose", str(error))
            return
        made = await self._shared.book.create(
            body,
            lambda why: self._writes.record(present[0].pod, "Warning", "ErrWorkloadCompose", why),
        )
        note = f"Created Workload: {key[0]}/{made.name}"
        self._writes.record(present[0].pod, "Normal", "CreatedWorkload", note)

    # While there is one.

    async def _with_workload(self, key: Key, members: Sequence[Member], workload: Known) -> None:
        try:
            stated = rules.statement_of(members)
        except CompositionError as error:
            self._writes.record(members[0].pod, "Warning", "ErrWorkloadCompose", str(error))
            return
        ended = rules.ended(members, stated)
        if ended is not None:
            if self._shared.book.holds_back(workload):
                return
            status = life.finished(
                workload.status, ended, self._shared.clock(), workload.generation
            )
            workload = await self._shared.book.write_status(workload, status)
            note = f"Workload {workload.name} is declared finished"
            self._writes.record(members[0].pod, "Normal", "FinishedWorkload", note)
            await self._ended(members, workload)
            return
        sets = workload.spec.pod_sets
        surplus = dict.fromkeys(rules.surplus(members, sets))
        for member in surplus:
            await self._writes.delete(member.pod, "ExcessPodDeleted", "the group has all its pods")
            await self._writes.uncount(member.pod)
        await self._uncount_over(members)
        kept = [each for each in members if each not in surplus]
        for member in rules.replaced(kept, sets):
            if is_over(member.pod, self._shared.clock()):
                await self._writes.uncount(member.pod)
        workload = await self._adopt(kept, workload)
        if may_run(workload):
            await self._run(kept, workload)
        else:
            await self._stop(key, kept, workload)

    async def _adopt(self, members: Sequence[Member], workload: Known) -> Known:
        """Pods that came later own the Workload too, so that it stays when the first are gone."""
        owners = workload.workload.metadata.owner_references
        known = {owner.uid for owner in owners}
        missing = [
            each.pod
            for each in members
            if each.pod.metadata.uid not in known and is_active(each.pod)
        ]
        added = [
            owner_of(
                {"metadata": {"name": p.metadata.name, "uid": p.metadata.uid}}, controller=False
            )
            for p in missing
            if await self._is_there(p)
        ]
        if not added:
            return workload
        change: list[JsonObject]
        if not owners:
            change = [{"op": "add", "path": "/metadata/ownerReferences", "value": added}]
        else:
            change = [
                {"op": "add", "path": "/metadata/ownerReferences/-", "value": each}
                for each in added
            ]
        return await self._shared.book.change(workload, change)

    async def _is_there(self, pod: Pod) -> bool:
        """Asked of the server: the cache may lag behind that of Workloads, and an owner that went with its pod must not come back."""
        meta = pod.metadata
        try:
            found = await self._shared.client.get(PODS, meta.name, meta.namespace)
        except NotFoundError:
            return False
        return found.metadata.uid == meta.uid and not is_leaving(found)

    async def _run(self, members: Sequence[Member], workload: Known) -> None:
        """Let go who is held, and say how the group is doing."""
        status, now, generation = workload.status, self._shared.clock(), workload.generation
        if status.cluster_name is None:
            # Otherwise copies run there, which the pods here show.
            await self._let_go(members, workload)
            ready = rules.are_ready(members, workload.spec.pod_sets)
            status = life.pods_ready(status, ready, now, generation)
            status = life.reclaimed(status, rules.reclaimable(members, workload.spec.pod_sets))
        missing = rules.missing(members, workload.spec.pod_sets)
        if missing or status.condition(WAITING_FOR_REPLACEMENT) is not None:
            text = f"{missing} pods have failed and have to be replaced" if missing else ""
            reason = "PodsFailed" if missing else "PodsAvailable"
            status = setting(
                status, WAITING_FOR_REPLACEMENT, bool(missing), reason, text, now, generation
            )
        await self._shared.book.write_status(workload, status)

    async def _let_go(self, members: Sequence[Member], workload: Known) -> None:
        sets = {each.name: each for each in workload.spec.pod_sets}
        for member in members:
            if is_gated(member.pod) and is_active(member.pod):
                try:
                    await self._writes.let_go(member.pod, workload, _set_of(member, sets))
                except StartError as error:
                    self._writes.record(member.pod, "Warning", "FailedToStart", str(error))

    async def _stop(self, key: Key, members: Sequence[Member], workload: Known) -> None:
        """Delete who runs, and give back the quota when they are over."""
        for member in members:
            if not is_gated(member.pod) and is_active(member.pod):
                await self._writes.delete(member.pod, "Stopped", why_not(workload))
        now = self._shared.clock()
        await self._uncount_over(members)
        if rules.is_active(members, now):
            self.loop.queue.add_after(key, _SOON_S)
        elif is_stopped(workload):
            await release_quota(self._shared, workload)
        elif not life.holds_quota(workload.status):
            await self._writes.keep_in_step([each.pod for each in members], workload)

    async def _leave(self, key: Key, members: Sequence[Member], workload: Known) -> None:
        """Somebody deletes the Workload: what runs is stopped first."""
        for member in members:
            if not is_gated(member.pod) and is_active(member.pod):
                await self._writes.delete(member.pod, "Stopped", "its Workload is being deleted")
        await self._uncount_over(members)
        if rules.is_active(members, self._shared.clock()):
            self.loop.queue.add_after(key, _SOON_S)
        elif not is_elsewhere(workload.status):
            await self._shared.book.let_go(workload)

    async def _ended(self, members: Sequence[Member], workload: Known) -> None:
        await self._shared.book.let_go(workload)
        for member in members:
            if FINALIZER in member.pod.metadata.finalizers:
                await self._writes.uncount(member.pod)

    async def _uncount_over(self, members: Sequence[Member]) -> None:
        """Let pods go that are being deleted and use nothing. Those that succeeded still count, unless the whole group is deleted."""
        now = self._shared.clock()
        all_leave = all(is_leaving(each.pod) for each in members)
        for member in members:
            pod = member.pod
            counts = pod.status.phase == "Succeeded" and not all_leave
            if is_leaving(pod) and not counts and (is_gated(pod) or is_over(pod, now)):
                await self._writes.uncount(pod)


def _set_of(member: Member, sets: dict[str, PodSet]) -> PodSet:
    """The pod set of a pod; the only one for pods of a group that was admitted with its first pod."""
    found = sets.get(member.role)
    return next(iter(sets.values())) if found is None else found
