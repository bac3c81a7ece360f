"""Whether enough members of a gang exist for it to start. Whether they fit is another question."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    has = _below(gang, members)
    if has("") < gang.least:
        return Shortfall(has(""), gang.least)
    return _of_children(gang, "", gang.least_children, has)


Has = Callable[[str], int]


def _below(gang: Gang, members: Mapping[str, int]) -> Has:
    """How many members a part of a gang has, with those of its own parts."""
    sums: dict[str, int] = {}
    for each in reversed(gang.subgroups):  # children come after their parents
        sums[each.name] = sums.get(each.name, 0) + members.get(each.name, 0)
        if each.parent:
            sums[each.parent] = sums.get(each.parent, 0) + sums[each.name]
    # A gang whose subgroups only have wishes counts all of its members; subgroups that state quorums count only their own.
    are_strict = any(each.least is not None for each in gang.subgroups)
    outermost = sum(sums[each.name] for each in gang.subgroups if not each.parent)
    sums[""] = outermost if are_strict else sum(members.values())
    return lambda name: sums.get(name, 0)


def _of_children(gang: Gang, name: str, needs: int | None, has: Has) -> Shortfall | None:
    children = gang.children(name)
    if not children:
        return None
    lacks = [_of(gang, each, has) for each in children]
    complete = sum(lack is None for lack in lacks)
    if needs is None:
        return next((lack for lack in lacks if lack is not None), None)
    return None if complete >= needs else Shortfall(complete, needs, name, counts_subgroups=True)


def _of(gang: Gang, part: Subgroup, has: Has) -> Shortfall | None:
    if part.least is not None and has(part.name) < part.least:
        return Shortfall(has(part.name), part.least, part.name)
    return _of_children(gang, part.name, part.least_children, has)
