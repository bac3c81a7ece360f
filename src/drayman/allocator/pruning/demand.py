"""What the requests ahead need, summed up so that a bound costs by kind of request and not by request."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence

from msgspec import Struct

from drayman.allocator.problem.tables import Alternative, Request, Tables


class RequestDemand(Struct, frozen=True, eq=False):
    """Requests that are alike: the same alternatives for all of them."""

    alternatives: tuple[Alternative, ...]
    listed: bool
    claim: int
    sizes: tuple[int, ...]  # devices wanted by each request
    need: int
    largest: int

    @property
    def only(self) -> Alternative:
        return self.alternatives[0]


def single(alternative: Alternative, number: int) -> RequestDemand:
    """The demand of one request, for so many devices."""
    return RequestDemand((alternative,), False, alternative.claim, (number,), number, number)


class Ahead(Struct, eq=False):
    """The demands of the requests from some position on, up to one that may end in an error."""

    demands: list[RequestDemand]
    exact: list[RequestDemand]
    listed: list[RequestDemand]
    by_match: dict[int, list[RequestDemand]]
    by_distinct: dict[int, list[RequestDemand]]


def group(demands: Iterable[RequestDemand]) -> Ahead:
    ahead = Ahead(list(demands), [], [], {}, {})
    for demand in ahead.demands:
        if demand.listed:
            ahead.listed.append(demand)
            continue
        ahead.exact.append(demand)
        for index in demand.only.matches:
            ahead.by_match.setdefault(index, []).append(demand)
        for index in demand.only.distincts:
            ahead.by_distinct.setdefault(index, []).append(demand)
    return ahead


class Forecast:
    """The demands ahead of each position, worked out when first needed."""

    def __init__(self, tables: Tables) -> None:
        self._requests = tables.requests
        # With admin access, what is free for a request depends on its claim.
        self._per_claim = tables.has_admin
        self._stops = self._error_capable_from()
        self._kinds: dict[int, list[_AlikeRequests]] = {}
        self._ahead: dict[int, Ahead] = {}

    def _error_capable_from(self) -> list[int]:
        """For each position the next request that may end in an error: reaching it is an outcome, so no bound looks past it."""
        stops = [len(self._requests)] * (len(self._requests) + 1)
        for index in range(len(self._requests) - 1, -1, -1):
            stops[index] = index if self._requests[index].error_capable else stops[index + 1]
        return stops

    def ahead(self, position: int) -> Ahead:
        found = self._ahead.get(position)
        if found is None:
            kinds = self._kinds_from(position)
            demands = (kind.from_position(position) for kind in kinds)
            found = self._ahead[position] = group(d for d in demands if d is not None)
        return found

    def kinds_ahead(self, position: int) -> int:
        return len(self._kinds_from(position))

    def _kinds_from(self, position: int) -> list[_AlikeRequests]:
        """The kinds of requests up to the next stop. Positions before the same stop share them."""
        stop = self._stops[position]
        found = self._kinds.get(stop)
        if found is None:
            first = position
            while first and self._stops[first - 1] == stop:
                first -= 1
            known: dict[Hashable, list[int]] = {}
            for index in range(first, stop):
                known.setdefault(self._key(self._requests[index]), []).append(index)
            found = [_AlikeRequests(self._requests, members) for members in known.values()]
            self._kinds[stop] = found
        return found

    def _key(self, request: Request) -> Hashable:
        """What makes requests alike: they may get the same devices under the same conditions."""
        alternatives = tuple(
            (
                a.candidates,
                a.admin,
                a.charge,
                a.matches,
                a.distincts,
                a.sequence,
                a.claim if self._per_claim else -1,
                a.number if request.listed else -1,
            )
            for a in request.alternatives
        )
        return request.listed, alternatives


class _AlikeRequests:
    """Requests that are alike, in order, with the sums of what is left of them."""

    def __init__(self, requests: Sequence[Request], members: list[int]) -> None:
        first = requests[members[0]]
        self._alternatives = first.alternatives
        self._listed = first.listed
        self._members = members
        self._claims = [requests[index].claim for index in members]
        self._sizes = tuple(min(a.number for a in requests[i].alternatives) for i in members)
        self._needs = [0] * (len(members) + 1)
        self._largest = [0] * (len(members) + 1)
        for i in range(len(members) - 1, -1, -1):
            self._needs[i] = self._needs[i + 1] + self._sizes[i]
            self._largest[i] = max(self._largest[i + 1], self._sizes[i])

    def from_position(self, position: int) -> RequestDemand | None:
        """The demand of those at or after a position; None if there are none."""
        offset = bisect_left(self._members, position)
        if offset == len(self._members):
            return None
        return RequestDemand(
            self._alternatives,
            self._listed,
            self._claims[offset],
            self._sizes[offset:],
            self._needs[offset],
            self._largest[offset],
        )
