"""Gangs without an object of their own: what their pods state is all there is, and they have to agree.

Each member carries a declaration. Members that were made from one template have equal ones, so that there are few different ones to
compare, however many members there are.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from drayman.placement.gangs.gang import (
    MOST_SUBGROUPS,
    NO_WISH,
    Flaw,
    FlawKind,
    Gang,
    GangKey,
    InvalidGangError,
    Slices,
    Subgroup,
    Wish,
)


class Declaration(Struct, frozen=True, kw_only=True, cache_hash=True):
    """What one pod states about its gang, and about the subgroup that it is in."""

    least: int = 0
    most: int | None = None
    timeout_s: float | None = None
    grace_s: float | None = None
    subgroup: str = ""
    parent: str = ""
    """Of the subgroup; what it wishes holds for all subgroups with this parent together."""
    topology: str = ""
    """The Topology object that has the levels of the wishes, where they are not names of labels yet."""
    wish: Wish = NO_WISH
    slices: tuple[Slices, ...] = ()


MOST_DIFFERENT: Final = MOST_SUBGROUPS + 2
"""Members of a gang that state so many different things contradict each other: each subgroup has one declaration."""
_MOST_SHOWN: Final = 8


class Declarations:
    """What the members of one gang state. However many members state different things, reading them takes a bounded number of steps."""

    __slots__ = ("_counts", "_flawed", "_flaws", "change")

    def __init__(self) -> None:
        self._counts: Counter[Declaration | Flaw] = Counter()
        self._flaws: list[tuple[str, int, Flaw]] = []
        """A heap by text. Flaws that no member has any more leave it when they become the first."""
        self._flawed: set[Flaw] = set()
        """The flaws in the heap."""
        self.change = 0
        """Differs whenever different things are stated."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, stated: Declaration | Flaw, change: int) -> None:
        self._counts[stated] += 1
        if self._counts[stated] > 1:
            return
        self.change = change
        if isinstance(stated, Flaw) and stated not in self._flawed:
            self._flawed.add(stated)
            heapq.heappush(self._flaws, (str(stated), change, stated))

    def remove(self, stated: Declaration | Flaw, change: int) -> None:
        self._counts[stated] -= 1
        if not self._counts[stated]:
            del self._counts[stated]
            self.change = change

    def telling(self) -> tuple[Declaration | Flaw, ...]:
        """As much of what is stated as decides what the gang is: a flaw if there is any, or else some declarations."""
        while self._flaws:
            flaw = self._flaws[0][-1]
            if flaw in self._counts:
                return (flaw,)
            heapq.heappop(self._flaws)
            self._flawed.discard(flaw)
        return tuple(islice(self._counts, MOST_DIFFERENT))


Sources = Mapping[str, str]
"""The annotation that a member of `Declaration` comes from."""
_OF_THE_GANG: Final = ("least", "most", "timeout_s", "grace_s")
_OF_A_SUBGROUP: Final = ("parent", "topology", "wish", "slices")


def combined(key: GangKey, stated: Collection[Declaration | Flaw], sources: Sources) -> Gang | Flaw:
    """The gang whose members state this, or why there is none. The order of what they state does not matter."""
    flaws = sorted((each for each in stated if isinstance(each, Flaw)), key=str)
    if flaws:
        return flaws[0]
    declared = [each for each in stated if isinstance(each, Declaration)]
    try:
        gang = _gang(key, declared, sources)
    except InvalidGangError as error:
        return Flaw(key, FlawKind.INVALID, str(key), error.message, error.field)
    return gang


def _gang(key: GangKey, declared: list[Declaration], sources: Sources) -> Gang:
    _agreeing(declared, _OF_THE_GANG, sources)
    by_name: dict[str, list[Declaration]] = {}
    for each in declared:
        by_name.setdefault(each.subgroup, []).append(each)
    if len(by_name) > MOST_SUBGROUPS:
        message = f"its pods are in {len(by_name)} sets, and there can be {MOST_SUBGROUPS}"
        raise InvalidGangError("metadata.labels", message)
    for part in by_name.values():
        _agreeing(part, _OF_A_SUBGROUP, sources)
    own = by_name.pop("", [Declaration()])[0]
    parts = [by_name[name][0] for name in sorted(by_name)]
    return Gang(
        key=key,
        least=declared[0].least,
        most=declared[0].most,
        timeout_s=declared[0].timeout_s,
        grace_s=declared[0].grace_s,
        subgroups=(*_parents(parts, sources), *map(_part, parts)),
        wish=own.wish,
        slices=own.slices,
    )


def _part(declared: Declaration) -> Subgroup:
    wish = NO_WISH if declared.parent else declared.wish
    return Subgroup(declared.subgroup, declared.parent, wish=wish, slices=declared.slices)


def _parents(parts: list[Declaration], sources: Sources) -> tuple[Subgroup, ...]:
    together: dict[str, list[Declaration]] = {}
    for each in parts:
        if each.parent:
            together.setdefault(each.parent, []).append(each)
    for children in together.values():
        _agreeing(children, ("wish",), sources)
    return tuple(Subgroup(name, wish=together[name][0].wish) for name in sorted(together))


def _agreeing(declared: list[Declaration], members: Collection[str], sources: Sources) -> None:
    """Raises InvalidGangError where some state something different."""
    for member in members:
        values = {getattr(each, member) for each in declared}
        if len(values) > 1:
            field = f"metadata.annotations[{sources[member]}]"
            texts = sorted(map(_shown, values))
            if len(texts) > _MOST_SHOWN:
                texts[_MOST_SHOWN:] = [f"{len(texts) - _MOST_SHOWN} more"]
            shown = " and ".join(texts)
            raise InvalidGangError(field, f"its pods state different things: {shown}")


def _shown(value: Any) -> str:
    match value:
        case Wish():
            levels = (("required", value.required), ("preferred", value.preferred))
            return ", ".join(f"{word} {level}" for word, level in levels if level) or "nothing"
        case tuple():
            return ", ".join(f"{each.size} in {_shown(each.wish)}" for each in value) or "nothing"
        case float():
            return f"{value:g}s"
        case _:
            return "nothing" if value in (None, "") else str(value)
