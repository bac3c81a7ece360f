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
from typing import Final, TypeAlias

from drayman.quota.shares.accounts import Accounts, amount
from drayman.quota.shares.groups import Strength, Worker, Workers, next_to_go, strength_of
from drayman.quota.shares.queues import Amount, Queue

Request: TypeAlias = Callable[[str], int]
"""How much a group takes when its turn comes."""
_QueueKey: TypeAlias = tuple[Amount, ...]

_BEYOND_ALL: Final = 10**12
"""How full a queue counts that uses something without a share."""


class Order:
    """The order of queues and groups in one cycle, in which shares do not change."""

    def __init__(self, accounts: Accounts, shares: Mapping[str, Amount]) -> None:
        self._accounts = accounts
        self._tree = accounts.tree
        self._shares = {each.name: self._attainable(each, shares) for each in accounts.tree}

    def next(self, groups: Collection[str], request: Request, *, is_supposed: bool = False) -> str:
        """The group whose turn it is. `is_supposed`: groups were taken away and come back, and equals that have less come first."""

        def key(queue: Queue, group: str) -> _QueueKey:
            used, more = self._accounts.used[queue.name], request(group)
            with_it = self._fullness(queue, used + more)
            without = self._fullness(queue, used) if is_supposed else 0
            return (
                self._is_beyond(queue, used + more),
                -queue.priority,
                with_it,
                without,
                self._shares[queue.name],
                Fraction(queue.created),
            )

        firsts = self._by_leaf(groups, self.rank)
        found = self._descend("", firsts, key)
        assert found is not None  # every group is in a leaf of the tree
        return found

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

        def key(queue: Queue, group: str) -> _QueueKey:
            now = used[queue.name]
            return (
                -self._is_beyond(queue, now),
                queue.priority,
                -self._fullness(queue, now - amount(left[group])),
                -self._fullness(queue, now),
                -self._shares[queue.name],
                -Fraction(queue.created),
            )

        while any(left.values()):
            firsts = self._by_leaf([name for name, members in left.items() if members], rank)
            group = self._descend("", firsts, key)
            assert group is not None  # every group is in a leaf of the tree
            party = next_to_go(accounts.groups[group], left[group])
            left[group] = [each for each in left[group] if each not in party]
            _subtract(used, accounts.path(group), amount(party))
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

    def _descend(
        self, name: str, firsts: Mapping[str, str], key: Callable[[Queue, str], _QueueKey]
    ) -> str | None:
        """The first group below a queue."""
        if name in firsts:
            return firsts[name]
        best: tuple[_QueueKey, str, str] | None = None
        for child in self._tree.children(name):
            group = self._descend(child.name, firsts, key)
            if group is None:
                continue
            found = (key(child, group), child.name, group)
            if best is None or found < best:
                best = found
        return None if best is None else best[2]

    def _is_beyond(self, queue: Queue, used: int) -> bool:
        return queue.quota is not None and used > queue.quota

    def _fullness(self, queue: Queue, used: int) -> Amount:
        share = self._shares[queue.name]
        if share <= 0:
            return used * _BEYOND_ALL
        return Fraction(used) / share

    def _attainable(self, queue: Queue, shares: Mapping[str, Amount]) -> Amount:
        """What a queue can have without taking it from anybody: its fair share or its quota, whichever is more, up to its limit."""
        quota = self._accounts.floor.capacity() if queue.quota is None else queue.quota
        most = max(shares[queue.name], quota)
        return most if queue.limit is None else min(most, queue.limit)


def _subtract(used: dict[str, int], queues: Collection[str], by: int) -> None:
    for name in queues:
        used[name] -= by
