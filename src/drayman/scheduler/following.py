"""Applies what the API server shows to the state and the queue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final

from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup, KaiTopology, KueueTopology, PluginPodGroup
from drayman.api.jobs import Job
from drayman.api.kueue_workload import Workload
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import named_claims, unmade_entries
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.struct import ApiStruct
from drayman.api.volume_binding import volume_claims_of
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers
from drayman.cluster.resources import typed
from drayman.cluster.turns import Turns
from drayman.placement.claim_book import ClaimKey
from drayman.placement.claims import extended_for
from drayman.placement.followed import FOLLOWED, Followed
from drayman.placement.gangs.book import GroupObject, Member, key_of_group
from drayman.placement.gangs.dialects.kai import QUEUE
from drayman.placement.gangs.membership import STATING_GANGS
from drayman.placement.gpu_shares import ANNOTATIONS
from drayman.placement.min_runtime import MIN_RUNTIME
from drayman.placement.nominations import Nominations
from drayman.placement.runs.declaring import declared_by
from drayman.placement.schedulers import awaits_scheduler, scheduler_of
from drayman.placement.spending import is_otherwise
from drayman.placement.state import ClusterState
from drayman.placement.wake import Wake
from drayman.quota.fitting.admitted_room import AdmittedRoom
from drayman.scheduler.binding import Binder
from drayman.scheduler.keeping import RoomKeeper
from drayman.scheduler.queue import Queue

DELETED: Final = "DELETED"


class Follower:
    """Adds handlers to informers. All of them run on the event loop of the scheduler."""

    def __init__(
        self,
        handlers: Handlers,
        state: ClusterState,
        queue: Queue,
        binder: Binder,
        names: frozenset[str],
        work: Callable[[], None],
        nominations: Nominations,
        keeper: RoomKeeper,
        admitted: AdmittedRoom,
        turns: Turns | None = None,
    ) -> None:
        self._handlers = handlers
        self._state = state
        self._queue = queue
        self._binder = binder
        self._names = names
        self._work = work
        self._nominations = nominations
        self._keeper = keeper
        self._admitted = admitted
        self._turns = turns
        self._is_under_way: Callable[[str], bool] = lambda _: False
        # Pods in the queue, by the claims and the volume claims they name.
        self._users: dict[ClaimKey, set[str]] = {}
        self._named: dict[str, tuple[ClaimKey, ...]] = {}  # the other way round
        self._present: set[str] = set()  # pods that exist and have no node

    def follow(self, is_under_way: Callable[[str], bool]) -> None:
        """Start. `is_under_way` says whether a pod has a node that is not yet written."""
        self._is_under_way = is_under_way
        effects: dict[type[ApiStruct], Callable[[Notice[Any]], None]] = {
            PersistentVolume: self._volume,
            PersistentVolumeClaim: self._volume_claim,
            PodGroup: self._group,
            PluginPodGroup: self._group,
            KaiPodGroup: self._group,
            KaiTopology: self._topology,
            KueueTopology: self._topology,
            Job: self._job,
            ResourceClaim: self._claim,
            ResourceClaimTemplate: self._template,
        }
        for kind in FOLLOWED:
            if kind.for_drafts and self._turns is None:
                continue
            handler: Callable[[Notice[Any]], None] = (
                self._pod  # how it affects the state depends on what else is known about it
                if kind.type is Pod
                else self._handler(kind, effects.get(kind.type, self._something))
            )
            self._handlers.add(typed(kind.type), handler)
        self._handlers.add(typed(Workload), self._workload)

    def waits(self, uid: str) -> bool:
        """Whether the pod exists and has no node."""
        return uid in self._present

    def _handler(
        self, kind: Followed, effect: Callable[[Notice[Any]], None]
    ) -> Callable[[Notice[Any]], None]:
        """Applies a change to the state and then handles its consequences."""

        def handle(notice: Notice[Any]) -> None:
            if notice.type == DELETED:
                kind.remove(self._state, notice.object)
            elif kind.put(self._state, notice.object) is False:
                return
            if kind.wakes is not None:
                self._queue.wake(kind.wakes)
            effect(notice)

        return handle

    def _something(self, _: Notice[Any]) -> None:
        """For most kinds, the state itself reports what a change may improve."""
        self._work()

    def _workload(self, notice: Notice[Workload]) -> None:
        if notice.type == DELETED:
            self._admitted.forget_workload(notice.object)
        else:
            self._admitted.note_workload(notice.object)
        self._work()

    def _group(self, notice: Notice[GroupObject]) -> None:
        old, new = notice.old, notice.object
        if (
            notice.type != DELETED
            and old is not None
            and old.spec == new.spec
            and old.metadata.annotations == new.metadata.annotations
        ):
            return  # only its status has changed
        key = key_of_group(new)
        members = self._state.gangs.waiting(key)
        self._regroup([member.pod for member in members.values()])
        if self._state.gangs.placed(key):
            self._state.room_is_free()  # it may make way now, if it did not before

    def _topology(self, _: Notice[KaiTopology | KueueTopology]) -> None:
        for entry in self._queue.gangs():
            self._regroup(list(entry.pods.values()))

    def _job(self, notice: Notice[Job]) -> None:
        old, new = notice.old, notice.object
        if (
            old is not None
            and old.metadata.annotations == new.metadata.annotations
            and old.metadata.labels.get(QUEUE) == new.metadata.labels.get(QUEUE)
        ):
            return
        self._regroup(self._state.gangs.pods_of_job(new.metadata.uid))
        self._note_min_runtime(old, new)

    def _regroup(self, pods: Sequence[Pod]) -> None:
        """The gang of some pods has changed: it, or others, may now be decided about."""
        for pod in pods:
            if pod.metadata.uid in self._present and not self._is_under_way(pod.metadata.uid):
                self._put_in_line(pod)

    def _volume(self, notice: Notice[PersistentVolume]) -> None:
        volume = notice.object
        if notice.type != DELETED and _may_help(notice.old, volume):
            self._queue.wake(Wake.VOLUMES)
        self._binder.volume_changed(volume)
        self._work()

    def _volume_claim(self, notice: Notice[PersistentVolumeClaim]) -> None:
        claim = notice.object
        self._binder.volume_claim_changed(claim)
        users = self._users.get(_volume_key(claim.metadata.namespace, claim.metadata.name))
        if users:
            self._queue.wake_pods(users)
            self._work()

    def _template(self, notice: Notice[ResourceClaimTemplate]) -> None:
        if notice.type != DELETED:
            self._admitted.note_claims()
        self._something(notice)

    def _claim(self, notice: Notice[ResourceClaim]) -> None:
        claim = notice.object
        if notice.old is None and notice.type != DELETED:
            self._admitted.note_claims()
        self._binder.claim_changed(claim)
        users = self._users.get((claim.metadata.namespace, claim.metadata.name))
        owner = extended_for(claim)
        if owner is not None:
            # Its pod cannot be tried again until what an earlier attempt left behind is gone.
            users = {owner.uid}
        if users:
            self._queue.wake_pods(users)
            self._work()

    def _pod(self, notice: Notice[Pod]) -> None:
        uid, gangs = notice.object.metadata.uid, self._state.gangs
        before = gangs.member(uid)
        self._take_in(notice)
        after = gangs.member(uid)
        if before is not after and _counts_as(before) != _counts_as(after):
            for member in (before, after):
                if member is not None and self._queue.reconsider(member.membership.key):
                    self._work()

    def _take_in(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        uid = pod.metadata.uid
        if notice.type == DELETED:
            self._drop(uid)
            self._state.delete_pod(pod)
            self._admitted.note_gone(pod)
        elif pod.spec.node_name or not self._is_ours(pod):
            self._drop(uid)
            self._state.set_pod(pod)
            self._admitted.note_placed(pod)
            self._note_min_runtime(notice.old, pod)
        else:
            self._state.set_pod(pod)
            if uid not in self._present and self._turns is not None and _lacks_claims(pod):
                self._turns.take(pod)
            self._present.add(uid)
            self._note_claims(pod)
            if self._is_under_way(uid):
                return
            self._keeper.note(pod)
            self._admitted.note_waiting(pod)
            if notice.old is not None and uid in self._queue and not _matters(notice.old, pod):
                self._queue.note(pod)
                return
            self._put_in_line(pod)

    def _put_in_line(self, pod: Pod) -> None:
        gangs = self._state.gangs
        key = gangs.unit_of(pod)
        leaf = self._state.queues.leaf_of(pod.metadata.uid)
        self._queue.add(pod, key, gangs.stated_priority(key), leaf)
        self._work()

    def _note_min_runtime(self, old: Pod | Job | None, new: Pod | Job) -> None:
        """If pods on nodes are left alone for another time than before, they may make way now."""
        if old is not None and _says_otherwise(old, new, (MIN_RUNTIME,)):
            self._state.room_is_free()

    def _is_ours(self, pod: Pod) -> bool:
        return awaits_scheduler(pod) and scheduler_of(pod) in self._names

    def _drop(self, uid: str) -> None:
        """The pod no longer waits for a node."""
        self._present.discard(uid)
        self._keeper.end(uid)
        self._nominations.withdraw(uid)
        if self._turns is not None:
            self._turns.end(uid)
        if uid in self._queue:
            self._queue.remove(uid)
            self._work()  # another of its shape may be queued instead
        self._binder.pod_gone(uid)
        self._forget_claims(uid)

    def _note_claims(self, pod: Pod) -> None:
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        keys = tuple((namespace, name) for name in named_claims(pod))
        if pod.spec.volumes:
            keys = (*keys, *(_volume_key(namespace, name) for name in volume_claims_of(pod)))
        if self._named.get(uid, ()) == keys:
            return
        self._forget_claims(uid)
        self._named[uid] = keys
        for key in keys:
            self._users.setdefault(key, set()).add(uid)

    def _forget_claims(self, uid: str) -> None:
        for key in self._named.pop(uid, ()):
            users = self._users[key]
            users.discard(uid)
            if not users:
                del self._users[key]


def _counts_as(member: Member | None) -> Hashable:
    """What others of its gang, which wait for members, have to know about one of them."""
    if member is None:
        return None
    is_held = bool(member.pod.spec.scheduling_gates)
    return member.membership, member.state, member.is_staying, is_held


def _volume_key(namespace: str, name: str) -> ClaimKey:
    """The key of a volume claim among the claims that pods name: one that no claim for devices can have."""
    return namespace, f"persistentvolumeclaims/{name}"


def _may_help(old: PersistentVolume | None, new: PersistentVolume) -> bool:
    """Whether some pod may be waiting for a volume. A volume that is taken concerns only pods that use its claim."""
    return (
        old is None
        or new.spec.claim_ref is None
        or old.spec.node_affinity != new.spec.node_affinity
        or old.metadata.labels != new.metadata.labels
    )


def _lacks_claims(pod: Pod) -> bool:
    """Whether claims are to be made from templates for the pod alone."""
    return pod.spec.scheduling_group is None and bool(unmade_entries(pod))


def _matters(old: Pod, new: Pod) -> bool:
    """Whether a change to a pod could change the decision about it."""
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or is_otherwise(old, new)
        or declared_by(old) != declared_by(new)
        or _says_otherwise(old, new, STATING_GANGS)
        or _says_otherwise(old, new, ANNOTATIONS)
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.nominated_node_name != new.status.nominated_node_name
    )


def _says_otherwise(old: Pod | Job, new: Pod | Job, annotations: Collection[str]) -> bool:
    """Whether one of these annotations has changed. Mostly no annotation has."""
    before, after = old.metadata.annotations, new.metadata.annotations
    return before != after and any(before.get(name) != after.get(name) for name in annotations)
