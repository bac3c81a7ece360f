"""What the claim controller knows of the cluster: the caches, and what it has itself just done.

A claim that was created a moment ago may not be in the cache yet, and a pod that is gone is no longer there. Both are
remembered here, or a claim would be generated twice and the server asked about every pod that ever was.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.cluster.informer import Informer
from drayman.cluster.informers import Informers
from drayman.cluster.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from drayman.controllers.claims.releasing import Use
from drayman.controllers.pod_claims import claim_keys, is_done, owning_pod

_REMEMBERED: Final = 10_000
"""Pods that are gone. One that has been forgotten costs a question to the server."""


class Knowledge:
    """Implements `generating.Known`."""

    def __init__(self, informers: Informers) -> None:
        self.pods: Informer[Pod] = informers.informer(
            PODS, indexers={"claim": claim_keys, "template": _templates_of}
        )
        self.claims: Informer[ResourceClaim] = informers.informer(
            RESOURCE_CLAIMS, indexers={"pod": _pod_of}
        )
        self.templates: Informer[ResourceClaimTemplate] = informers.informer(
            RESOURCE_CLAIM_TEMPLATES
        )
        self._expected: dict[tuple[str, str], ResourceClaim] = {}
        self._expected_of: dict[str, dict[str, ResourceClaim]] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()

    async def wait_synced(self) -> None:
        for informer in (self.pods, self.claims, self.templates):
            await informer.wait_synced()

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self.pods.cache.get(name, namespace)

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        found = self.claims.cache.get(name, namespace)
        return self._expected.get((namespace, name)) if found is None else found

    def claims_owned_by(self, uid: str) -> Iterable[ResourceClaim]:
        yield from self.claims.cache.by_index("pod", uid)
        yield from tuple(self._expected_of.get(uid, {}).values())

    def template(self, namespace: str, name: str) -> ResourceClaimTemplate | None:
        return self.templates.cache.get(name, namespace)

    def pods_using(self, claim: ResourceClaim) -> tuple[Pod, ...]:
        meta = claim.metadata
        return self.pods.cache.by_index("claim", f"{meta.namespace}/{meta.name}")

    def pods_from(self, template: ResourceClaimTemplate) -> tuple[Pod, ...]:
        meta = template.metadata
        return self.pods.cache.by_index("template", f"{meta.namespace}/{meta.name}")

    def expect(self, claim: ResourceClaim) -> None:
        """A claim is about to be created, or was found on the server: it counts as there until it is seen."""
        owner = owning_pod(claim)
        self._expected[claim.metadata.namespace, claim.metadata.name] = claim
        if owner is not None:
            self._expected_of.setdefault(owner.uid, {})[claim.metadata.name] = claim

    def settle(self, claim: ResourceClaim) -> None:
        """A claim has been seen, or has not been created after all."""
        if self._expected.pop((claim.metadata.namespace, claim.metadata.name), None) is None:
            return
        owner = owning_pod(claim)
        if owner is not None:
            of_owner = self._expected_of.get(owner.uid, {})
            of_owner.pop(claim.metadata.name, None)
            if not of_owner:
                self._expected_of.pop(owner.uid, None)

    def note_gone(self, pod: Pod) -> None:
        self._gone[pod.metadata.uid] = None
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)

    def use_of(self, namespace: str, name: str, uid: str) -> Use:
        """Whether a pod needs its claims, as far as can be told without asking.

        Another pod of the same name proves nothing: it may be the older one, if the cache is behind.
        """
        if uid in self._gone:
            return Use.OVER
        pod = self.pod(namespace, name)
        if pod is None or pod.metadata.uid != uid:
            return Use.UNKNOWN
        return Use.OVER if is_done(pod) else Use.NEEDED


def _templates_of(pod: Pod) -> Iterator[str]:
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_template_name is not None:
            yield f"{pod.metadata.namespace}/{entry.resource_claim_template_name}"


def _pod_of(claim: ResourceClaim) -> Iterator[str]:
    owner = owning_pod(claim)
    if owner is not None:
        yield owner.uid
