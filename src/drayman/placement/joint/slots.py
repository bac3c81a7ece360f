"""Which slice each member of a gang is in, those that run and those that are to come.

Slices consist of members with consecutive ranks, so a member that replaces another one has the rank, and thereby the slice, of that one.

Members without ranks, or that share them, are interchangeable. Those that run in the same domain are taken for a slice, and newcomers fill
up slices before they begin new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from drayman.placement.gangs.book import Member
from drayman.placement.gangs.gang import Slices
from drayman.topology import Path

Slots = Mapping[str, int]
"""A number for each member, by uid. Those of one slice have numbers between two multiples of its size."""


def slots_of(
    slices: Sequence[Slices],
    levels: Sequence[int | None],
    newcomers: Sequence[Member],
    running: Sequence[tuple[Member, Path]],
) -> Slots:
    """`levels` are those of whose domains a slice has to use one, from the outermost slices to the innermost."""
    members = [*newcomers, *(member for member, _ in running)]
    ranks = [member.membership.rank for member in members]
    if len(set(ranks)) == len(ranks) and None not in ranks:
        return {m.uid: rank for m, rank in zip(members, ranks, strict=True) if rank is not None}
    found = _by_domain(slices, levels, running)
    taken = set(found.values())
    free = _free(slices[0].size, taken)
    return {**found, **{member.uid: next(free) for member in newcomers}}


def _by_domain(
    slices: Sequence[Slices], levels: Sequence[int | None], running: Sequence[tuple[Member, Path]]
) -> dict[str, int]:
    found: dict[str, int] = {}
    slot, before = 0, None
    for member, leaf in sorted(running, key=lambda each: each[1]):
        if before is not None:
            for each, level in zip(slices, levels, strict=True):
                if level is not None and leaf[: level + 1] != before[: level + 1]:
                    slot = -(-slot // each.size) * each.size
        found[member.uid] = slot
        slot, before = slot + 1, leaf
    return found


def _free(size: int, taken: set[int]) -> Iterator[int]:
    """Numbers that nobody has, first those in slices that somebody is in."""
    begun = sorted({slot - slot % size for slot in taken})
    for first in begun:
        yield from (slot for slot in range(first, first + size) if slot not in taken)
    last = begun[-1] + size if begun else 0
    yield from count(last)
