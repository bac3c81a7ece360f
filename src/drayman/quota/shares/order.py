"""Whose turn it is, and who gives way first.

At each level of the tree the queue comes first that stays within its quota with the group at hand; then the one of higher priority; then
the one that uses less of its share with that group; then the smaller share, and the older queue. A queue stands in line with its first
group, even where that group can never start. Victims are taken in the opposite order: from the queue that is still the fullest when its
next victim is gone, and those before it.

Within a queue, groups come by priority, then those that lack members before those that have enough, then by age.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from drayman.placement.queueing.queues import Amount, Queue
from drayman.quota.shares.accounts import Books, amount
from drayman.quota.shares.groups import Strength, Worker, Workers, next_to_go, strength_of

Request: TypeAlias = Callable[[str], int]
"""How much a group takes when its turn comes."""
Turn: TypeAlias = tuple[Amount, ...]
"""What sister queues are ordered by, the first first."""

_BEYOND_ALL: Final = 10**12
"""How full a queue counts that uses something without a share."""


class Order:
    """The order of queues and groups in one cycle, in which shares do not change."""

    def __init__(self, accounts: Books, shares: Mapping[str, Amount]) -> None:
        self._accounts = accounts
        self.tree = accounts.tree
        self._shares = shares
        self._known: dict[str, Amount] = {}

    def next(self, groups: Collection[str], request: Request, *, is_supposed: bool = False) -> str:
        """The group whose turn it is. `is_supposed`: groups were taken away and come back, and equals that have less come first."""
        firsts = self._by_leaf(groups, self.rank)
        return self.next_of(firsts, request, is_supposed=is_supposed)

    def next_of(
        self, firsts: Mapping[str, str], request: Request, *, is_supposed: bool = False
    ) -> str:
        """The same, of the groups that are the first in each leaf."""

        def key(queue: Queue, group: str) -> Turn:
            return self.turn(queue, request(group), is_supposed=is_supposed)

        return self._descend(firsts, key)

    def turn(self, queue: Queue, more: int, *, is_supposed: bool = False) -> Turn:
        """The place of a queue among its sisters, if its next group takes so much."""
        used = self._accounts.used[queue.name]
        return (
            self._is_beyond(queue, used + more),
            -queue.priority,
            self._fullness(queue, used + more),
            self._fullness(queue, used) if is_supposed else 0,
            self._attainable(queue),
            Fraction(queue.created),
        )

    def rank(self, group: str) -> tuple[int, Strength, float, str]:
        """The place of a group in its queue."""
        stated = self._accounts.groups[group]
        return (-stated.priority, self._accounts.strength(group), stated.created, group)

    def victims(
        self, groups: Collection[str], taken: Collection[Worker], *, by_priority: bool = True
    ) -> Iterator[Workers]:
        """Who gives way, party by party, until nobody is left. `taken` are those that have given way already.

        Where nobody loses anything, priority does not count.
        """
        accounts = self._accounts
        gone = {each.name for each in taken}
        left = {name: [w for w in accounts.running(name) if w.name not in gone] for name in groups}
        used = dict(accounts.used)
        for each in taken:
            _subtract(used, accounts.path(each.group), each.amount)

        def rank(group: str) -> tuple[int, Strength, float, str]:
            stated = accounts.groups[group]
            strength = strength_of(stated, left[group])
            priority = stated.priority if by_priority else 0
            return (priority, Strength(2 - strength), -stated.created, group)

        def key(queue: Queue, group: str) -> Turn:
            now = used[queue.name]
            return (
                -self._is_beyond(queue, now),
                queue.priority,
                -self._fullness(queue, now - amount(left[group])),
                -self._fullness(queue, now),
                -self._attainable(queue),
                -Fraction(queue.created),
            )

        lines: dict[str, list[tuple[int, Strength, float, str]]] = {}
        for name, members in left.items():
            if members:
                lines.setdefault(accounts.groups[name].queue, []).append(rank(name))
        for line in lines.values():
            heapify(line)
        while lines:
            group = self._descend({leaf: line[0][-1] for leaf, line in lines.items()}, key)
            party = next_to_go(accounts.groups[group], left[group])
            _remove(left[group], party)
            _subtract(used, accounts.path(group), amount(party))
            leaf = accounts.groups[group].queue
            heappop(lines[leaf])
            if left[group]:
                heappush(lines[leaf], rank(group))
            elif not lines[leaf]:
                del lines[leaf]
            yield party

    def _by_leaf(
        self, groups: Collection[str], rank: Callable[[str], tuple[int, Strength, float, str]]
    ) -> dict[str, str]:
        """The first group of each leaf."""
        firsts: dict[str, str] = {}
        for name in groups:
            queue = self._accounts.groups[name].queue
            if queue not in firsts or rank(name) < rank(firsts[queue]):
                firsts[queue] = name
        return firsts

    def _descend(self, firsts: Mapping[str, str], key: Callable[[Queue, str], Turn]) -> str:
        """Whose turn it is among the first groups of leaves: at each level the first queue, with the first group below it."""
        tree = self.tree
        below: dict[str, dict[str, None]] = {}  # the queues below each that have groups
        for leaf in firsts:
            for name in tree.path(leaf):
                siblings = below.setdefault(tree[name].parent, {})
                if name in siblings:
                    break
                siblings[name] = None
        return self._first_below("", firsts, below, key)

    def _first_below(
        self,
        name: str,
        firsts: Mapping[str, str],
        below: Mapping[str, Mapping[str, None]],
        key: Callable[[Queue, str], Turn],
    ) -> str:
        if name in firsts:
            return firsts[name]
        found = []
        for child in below[name]:
            group = self._first_below(child, firsts, below, key)
            found.append((key(self.tree[child], group), child, group))
        return min(found)[2]

    def _is_beyond(self, queue: Queue, used: int) -> bool:
        return queue.quota is not None and used > queue.quota

    def _fullness(self, queue: Queue, used: int) -> Amount:
        share = self._attainable(queue)
        if share <= 0:
            return used * _BEYOND_ALL
        return Fraction(used) / share

    def _attainable(self, queue: Queue) -> Amount:
        """What a queue can have without taking it from anybody: its fair share or its quota, whichever is more, up to its limit."""
        found = self._known.get(queue.name)
        if found is None:
            quota = self._accounts.capacity() if queue.quota is None else queue.quota
            most = max(self._shares[queue.name], quota)
            found = most if queue.limit is None else min(most, queue.limit)
            self._known[queue.name] = found
        return found


def _subtract(used: dict[str, int], queues: Collection[str], by: int) -> None:
    for name in queues:
        used[name] -= by


def _remove(members: list[Worker], party: Workers) -> None:
    """Mostly it is the last one, or all of them."""
    if len(party) == len(members):
        members.clear()
    elif party == (members[-1],):
        members.pop()
    else:
        for each in party:
            members.remove(each)
