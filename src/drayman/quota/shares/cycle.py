"""One cycle: what starts, and who makes room for whom.

1. What fits is started, in the order of queues and groups.
2. Room is made by moving others, if all of them find another place.
3. Room is made by reclaiming what queues have beyond what they are entitled to.
4. Room is made by preempting less important groups of the same queue.
5. Gangs that have been below their minimum for too long are ended.

Groups for which room is made are nominated: they start in the next cycle, when the room is free. Until then nothing is promised to them,
and somebody who is entitled to more may come first. Only those that were evicted do not come before the group they were evicted for: it
has its turn when theirs comes. Otherwise they would be back in their places at once, and be evicted again, without end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from msgspec import Struct

from drayman.placement.queueing.queues import Amount
from drayman.quota.shares.accounts import Accounts, amount
from drayman.quota.shares.division import fair_shares
from drayman.quota.shares.entitlement import Entitlement
from drayman.quota.shares.groups import Strength, Workers
from drayman.quota.shares.making_room import Judgement, MadeRoom, RoomMaker
from drayman.quota.shares.order import Order

MOST_MOVED: Final = 16
"""How many pods one consolidation moves at most."""


class Action(Enum):
    """Why a pod was evicted."""

    CONSOLIDATION = "consolidation"
    RECLAIM = "reclaim"
    PREEMPT = "preempt"
    STALE = "stalegangeviction"


class Memory(Struct, frozen=True):
    """What is known from one cycle to the next."""

    started: Mapping[str, float] = {}
    """Since when each group runs."""
    stale: Mapping[str, float] = {}
    """Since when groups that run are below their minimum."""
    owed: Mapping[str, frozenset[str]] = {}
    """For groups that were evicted in the last cycle, those that they were evicted for."""
    moved: frozenset[str] = frozenset()
    """Groups of which members were moved in the last cycle."""
    barred: frozenset[str] = frozenset()
    """Groups for which nobody is evicted, because it came to nothing."""


class Evicted(Struct, frozen=True):
    """A pod that has to stop."""

    worker: str
    action: Action
    beneficiary: str = ""
    """The group that it makes room for."""


class Actions(Struct, frozen=True):
    """What one cycle does."""

    shares: Mapping[str, Amount]
    bound: Mapping[str, str]
    """The node of each pod that starts."""
    nominated: Mapping[str, str]
    """Where pods will be, once there is room."""
    evicted: tuple[Evicted, ...]
    memory: Memory

    @property
    def is_at_rest(self) -> bool:
        return not self.bound and not self.evicted


def cycle(accounts: Accounts, memory: Memory, now: float) -> Actions:
    """Decide once about everything. The accounts are left as they are."""
    with accounts.trial():
        return _Cycle(accounts, memory, now).run()


@dataclass(slots=True)
class _Cycle:
    accounts: Accounts
    memory: Memory
    now: float
    shares: Mapping[str, Amount] = field(init=False)
    order: Order = field(init=False)
    entitlement: Entitlement = field(init=False)
    bound: dict[str, str] = field(default_factory=dict)
    nominated: dict[str, str] = field(default_factory=dict)
    evicted: dict[str, Evicted] = field(default_factory=dict)
    owed: dict[str, set[str]] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)

    def run(self) -> Actions:
        accounts = self.accounts
        self.shares = fair_shares(accounts.tree, accounts.floor.capacity(), accounts.demand())
        self.order = Order(accounts, self.shares)
        self._allocate()
        started = self._started()
        self.entitlement = Entitlement(accounts, self.shares, started, self.now)
        self._make_room(Action.CONSOLIDATION, self._moving)
        self._make_room(Action.RECLAIM, self._reclaiming)
        self._make_room(Action.PREEMPT, self._preempting)
        stale = self._stale()
        ended = self._end_stale(stale)
        return Actions(
            self.shares,
            self.bound,
            self.nominated,
            tuple(self.evicted.values()),
            Memory(
                self._still_running(started),
                {name: since for name, since in stale.items() if name not in ended},
                {name: frozenset(groups) for name, groups in self.owed.items()},
                frozenset(self.moved),
                self.memory.barred,
            ),
        )

    # Starting.

    def _allocate(self) -> None:
        """Start what fits. A group that cannot start does not hold back those behind it."""
        accounts = self.accounts
        line = self.order.line(accounts.waiting(), accounts.request)
        tried: set[str] = set()
        while line:
            name = line.take()
            owed = [n for n in self.memory.owed.get(name, ()) if n in line and n not in tried]
            if owed:
                line.put_back(name)
                name = min(owed, key=self.order.rank)
                line.remove(name)
            tried.add(name)
            if self._start(name) and accounts.starts(name):
                line.put_back(name)

    def _start(self, group: str) -> bool:
        for workers in self.accounts.starts(group):
            if self.accounts.seat(group, workers):
                self.bound.update(self._nodes(workers))
                return True
        return False

    def _nodes(self, workers: Workers) -> dict[str, str]:
        return {each.name: self.accounts.node_of(each.name) or "" for each in workers}

    # Making room.

    def _make_room(
        self, action: Action, searching: Callable[[str, Collection[str]], MadeRoom | None]
    ) -> None:
        """Each group that waits tries once, in turn."""
        line = self.order.line(self.accounts.waiting(), self.accounts.request)
        while line:
            name = line.take()
            if self._may_evict(name):
                found = searching(name, self._settled())
                if found is not None:
                    self._adopt(action, found)

    def _may_evict(self, name: str) -> bool:
        group = self.accounts.groups[name]
        delay = 0.0 if group.gang is None else group.gang.preemption_delay_s
        return name not in self.memory.barred and self.now - group.created >= delay

    def _settled(self) -> list[str]:
        """The groups none of whose pods have been nominated in this cycle."""
        about_to_start = {self.accounts.worker(name).group for name in self.nominated}
        return [name for name in self.accounts.groups if name not in about_to_start]

    def _moving(self, group: str, settled: Collection[str]) -> MadeRoom | None:
        if not self.accounts.groups[group].is_preemptible:
            return None  # it would stay for good where others had been
        least = min(map(amount, self.accounts.starts(group)))
        if least > self.accounts.left():
            return None  # whoever is moved needs as much as before
        maker = RoomMaker(self.accounts, self.order, MOST_MOVED)
        victims = self.entitlement.movable(group, settled)
        return maker.clear(group, self._ahead(group), victims, lambda _, __, lost: not lost)

    def _reclaiming(self, group: str, settled: Collection[str]) -> MadeRoom | None:
        if not self.entitlement.can_reclaim(group):
            return None
        victims = self.entitlement.reclaimable(group, settled)
        before = dict(self.accounts.used)
        judgement: Judgement = lambda workers, changed, lost: self.entitlement.may_reclaim(  # noqa: E731
            group, workers, changed, lost, before
        )
        maker = RoomMaker(self.accounts, self.order)
        return maker.clear(group, self._ahead(group), victims, judgement)

    def _preempting(self, group: str, settled: Collection[str]) -> MadeRoom | None:
        victims = self.entitlement.preemptable(group, settled)
        judgement: Judgement = lambda _, changed, __: self.entitlement.may_preempt(changed)  # noqa: E731
        maker = RoomMaker(self.accounts, self.order)
        return maker.clear(group, self._ahead(group), victims, judgement)

    def _ahead(self, group: str) -> str | None:
        """The group with which the queue of a group stands in line, if it is another."""
        queue = self.accounts.groups[group].queue
        queued = [n for n in self.accounts.waiting() if self.accounts.groups[n].queue == queue]
        first = min(queued, key=self.order.rank)
        return None if first == group else first

    def _adopt(self, action: Action, found: MadeRoom) -> None:
        for name in found.evicted:
            self.accounts.lift(name)
            self.evicted.setdefault(name, Evicted(name, action, found.group))
        for worker, node in (*found.seats.items(), *found.moved.items()):
            self.accounts.put(worker, node)
            self.nominated[worker] = node
        self.moved.update(self.accounts.worker(name).group for name in found.moved)
        for each in found.gone:
            self.owed.setdefault(each.group, set()).add(found.group)

    # Gangs that fell below their minimum.

    def _stale(self) -> dict[str, float]:
        """Since when groups that run are below their minimum, with those that will start counted."""
        return {
            name: self.memory.stale.get(name, self.now)
            for name in self.accounts.groups
            if self.accounts.running(name) and self.accounts.strength(name) is Strength.BELOW
        }

    def _end_stale(self, stale: Mapping[str, float]) -> set[str]:
        """End those that have been below their minimum for too long. Returns which."""
        ended: set[str] = set()
        for name, since in stale.items():
            gang = self.accounts.groups[name].gang
            grace_s = None if gang is None else gang.grace_s
            if name in self.memory.moved:
                # Some of its members were moved, and others have taken the room: the rest is of no use.
                grace_s = 0.0
            if grace_s is None or self.now - since < grace_s:
                continue
            ended.add(name)
            for each in self.accounts.running(name):
                self.accounts.lift(each.name)
                self.evicted.setdefault(each.name, Evicted(each.name, Action.STALE))
        return ended

    # What is remembered.

    def _started(self) -> dict[str, float]:
        """Since when each group runs, now that some have started."""
        return self._since(self.accounts.groups)

    def _since(self, groups: Iterable[str]) -> dict[str, float]:
        known = self.memory.started
        return {n: known.get(n, self.now) for n in groups if self.accounts.running(n)}

    def _still_running(self, started: Mapping[str, float]) -> dict[str, float]:
        """The same at the end, without groups that lose all of their pods."""
        accounts = self.accounts
        gone, nominated = self.evicted.keys(), self.nominated.keys()
        return {
            name: since
            for name, since in started.items()
            if any(w.name not in gone and w.name not in nominated for w in accounts.running(name))
        }
