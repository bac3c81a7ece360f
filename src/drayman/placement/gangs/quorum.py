"""Whether enough members of a gang exist for it to start. Whether they fit is another question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from drayman.placement.gangs.gang import Gang, Subgroup


class Shortfall(Struct, frozen=True):
    """What is missing in a gang, or in a part of it."""

    has: int
    needs: int
    subgroup: str = ""
    """Empty: the gang itself."""
    counts_subgroups: bool = False
    """Whether complete subgroups are counted and not pods."""


def shortfall(gang: Gang, members: Mapping[str, int]) -> Shortfall | None:
    """What a gang lacks whose members are so many in each subgroup; None if it is complete.

    Of several parts that lack something, the first is named. Members in no subgroup do not count where there are subgroups.
    """
    sums = _below(gang, members)
    if sums[""] < gang.least:
        return Shortfall(sums[""], gang.least)
    parts = _Parts(gang, sums)
    return parts.of_children("", gang.least_children)


class Sparing:
    """Which members a gang that is complete can do without, one after the other."""

    def __init__(self, gang: Gang, members: Mapping[str, int]) -> None:
        """`members` are so many in each subgroup."""
        self._gang = gang
        self._has = Counter(members)
        self._sums = _below(gang, members)
        self._parts = {each.name: each for each in gang.subgroups}
        self._are_strict = _are_strict(gang)
        self._is_complete = shortfall(gang, members) is None
        self._exhausted: set[str] = set()  # once a part can spare nobody, it never can

    def spare(self, subgroup: str) -> bool:
        """Let go of a member, if the gang can do without it; returns whether it can."""
        if not self._is_complete or subgroup in self._exhausted:
            return False
        self._has[subgroup] -= 1
        # Mostly each part around it still has enough members, and then nothing changes for the gang.
        around = self._around(subgroup)
        if not all(self._sums[name] > self._least(name) for name in around):
            lack = shortfall(self._gang, self._has)
            if lack is not None:
                self._has[subgroup] += 1
                self._exhausted.add(subgroup)
                return False
        for name in around:
            self._sums[name] -= 1
        return True

    def _least(self, name: str) -> int:
        part = self._parts.get(name)
        return self._gang.least if part is None else part.least or 0

    def _around(self, subgroup: str) -> list[str]:
        """The parts that lose a member with a subgroup; an empty name stands for the gang itself."""
        found: list[str] = []
        part = self._parts.get(subgroup)
        if part is None:
            return found if self._are_strict else [""]
        while part is not None:
            found.append(part.name)
            part = self._parts.get(part.parent)
        return [*found, ""]


def _are_strict(gang: Gang) -> bool:
    """A gang whose subgroups only have wishes counts all of its members; subgroups that state quorums count only their own."""
    return any(each.least is not None for each in gang.subgroups)


def _below(gang: Gang, members: Mapping[str, int]) -> dict[str, int]:
    """How many members each part of a gang has, with those of its own parts; an empty name stands for the gang."""
    sums: dict[str, int] = {}
    for each in reversed(gang.subgroups):  # children come after their parents
        sums[each.name] = sums.get(each.name, 0) + members.get(each.name, 0)
        if each.parent:
            sums[each.parent] = sums.get(each.parent, 0) + sums[each.name]
    outermost = sum(sums[each.name] for each in gang.subgroups if not each.parent)
    sums[""] = outermost if _are_strict(gang) else sum(members.values())
    return sums


class _Parts:
    """The tree of a gang's parts, and how many members each of them has."""

    def __init__(self, gang: Gang, sums: Mapping[str, int]) -> None:
        self._sums = sums
        self._children: dict[str, list[Subgroup]] = {}
        for each in gang.subgroups:
            self._children.setdefault(each.parent, []).append(each)

    def of_children(self, name: str, needs: int | None) -> Shortfall | None:
        """What the parts below one lack, of which so many are needed, or all."""
        children = self._children.get(name)
        if not children:
            return None
        lacks = [self._of(each) for each in children]
        complete = sum(lack is None for lack in lacks)
        if needs is None:
            return next((lack for lack in lacks if lack is not None), None)
        return (
            None if complete >= needs else Shortfall(complete, needs, name, counts_subgroups=True)
        )

    def _of(self, part: Subgroup) -> Shortfall | None:
        has = self._sums.get(part.name, 0)
        if part.least is not None and has < part.least:
            return Shortfall(has, part.least, part.name)
        return self.of_children(part.name, part.least_children)
