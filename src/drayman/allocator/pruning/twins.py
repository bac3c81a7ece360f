"""Identical requests and identical claims: their devices could be swapped, so only one order has to be tried.

In the first solution the earlier of two identical requests has the earlier alternative and, with the same alternative, the earlier
first device. The later one can therefore start where the earlier one started.
"""

from __future__ import annotations

from collections.abc import Hashable

from drayman.allocator.problem.tables import Alternative, Request, Tables
from drayman.allocator.tree.engine import PlacedDevice


class Twins:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._shareable = tables.view.hardware.shareable
        self._twin_of: dict[int, int] = {}
        if not tables.error_capable:
            self._pair_claims()
            self._pair_requests()

    def first(self, alternative: Alternative, trail: PlacedDevice | None) -> int:
        """The first position worth trying for a request."""
        twin = self._twin_of.get(alternative.request)
        if twin is None:
            return 0
        earlier: PlacedDevice | None = None
        while trail is not None and trail.alternative.request >= twin:
            if trail.alternative.request == twin:
                earlier = trail
            trail = trail.before
        if earlier is None or earlier.alternative.index < alternative.index:
            return 0
        if earlier.alternative.index > alternative.index:
            return len(self._tables.view.hardware.records)  # beyond every device
        if alternative.sequence is not None:
            return 0
        may_repeat = self._shareable >> earlier.position & 1 or (
            alternative.admin and earlier.alternative.claim != alternative.claim
        )
        return earlier.position + (0 if may_repeat else 1)

    def _pair_requests(self) -> None:
        last: dict[Hashable, int] = {}
        for index, request in enumerate(self._tables.requests):
            key = (request.claim, _likeness(request, relative=False))
            # The first request of a claim may be tied to the claim before; both ties together would be too much.
            if key in last and index not in self._twin_of:
                self._twin_of[index] = last[key]
            last[key] = index

    def _pair_claims(self) -> None:
        shapes: dict[Hashable, int] = {}
        for claim in range(len(self._tables.claims)):
            members = [i for i, r in enumerate(self._tables.requests) if r.claim == claim]
            if not members:
                continue
            requests = [self._tables.requests[i] for i in members]
            shape = tuple(_likeness(request, relative=True) for request in requests)
            bases = self._constraint_shape(requests)
            key = (shape, bases)
            if key in shapes:
                self._twin_of[members[0]] = shapes[key]
            shapes[key] = members[0]

    def _constraint_shape(self, requests: list[Request]) -> Hashable:
        """Which attributes are compared among which alternatives, with constraints numbered within the claim."""
        matches: dict[int, int] = {}
        distincts: dict[int, int] = {}
        shape = tuple(
            (
                tuple(matches.setdefault(i, len(matches)) for i in a.matches),
                tuple(distincts.setdefault(i, len(distincts)) for i in a.distincts),
            )
            for request in requests
            for a in request.alternatives
        )
        compared = (
            tuple(id(self._tables.matches[i].attribute) for i in matches),
            tuple(id(self._tables.distincts[i].attribute) for i in distincts),
        )
        return shape, compared


def _likeness(request: Request, *, relative: bool) -> Hashable:
    """What makes requests identical; `relative` leaves out constraints, whose numbers are those of one claim."""
    return tuple(
        (
            a.candidates,
            a.number,
            a.admin,
            a.charge,
            a.sequence,
            () if relative else (a.matches, a.distincts),
        )
        for a in request.alternatives
    )
