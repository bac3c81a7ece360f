"""Which pods, groups of pods and claims may need something done after a change.

Every change of a pod passes here, so what needs nothing is filtered out at once, from the caches alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from drayman.api.claim_generation import owning_group
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import has_claims, is_done, named_claims, used_claims
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.cluster.informer import Notice
from drayman.cluster.workqueue import WorkQueue
from drayman.controllers.claims.knowledge import Knowledge
from drayman.placement.claims import FINALIZER
from drayman.workloads.claims.generating import lacking
from drayman.workloads.claims.releasing import release, users_in_doubt
from drayman.workloads.claims.reserving import unreserved

COLLECTION_SECONDS: Final = 0.1
"""How long an unprotected claim whose owner is gone is left to garbage collection."""


class Key(NamedTuple):
    """What may need something done."""

    sort: Literal["pod", "claim", "podgroup"]
    namespace: str
    name: str


class Noticing:
    """Puts what a change concerns into a queue."""

    def __init__(self, known: Knowledge, queue: WorkQueue[Key]) -> None:
        self._known = known
        self._queue = queue

    def begin(self) -> None:
        self._known.pods.add_handler(self._pod_changed)
        self._known.groups.add_handler(self._group_changed)
        self._known.claims.add_handler(self._claim_changed)
        self._known.templates.add_handler(self._template_changed)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        if not has_claims(pod):
            return
        is_gone = notice.type == "DELETED"
        if is_gone:
            self._known.note_gone(pod)
        if is_gone or is_done(pod):
            self._ask_about_claims_of(pod, used_claims(pod), is_gone=is_gone)
        if not is_gone:
            self._ask_about(pod)

    def _group_changed(self, notice: Notice[PodGroup]) -> None:
        group = notice.object
        if notice.type == "DELETED":
            self._known.note_gone(group)
            self._ask_about_claims_of(group, named_claims(group), is_gone=True)
        else:
            self._ask_about_group(group)

    def _claim_changed(self, notice: Notice[ResourceClaim]) -> None:
        claim = notice.object
        self._known.settle(claim)
        if notice.type != "DELETED" and self._may_be_released(claim):
            self._queue.add(Key("claim", claim.metadata.namespace, claim.metadata.name))
        for pod in self._known.pods_using(claim):
            self._ask_about(pod)
        owner = owning_group(claim)
        if owner is not None:
            group = self._known.group(claim.metadata.namespace, owner.name)
            if group is not None:
                self._ask_about_group(group)

    def _template_changed(self, notice: Notice[ResourceClaimTemplate]) -> None:
        if notice.type != "DELETED":
            for pod in self._known.pods_from(notice.object):
                self._ask_about(pod)
            for group in self._known.groups_from(notice.object):
                self._ask_about_group(group)

    def _ask_about_group(self, group: PodGroup) -> None:
        """Queues the group and its pods: they wait for it, and for the claims that it gets."""
        meta = group.metadata
        if lacking(group, self._known):
            self._queue.add(Key("podgroup", meta.namespace, meta.name))
        for pod in self._known.pods_in(meta.namespace, meta.name):
            self._ask_about(pod)

    def _ask_about(self, pod: Pod) -> None:
        if lacking(pod, self._known) or unreserved(pod, self._known):
            self._queue.add(Key("pod", pod.metadata.namespace, pod.metadata.name))

    def _ask_about_claims_of(
        self, user: Pod | PodGroup, names: Iterable[str], *, is_gone: bool
    ) -> None:
        owned = {
            claim.metadata.name: claim for claim in self._known.claims_owned_by(user.metadata.uid)
        }
        for name in {**owned, **dict.fromkeys(names)}:
            claim = owned.get(name)
            # Garbage collection removes unprotected claims of an owner that is gone. If both acted at the same time, one would only find
            # that the other was faster.
            is_left = is_gone and claim is not None and FINALIZER not in claim.metadata.finalizers
            self._queue.add_after(
                Key("claim", user.metadata.namespace, name), COLLECTION_SECONDS if is_left else 0.0
            )

    def _may_be_released(self, claim: ResourceClaim) -> bool:
        if release(claim, self._known.use_of).is_needed:
            return True
        return bool(users_in_doubt(claim, self._known.use_of))
