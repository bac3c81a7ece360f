"""Which pods a unit that finds no room may preempt: in other queues, as far as these have more than they are entitled to, and in its own.

A queue owes amounts, not pods. So a reach does not choose: it says in which order its pods should go, and, of pods that would go in any
other order, which of them may. Which of them have to go is up to the search for room.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.pods import started_at
from drayman.placement.parties import Party
from drayman.placement.queueing.book import QueueBook
from drayman.placement.queueing.queues import Amount
from drayman.placement.state import ClusterState
from drayman.quota.shares.entitlement import Entitlement
from drayman.quota.shares.groups import Worker, Workers
from drayman.quota.shares.live import LiveAccounts, LiveShares, Unit
from drayman.quota.shares.order import Order

ABOVE: Final = 1
"""The importance of a unit compared with those that are in its reach, not by their priorities."""


class Means(Enum):
    """By which right others have to go."""

    RECLAIM = "reclaim"
    """Their queue has more than it is entitled to."""
    PREEMPT = "preempt"
    """They are less important, in the same queue."""


class Grades(Struct, frozen=True):
    """When pods of a unit go: less than `ABOVE`, and the lower, the sooner."""

    surplus: int
    """Those that it can do without."""
    rest: int


class Reach(Struct, frozen=True):
    """Who may have to go for a unit, by one right."""

    means: Means
    queue: str
    """Of the unit for which they go."""
    first: tuple[Unit, ...]
    """Those that owe something if all go in the order of their queues."""
    grades: Mapping[str, Grades]
    """Of groups, by name."""
    running: Mapping[str, Workers]
    """Their pods."""
    groups: Mapping[str, str]
    """The groups of these, by uid."""
    amounts: Mapping[str, Amount]
    """What they have, by uid."""
    due: Callable[[Iterable[Workers]], Iterator[Workers]]
    """Of parties that would go in this order, those that may."""

    def graded(self, parties: Iterable[Party]) -> list[Party]:
        """Those of some parties that are in reach, and those that leave anyway, with grades in place of priorities."""
        found: list[Party] = []
        made: dict[int, Party] = {}
        for party in parties:
            if party.is_leaving:
                found.append(party)
                continue
            group = self._group_of(party)
            if group is None:
                continue
            core = party.core if party.core is None else made.get(id(party.core), party.core)
            grades = self.grades[group]
            grade = grades.rest if party.core is None else grades.surplus
            made[id(party)] = graded = replace(party, priority=grade, core=core)
            found.append(graded)
        return found

    def permitted(self, parties: Sequence[Party]) -> list[Party]:
        """Of parties that would go in this order, those that may: all of them if they may in any order.

        A queue that owes anything may lose a large party as well as a small one, so the largest of it goes last.
        """
        found = self._permitted(parties)
        if len(found) == len(parties):
            return found
        largest_last = self._permitted(sorted(parties, key=self._amount))
        return largest_last if len(largest_last) == len(parties) else found

    def _amount(self, party: Party) -> Amount:
        return sum((self.amounts.get(uid, 0) for uid in party.uids), start=Fraction(0))

    def _permitted(self, parties: Sequence[Party]) -> list[Party]:
        """A gang gives up what it can do without before the rest of it goes."""
        asked: list[tuple[str, Party]] = []
        kept: set[str] = set()

        def line() -> Iterator[Workers]:
            left: dict[str, dict[str, Worker]] = {}
            for party in _surplus_first(parties):
                group = self._group_of(party)
                if group is None:
                    continue
                rest = left.setdefault(group, {each.name: each for each in self.running[group]})
                # Of what is left of a gang, some may be leaving already.
                going = tuple(rest) if party.gang is not None else tuple(party.uids)
                asked.append((group, party))
                yield tuple(rest.pop(uid) for uid in going)

        found: list[Party] = []
        number = 0
        for _ in self.due(line()):
            kept.update(group for group, _ in asked[number:-1])
            number = len(asked)
            group, party = asked[-1]
            if party.gang is None or group not in kept:
                found.append(party)
        return found

    def _group_of(self, party: Party) -> str | None:
        """The group of a party, if it is in reach."""
        groups = {self.groups.get(uid) for uid in party.uids}
        return next(iter(groups)) if len(groups) == 1 else None


def _surplus_first(parties: Sequence[Party]) -> list[Party]:
    """Parties in the same order, but for what a gang cannot do without: all the rest of it comes before that."""
    surplus: dict[int, list[Party]] = {}
    for party in parties:
        if party.core is not None:
            surplus.setdefault(id(party.core), []).append(party)
    line: dict[int, Party] = {}
    for party in parties:
        for each in (*surplus.get(id(party), ()), party):
            line.setdefault(id(each), each)
    return list(line.values())


class Reaching:
    """Says who is in reach of the units of one cluster."""

    def __init__(self, state: ClusterState, shares: LiveShares) -> None:
        self._state = state
        self._shares = shares

    def concerns(self, uid: str) -> bool:
        """Whether a pod is in a queue, so that queues decide which pods it may preempt."""
        return self._state.queues.is_in_force and self._state.queues.leaf_of(uid) is not None

    def of(self, unit: Unit, now: float) -> tuple[list[Reach], float | None]:
        """In the order in which they are tried; and when to look again, because some pods are left alone for a while."""
        book = self._state.queues
        stake = next(iter(book.pods_of(unit).values()), None)
        if stake is None or not book.tree.is_leaf(stake.queue):
            return [], None
        accounts = LiveAccounts(self._state)
        group = accounts.look_at(unit)
        starts = accounts.starts(group)
        if not starts:
            return [], None
        shares = self._shares.of_queues()
        # Mostly few queues have anything to give, and the others need no look.
        givers = Entitlement(accounts, shares, {}, now).givers(group, starts[0])
        for leaf in (*givers, stake.queue):
            accounts.look_at_running(leaf)
        asking = _Asking(accounts, self._shares.order(accounts), group, starts[0], now)
        entitlement = Entitlement(accounts, shares, asking.started(book), now)
        found = list(asking.reaches(entitlement, stake.queue))
        return found, asking.retry_at(entitlement)


class _Asking:
    """One question."""

    def __init__(
        self, accounts: LiveAccounts, order: Order, group: str, workers: Workers, now: float
    ) -> None:
        self._accounts = accounts
        self._order = order
        self._group = group
        self._workers = workers
        self._now = now
        self._others = [name for name in accounts.groups if name != group]

    def started(self, book: QueueBook) -> dict[str, float]:
        """Since when groups run: since the first of their pods that do was started."""
        found: dict[str, float] = {}
        for name in self._others:
            placed = (s for s in book.pods_of(self._accounts.units[name]).values() if s.is_placed)
            times = [started_at(stake.pod) for stake in placed]
            if times:
                found[name] = min((at for at in times if at is not None), default=self._now)
        return found

    def reaches(self, entitlement: Entitlement, queue: str) -> Iterator[Reach]:
        def reclaimed(parties: Iterable[Workers]) -> Iterator[Workers]:
            return entitlement.due_in_turn(self._group, self._workers, parties)

        def preempted(parties: Iterable[Workers]) -> Iterator[Workers]:
            return entitlement.preempted_in_turn(self._group, parties)

        names = entitlement.reclaimable(self._group, self._others)
        yield from self._reach(Means.RECLAIM, queue, names, reclaimed)
        names = entitlement.preemptable(self._group, self._others)
        yield from self._reach(Means.PREEMPT, queue, names, preempted)

    def _reach(
        self,
        means: Means,
        queue: str,
        names: Collection[str],
        due: Callable[[Iterable[Workers]], Iterator[Workers]],
    ) -> Iterator[Reach]:
        """Nothing if none of these groups has to give anything."""
        turns = list(self._order.victims(names, ()))
        first = [self._accounts.units[party[0].group] for party in due(turns)]
        if not first:
            return
        running = {name: self._accounts.running(name) for name in names}
        yield Reach(
            means,
            queue,
            tuple(dict.fromkeys(first)),
            self._grades(turns),
            running,
            {each.name: name for name, workers in running.items() for each in workers},
            {each.name: each.amount for workers in running.values() for each in workers},
            due,
        )

    def _grades(self, turns: Sequence[Workers]) -> dict[str, Grades]:
        """Groups of a queue that are equally important go alike. The surplus of all of them goes before what any of them needs."""
        first: dict[tuple[str, int, bool], int] = {}
        left: dict[str, int] = {}
        groups = self._accounts.groups

        def class_of(name: str, *, is_rest: bool) -> tuple[str, int, bool]:
            return groups[name].queue, groups[name].priority, is_rest

        for index, party in enumerate(turns):
            name = party[0].group
            left[name] = left.get(name, len(self._accounts.running(name))) - len(party)
            first.setdefault(class_of(name, is_rest=not left[name]), index - len(turns))
        found: dict[str, Grades] = {}
        for name in left:
            rest = first[class_of(name, is_rest=True)]
            found[name] = Grades(first.get(class_of(name, is_rest=False), rest), rest)
        return found

    def retry_at(self, entitlement: Entitlement) -> float | None:
        accounts = self._accounts
        ends = (
            entitlement.protected_until(self._group, name)
            for name in self._others
            if accounts.running(name) and accounts.tree.is_leaf(accounts.groups[name].queue)
        )
        return min((at for at in ends if at is not None), default=None)
