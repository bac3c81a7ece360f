"""The possible outcomes of a decision about a pod. The list is closed, so that a caller can handle every case."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from drayman.api.resource import ResourceClaim
from drayman.placement.claims import ClaimsNotReadyError
from drayman.placement.decision.placements import Placement
from drayman.placement.demand import Demand
from drayman.placement.nominations import Nomination
from drayman.placement.placing import Found, NotFound
from drayman.placement.queueing.limits import Withheld


class Lacking(Struct, frozen=True, eq=False):
    """The pod lacks a claim, or its group, before nodes are even looked at."""

    error: ClaimsNotReadyError


class BeingWritten(Struct, frozen=True, eq=False):
    """An earlier round changes a claim of the pod, and it is not known yet whether that succeeds."""

    claim: ResourceClaim


class NotCharged(Struct, frozen=True, eq=False):
    """The pod waits in a queue, and no quota that was given covers it."""

    message: str


class PromisedAway(Struct, frozen=True, eq=False):
    """A claim of the pod is about to give its devices to a pod that is more important."""

    claim: ResourceClaim
    nomination: Nomination


class Unfinished(Struct, frozen=True, eq=False):
    """There was more to work out than was to be done at once."""

    rest: Callable[[], object] | None
    """What is to be done elsewhere first; None if it makes sense to go on at any time."""
    has_advanced: bool = True
    """Whether there is less left to work out than before."""


class NoNode(Struct, frozen=True, eq=False):
    """No node takes the pod."""

    demand: Demand
    not_found: NotFound


class KeptOut(Struct, frozen=True, eq=False):
    """The queue of the pod has no room for it, whatever nodes have."""

    demand: Demand
    withheld: Withheld


class Fitting(Struct, frozen=True, eq=False):
    """A node takes the pod. Nothing is counted yet."""

    demand: Demand
    found: Found


NoPlacement: TypeAlias = (
    Lacking | NotCharged | BeingWritten | PromisedAway | Unfinished | NoNode | KeptOut
)
Outcome: TypeAlias = NoPlacement | Placement
