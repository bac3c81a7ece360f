"""Which level of a stated alignment an allocation reaches, written again from the description of `drayman.dev/align`.

Devices are paired by trying every way to pair them, so only few of them can be looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any, Protocol

ALIGN = "drayman.dev/align"
GPU_KIND = "gpu"


class Placed(Protocol):
    """Where a device is."""

    @property
    def kind(self) -> str: ...
    @property
    def root(self) -> Hashable: ...
    @property
    def numa(self) -> Hashable: ...
    @property
    def socket(self) -> Hashable: ...
    @property
    def fabric(self) -> Hashable: ...


Group = tuple[set[str], list[str]]
"""The names of requests, none for all of them, and the levels."""


def groups_of(text: str) -> list[Group]:
    """What an annotation states."""
    found = []
    for part in text.split(";"):
        names, _, ladder = part.rpartition(":")
        levels = [" ".join(level.split()) for level in ladder.split(">")]
        found.append(({name.strip() for name in names.split(",") if name.strip()}, levels))
    return found


def is_member(names: set[str], request: str) -> bool:
    return not names or request in names or request.partition("/")[0] in names


def rung(levels: list[str], places: Sequence[Placed]) -> int:
    """The index of the first level that is reached; their number if none is."""
    for index, level in enumerate(levels):
        if len(places) < 2 or level == "any" or _reaches(level, places):
            return index
    return len(levels)


def _reaches(level: str, places: Sequence[Placed]) -> bool:
    is_one, name = level.startswith("one "), level.removeprefix("one ")
    if name == "nvlink":
        fabrics = [place.fabric for place in places if place.kind == GPU_KIND]
        return len(fabrics) < 2 or _all_equal(fabrics)
    where = [(place.kind, _label(place, name)) for place in places]
    kinds = sorted({kind for kind, _ in where})
    if is_one or len(kinds) == 1:
        return _all_equal([label for _, label in where])
    return all(
        _paired(
            [label for kind, label in where if kind == one],
            [label for kind, label in where if kind == other],
        )
        for one, other in combinations(kinds, 2)
    )


def _label(place: Placed, level: str) -> Hashable:
    """Devices of a root are on one NUMA node and one socket, even if it is not known which."""
    if level == "pcieRoot":
        return place.root
    numa: Any = place.numa
    if numa is None:
        numa = None if place.root is None else f"that of {place.root}"
    if level == "numaNode":
        return numa
    if place.numa is None and place.root is not None:
        return numa
    return ("socket", place.socket) if place.socket is not None else numa


def _all_equal(labels: Sequence[Hashable]) -> bool:
    return None not in labels and len(set(labels)) == 1


def _paired(ones: list[Hashable], others: list[Hashable]) -> bool:
    """Whether each of the larger group can have a partner in its place, so that all of the other are partners of about as many."""
    more, fewer = (ones, others) if len(ones) >= len(others) else (others, ones)
    each = -(-len(more) // len(fewer))
    return _assign(more, fewer, [0] * len(fewer), each)


def _assign(more: list[Hashable], fewer: list[Hashable], served: list[int], each: int) -> bool:
    if not more:
        return all(served)
    first, *rest = more
    for index, place in enumerate(fewer):
        if first is not None and place == first and served[index] < each:
            served[index] += 1
            if _assign(rest, fewer, served, each):
                return True
            served[index] -= 1
    return False
