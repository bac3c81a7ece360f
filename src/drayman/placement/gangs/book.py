"""Which gangs a cluster has, and which of their members wait, are placed or have succeeded.

Objects and pods come in any order, and a gang is read from what is known when it is asked for: a pod may be there before its group, a Job
after its pods. A pod that is in no gang costs a look at its labels and annotations.

A claim that a group shares is reserved for the group, once, however many of its pods use it. It stays reserved while the group exists, and
its devices can be given up for another place only while no pod of the group is placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup, PluginPodGroup
from drayman.api.errors import DecodeError
from drayman.api.jobs import Job
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import GroupKey, group_key, is_done, is_leaving, priority_of
from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.inventory.undo import UndoLog
from drayman.placement.claims import is_group
from drayman.placement.gangs.declaring import Declaration, Declarations
from drayman.placement.gangs.dialects import kai, kubernetes, kueue, own, plugin
from drayman.placement.gangs.gang import (
    Dialect,
    Flaw,
    FlawKind,
    Gang,
    GangKey,
    InvalidGangError,
    Membership,
    missing,
)
from drayman.placement.gangs.membership import Reading, job_of, reading_of, statements_of
from drayman.placement.gangs.quorum import Shortfall, shortfall
from drayman.placement.topologies import Topologies

GroupObject = PodGroup | PluginPodGroup | KaiPodGroup
GROUP_KINDS: Final[tuple[type[GroupObject], ...]] = (PodGroup, PluginPodGroup, KaiPodGroup)
_SUCCEEDED: Final = "Succeeded"
_MOST_READ: Final = 4096
_NOBODY: Final[Mapping[str, Any]] = MappingProxyType({})


class MemberState(Enum):
    """What a member does."""

    WAITING = "waiting"
    PLACED = "placed"
    SUCCEEDED = "succeeded"


class Member(Struct, frozen=True):
    """A pod of a gang."""

    pod: Pod
    membership: Membership
    stated: Declaration | Flaw | None
    node: str
    """Where it is placed; empty if it is not."""
    is_known: bool
    """Whether the API server has shown it. Others are only decided about, such as the pods of a plan."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def state(self) -> MemberState:
        if self.pod.status.phase == _SUCCEEDED:
            return MemberState.SUCCEEDED
        return MemberState.PLACED if self.node else MemberState.WAITING

    @property
    def is_staying(self) -> bool:
        """Whether it counts among those that a gang has: not if it is being deleted."""
        return not is_leaving(self.pod)


