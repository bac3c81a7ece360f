"""Which claims a pod lacks, and what they will be.

An entry of a pod that names a template gets a claim of its own. The name of the claim is drawn here instead of by the server, from the
same alphabet, so that the claim and the entry in the pod's status that names it can be written together.

As in Kubernetes, entries are served in order up to the first one that cannot be, and the pod's status is written once all of
them are. Other than in 1.36.4, all entries are written, those of earlier rounds too (it removed them), and a claim that was deleted
while its pod waits is made again at once (it never was).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from drayman.api.claim_generation import POD_CLAIM_NAME, make_claim
from drayman.api.core import Pod, PodResourceClaim, PodResourceClaimStatus
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.controllers.pod_claims import is_done, is_made_for, recorded_claim


class Known(Protocol):
    """The objects that decisions are made from."""

    def claim(self, namespace: str, name: str) -> ResourceClaim | None: ...

    def claims_owned_by(self, uid: str) -> Iterable[ResourceClaim]: ...

    def template(self, namespace: str, name: str) -> ResourceClaimTemplate | None: ...


@dataclass(frozen=True, slots=True)
class Generation:
    """What a pod lacks: claims to create and, once every entry has one, the entries for its status."""

    pod: Pod
    claims: tuple[ResourceClaim, ...] = ()
    statuses: tuple[PodResourceClaimStatus, ...] = ()
    """All of them, new ones included. Empty where nothing is to be written."""
    failure: str = ""
    """Why an entry could not be served."""


def lacking(pod: Pod, known: Known) -> tuple[PodResourceClaim, ...]:
    """The entries of a pod that a claim is to be generated for, as far as is known."""
    if pod.metadata.deletion_timestamp is not None or is_done(pod):
        return ()
    return tuple(entry for entry in pod.spec.resource_claims if _lacks(pod, entry, known))


def _lacks(pod: Pod, entry: PodResourceClaim, known: Known) -> bool:
    if entry.resource_claim_template_name is None:
        return False
    name = recorded_claim(pod, entry)
    if name is None:
        return True
    if not name:
        return False
    claim = known.claim(pod.metadata.namespace, name)
    return claim is None or not is_made_for(claim, pod)


def generate(
    pod: Pod, entries: Iterable[PodResourceClaim], known: Known, suffix: Callable[[], str]
) -> Generation:
    """The claims for some entries. `suffix` gives the random end of each name."""
    created: list[ResourceClaim] = []
    found: dict[str, str] = {}
    for entry in entries:
        claim = _earlier_claim(pod, entry, known)
        if claim is None:
            template = known.template(
                pod.metadata.namespace, entry.resource_claim_template_name or ""
            )
            if template is None:
                return Generation(pod, tuple(created), failure=_no_template(entry))
            claim = make_claim(pod, entry, template, suffix())
            created.append(claim)
        found[entry.name] = claim.metadata.name
    return Generation(pod, tuple(created), _merged(pod, found))


def _earlier_claim(pod: Pod, entry: PodResourceClaim, known: Known) -> ResourceClaim | None:
    """One that was made for this entry before the pod's status could say so."""
    for claim in known.claims_owned_by(pod.metadata.uid):
        is_ours = claim.metadata.annotations.get(POD_CLAIM_NAME) == entry.name
        if is_ours and claim.metadata.deletion_timestamp is None:
            return claim
    return None


def _merged(pod: Pod, found: dict[str, str]) -> tuple[PodResourceClaimStatus, ...]:
    """The pod's entries with the new ones in place."""
    statuses = {status.name: status for status in pod.status.resource_claim_statuses}
    for name, claim in found.items():
        statuses[name] = PodResourceClaimStatus(name=name, resource_claim_name=claim)
    return tuple(statuses[name] for name in sorted(statuses))


def _no_template(entry: PodResourceClaim) -> str:
    name = entry.resource_claim_template_name
    return (
        f'PodResourceClaim {entry.name}: resource claim template "{name}":'
        f' resourceclaimtemplate.resource.k8s.io "{name}" not found'
    )
