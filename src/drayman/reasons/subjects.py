"""What sentences are about: the claims and the request, the nodes, and the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.placement.demand import Demand
from drayman.placement.extended import extended_claim
from drayman.placement.refusing import Shortage, claim_marker
from drayman.placement.state import ClusterState
from drayman.reasons.device_reasons import Totals, totals, wants_all
from drayman.reasons.finding import Finding
from drayman.reasons.planned import COUNTED_AGAIN, Losses, Planned, losses
from drayman.reasons.wording import and_list, counted

_NO_SHORTAGE: Final = Shortage(0, "", 0, 0, 0, (), None)


class FindingContext(Struct, frozen=True):
    """A finding, and what is needed to talk about it."""

    state: ClusterState
    demand: Demand
    found: Finding
    planned: Planned | None = None
    """What only a plan has put there."""

    @property
    def request(self) -> str:
        """The request at fault."""
        shortage = self.found.shortage
        if shortage is None:
            return f"What is to serve {self.claims}"
        if shortage.claim >= len(self.demand.open) and shortage.request:
            return f"Extended resource {self._resource(shortage.request)}"
        subject = f"Claim {claim_marker(shortage.claim)}"
        return f"{subject}, request {shortage.request}" if shortage.request else subject

    def _resource(self, request: str) -> str:
        """The extended resource that a request stands for."""
        made = extended_claim(self.demand.pod, self.demand.extended)
        names = {} if made is None else {m.request_name: m.resource_name for m in made.mappings}
        return names.get(request, request)

    @property
    def wants(self) -> str:
        """The request, and how many devices it is for."""
        if wants_all(self.demand, self.shortage):
            return f"{self.request} wants all devices of a node"
        return f"{self.request} wants {counted(max(self.shortage.wanted, 1), 'device')}"

    @property
    def claims(self) -> str:
        """All claims that are to be allocated."""
        names = [claim_marker(index) for index in range(len(self.demand.open))]
        if not names:
            return "the extended resources" if self.demand.extended else "the pod"
        return f"claim {names[0]}" if len(names) == 1 else f"claims {and_list(names)}"

    @property
    def nodes(self) -> str:
        """The nodes in question."""
        names = self.found.nodes
        plain = not (self.demand.open or self.demand.extended)
        if len(names) != 1:
            subject = counted(len(names), "node")
            return subject if plain else f"{subject} that could serve {self.claims}"
        subject = f"Node {names[0]}"
        return subject if plain else f"{subject}, which could serve {self.claims},"

    def verb(self, one: str, many: str) -> str:
        """The form that goes with the nodes."""
        return one if len(self.found.nodes) == 1 else many

    @property
    def shortage(self) -> Shortage:
        return self.found.shortage or _NO_SHORTAGE

    @property
    def totals(self) -> Totals:
        return totals(self.found.groups, self.shortage)

    @property
    def losses(self) -> Losses:
        """What the request loses to what is there, and to what is only planned."""
        found = self.totals
        if self.planned is None:
            return Losses(found.lost, 0)
        parts = losses(self.planned, self.state, self.demand, self.found.groups, self.shortage)
        # What no plan can change is taken as the allocator counted it.
        fixed = {test: n for test, n in found.lost.items() if test not in COUNTED_AGAIN}
        return Losses({**parts.lost, **fixed}, parts.taken)


Writer: TypeAlias = Callable[[FindingContext], str]
