"""A question turned into sets and numbers: the form in which the search works on it.

Everything that can be decided about a device and a request before the first device is placed is decided here, so that the search
itself only intersects sets. Bit i of every device set is the i-th device in search order.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from drayman.allocator.problem.outcome import Defect
from drayman.allocator.problem.question import Question
from drayman.allocator.problem.stated import AlignedRequests
from drayman.api.resource import DeviceClass, RequestSpec, ResourceClaim
from drayman.inventory.attributes import AttributeIndex
from drayman.inventory.hardware import Charges
from drayman.inventory.view import NodeView


class Constraint(Struct, frozen=True, eq=False):
    """One `matchAttribute` or `distinctAttribute` of one claim."""

    claim: int
    attribute: AttributeIndex
    name: str


class Alternative(Struct, frozen=True, eq=False):
    """One way to serve a request: the request itself, or one of `firstAvailable`."""

    claim: int
    request: int  # position among the requests of all claims
    index: int  # among the alternatives of the request
    name: str  # as results spell it
    spec: RequestSpec
    device_class: DeviceClass
    selectors: tuple[str, ...]
    number: int  # devices wanted
    admin: bool
    candidates: int  # devices that may serve it before anything is placed
    failing: int  # devices whose selector fails, where trying one of them is an error
    unjudged: int  # devices whose selector fails and that are not in use
    sequence: tuple[int, ...] | None  # mode All: the devices, in order
    charge: int  # which of the capacity requests of the problem is this one's
    matches: tuple[int, ...]  # constraints that apply
    distincts: tuple[int, ...]

    @property
    def error_capable(self) -> bool:
        """Whether serving it may end in an error instead of in failure."""
        return bool(self.failing) or bool(
            self.sequence is not None and (self.matches or self.distincts)
        )


class Request(Struct, frozen=True, eq=False):
    claim: int
    name: str
    alternatives: tuple[Alternative, ...]
    listed: bool  # whether it is a `firstAvailable` list
    opens_claim: bool  # whether it is the first of its claim

    @property
    def error_capable(self) -> bool:
        return any(alternative.error_capable for alternative in self.alternatives)


class Tables(Struct, frozen=True, eq=False):
    """The whole problem, compiled for one node."""

    view: NodeView
    question: Question
    requests: tuple[Request, ...]
    matches: tuple[Constraint, ...]
    distincts: tuple[Constraint, ...]
    charges: tuple[Charges, ...]  # by capacity request
    capacity_blocked: tuple[int, ...]  # by capacity request: devices without enough left
    match_values: tuple[int, ...]  # by match constraint: values to choose from
    alignment: tuple[AlignedRequests, ...] = ()  # what is stated about the places of devices

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        return self.question.claims

    @property
    def slots(self) -> int:
        return sum(max(a.number for a in request.alternatives) for request in self.requests)

    @property
    def has_admin(self) -> bool:
        return any(a.admin for request in self.requests for a in request.alternatives)

    @property
    def error_capable(self) -> bool:
        return any(request.error_capable for request in self.requests)


class PreparationError(Exception):
    """The claims cannot be put to the allocator at all."""

    def __init__(
        self,
        message: str,
        claim: ResourceClaim,
        request: str = "",
        devices: int = 0,
        defect: Defect = Defect.CLAIM,
        why: str = "",
    ) -> None:
        super().__init__(message)
        self.defect = defect
        self.why = why
        self.claim = claim
        self.request = request
        self.devices = devices


def claim_name(claim: ResourceClaim) -> str:
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def suffix_union(sets: Sequence[int]) -> tuple[int, ...]:
    """For each position the union of the sets from there on, and an empty one at the end."""
    union = [0] * (len(sets) + 1)
    for i in range(len(sets) - 1, -1, -1):
        union[i] = union[i + 1] | sets[i]
    return tuple(union)
