"""Whose turn it is, and who gives way first.

At each level of the tree the queue comes first that stays within its quota with the group at hand; then the one of higher priority; then
the one that uses less of its share with that group, or without it; then the smaller share, and the older queue. A queue stands in line
with its first group, even where that group can never start. Victims are taken in the opposite order: from the queue that is still the
fullest when its next victim is gone, and those before it. One that uses something without a share comes before the others.

Within a queue, groups come by priority, then those that lack members before those that have enough, then by age.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from drayman.placement.queueing.limits import is_beyond
from drayman.placement.queueing.queues import Amount, Queue, QueueTree
from drayman.quota.shares.accounts import AccountsView, amount
from drayman.quota.shares.fullness import Fullness, fullness
from drayman.quota.shares.groups import (
    Place,
    Strength,
    Worker,
    Workers,
    next_to_go,
    place_of,
    strength_of,
)

Request: TypeAlias = Callable[[str], Amount]
"""How much a group takes when its turn comes."""
Turn: TypeAlias = tuple[Amount, ...]
"""What sister queues are ordered by, the first first."""

Latest: TypeAlias = Mapping[str, str]
"""The queue below each that had its turn last, where it has more."""

_NONE: Final[Latest] = {}


class Order:
    """The order of queues and groups in one cycle, in which shares do not change."""

    def __init__(self, accounts: AccountsView, shares: Mapping[str, Amount]) -> None:
        self._accounts = accounts
        self.tree = accounts.tree
        self._shares = shares
        self._known: dict[str, Amount] = {}

    def line(self, groups: Iterable[str], request: Request) -> Turns:
        """Groups that have their turns one after the other."""
        return Turns(self, groups, request)

    def next_of(self, firsts: Mapping[str, str], request: Request, latest: Latest = _NONE) -> str:
        """Whose turn it is of the groups that are the first in each leaf. `latest`: see `Turns`."""

        def key(queue: Queue, group: str) -> Turn:
            return self.turn(queue, request(group))

        return self._descend(firsts, key, latest)

    def leaf_of(self, group: str) -> str:
        """The queue that a group is in."""
        return self._accounts.groups[group].queue

    def turn(self, queue: Queue, more: Amount) -> Turn:
        """The place of a queue among its sisters, if its next group takes so much."""
        used = self._accounts.used[queue.name]
        return (
            is_beyond(used + more, queue.quota),
            -queue.priority,
            *self._fullness(queue, used + more),
            *self._fullness(queue, used),
            self._attainable(queue),
            Fraction(queue.created),
        )

    def rank(self, group: str) -> tuple[Place, str]:
        """The place of a group in its queue."""
        stated = self._accounts.groups[group]
        return place_of(stated.priority, self._accounts.strength(group), stated.created), group

    def victims(
        self, groups: Collection[str], taken: Collection[Worker], *, by_priority: bool = True
    ) -> Iterator[Workers]:
        """Who gives way, party by party, until nobody is left. `taken` are those that have given way already.

        Queues are compared by what they use now, less those of the leaf that have had their turn. A group counts with all that it has each
        time that it gives up a part of it, so that queues with groups that can shrink give by turns. Where nobody loses anything, the
        priority of groups does not count.
        """
        accounts = self._accounts
        gone = {each.name for each in taken}
        left = {name: list(accounts.running(name)) for name in groups}
        had_turn: defaultdict[str, Amount] = defaultdict(int)

        def rank(group: str) -> tuple[int, Strength, float, str]:
            stated = accounts.groups[group]
            strength = strength_of(stated, left[group])
            priority = stated.priority if by_priority else 0
            return (priority, Strength(2 - strength), -stated.created, group)

        def key(queue: Queue, group: str) -> Turn:
            used = accounts.used[queue.name]
            less = had_turn[self.leaf_of(group)] + amount(left[group])
            return (
                -is_beyond(used, queue.quota),
                queue.priority,
                -(self._attainable(queue) <= 0 < used),
                *(-part for part in self._fullness(queue, used - less)),
                *(-part for part in self._fullness(queue, used)),
                -self._attainable(queue),
                -Fraction(queue.created),
            )

        lines: dict[str, list[tuple[int, Strength, float, str]]] = {}
        for name, members in left.items():
            if members:
                lines.setdefault(self.leaf_of(name), []).append(rank(name))
        for line in lines.values():
            heapify(line)
        latest: dict[str, str] = {}
        while lines:
            group = self._descend({leaf: line[0][-1] for leaf, line in lines.items()}, key, latest)
            leaf, members = self.leaf_of(group), left[group]
            had_turn[leaf] += amount(members)
            party = next_to_go(accounts.groups[group], members)
            is_new = gone.isdisjoint(each.name for each in party)
            _remove(members, party if is_new else tuple(w for w in members if w.name in gone))
            heappop(lines[leaf])
            if members:
                heappush(lines[leaf], rank(group))
            elif not lines[leaf]:
                del lines[leaf]
            _note_turn(latest, self.tree, leaf, lines)
            if is_new:
                yield party

    def _descend(
        self, firsts: Mapping[str, str], key: Callable[[Queue, str], Turn], latest: Latest
    ) -> str:
        """Whose turn it is among the first groups of leaves: at each level the first queue, with the group that it stands in line with."""
        tree = self.tree
        below: dict[str, dict[str, None]] = {}  # the queues below each that have groups
        for leaf in firsts:
            for name in tree.path(leaf):
                siblings = below.setdefault(tree[name].parent, {})
                if name in siblings:
                    break
                siblings[name] = None

        def standing(name: str) -> str:
            if name in firsts:
                return firsts[name]
            child = latest.get(name)
            return standing(child if child in below[name] else first(name))

        def first(name: str) -> str:
            return min(below[name], key=lambda child: (key(tree[child], standing(child)), child))

        name = ""
        while name not in firsts:
            name = first(name)
        return firsts[name]

    def _fullness(self, queue: Queue, used: Amount) -> Fullness:
        return fullness(used, self._attainable(queue))

    def _attainable(self, queue: Queue) -> Amount:
        """What a queue can have without taking it from anybody: its fair share or its quota, whichever is more, up to its limit."""
        found = self._known.get(queue.name)
        if found is None:
            quota = self._accounts.capacity() if queue.quota is None else queue.quota
            most = max(self._shares[queue.name], quota)
            found = most if queue.limit is None else min(most, queue.limit)
            self._known[queue.name] = found
        return found


def _remove(members: list[Worker], party: Workers) -> None:
    """Mostly it is the last one, or all of them."""
    if len(party) == len(members):
        members.clear()
    elif party == (members[-1],):
        members.pop()
    else:
        for each in party:
            members.remove(each)


class Turns:
    """Groups that have their turns one after the other.

    A queue that has others below it stands in line with the one of them that had its turn last, as long as that has more groups. Which of
    them is the next is only asked when its own turn has come.
    """

    def __init__(self, order: Order, groups: Iterable[str], request: Request) -> None:
        self._order = order
        self._request = request
        self._leaves: dict[str, dict[str, None]] = {}
        self._latest: dict[str, str] = {}
        for each in groups:
            self.put_back(each)

    def __bool__(self) -> bool:
        return bool(self._leaves)

    def __contains__(self, group: str) -> bool:
        return group in self._leaves.get(self._order.leaf_of(group), ())

    def take(self) -> str:
        """The group whose turn it is. It is no longer in line then."""
        order = self._order
        firsts = {leaf: min(groups, key=order.rank) for leaf, groups in self._leaves.items()}
        group = order.next_of(firsts, self._request, self._latest)
        self.remove(group)
        _note_turn(self._latest, order.tree, order.leaf_of(group), self._leaves)
        return group

    def remove(self, group: str) -> None:
        """A group is no longer in line."""
        leaf = self._order.leaf_of(group)
        del self._leaves[leaf][group]
        if not self._leaves[leaf]:
            del self._leaves[leaf]

    def put_back(self, group: str) -> None:
        """A group has another turn."""
        self._leaves.setdefault(self._order.leaf_of(group), {})[group] = None


def _note_turn(latest: dict[str, str], tree: QueueTree, leaf: str, leaves: Collection[str]) -> None:
    """A leaf has had its turn, and these leaves have groups now."""
    for name in tree.path(leaf):
        above = tree[name].parent
        if name in leaves or any(name in tree.path(each) for each in leaves):
            latest[above] = name
        else:
            latest.pop(above, None)