class GangBook:
    """Follows groups, Jobs and pods. Belongs to a cluster state and takes part in its trials."""

    def __init__(self, log: UndoLog | None = None, topologies: Topologies | None = None) -> None:
        self._log = log or UndoLog()
        self.topologies = topologies or Topologies(self._log)
        self._objects: dict[GangKey, GroupObject] = {}
        self._jobs: dict[str, Mapping[str, str]] = {}  # what Jobs state for their pods, by uid
        self._of_jobs: dict[str, dict[str, Pod]] = {}  # pods, by uid of the Job and their own
        self._members: dict[str, Member] = {}  # by uid
        self._by_state: dict[MemberState, dict[GangKey, dict[str, Member]]] = {
            s: {} for s in MemberState
        }
        self._stated: dict[GangKey, Declarations] = {}
        self._changes = 0
        self._read: Bounded[GangKey, tuple[object, Gang | Flaw | None]] = Bounded(_MOST_READ)

    # Objects.

    def set_group(self, group: GroupObject) -> None:
        self._log.put(self._objects, key_of_group(group), group)

    def remove_group(self, group: GroupObject) -> None:
        self._log.pop(self._objects, key_of_group(group))

    def set_job(self, job: Job) -> None:
        """Its annotations may make its pods a gang."""
        self._state_for(job.metadata.uid, statements_of(job))

    def remove_job(self, job: Job) -> None:
        self._state_for(job.metadata.uid, None)

    def _state_for(self, job: str, stated: Mapping[str, str] | None) -> None:
        if self._jobs.get(job) == stated:
            return
        if stated is None:
            self._log.pop(self._jobs, job)
        else:
            self._log.put(self._jobs, job, stated)
        for pod in self._of_jobs.get(job, _NOBODY).values():
            self._enter(pod)

    # Pods.

    def see(self, pod: Pod) -> None:
        """A pod as the API server shows it."""
        if is_done(pod) and pod.status.phase != _SUCCEEDED:
            self.forget(pod)
        else:
            self._enter(pod)
            self._note_job(pod, is_there=True)

    def forget(self, pod: Pod) -> None:
        """A pod is gone."""
        if pod.metadata.uid in self._members:
            self._put(pod.metadata.uid, None)
        self._note_job(pod, is_there=False)

    def place(self, pod: Pod, node: str) -> None:
        """A pod has a node, or is about to get one."""
        known = self._members.get(pod.metadata.uid)
        if known is None:
            reading = reading_of(pod, self._jobs)
            if reading is not None:
                is_known = bool(pod.spec.node_name)
                self._put(pod.metadata.uid, _member(pod, reading, node, is_known=is_known))
        elif known.node != node:
            self._put(known.uid, replace(known, node=node))

    def displace(self, uid: str) -> Member | None:
        """A pod no longer has the node that it was placed on. Returns what to pass to `rejoin` to undo that.

        It waits again, unless the API server has bound it, which cannot be taken back, or has never shown it.
        """
        member = self._members.get(uid)
        if member is None or not member.node:
            return None
        waits = member.is_known and not member.pod.spec.node_name
        self._put(uid, replace(member, node="") if waits else None)
        return member

    def rejoin(self, member: Member) -> None:
        """The inverse of `displace`."""
        self._put(member.uid, member)

    # Answers.

    def member(self, uid: str) -> Member | None:
        """A pod that is in a gang, or at least says so."""
        return self._members.get(uid)

    def key_of(self, pod: Pod) -> GangKey | None:
        """The gang that a pod says it is in, whether or not there is such a gang."""
        member = self._members.get(pod.metadata.uid)
        if member is not None:
            return member.membership.key
        reading = reading_of(pod, self._jobs)
        return None if reading is None else reading.membership.key

    def unit_of(self, pod: Pod) -> GangKey | None:
        """The gang with which a pod is decided about, also if there is no telling what it is. Pods of other groups are on their own."""
        key = self.key_of(pod)
        return None if key is None or self.gang(key) is None else key

    def gang_of(self, pod: Pod) -> Gang | Flaw | None:
        """The gang that a pod is in, or why that is not known; None for a pod that is on its own."""
        member = self._members.get(pod.metadata.uid)
        if member is not None:
            membership, stated = member.membership, member.stated
        else:
            reading = reading_of(pod, self._jobs)
            if reading is None:
                return None
            membership, stated = reading.membership, reading.stated
        if isinstance(stated, Flaw):
            return stated
        key = membership.key
        if member is None and stated is not None and key not in self._stated:
            return _declared(key, (stated,), self.topologies)
        gang = self.gang(key)
        return _flaw_of_subgroup(gang, pod, membership) if isinstance(gang, Gang) else gang

    def gang(self, key: GangKey) -> Gang | Flaw | None:
        """The gang of this key, or why there is none. None for a group that is not a gang, and where no member states one."""
        source: object
        stated = self._stated.get(key)
        if stated is not None:
            source = (stated.change, self.topologies.revision)
        else:
            found = self._objects.get(key)
            if found is None:
                return missing(key) if key.has_object else None
            source = (_Same(found), self.topologies.revision)
        kept = self._read.get(key)
        if kept is not None and kept[0] == source:
            return kept[1]
        if stated is not None:
            gang: Gang | Flaw | None = _declared(key, stated.telling(), self.topologies)
        else:
            gang = _read(key, self._objects[key], self.topologies)
        self._read[key] = (source, gang)
        return gang

    def waiting(self, key: GangKey) -> Mapping[str, Member]:
        """The members without a node, by uid, in no particular order."""
        return self._by_state[MemberState.WAITING].get(key, _NOBODY)

    def placed(self, key: GangKey) -> Mapping[str, Member]:
        """The members with a node, by uid."""
        return self._by_state[MemberState.PLACED].get(key, _NOBODY)

    def succeeded(self, key: GangKey) -> Mapping[str, Member]:
        """The members that have done their part, by uid: they count, and need no place any more."""
        return self._by_state[MemberState.SUCCEEDED].get(key, _NOBODY)

    def all_keys(self) -> list[GangKey]:
        """The gangs that have members, always in the same order."""
        found = {key for buckets in self._by_state.values() for key in buckets}
        return sorted(found, key=lambda key: (key.dialect.value, *key[1:]))

    def pods_of_job(self, uid: str) -> list[Pod]:
        """The pods of a Job, in gangs or not."""
        return list(self._of_jobs.get(uid, _NOBODY).values())

    def stated_for(self, pod: Pod) -> Mapping[str, str]:
        """What the annotations of its Job state for a pod."""
        job = job_of(pod) if self._jobs else None
        return _NOBODY if job is None else self._jobs.get(job.uid, _NOBODY)

    def priority_of(self, pod: Pod) -> int:
        """How important a pod is: as its gang says, or else as it says itself."""
        gang = self.gang_of(pod)
        own = priority_of(pod)
        return own if not isinstance(gang, Gang) or gang.priority is None else gang.priority

    def stated_priority(self, key: GangKey | None) -> int | None:
        """How important a gang says that it is."""
        gang = None if key is None else self.gang(key)
        return gang.priority if isinstance(gang, Gang) else None

    def lack(self, gang: Gang) -> Shortfall | None:
        """What a gang lacks before it can start: members that do not exist. None if there are enough."""
        counts: Counter[str] = Counter()
        for buckets in self._by_state.values():
            for member in buckets.get(gang.key, _NOBODY).values():
                if member.is_staying:
                    counts[member.membership.subgroup] += 1
        return shortfall(gang, counts)

    def running(self, gang: Gang) -> Counter[str]:
        """How many members have a node, or have done their part, by subgroup."""
        found: Counter[str] = Counter()
        for members in (self.placed(gang.key), self.succeeded(gang.key)):
            for member in members.values():
                if member.is_staying:
                    found[member.membership.subgroup] += 1
        return found

    def object_of(self, key: GangKey) -> GroupObject | None:
        """The object of a gang, if it has one."""
        return self._objects.get(key)

    # Claims of Kubernetes' own groups.

    def pod_group_of(self, pod: Pod) -> PodGroup | None:
        """The PodGroup that a pod is in, if it exists. It need not be a gang."""
        key = group_key(pod)
        found = None if key is None else self._objects.get(kubernetes.key_of(*key))
        return found if isinstance(found, PodGroup) else None

    def pod_group(self, key: GangKey) -> PodGroup | None:
        """The PodGroup of Kubernetes that a key stands for, if it exists."""
        found = self._objects.get(key)
        return found if isinstance(found, PodGroup) else None

    def placed_in(self, group: GroupKey) -> Set[str]:
        """The pods of a PodGroup that have a node, by uid."""
        return self.placed(kubernetes.key_of(*group)).keys()

    def uses_alone(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Whether no other pod uses a claim: it is reserved for this pod, or for its group while no other pod of that has a node."""
        uid, group = pod.metadata.uid, group_key(pod)
        placed: Set[str] = frozenset() if group is None else self.placed_in(group)
        is_alone = not placed or (len(placed) == 1 and uid in placed)
        return all(
            consumer.uid == uid or (is_alone and group is not None and is_group(consumer, group[1]))
            for consumer in claim.status.reserved_for
        )

    # Internals.

    def _enter(self, pod: Pod) -> None:
        """A pod that the API server has shown, with what is known about its Job."""
        reading, known = reading_of(pod, self._jobs), self._members.get(pod.metadata.uid)
        if reading is not None:
            # A decision counts until the API server confirms it or it is taken back.
            decided = "" if known is None or known.pod.spec.node_name else known.node
            node = "" if pod.status.phase == _SUCCEEDED else pod.spec.node_name or decided
            member = _member(pod, reading, node, is_known=True)
            if member != known:
                self._put(pod.metadata.uid, member)
        elif known is not None:
            self._put(known.uid, None)

    def _note_job(self, pod: Pod, *, is_there: bool) -> None:
        """What is known about a Job may change, and with it which gang its pods are in."""
        job = job_of(pod)
        if job is None:
            return
        if is_there:
            self._log.put(self._of_jobs.setdefault(job.uid, {}), pod.metadata.uid, pod)
        elif pods := self._of_jobs.get(job.uid):
            self._log.pop(pods, pod.metadata.uid)
            if not pods and not self._log.is_open:
                del self._of_jobs[job.uid]

    def _put(self, uid: str, member: Member | None) -> None:
        """Replaces what is known about a pod."""
        known = self._members.pop(uid, None)
        self._log.note(self._put, uid, known)
        if known is not None:
            self._leave(known)
        if member is not None:
            self._members[uid] = member
            self._join(member)

    def _join(self, member: Member) -> None:
        key = member.membership.key
        self._by_state[member.state].setdefault(key, {})[member.uid] = member
        if member.stated is not None and _is_declared(key):
            self._changes += 1
            self._stated.setdefault(key, Declarations()).add(member.stated, self._changes)

    def _leave(self, member: Member) -> None:
        key, buckets = member.membership.key, self._by_state[member.state]
        del buckets[key][member.uid]
        if not buckets[key]:
            del buckets[key]
        if member.stated is not None and _is_declared(key):
            stated = self._stated[key]
            self._changes += 1
            stated.remove(member.stated, self._changes)
            if not stated:
                del self._stated[key]


def ranked(members: Mapping[str, Member]) -> Sequence[Member]:
    """Members in the order of their ranks, those without one last, by name."""

    def place(member: Member) -> tuple[str, bool, int, str, str]:
        membership, metadata = member.membership, member.pod.metadata
        rank = membership.rank
        return membership.subgroup, rank is None, rank or 0, metadata.name, metadata.uid

    return sorted(members.values(), key=place)


class _Same:
    """An object that is compared by identity: it never changes, and comparing all of it would cost more than reading it."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


def key_of_group(group: GroupObject) -> GangKey:
    """Of the gang that an object stands for."""
    namespace, name = group.metadata.namespace, group.metadata.name
    match group:
        case PodGroup():
            return kubernetes.key_of(namespace, name)
        case PluginPodGroup():
            return plugin.key_of(namespace, name)
        case KaiPodGroup():
            return kai.key_of(namespace, name)


def _is_declared(key: GangKey) -> bool:
    """Whether a gang is what its members state."""
    return not key.has_object


def _member(pod: Pod, reading: Reading, node: str, *, is_known: bool) -> Member:
    return Member(pod, reading.membership, reading.stated, node, is_known)


def _read(key: GangKey, found: GroupObject, topologies: Topologies) -> Gang | Flaw | None:
    try:
        match found:
            case PodGroup():
                return kubernetes.gang_of(key, found)
            case PluginPodGroup():
                return plugin.gang_of(key, found)
            case KaiPodGroup():
                return kai.gang_of(key, found, topologies)
    except InvalidGangError as error:
        return Flaw(key, FlawKind.INVALID, str(key), error.message, error.field)
    except DecodeError as error:
        return Flaw(key, FlawKind.INVALID, str(key), error.message, error.path)


def _declared(
    key: GangKey, stated: Sequence[Declaration | Flaw], topologies: Topologies
) -> Gang | Flaw:
    match key.dialect:
        case Dialect.KUEUE:
            return kueue.gang_of(key, stated)
        case Dialect.KAI:
            return kai.declared_gang(key, stated, topologies)
        case _:
            return own.gang_of(key, stated)


def _flaw_of_subgroup(gang: Gang, pod: Pod, membership: Membership) -> Gang | Flaw:
    """A pod belongs to a part of a gang that has no parts itself, if there are quorums for parts."""
    if not any(each.least is not None for each in gang.subgroups):
        return gang
    name = membership.subgroup
    if gang.subgroup(name) is not None and not gang.children(name):
        return gang
    if not name:
        message = f"is required: {gang.key} has subgroups"
    elif gang.subgroup(name) is None:
        message = f"{gang.key} has no subgroup {name}"
    else:
        message = f"subgroup {name} of {gang.key} consists of other subgroups"
    title = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
    return Flaw(gang.key, FlawKind.INVALID, title, message, f"metadata.labels[{kai.SUBGROUP}]")
