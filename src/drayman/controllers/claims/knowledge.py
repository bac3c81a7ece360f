"""What the claim controller knows of the cluster: the caches, and what it has itself just done.

A claim that was created a moment ago may not be in the cache yet, and a pod that is gone is no longer there. Both are remembered here;
otherwise a claim would be generated twice and the server asked about every pod that ever existed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from drayman.api.claim_generation import owning_group, owning_pod
from drayman.api.core import Pod
from drayman.api.meta import OwnerReference
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import claim_keys, group_key, is_done
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.bounded import Bounded
from drayman.cluster.informer import Informer
from drayman.cluster.informers import Informers
from drayman.cluster.resources import (
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
)
from drayman.workloads.claims.releasing import Consumer, Use

_REMEMBERED: Final = 10_000
"""Pods and groups that are gone. One that has been forgotten costs a question to the server."""


class Knowledge:
    """Implements `generating.Known`."""

    def __init__(self, informers: Informers) -> None:
        self.pods: Informer[Pod] = informers.informer(
            PODS, indexers={"claim": claim_keys, "template": _templates_of, "group": _group_of}
        )
        self.groups: Informer[PodGroup] = informers.informer(
            POD_GROUPS, indexers={"template": _templates_of}
        )
        self.claims: Informer[ResourceClaim] = informers.informer(
            RESOURCE_CLAIMS, indexers={"owner": _owner_uids}
        )
        self.templates: Informer[ResourceClaimTemplate] = informers.informer(
            RESOURCE_CLAIM_TEMPLATES
        )
        self._expected: dict[tuple[str, str], ResourceClaim] = {}
        self._expected_of: dict[str, dict[str, ResourceClaim]] = {}
        self._gone: Bounded[str, None] = Bounded(_REMEMBERED)

    async def wait_synced(self) -> None:
        for informer in (self.pods, self.groups, self.claims, self.templates):
            await informer.wait_synced()

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self.pods.cache.get(name, namespace)

    def group(self, namespace: str, name: str) -> PodGroup | None:
        return self.groups.cache.get(name, namespace)

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        found = self.claims.cache.get(name, namespace)
        return self._expected.get((namespace, name)) if found is None else found

    def claims_owned_by(self, uid: str) -> Iterable[ResourceClaim]:
        yield from self.claims.cache.by_index("owner", uid)
        yield from tuple(self._expected_of.get(uid, {}).values())

    def template(self, namespace: str, name: str) -> ResourceClaimTemplate | None:
        return self.templates.cache.get(name, namespace)

    def pods_using(self, claim: ResourceClaim) -> tuple[Pod, ...]:
        meta = claim.metadata
        return self.pods.cache.by_index("claim", f"{meta.namespace}/{meta.name}")

    def pods_from(self, template: ResourceClaimTemplate) -> tuple[Pod, ...]:
        meta = template.metadata
        return self.pods.cache.by_index("template", f"{meta.namespace}/{meta.name}")

    def groups_from(self, template: ResourceClaimTemplate) -> tuple[PodGroup, ...]:
        meta = template.metadata
        return self.groups.cache.by_index("template", f"{meta.namespace}/{meta.name}")

    def pods_in(self, namespace: str, group: str) -> tuple[Pod, ...]:
        return self.pods.cache.by_index("group", f"{namespace}/{group}")

    def expect(self, claim: ResourceClaim) -> None:
        """A claim is about to be created, or was found on the server: it counts as there until it is seen."""
        owner = _owner(claim)
        self._expected[claim.metadata.namespace, claim.metadata.name] = claim
        if owner is not None:
            self._expected_of.setdefault(owner.uid, {})[claim.metadata.name] = claim

    def settle(self, claim: ResourceClaim) -> None:
        """A claim has been seen, or has not been created after all."""
        if self._expected.pop((claim.metadata.namespace, claim.metadata.name), None) is None:
            return
        owner = _owner(claim)
        if owner is not None:
            of_owner = self._expected_of.get(owner.uid, {})
            of_owner.pop(claim.metadata.name, None)
            if not of_owner:
                self._expected_of.pop(owner.uid, None)

    def note_gone(self, user: Pod | PodGroup) -> None:
        self._gone[user.metadata.uid] = None

    def use_of(self, user: Consumer) -> Use:
        """Whether a pod or a group needs its claims, as far as is known without asking.

        Another one of the same name proves nothing: it may be the older one, if the cache is behind.
        """
        if user.uid in self._gone:
            return Use.OVER
        find = self.pod if user.resource == "pods" else self.group
        found = find(user.namespace, user.name)
        if found is None or found.metadata.uid != user.uid:
            return Use.UNKNOWN
        return Use.OVER if isinstance(found, Pod) and is_done(found) else Use.NEEDED


def _templates_of(user: Pod | PodGroup) -> Iterator[str]:
    for entry in user.spec.resource_claims:
        if entry.resource_claim_template_name is not None:
            yield f"{user.metadata.namespace}/{entry.resource_claim_template_name}"


def _group_of(pod: Pod) -> tuple[str, ...]:
    key = group_key(pod)
    return () if key is None else ("/".join(key),)


def _owner(claim: ResourceClaim) -> OwnerReference | None:
    return owning_pod(claim) or owning_group(claim)


def _owner_uids(claim: ResourceClaim) -> Iterator[str]:
    owner = _owner(claim)
    if owner is not None:
        yield owner.uid
