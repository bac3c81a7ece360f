"""Which domains of a level get pods, and how many.

BestFit takes the largest domains first, so that there are few of them, and as the last one the smallest that holds the rest, so that large
domains stay whole. LeastFreeCapacity takes the smallest domain that holds everything, or else the smallest ones first: pods that may be
anywhere fill what is of little use to others. Both are stable: among equals, domains that have fewer pods left over come first, then names
decide.

A leader goes to exactly one of the domains. BestFit chooses it so that as few domains as possible are used; among those, the one that
has the most room left beside the leader.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from drayman.quota.topology.counting import NO_LEADER, Counts
from drayman.topology import Path


class Share(Struct, frozen=True):
    """What a domain gets."""

    domain: Path
    units: int
    leads: bool = False
    """Whether the leader is there as well."""


class Choice:
    """Chooses among domains by what they hold."""

    def __init__(self, counts: Counts, *, smallest_first: bool) -> None:
        self._of = counts.of
        self._smallest_first = smallest_first

    def one(self, domains: Sequence[Path], units: int, *, leads: bool) -> Share | None:
        """The tightest single domain that holds everything."""
        best: tuple[int, int, Path] | None = None
        for path in domains:
            held = self._of(path)
            room = held.with_leader if leads else held.units
            if room >= units and (best is None or (room, held.pods, path) < best):
                best = (room, held.pods, path)
        return None if best is None else Share(best[2], units, leads)

    def several(self, domains: Sequence[Path], units: int, *, leads: bool) -> list[Share] | None:
        """As few domains as hold everything, or the smallest ones; None if all of them together do not."""
        if not units and not leads:
            return []
        single = self.one(domains, units, leads=leads)
        if single is not None:
            return [single]
        if not leads:
            return self._filled(self._ordered(domains), units)
        leader = self._leader(domains, units)
        if leader is None:
            return None
        room = self._of(leader).with_leader
        others = [path for path in domains if path != leader]
        rest = self._filled(self._ordered(others), units - room)
        return None if rest is None else [Share(leader, room, leads=True), *rest]

    def _ordered(self, domains: Sequence[Path]) -> list[Path]:
        sign = 1 if self._smallest_first else -1
        keyed = []
        for path in domains:
            held = self._of(path)
            if held.units > 0:
                keyed.append((sign * held.units, held.pods, path))
        keyed.sort()
        return [path for _, _, path in keyed]

    def _filled(self, ordered: Sequence[Path], units: int) -> list[Share] | None:
        shares: list[Share] = []
        for position, path in enumerate(ordered):
            room = self._of(path).units
            if room < units:
                shares.append(Share(path, room))
                units -= room
                continue
            last = path
            if not self._smallest_first:
                # Ordered from large to small: the last size that still holds the rest, and the first domain of that size.
                for other in ordered[position:]:
                    if self._of(other).units < units:
                        break
                    if self._of(other).units < self._of(last).units:
                        last = other
            shares.append(Share(last, units))
            return shares
        return None

    def _leader(self, domains: Sequence[Path], units: int) -> Path | None:
        """The domain for the leader where no single domain holds everything."""
        able = [path for path in domains if self._of(path).with_leader != NO_LEADER]
        sizes = sorted((self._of(path).units for path in domains), reverse=True)
        sums = list(accumulate(sizes))
        best: tuple[int, int, int, Path] | None = None
        for path in able:
            held = self._of(path)
            fewest = _fewest(sizes, sums, held.units, units - held.with_leader)
            if fewest is None:
                continue
            if self._smallest_first:
                rank = (0, held.with_leader, held.pods, path)
            else:
                rank = (fewest, -held.with_leader, held.pods, path)
            if best is None or rank < best:
                best = rank
        return None if best is None else best[3]


def _fewest(sizes: list[int], sums: list[int], without: int, units: int) -> int | None:
    """How many domains hold so many units if one domain of the size `without` may not be used; None if they do not.

    `sizes` are in descending order, and `sums` their running totals.
    """
    if units <= 0:
        return 0
    position = bisect_left(sizes, -without, key=lambda size: -size)
    # The largest domains before that one, or those with one more to make up for it.
    if position and sums[position - 1] >= units:
        return bisect_left(sums, units) + 1
    number = bisect_left(sums, units + without)
    return number if number < len(sizes) else None
