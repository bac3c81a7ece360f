"""Who may take room from whom.

Moving (consolidation) takes nothing from anybody, so it needs no entitlement. Preempting is a matter of priority within one queue.
Reclaiming is a matter of shares between queues. They are compared where their paths part:

- With what it asks for, the queue of the group stays within its fair share.
- The other is beyond its fair share, or it is beyond its quota while the one that takes stays within its own. That is asked before each
  party goes. So no queue is taken below its quota by parts, though a gang that reaches below it goes as a whole.
- If the one that takes is beyond its fair share afterwards, it is still less full than the one that gave, unless that has no share.

Work that has not run for as long as its queue says is left alone, except for members that a group can do without.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from drayman.placement.queueing.limits import is_beyond
from drayman.placement.queueing.queues import Amount
from drayman.quota.shares.accounts import AccountsView, amount
from drayman.quota.shares.fullness import fullness
from drayman.quota.shares.groups import Strength, Workers


class Entitlement:
    """The rules of one cycle, in which fair shares do not change."""

    def __init__(
        self,
        accounts: AccountsView,
        shares: Mapping[str, Amount],
        started: Mapping[str, float],
        now: float,
    ) -> None:
        """`started` says since when groups run."""
        self._accounts = accounts
        self._tree = accounts.tree
        self._shares = shares
        self._started = started
        self._now = now

    def movable(self, group: str, settled: Collection[str]) -> list[str]:
        """The groups of which members may be moved for another. `settled` are those that are not about to start."""
        return [name for name in self._evictable(settled) if name != group]

    def preemptable(self, group: str, settled: Collection[str]) -> list[str]:
        """The groups that a group of the same queue may preempt."""
        mine = self._accounts.groups[group]
        groups = self._accounts.groups
        return [
            name
            for name in self._evictable(settled)
            if groups[name].queue == mine.queue
            and groups[name].priority < mine.priority
            and self._may_give(name, self._tree.preempt_min_runtime(mine.queue))
        ]

    def may_preempt(self, changed: Sequence[Workers]) -> bool:
        """Whether parties may go, or move, for a group of their own queue."""
        queues = {party[0].group: self._accounts.groups[party[0].group].queue for party in changed}
        return all(
            self._keeps_enough(name, self._tree.preempt_min_runtime(queue))
            for name, queue in queues.items()
        )

    def can_reclaim(self, group: str) -> bool:
        """Whether a group may reclaim anything: its queue stays within its fair share, and it within quota if it must."""
        accounts = self._accounts
        queue = accounts.groups[group].queue
        starts = accounts.starts(group)
        if not starts or accounts.used[queue] + amount(starts[0]) > self._shares[queue]:
            return False
        if accounts.groups[group].is_preemptible:
            return True
        more = amount(starts[0])
        return not any(
            is_beyond(accounts.firm[name] + more, self._tree[name].quota)
            for name in accounts.path(group)
        )

    def givers(self, group: str, workers: Workers) -> Iterator[str]:
        """The leaves that may have to give something for pods of a group. None for work without GPUs: it has no share in them."""
        used, more = self._accounts.used, amount(workers)
        if not more or not self.can_reclaim(group):
            return
        for taking in self._accounts.path(group):
            wanted = used[taking] + more
            for sister in self._tree.children(self._tree[taking].parent):
                giving = sister.name
                if giving != taking and self._is_due(taking, giving, wanted, used[giving]):
                    yield from self._tree.leaves(giving)

    def reclaimable(self, group: str, settled: Collection[str]) -> list[str]:
        """The groups of other queues that may have to give way, as far as that depends on them alone."""
        mine = self._accounts.groups[group].queue
        groups = self._accounts.groups
        return [
            name
            for name in self._evictable(settled)
            if groups[name].queue != mine
            and self._can_be_due(group, groups[name].queue)
            and self._may_give(name, self._reclaim_min_runtime(mine, groups[name].queue))
        ]

    def may_reclaim(
        self,
        group: str,
        workers: Workers,
        changed: Sequence[Workers],
        lost: Sequence[Workers],
        before: Mapping[str, Amount],
    ) -> bool:
        """Whether parties may go, or move, for pods of a group. `before` is what queues used; the accounts show what they would.

        Of those that move nothing is taken, so only those that are lost have to be due.
        """
        mine, groups = self._accounts.groups[group].queue, self._accounts.groups
        for name in {party[0].group for party in changed}:
            if not self._keeps_enough(name, self._reclaim_min_runtime(mine, groups[name].queue)):
                return False
        left, more = dict(before), amount(workers)
        partings: dict[tuple[str, str], None] = {}
        for party in lost:
            name = party[0].group
            taking, giving = self._tree.parting(mine, groups[name].queue)
            if not self._is_due(taking, giving, before[taking] + more, left[giving]):
                return False
            for queue in self._accounts.path(name):
                left[queue] -= amount(party)
            partings[taking, giving] = None
        used = self._accounts.used
        return all(self._is_balanced(taking, giving, used) for taking, giving in partings)

    def due_in_turn(
        self, group: str, workers: Workers, parties: Iterable[Workers]
    ) -> Iterator[Workers]:
        """Of parties that would go one after the other for pods of a group, those that may. Any of them may stay all the same."""
        mine, more = self._accounts.groups[group].queue, amount(workers)
        used, groups = self._accounts.used, self._accounts.groups
        left = dict(used)

        def seconds(name: str) -> float:
            return self._reclaim_min_runtime(mine, groups[name].queue)

        for party in self._unprotected(parties, seconds):
            name, size = party[0].group, amount(party)
            taking, giving = self._tree.parting(mine, groups[name].queue)
            if not self._is_due(taking, giving, used[taking] + more, left[giving]):
                continue
            for queue in self._accounts.path(name):
                left[queue] -= size
            with_it = {queue: left[queue] + more for queue in self._tree.path(mine)}
            if self._is_balanced(taking, giving, {**left, **with_it}):
                yield party
                continue
            for queue in self._accounts.path(name):
                left[queue] += size

    def preempted_in_turn(self, group: str, parties: Iterable[Workers]) -> Iterator[Workers]:
        """The same within the queue of the group."""
        seconds = self._tree.preempt_min_runtime(self._accounts.groups[group].queue)
        return self._unprotected(parties, lambda _: seconds)

    def protected_until(self, group: str, other: str) -> float | None:
        """Until when the other group is left alone by a group, because it has just begun; None if it is not."""
        mine, theirs = self._accounts.groups[group].queue, self._accounts.groups[other].queue
        seconds = (
            self._tree.preempt_min_runtime(mine)
            if mine == theirs
            else self._reclaim_min_runtime(mine, theirs)
        )
        return self._started[other] + seconds if self._is_protected(other, seconds) else None

    def _unprotected(
        self, parties: Iterable[Workers], seconds: Callable[[str], float]
    ) -> Iterator[Workers]:
        """Those of some parties that may go as far as times are concerned: what a group can do without, and groups that have had theirs."""
        left: dict[str, int] = {}
        kept: set[str] = set()
        for party in parties:
            name = party[0].group
            number = left.get(name, len(self._accounts.running(name))) - len(party)
            left[name] = number
            is_rest = number == 0
            if name in kept or (is_rest and self._is_protected(name, seconds(name))):
                kept.add(name)
                continue
            yield party

    def _can_be_due(self, group: str, theirs: str) -> bool:
        """Whether a queue has anything to give to a group. One that uses just its quota gives nothing, but its pods may be moved."""
        taking, giving = self._tree.parting(self._accounts.groups[group].queue, theirs)
        used = self._accounts.used
        wanted = used[taking] + amount(self._accounts.starts(group)[0])
        if is_beyond(wanted, self._tree[taking].quota):
            return self._is_due(taking, giving, wanted, used[giving])
        quota = self._tree[giving].quota
        return quota is None or used[giving] >= quota

    def _is_due(self, taking: str, giving: str, wanted: Amount, left: Amount) -> bool:
        """Whether a queue that has so much left has to give something to another. To a quota without bound there is nothing beyond it."""
        own, queue = self._tree[taking].quota, self._tree[giving]
        if queue.quota is None:
            return is_beyond(left, queue.limit)
        if left > self._shares[giving]:
            return True
        return left > queue.quota and not is_beyond(wanted, own)

    def _is_balanced(self, taking: str, giving: str, used: Mapping[str, Amount]) -> bool:
        """Whether a queue that has taken something is not fuller than is fair, where queues use so much."""
        if used[taking] <= self._shares[taking] or self._shares[giving] <= 0:
            return True
        shares = self._shares
        return fullness(used[taking], shares[taking]) < fullness(used[giving], shares[giving])

    def _evictable(self, settled: Collection[str]) -> list[str]:
        """Those that may go at all. Work that is in no leaf has no place in the order of queues, and is left alone."""
        accounts = self._accounts
        return [
            name
            for name in settled
            if accounts.groups[name].is_preemptible
            and accounts.running(name)
            and self._tree.is_leaf(accounts.groups[name].queue)
        ]

    def _reclaim_min_runtime(self, mine: str, theirs: str) -> float:
        return self._tree.reclaim_min_runtime(self._tree.parting(mine, theirs)[1])

    def _is_protected(self, group: str, seconds: float) -> bool:
        started = self._started.get(group)
        return started is not None and self._now - started < seconds

    def _may_give(self, group: str, seconds: float) -> bool:
        """Whether a group has anything to give: it has run for long enough, or has members to spare."""
        is_spare = self._accounts.strength(group) is Strength.BEYOND
        return is_spare or not self._is_protected(group, seconds)

    def _keeps_enough(self, group: str, seconds: float) -> bool:
        """As the accounts show it now: whether a group has run for long enough, or keeps its quorum."""
        is_enough = self._accounts.strength(group) is not Strength.BELOW
        return is_enough or not self._is_protected(group, seconds)
