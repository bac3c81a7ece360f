"""What a search for flavors comes to: a flavor for each resource of each pod set, and what that would use."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from msgspec import Struct

from drayman.quota.amounts import Amounts, FlavorResource
from drayman.quota.claims.prices import ClaimPrice
from drayman.quota.demands import Placement, PodSetDemand
from drayman.quota.entries import Positions, Refusal
from drayman.quota.flavors.ranks import Rank
from drayman.quota.tree.ledger import Usage


class Mode(IntEnum):
    """What has to happen before a workload gets what was found for it."""

    NO_FIT = 0
    """It cannot."""
    PREEMPT = 1
    """Others have to give up quota. Whether they may, another search finds out."""
    FIT = 2


class Choice(Struct, frozen=True):
    """The flavor for a resource of a pod set."""

    flavor: str
    rank: Rank
    borrowing: int

    @property
    def mode(self) -> Mode:
        if self.rank is Rank.FIT:
            return Mode.FIT
        return Mode.NO_FIT if self.rank is Rank.NO_FIT else Mode.PREEMPT


class PodSetChoice(Struct, frozen=True):
    """The flavors for one pod set."""

    demand: PodSetDemand
    count: int
    requests: Mapping[str, int]
    """For all of these pods."""
    choices: Mapping[str, Choice]
    claims: tuple[tuple[ClaimPrice, Amounts], ...] = ()
    """The claims that its pods name, with what is paid for each: that is among the requests."""
    placement: Placement | None = None


class Assignment(Struct, frozen=True):
    """A way to serve a workload, or why there is none."""

    pod_sets: tuple[PodSetChoice, ...]
    mode: Mode
    usage: Usage
    positions: Positions
    refusal: Refusal | None = None
    """Why it does not fit as things are."""

    @property
    def flavors(self) -> dict[tuple[str, str], str]:
        """By pod set and resource."""
        return {
            (pods.demand.name, resource): choice.flavor
            for pods in self.pod_sets
            for resource, choice in pods.choices.items()
        }

    @property
    def borrowing(self) -> int:
        """The height of the highest subtree that it borrows from."""
        return max(
            (each.borrowing for pods in self.pod_sets for each in pods.choices.values()), default=0
        )

    @property
    def contested(self) -> frozenset[FlavorResource]:
        """What others would have to give up."""
        return frozenset(
            FlavorResource(choice.flavor, resource)
            for pods in self.pod_sets
            for resource, choice in pods.choices.items()
            if choice.mode is Mode.PREEMPT
        )
