"""Shares in a cluster that goes on: the same division, order and entitlement as in a cycle, read from the state of the cluster.

What queues use and want is counted by the state as pods come and go (`placement.queueing.book`), so nothing is copied here. A unit is a
group: a gang, or a pod that is on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drayman.api.core import Pod
from drayman.api.times import seconds_of
from drayman.placement.gangs.gang import Dialect, Gang, GangKey
from drayman.placement.gangs.importance import importance_of_running, importance_of_waiting
from drayman.placement.queueing.amounts import NOTHING, Amounts
from drayman.placement.queueing.queues import Amount, QueueTree
from drayman.placement.queueing.stakes import Stake, is_preemptible
from drayman.placement.state import ClusterState
from drayman.quota.shares.division import fair_shares
from drayman.quota.shares.groups import (
    Group,
    Strength,
    Worker,
    Workers,
    next_starts,
    strength_of,
)
from drayman.quota.shares.order import Order

Unit = GangKey | str


def name_of(unit: Unit) -> str:
    """What a unit is called as a group."""
    return str(unit) if isinstance(unit, str) else f"{unit.dialect.value} {unit} {unit.uid}"


class LiveAccounts:
    """The cluster at one moment. What is asked about groups is kept, so these do not outlive a decision."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._book = state.queues
        self.tree: QueueTree = state.queues.tree
        self.used: Mapping[str, Amount] = _Gpus(self.tree, state.queues.sums.used)
        self.firm: Mapping[str, Amount] = _Gpus(self.tree, state.queues.sums.firm)
        self._groups: dict[str, Group] = {}
        self._running: dict[str, Workers] = {}
        self.units: dict[str, Unit] = {}
        """Of the groups that were asked about."""

    @property
    def groups(self) -> Mapping[str, Group]:
        """Those that were looked at (`look_at`)."""
        return self._groups

    def look_at(self, unit: Unit) -> str:
        """Read a unit. Returns what it is called."""
        name = name_of(unit)
        if name in self._groups:
            return name
        self.units[name] = unit
        stakes = self._book.pods_of(unit)
        workers = {uid: _worker(stake, name) for uid, stake in stakes.items()}
        ordered = sorted(stakes.values(), key=_age)
        self._groups[name] = self._group(
            unit, name, ordered, tuple(workers[s.uid] for s in ordered)
        )
        self._running[name] = tuple(workers[s.uid] for s in ordered if s.is_placed)
        return name

    def look_at_running(self, queue: str) -> None:
        """Read the units of which pods run in a leaf."""
        for unit in self._book.running_in(queue):
            self.look_at(unit)

    def capacity(self) -> int:
        return self._state.gpus

    def running(self, group: str) -> Workers:
        return self._running[group]

    def strength(self, group: str) -> Strength:
        return strength_of(self._groups[group], self._running[group])

    def starts(self, group: str) -> list[Workers]:
        return next_starts(self._groups[group], self._running[group])

    def path(self, group: str) -> tuple[str, ...]:
        queue = self._groups[group].queue
        return self.tree.path(queue) if queue in self.tree else ()

    def _group(self, unit: Unit, name: str, stakes: list[Stake], workers: Workers) -> Group:
        gang = self._state.gangs.gang(unit) if isinstance(unit, GangKey) else _alone(unit)
        known = gang if isinstance(gang, Gang) else None
        stated = None if known is None else known.priority
        placed = [each.pod for each in stakes if each.is_placed]
        if placed:
            priority = importance_of_running(stated, placed)
        else:
            priority = importance_of_waiting(stated, (each.pod for each in stakes))
        since = None if known is None else known.since
        return Group(
            name=name,
            queue=stakes[0].queue if stakes else "",
            priority=priority,
            created=min(map(_created, stakes), default=0.0) if since is None else since,
            is_preemptible=is_preemptible(
                None if known is None else known.is_preemptible, priority
            ),
            gang=known,
            workers=workers,
        )


class LiveShares:
    """The fair share of each queue, worked out again when it may have changed."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._known: tuple[tuple[int, int], dict[str, Amount]] | None = None

    def source(self) -> tuple[int, int]:
        """As long as this is the same, so are shares."""
        return self._state.queues.revision, self._state.gpus

    def of_queues(self) -> Mapping[str, Amount]:
        source = self.source()
        if self._known is None or self._known[0] != source:
            book = self._state.queues
            wanted = _Gpus(book.tree, book.sums.wanted)
            self._known = (source, fair_shares(book.tree, source[1], wanted))
        return self._known[1]

    def order(self, accounts: LiveAccounts | None = None) -> Order:
        return Order(accounts or LiveAccounts(self._state), self.of_queues())


class _Gpus(Mapping[str, Amount]):
    """The GPUs that queues of a tree have of something."""

    __slots__ = ("_amounts", "_tree")

    def __init__(self, tree: QueueTree, amounts: Mapping[str, Amounts]) -> None:
        self._tree = tree
        self._amounts = amounts

    def __getitem__(self, name: str) -> Amount:
        return self._amounts.get(name, NOTHING).gpu

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in self._tree)

    def __len__(self) -> int:
        return sum(1 for _ in self._tree)


def _alone(uid: str) -> Gang:
    """A pod on its own, as a gang of one."""
    return Gang(key=GangKey(Dialect.DRAYMAN, "", "", uid), least=1)


def _worker(stake: Stake, group: str) -> Worker:
    return Worker(stake.uid, group, stake.amounts.gpu, stake.part)


def _created(stake: Stake) -> float:
    return seconds_of(stake.pod.metadata.creation_timestamp) or 0.0


def _age(stake: Stake) -> tuple[float, str, str]:
    """The oldest first: the youngest member is the first that a group does without."""
    pod: Pod = stake.pod
    return _created(stake), pod.metadata.namespace, pod.metadata.name
