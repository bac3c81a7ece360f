"""Pods spread as evenly as possible over few domains, where they are preferred to be in one domain of a level.

Within one domain of the level above the preferred one, units go to domains of the level below the preferred one, so that the one that gets
the least gets as much as possible. That least amount, the threshold, comes first; domains that hold less than it are left out. Then as few
domains of the preferred level as possible are used, with the least room, and of those with equal room, the most even ones.

It is not tried for pods with a leader, which cannot be spread evenly: they are placed by BestFit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Final

from drayman.placement.domains.tree import WHOLE
from drayman.quota.topology.capacity import Capacity
from drayman.quota.topology.choosing import Share
from drayman.quota.topology.counting import Counts
from drayman.quota.topology.wishes import Wish
from drayman.topology import Path

_MOST_COMPARED: Final = 1 << 18
"""Steps, at most, to find the set of domains that has the least room. Where it could take more, the largest domains are taken."""


def balanced(capacity: Capacity, wish: Wish, counts: Counts, units: int) -> list[Share] | None:
    """Shares of the level below the preferred one; None if no domain above it holds everything."""
    # Slices have to be complete in what is spread over.
    fine = min(wish.level + 1, capacity.lowest, wish.slices.level)
    above = [WHOLE] if wish.level == 0 else list(capacity.domains(wish.level - 1))
    best: tuple[int, int, Path, list[list[Path]]] | None = None
    for scope in above:
        groups = _groups(capacity, scope, wish.level, fine)
        threshold = _threshold([_room(counts, p) for group in groups for p in group], units)
        if not threshold:
            continue
        kept = [[p for p in group if _room(counts, p) >= threshold] for group in groups]
        chosen = _wide(counts, kept, units, threshold)
        if best is None or (-threshold, len(chosen), scope) < best[:3]:
            best = (-threshold, len(chosen), scope, chosen)
    if best is None:
        return None
    threshold = -best[0]
    fines = [path for group in best[3] for path in group]
    return _spread(counts, _smallest(counts, fines, units, units // threshold), units, threshold)


def _room(counts: Counts, path: Path) -> int:
    return counts.of(path).units


def _groups(capacity: Capacity, scope: Path, level: int, fine: int) -> list[list[Path]]:
    """The domains of the fine level, by the domain of the preferred level that they are in."""
    wide = capacity.domains(0) if scope == WHOLE else capacity.tree.within(scope, level)
    return [list(capacity.tree.within(path, fine)) for path in wide]


def _threshold(rooms: Sequence[int], units: int) -> int:
    """The most that each of some domains can get at least, if so many units are spread over them; 0 if they do not hold them."""
    sizes = sorted(rooms, reverse=True)
    low, high = 0, units
    while low < high:
        middle = (low + high + 1) // 2
        if _is_covered(sizes, units, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _is_covered(sizes: Sequence[int], units: int, threshold: int) -> bool:
    """Whether domains that each get so much hold all units. The largest ones hold the most."""
    large = [size for size in sizes[: units // threshold] if size >= threshold]
    return sum(large) >= units


def _wide(
    counts: Counts, groups: Sequence[list[Path]], units: int, threshold: int
) -> list[list[Path]]:
    """The fewest domains of the preferred level that do, each as the fine domains in it."""
    usable = [group for group in groups if group]
    rooms = [sum(_room(counts, path) for path in group) for group in usable]

    def suffices(numbers: Sequence[int]) -> bool:
        sizes = sorted((_room(counts, p) for n in numbers for p in usable[n]), reverse=True)
        return _is_covered(sizes, units, threshold)

    largest = sorted(range(len(usable)), key=lambda n: (-rooms[n], usable[n][0]))
    for number in range(1, len(usable)):
        for chosen in (_least_room(rooms, units, number), largest[:number]):
            if chosen is not None and suffices(chosen):
                return [usable[n] for n in chosen]
    return list(usable)


def _smallest(counts: Counts, fines: Sequence[Path], units: int, most: int) -> list[Path]:
    """The fewest fine domains that hold all units, with the least room."""
    rooms = [_room(counts, path) for path in fines]
    for number in range(1, most + 1):
        chosen = _least_room(rooms, units, number)
        if chosen is not None:
            return [fines[n] for n in chosen]
    raise AssertionError("the domains were found to hold all units")


def _least_room(rooms: Sequence[int], units: int, number: int) -> list[int] | None:
    """So many positions whose rooms add up to the least that is enough, and are the most even of those; None if there are none."""
    largest = sorted(range(len(rooms)), key=lambda n: (-rooms[n], n))[:number]
    if len(largest) < number or sum(rooms[n] for n in largest) < units:
        return None
    if units * len(rooms) * number > _MOST_COMPARED:
        return sorted(largest)
    # By how many were chosen and what they hold together (anything above the need by its own sum): how uneven, and which ones.
    known: list[dict[int, tuple[float, tuple[int, ...]]]] = [{0: (0.0, ())}]
    known += [{} for _ in range(number)]
    for position, room in enumerate(rooms):
        if not room:
            continue
        for chosen in range(number - 1, -1, -1):
            for total, (uneven, which) in known[chosen].items():
                made = (uneven + room * log(room), (*which, position))
                before = known[chosen + 1].get(total + room)
                if before is None or made < before:
                    known[chosen + 1][total + room] = made
    enough = min(total for total in known[number] if total >= units)
    return list(known[number][enough][1])


def _spread(counts: Counts, chosen: Sequence[Path], units: int, threshold: int) -> list[Share]:
    """The threshold for each, and the rest as evenly as room allows, the largest first."""
    order = sorted(chosen, key=lambda path: (-_room(counts, path), path))
    given = dict.fromkeys(order, threshold)
    rest = units - threshold * len(order)
    while rest:
        lowest = min(given[path] for path in order if given[path] < _room(counts, path))
        for path in order:
            if rest and given[path] == lowest and given[path] < _room(counts, path):
                given[path] += 1
                rest -= 1
    return [Share(path, number) for path, number in given.items()]
