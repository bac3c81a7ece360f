"""Which claims a pod or a group of pods lacks, and what they will be.

An entry that names a template gets a claim of its own. Where a pod is in a group that has the very same entry, it stands for the group's
claim, and the pod waits until the group's status names one. The name of the claim is drawn here instead of by the server, from the
same alphabet, so that the claim and the entry in the status that names it can be written together.

As in Kubernetes, entries are served in order up to the first one that has no template, and the status is written once all of them are.
Unlike in 1.36.4, all entries are written, those of earlier rounds too (it removed them), and a claim that was deleted while its pod waits
is made again at once (it never was).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from drayman.api.claim_generation import POD_CLAIM_NAME, is_made_for, make_claim
from drayman.api.core import Pod, PodResourceClaim, PodResourceClaimStatus
from drayman.api.meta import controller_of
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import claim_of, entry_claims, group_key, is_done, statuses_with
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate


class Known(Protocol):
    """The objects that decisions are made from."""

    def claim(self, namespace: str, name: str) -> ResourceClaim | None: ...

    def claims_owned_by(self, uid: str) -> Iterable[ResourceClaim]: ...

    def template(self, namespace: str, name: str) -> ResourceClaimTemplate | None: ...

    def group(self, namespace: str, name: str) -> PodGroup | None: ...


@dataclass(frozen=True, slots=True)
class Generation:
    """What a pod or a group lacks: claims to create and, once every entry has one, the entries for its status."""

    user: Pod | PodGroup
    claims: tuple[ResourceClaim, ...] = ()
    statuses: tuple[PodResourceClaimStatus, ...] = ()
    """All of them, new ones included. Empty where nothing is to be written."""
    failure: str = ""
    """Why an entry could not be served."""


def lacking(user: Pod | PodGroup, known: Known) -> tuple[PodResourceClaim, ...]:
    """The entries that are to get a claim now, as far as is known."""
    if user.metadata.deletion_timestamp is not None:
        return ()
    if isinstance(user, Pod) and is_done(user):
        return ()
    entries = tuple(entry for entry, name in entry_claims(user) if _lacks(user, entry, name, known))
    if isinstance(user, PodGroup) or not entries or user.spec.scheduling_group is None:
        return entries
    group = group_of(user, known)
    if group is None:
        return ()  # only the group can say which of them are its own
    return tuple(
        entry
        for entry in entries
        if entry not in group.spec.resource_claims or _shared_claim(group, entry, known) is not None
    )


def _lacks(user: Pod | PodGroup, entry: PodResourceClaim, name: str | None, known: Known) -> bool:
    """`name` is that of the claim which was made for the entry, if one was."""
    if entry.resource_claim_template_name is None:
        return False
    if name is None:
        return True
    if not name:
        return False
    claim = known.claim(user.metadata.namespace, name)
    if claim is None:
        return True
    return not (_is_own(claim, user) if isinstance(user, PodGroup) else is_made_for(claim, user))


def group_of(pod: Pod, known: Known) -> PodGroup | None:
    """The group that a pod is in, if it exists."""
    key = group_key(pod)
    return None if key is None else known.group(*key)


def _shared_claim(group: PodGroup, entry: PodResourceClaim, known: Known) -> ResourceClaim | None:
    """The claim that was made for an entry of a group, once the group's status says so."""
    name = claim_of(group, entry)
    claim = known.claim(group.metadata.namespace, name) if name else None
    return claim if claim is not None and _is_own(claim, group) else None


def _is_own(claim: ResourceClaim, group: PodGroup) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == group.metadata.uid


def generate(
    user: Pod | PodGroup,
    entries: Iterable[PodResourceClaim],
    known: Known,
    suffix: Callable[[], str],
) -> Generation:
    """The claims for some entries. `suffix` gives the random end of each name."""
    group = group_of(user, known) if isinstance(user, Pod) else None
    created: list[ResourceClaim] = []
    found: dict[str, str] = {}
    earlier = _earlier_claims(user, known)
    for entry in entries:
        claim = None
        if group is not None and entry in group.spec.resource_claims:
            claim = _shared_claim(group, entry, known)
            if claim is None:
                continue  # it went away again: the pod waits for the next one
        claim = claim or earlier.get(entry.name)
        if claim is None:
            template = known.template(
                user.metadata.namespace, entry.resource_claim_template_name or ""
            )
            if template is None:
                return Generation(user, tuple(created), failure=_no_template(user, entry))
            claim = make_claim(user, entry, template, suffix())
            created.append(claim)
        found[entry.name] = claim.metadata.name
    return Generation(user, tuple(created), statuses_with(user, found))


def _earlier_claims(user: Pod | PodGroup, known: Known) -> dict[str, ResourceClaim]:
    """Those that were made before the status could say so, by the entry they were made for."""
    found: dict[str, ResourceClaim] = {}
    for claim in known.claims_owned_by(user.metadata.uid):
        name = claim.metadata.annotations.get(POD_CLAIM_NAME)
        if name is not None and claim.metadata.deletion_timestamp is None:
            found.setdefault(name, claim)
    return found


def _no_template(user: Pod | PodGroup, entry: PodResourceClaim) -> str:
    name = entry.resource_claim_template_name
    return (
        f'{user.kind}ResourceClaim {entry.name}: resource claim template "{name}":'
        f' resourceclaimtemplate.resource.k8s.io "{name}" not found'
    )
