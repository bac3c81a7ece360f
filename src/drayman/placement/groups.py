"""The groups of pods that the cluster has, and which of their pods have a node.

A claim that a group shares is reserved for the group, once, however many of its pods use it. It stays reserved while the group exists, and
its devices can be given up for another place only while no pod of the group is placed.
"""

from __future__ import annotations

from collections.abc import Set

from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import GroupKey, entries_of, group_key
from drayman.api.resource import ResourceClaim
from drayman.inventory.undo import UndoLog
from drayman.placement.claims import is_group


class Groups:
    """Follows the groups and the pods in them that are placed. Pods without a group do not concern it."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self._groups: dict[GroupKey, PodGroup] = {}
        self._placed: dict[GroupKey, set[str]] = {}  # uids of pods
        self._group_of: dict[str, GroupKey] = {}  # the other way round

    def set(self, group: PodGroup) -> None:
        self._log.put(self._groups, (group.metadata.namespace, group.metadata.name), group)

    def remove(self, group: PodGroup) -> None:
        self._log.pop(self._groups, (group.metadata.namespace, group.metadata.name))

    def of(self, pod: Pod) -> PodGroup | None:
        """The group that a pod is in, if it exists."""
        key = group_key(pod)
        return None if key is None else self._groups.get(key)

    def place(self, pod: Pod) -> None:
        """A pod has a node, or is about to get one."""
        key = group_key(pod)
        if key is not None and pod.metadata.uid not in self._group_of:
            self.join(pod.metadata.uid, key)

    def join(self, uid: str, key: GroupKey) -> None:
        """A pod of this group has a node."""
        self._log.note(self.displace, uid)
        self._placed.setdefault(key, set()).add(uid)
        self._group_of[uid] = key

    def displace(self, uid: str) -> GroupKey | None:
        """A pod no longer has a node. Returns its group, if any."""
        key = self._group_of.pop(uid, None)
        if key is not None:
            self._log.note(self.join, uid, key)
            placed = self._placed[key]
            placed.discard(uid)
            if not placed:
                del self._placed[key]
        return key

    def placed(self, key: GroupKey) -> Set[str]:
        """The pods of a group that have a node, by uid."""
        return self._placed.get(key, frozenset())

    def uses_alone(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Whether no other pod uses a claim: it is reserved for this pod, or for its group while no other pod of that has a node."""
        uid, key = pod.metadata.uid, group_key(pod)
        alone = key is not None and self._placed.get(key, set()) <= {uid}
        return all(
            consumer.uid == uid or (alone and key is not None and is_group(consumer, key[1]))
            for consumer in claim.status.reserved_for
        )


def shares(group: PodGroup, claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim that a pod uses is one of its group: the pod's entry for it is also an entry of the group."""
    return any(
        entry in group.spec.resource_claims for entry in entries_of(pod, claim.metadata.name)
    )
