"""Which members of a gang are tried together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from drayman.placement.demand import Demand
from drayman.placement.gangs.book import Member
from drayman.placement.gangs.gang import Gang, Subgroup


class Ready(Struct, frozen=True, eq=False):
    """A member that could start."""

    member: Member
    demand: Demand

    @property
    def part(self) -> str:
        """The subgroup that it is in."""
        return self.member.membership.subgroup


class Chosen(Struct, frozen=True, eq=False):
    """Members that are tried together."""

    members: tuple[Ready, ...]
    least: Mapping[str, int]
    """How many have to start in each subgroup; all of them where it does not say."""

    def least_of(self, part: str) -> int:
        number = sum(each.part == part for each in self.members)
        return min(number, self.least.get(part, number))

    @property
    def needed(self) -> int:
        return sum(self.least_of(part) for part in {each.part for each in self.members})


def choices(gang: Gang, ready: Sequence[Ready], has: Mapping[str, int]) -> Iterator[Chosen]:
    """Which members to try: all of them, then as many as the gang needs."""
    everything = Chosen(tuple(ready), {})
    yield everything
    quorums = [each for each in gang.subgroups if each.least is not None]
    if not quorums:
        needed = gang.least - sum(has.values())
        if needed < len(ready):
            # With subgroups that only have wishes, members are counted together.
            parts = {each.part for each in ready}
            if len(parts) == 1:
                yield Chosen(tuple(ready), dict.fromkeys(parts, needed))
            else:
                yield Chosen(tuple(ready)[:needed], {})
        return
    for names in _complete(gang, ""):
        least = {
            each.name: max(0, (each.least or 0) - has.get(each.name, 0))
            for each in quorums
            if each.name in names
        }
        members = tuple(each for each in ready if least.get(each.part))
        chosen = Chosen(members, least)
        total = sum(has.values()) + chosen.needed
        if members and total >= gang.least and chosen.needed < everything.needed:
            yield chosen


def _complete(gang: Gang, name: str) -> Iterator[frozenset[str]]:
    """The sets of subgroups that suffice below one of them: all of them, or as many as are needed."""
    children = gang.children(name)
    parent = gang.subgroup(name)
    needed = gang.least_children if parent is None else parent.least_children
    for chosen in combinations(children, len(children) if needed is None else needed):
        yield from _combined(gang, chosen)


def _combined(gang: Gang, chosen: Sequence[Subgroup]) -> Iterator[frozenset[str]]:
    if not chosen:
        yield frozenset()
        return
    first, *others = chosen
    below = _complete(gang, first.name) if gang.children(first.name) else iter([frozenset[str]()])
    for names in below:
        for rest in _combined(gang, others):
            yield frozenset({first.name}) | names | rest
