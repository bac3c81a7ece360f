"""The claims of one pod as a question to put to many nodes: everything about them that does not depend on a node.

Thousands of pods come from one template. Their claims differ in name only, so the question is worked out once and reused for the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from drayman.api.resource import (
    DeviceClass,
    DeviceRequest,
    RequestSpec,
    ResourceClaim,
)
from drayman.inventory.device import Amount


class WantedDevices(Struct, eq=False):
    """A request, or one of its `firstAvailable` alternatives."""

    claim: int
    request: int  # position among the requests of all claims
    index: int  # among the alternatives of the request
    name: str  # as results spell it
    spec: RequestSpec
    amounts: tuple[tuple[str, Amount], ...]  # of each capacity that is asked for, by name
    matches: tuple[int, ...]  # constraints that apply
    distincts: tuple[int, ...]
    # The class when it was last looked up, and the selectors of class and request together.
    selectors: tuple[DeviceClass, tuple[str, ...]] | None = None


class WantedRequest(Struct, frozen=True, eq=False):
    claim: int
    request: DeviceRequest
    opens_claim: bool  # whether it is the first of its claim
    alternatives: tuple[WantedDevices, ...]


class ComparedAttribute(Struct, frozen=True):
    """One `matchAttribute` or `distinctAttribute` of one claim."""

    claim: int
    name: str


class Question:
    """Claims to be allocated together."""

    __slots__ = (
        "claims",
        "compared",
        "distincts",
        "matches",
        "pointless",
        "requests",
        "tolerations",
        "width",
    )

    def __init__(self, claims: Sequence[ResourceClaim]) -> None:
        self.claims = tuple(claims)
        self.matches: list[ComparedAttribute] = []
        self.distincts: list[ComparedAttribute] = []
        self.requests: list[WantedRequest] = []
        self.pointless: list[int | None] = []  # per claim a constraint that compares nothing
        for index, claim in enumerate(self.claims):
            self._add(claim, index)
        # The attributes of all constraints, and the tolerations of everything that is wanted.
        self.compared = tuple([each.name for each in (*self.matches, *self.distincts)])
        wanted = [w for request in self.requests for w in request.alternatives]
        self.tolerations = tuple([w.spec.tolerations for w in wanted])
        self.width = sum([max(1, w.spec.count) for w in wanted])
        """How many devices are asked for, in all alternatives together: each step of a search takes longer the more there are."""

    def asked_for(self, claims: Sequence[ResourceClaim]) -> Question:
        """The same question for other claims, which must ask for the same in the same order."""
        if [claim.spec for claim in claims] != [claim.spec for claim in self.claims]:
            raise ValueError("the claims ask for something else")
        same = object.__new__(Question)
        same.claims = tuple(claims)
        same.matches, same.distincts = self.matches, self.distincts
        same.requests, same.pointless = self.requests, self.pointless
        same.compared, same.tolerations = self.compared, self.tolerations
        same.width = self.width
        return same

    def _add(self, claim: ResourceClaim, index: int) -> None:
        matches: list[tuple[int, tuple[str, ...]]] = []
        distincts: list[tuple[int, tuple[str, ...]]] = []
        pointless: int | None = None
        for position, constraint in enumerate(claim.spec.devices.constraints):
            if constraint.match_attribute is not None:
                matches.append((len(self.matches), constraint.requests))
                self.matches.append(ComparedAttribute(index, constraint.match_attribute))
            elif constraint.distinct_attribute is not None:
                distincts.append((len(self.distincts), constraint.requests))
                self.distincts.append(ComparedAttribute(index, constraint.distinct_attribute))
            elif pointless is None:
                pointless = position
        self.pointless.append(pointless)
        for offset, request in enumerate(claim.spec.devices.requests):
            number = len(self.requests)
            alternatives = tuple(
                WantedDevices(
                    index,
                    number,
                    choice,
                    name,
                    spec,
                    _amounts(spec),
                    _applying(matches, request.name, name),
                    _applying(distincts, request.name, name),
                )
                for choice, (name, spec) in enumerate(request.alternatives())
            )
            self.requests.append(WantedRequest(index, request, offset == 0, alternatives))


def _amounts(spec: RequestSpec) -> tuple[tuple[str, Amount], ...]:
    if spec.capacity is None:
        return ()
    return tuple(sorted((name, q.amount) for name, q in spec.capacity.requests.items()))


def _applying(
    constraints: Sequence[tuple[int, tuple[str, ...]]], parent: str, name: str
) -> tuple[int, ...]:
    """The constraints that apply to a request or subrequest of this name."""
    return tuple(i for i, names in constraints if not names or parent in names or name in names)
