"""What the requests ahead need, summed up so that a bound costs by kind of request and not by request."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from drayman.allocator.tables import Alternative, Request, Tables


@dataclass(slots=True, eq=False)
class Demand:
    """Requests that are alike: the same alternatives for all of them."""

    alternatives: tuple[Alternative, ...]
    listed: bool
    claim: int
    sizes: list[int] = field(default_factory=list)  # devices wanted by each request
    need: int = 0
    largest: int = 0

    def add(self, number: int) -> None:
        self.sizes.append(number)
        self.need += number
        self.largest = max(self.largest, number)

    @property
    def only(self) -> Alternative:
        return self.alternatives[0]


@dataclass(slots=True, eq=False)
class Ahead:
    """The demands of the requests from some position on, up to one that may end in an error."""

    demands: list[Demand]
    exact: list[Demand]
    listed: list[Demand]
    by_match: dict[int, list[Demand]]
    by_distinct: dict[int, list[Demand]]


def kind_of(alternative: Alternative, *, per_claim: bool) -> Hashable:
    """What makes alternatives alike: they may get the same devices under the same conditions."""
    return (
        alternative.candidates,
        alternative.admin,
        alternative.charge,
        alternative.matches,
        alternative.distincts,
        alternative.sequence,
        alternative.claim if per_claim else -1,
    )


class Forecast:
    """The demands ahead of each position, worked out when first needed."""

    def __init__(self, tables: Tables) -> None:
        self._requests = tables.requests
        # With admin access about, what is free for a request depends on its claim.
        self._per_claim = tables.has_admin
        self._stops = self._error_capable_from()
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
            found = _summed(self._requests[position : self._stops[position]], self._per_claim)
            self._ahead[position] = found
        return found


def _summed(requests: Iterable[Request], per_claim: bool) -> Ahead:
    known: dict[Hashable, Demand] = {}
    for request in requests:
        kinds = tuple(kind_of(a, per_claim=per_claim) for a in request.alternatives)
        numbers = tuple(a.number for a in request.alternatives) if request.listed else ()
        key = (request.listed, kinds, numbers)
        demand = known.get(key)
        if demand is None:
            demand = known[key] = Demand(request.alternatives, request.listed, request.claim)
        demand.add(min(a.number for a in request.alternatives))
    return group(known.values())


def group(demands: Iterable[Demand]) -> Ahead:
    ahead = Ahead(list(demands), [], [], {}, {})
    for demand in ahead.demands:
        (ahead.listed if demand.listed else ahead.exact).append(demand)
        if not demand.listed:
            for index in demand.only.matches:
                ahead.by_match.setdefault(index, []).append(demand)
            for index in demand.only.distincts:
                ahead.by_distinct.setdefault(index, []).append(demand)
    return ahead
