"""Which alternatives of `firstAvailable` requests are served, as a choice that can be fixed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from msgspec.structs import replace

from drayman.allocator.problem.tables import Alternative, Tables


def fixed(tables: Tables, choice: Mapping[int, int]) -> Tables:
    """The same problem with the alternative of some requests decided."""
    if not any(request.listed for request in tables.requests):
        return tables
    requests = tuple(
        replace(request, alternatives=(request.alternatives[choice[i]],), listed=False)
        if request.listed and i in choice
        else request
        for i, request in enumerate(tables.requests)
    )
    return replace(tables, requests=requests)


def choice_of(placements: Iterable[tuple[Alternative, int]]) -> dict[int, int]:
    """By request, the alternative that an allocation serves."""
    return {alternative.request: alternative.index for alternative, _ in placements}


def choices(tables: Tables) -> Iterator[dict[int, int]]:
    """All choices, the ones that the user prefers first."""
    numbers = [len(r.alternatives) if r.listed else 1 for r in tables.requests]
    for indexes in product(*map(range, numbers)):
        yield dict(enumerate(indexes))
