"""Whom a unit that finds no room may have evicted: in other queues, as far as they have more than they are entitled to, and in its own.

The answer is in amounts, not in pods: of each group, how much of what it can do without may go, and whether the rest may. Who goes in the
end is up to a search for room. Whatever it takes of this is acceptable: if fewer go, queues keep more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.pods import started_at
from drayman.placement.parties import Party
from drayman.placement.queueing.book import QueueBook
from drayman.placement.queueing.queues import Amount
from drayman.placement.state import ClusterState
from drayman.quota.shares.accounts import amount
from drayman.quota.shares.entitlement import Entitlement
from drayman.quota.shares.groups import Workers
from drayman.quota.shares.live import LiveAccounts, LiveShares, Unit
from drayman.quota.shares.order import Order

ABOVE: Final = 1
"""The importance of a unit compared with those that are in its reach, whatever their priorities are."""


class Means(Enum):
    """By which right others have to go."""

    RECLAIM = "reclaim"
    """Their queue has more than it is entitled to."""
    PREEMPT = "preempt"
    """They are less important, in the same queue."""


class Given(Struct, frozen=True):
    """What a unit may have to give."""

    grade: int
    """Less than `ABOVE`; the lower, the sooner it goes."""
    surplus: Amount
    """What may go of the pods that it can do without."""
    whole: bool
    """Whether all of it may."""


class Reach(Struct, frozen=True):
    """Who may have to go for a unit, by one right."""

    means: Means
    queue: str
    """Of the unit for which they go."""
    given: Mapping[Unit, Given]

    def graded(self, book: QueueBook, parties: Iterable[Party]) -> list[Party]:
        """Those of some parties that are in reach, and those that leave anyway, with grades in place of priorities."""
        found: list[Party] = []
        made: dict[int, Party] = {}
        spent: dict[Unit, Amount] = {}
        for party in parties:
            if party.is_leaving:
                found.append(party)
                continue
            stakes = [book.stake(each.uid) for each in party.members]
            units = {stake.unit for stake in stakes if stake is not None}
            given = self.given.get(units.pop()) if len(units) == 1 else None
            if given is None or None in stakes:
                continue
            if not given.whole:
                unit = next(stake.unit for stake in stakes if stake is not None)
                spent[unit] = spent.get(unit, 0) + sum(
                    s.amounts.gpu for s in stakes if s is not None
                )
                if party.gang is not None or spent[unit] > given.surplus:
                    continue
            core = party.core if party.core is None else made.get(id(party.core), party.core)
            made[id(party)] = graded = replace(party, priority=given.grade, core=core)
            found.append(graded)
        return found


class Reaching:
    """Says who is in reach of the units of one cluster."""

    def __init__(self, state: ClusterState, shares: LiveShares) -> None:
        self._state = state
        self._shares = shares

    def concerns(self, uid: str) -> bool:
        """Whether a pod is in a queue, so that queues decide who makes way for it."""
        return self._state.queues.is_in_force and self._state.queues.leaf_of(uid) is not None

    def of(self, unit: Unit, now: float) -> tuple[list[Reach], float | None]:
        """In the order in which they are tried; and when to look again, because somebody is left alone for a while."""
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
        names = entitlement.reclaimable(self._group, self._others)
        turns = self._order.victims(names, ())
        due = list(entitlement.due_in_turn(self._group, self._workers, turns))
        if due:
            yield Reach(Means.RECLAIM, queue, self._given(due))
        names = entitlement.preemptable(self._group, self._others)
        turns = self._order.victims(names, ())
        due = list(entitlement.preempted_in_turn(self._group, turns))
        if due:
            yield Reach(Means.PREEMPT, queue, self._given(due))

    def retry_at(self, entitlement: Entitlement) -> float | None:
        accounts = self._accounts
        ends = (
            entitlement.protected_until(self._group, name)
            for name in self._others
            if accounts.running(name) and accounts.tree.is_leaf(accounts.groups[name].queue)
        )
        return min((at for at in ends if at is not None), default=None)

    def _given(self, parties: Sequence[Workers]) -> dict[Unit, Given]:
        found: dict[Unit, Given] = {}
        gone: dict[Unit, int] = {}
        for index, party in enumerate(parties):
            name = party[0].group
            unit = self._accounts.units[name]
            gone[unit] = gone.get(unit, 0) + len(party)
            whole = gone[unit] == len(self._accounts.running(name))
            before = found.get(unit, Given(index - len(parties), 0, whole=False))
            surplus = before.surplus + (0 if whole else amount(party))
            found[unit] = Given(before.grade, surplus, whole)
        return found
