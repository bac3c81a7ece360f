"""When pods with claims got their nodes, in versions of the server.

Versions of pods are compared with versions of claims, which are watched apart from each other: so it can be told what a claim had when its
pod got its node, whichever of the two was shown first.
"""

from __future__ import annotations

from drayman.api.core import Pod
from drayman.api.pods import has_claims
from drayman.inventory.undo import UndoLog


class PodStarts:
    """What is known of pods that were shown without a node first."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        # By uid, the first version that has a node; None as long as no such version was shown.
        self._bound_at: dict[str, int | None] = {}

    def see(self, pod: Pod) -> None:
        """A version of a pod that the server shows."""
        uid, version = pod.metadata.uid, pod.metadata.resource_version
        if not pod.spec.node_name:
            if has_claims(pod) and uid not in self._bound_at:
                self._log.put(self._bound_at, uid, None)
        elif uid in self._bound_at and self._bound_at[uid] is None:
            # What is listed again comes without the versions in between: a pod that its node has started was bound before this one.
            if version.isdecimal() and not pod.status.start_time:
                self._log.put(self._bound_at, uid, int(version))
            else:
                self.forget(uid)

    def forget(self, uid: str) -> None:
        """A pod no longer exists."""
        self._log.pop(self._bound_at, uid)

    def is_after(self, uid: str, version: int) -> bool:
        """Whether a pod is known to have got its node after a version."""
        bound_at = self._bound_at.get(uid)
        return bound_at is not None and bound_at > version
