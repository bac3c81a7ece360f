"""Levels in their order, widest first, and the place of a node in them.

A place is a path of values. A rack of the same name in two zones is two places if the zone is a level above the rack; if the rack is the
first level, only its own value counts.

The order of known levels is that of the table (`levels`). Where a key is not in the table, the nodes decide: a level is above all levels
that divide its places further. So it is with NVLink domains, which are larger than a rack in some machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.topology.levels import KNOWN, Level, LevelKind, level_of

Path: TypeAlias = tuple[str, ...]
"""The values of a node, widest first. Empty where it has none."""

_RANK: Final = {level.key: rank for rank, level in enumerate(KNOWN)}


class Hierarchy(Struct, frozen=True):
    """Levels, widest first."""

    levels: tuple[Level, ...] = ()
    needs_all: bool = False
    """Whether a node without a value for each of the levels is in no domain at all, as a configured topology demands."""
    above: tuple[Level, ...] = ()
    """Levels that are wider than the required one. What is in one domain of that is in one of these, if in any."""

    def index(self, key: str) -> int:
        """The position of a level. Raises KeyError."""
        for position, level in enumerate(self.levels):
            if level.key == key:
                return position
        raise KeyError(key)

    def position(self, key: str) -> int | None:
        """The position of a level; None if it is wider than the required one, so that nothing follows from it. Raises KeyError."""
        return None if any(level.key == key for level in self.above) else self.index(key)

    def path(self, value: Callable[[Level], str]) -> Path:
        """The place of a node whose value for each level is given."""
        found = tuple([value(level) for level in self.levels])
        return ("",) * len(found) if self.needs_all and not all(found) else found


def configured(keys: Sequence[str], titles: Mapping[str, str] | None = None) -> Hierarchy:
    """The levels that a topology object lists, widest first."""
    named = titles or {}
    return Hierarchy(tuple(level_of(key, named.get(key, "")) for key in keys), needs_all=True)


def recognised(
    present: Iterable[str],
    rows: Sequence[Mapping[str, str]] = (),
    *,
    wanted: Sequence[str] = (),
    widest: str | None = None,
) -> Hierarchy:
    """The known levels among the keys that are present, together with those that are asked for.

    `rows` are the values of each node. Where a level is required, it is the `widest`: nothing above it matters then, and only its
    own value counts.
    """
    named = [level_of(key) for key in dict.fromkeys(wanted)]
    known = [level for level in KNOWN if level.key in set(present)]
    chosen = {level.key: level for level in (*known, *named)}
    settled = [
        level
        for level in sorted(chosen.values(), key=lambda each: _RANK.get(each.key, -1))
        if level.kind is not None and level.kind is not LevelKind.NVLINK_DOMAIN
    ]
    order = list(settled)
    for level in chosen.values():
        if level not in settled:
            order.insert(_position(level, order, rows), level)
    first = 0 if widest is None else [level.key for level in order].index(widest)
    return Hierarchy(tuple(order[first:]), above=tuple(order[:first]))


def _position(level: Level, order: Sequence[Level], rows: Sequence[Mapping[str, str]]) -> int:
    """Where a level belongs: above the first one that divides it, or above the hosts."""
    for position, other in enumerate(order):
        if other.kind is LevelKind.HOST or _divides(other.key, level.key, rows):
            return position
        if level.key in _RANK and _RANK.get(other.key, -1) > _RANK[level.key]:
            return position
    return len(order)


def _divides(finer: str, wider: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether each place of one level lies in one place of the other, and not the other way round."""
    above: dict[str, str] = {}
    below: dict[str, str] = {}
    is_same = True
    for row in rows:
        fine, wide = row.get(finer, ""), row.get(wider, "")
        if not fine or not wide:
            continue
        if above.setdefault(fine, wide) != wide:
            return False
        is_same = is_same and below.setdefault(wide, fine) == fine
    return not is_same
