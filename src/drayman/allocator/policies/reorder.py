"""The same problem with its requests in another order: the biggest first.

When a packing is tight the given order may waste what only the big requests could use. Taking them first loses upstream's choice of
devices, but nothing else: what is found is valid, and what is refuted is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec.structs import replace

from drayman.allocator.problem.tables import Alternative, Request, Tables
from drayman.allocator.pruning.sums import Sums
from drayman.allocator.tree.state import Transitions


def biggest_first(tables: Tables, transitions: Transitions) -> Tables:
    """Claims by what they take in total, and the requests of each claim likewise."""
    sums = Sums(tables, transitions)
    by_claim: dict[int, list[tuple[Fraction, Request]]] = {}
    for request in tables.requests:
        weight = min(_weight(tables, sums, a) for a in request.alternatives)
        by_claim.setdefault(request.claim, []).append((weight, request))
    claims = sorted(by_claim.values(), key=lambda members: -sum(weight for weight, _ in members))
    ordered: list[Request] = []
    for members in claims:
        members.sort(key=lambda member: -member[0])
        ordered += [replace(r, opens_claim=i == 0) for i, (_, r) in enumerate(members)]
    return replace(
        tables,
        requests=tuple(
            replace(r, alternatives=tuple(replace(a, request=i) for a in r.alternatives))
            for i, r in enumerate(ordered)
        ),
    )


def in_given_order(
    tables: Tables, placements: Sequence[tuple[Alternative, int]]
) -> list[tuple[Alternative, int]]:
    """Placements of reordered requests, named and sorted as in the problem itself."""
    known = {(a.claim, a.name): a for request in tables.requests for a in request.alternatives}
    given = [(known[a.claim, a.name], position) for a, position in placements]
    return sorted(given, key=lambda placement: (placement[0].request, placement[1]))


def _weight(tables: Tables, sums: Sums, alternative: Alternative) -> Fraction:
    """How much a request takes: its devices, and the share of counters and capacities that each uses up at least."""
    each = Fraction(1)
    for name, amount in sums.counter_floor(alternative).items():
        each += Fraction(amount) / max(1, sums.largest_counter(name))
    for name, amount in sums.capacity_floor(alternative).items():
        each += Fraction(amount) / max(1, sums.largest_capacity(name))
    return each * alternative.number
