"""A pod that goes to a node: what is to be written for it, and how it is counted until that is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import (
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
)
from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.placement.claim_book import ClaimKey
from drayman.placement.fit import PodNeeds
from drayman.placement.placing import Found
from drayman.placement.state import ClusterState
from drayman.placement.volumes import Taken


class Made(Struct, frozen=True, eq=False):
    """A claim that is created together with its allocation."""

    claim: ResourceClaim
    """As it will be."""
    holder: str
    """The name under which the ledger holds its devices before it exists."""

    @property
    def key(self) -> ClaimKey:
        return self.claim.metadata.namespace, self.claim.metadata.name


class Placement(Struct, frozen=True, eq=False):
    """A pod that goes to a node, with its claims as they will be."""

    pod: Pod
    needs: PodNeeds
    """Including what its devices take of the node."""
    node: str
    claims: tuple[ResourceClaim, ...] = ()
    """Those of the pod's claims that change, as they will be."""
    held: tuple[ResourceClaim, ...] = ()
    """Those that had devices before."""
    made: tuple[Made, ...] = ()
    """Claims to be created: from templates, and for extended resources."""
    generated: tuple[PodResourceClaimStatus, ...] = ()
    """What the pod's status is to say about claims from templates, if some of them are made here."""
    extended_status: PodExtendedResourceClaimStatus | None = None
    mapped: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    volumes: Taken | None = None
    """What its volume claims without a volume get."""
    waits: bool = False
    """Whether others have to make devices or volumes ready before the pod is bound."""
    unit: str = ""
    """The key of the gang with which it is bound; empty for a pod on its own."""

    @property
    def uid(self) -> str:
        """Of the pod."""
        return self.needs.uid

    @property
    def devices(self) -> tuple[AllocationResult, ...]:
        """What the pod gets on its node in addition to what its claims had before."""
        had = {claim.metadata.uid for claim in self.held}
        new = [claim for claim in self.claims if claim.metadata.uid not in had]
        new += [item.claim for item in self.made]
        return tuple(c.status.allocation for c in new if c.status.allocation is not None)

    @property
    def all_devices(self) -> tuple[AllocationResult, ...]:
        """What the claims of the pod have on its node, with what they had before."""
        had = [claim.status.allocation for claim in self.held]
        return (*self.devices, *(each for each in had if each is not None))

    @property
    def all_claims(self) -> tuple[ResourceClaim, ...]:
        """The claims of the pod as they will be."""
        found = {claim.metadata.uid: claim for claim in (*self.held, *self.claims)}
        return (*found.values(), *(item.claim for item in self.made))

    def with_claims_made(self, written: Mapping[ClaimKey, ResourceClaim]) -> Placement:
        """The same once its new claims exist: from then on they are ordinary claims."""
        if not self.made:
            return self
        claims = (*self.claims, *(written[made.key] for made in self.made))
        return replace(self, claims=claims, made=())


def together(placements: Sequence[Placement], unit: str) -> list[Placement]:
    """The placements of a gang: its members are bound at the same time, so all of them wait if one does."""
    waits = any(item.waits for item in placements)
    return [replace(item, unit=unit, waits=waits) for item in placements]


def assume(state: ClusterState, placement: Placement, found: Found) -> Placement:
    """Count a decision in the state. Returns the placement with the volumes that were taken for it."""
    if found.plan is not None:
        state.assume_plan(found.plan)
    if found.volumes is not None:
        taken = state.volumes.take(found.volumes, placement.node)
        placement = replace(placement, volumes=taken, waits=True)
    for claim in placement.claims:
        state.assume_claim(claim)
    for made in placement.made:
        state.assume_made(made.key, made.holder)
    state.assume_pod(placement.needs, placement.node)
    state.gangs.place(placement.pod, placement.node)
    return placement


def take_back(state: ClusterState, placement: Placement) -> None:
    """The decision is not carried out and no longer counts. Decisions that share a claim are taken back together."""
    state.remove_pod(placement.uid)
    for made in placement.made:
        state.forget_made(made.key, made.holder)
    for claim in placement.claims:
        state.forget_claim(claim)
    if placement.volumes is not None:
        state.volumes.give_back(placement.volumes)
