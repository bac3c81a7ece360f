"""Who runs where, and what that comes to in each queue.

The accounts count, the floor places. Both change together, and a trial undoes both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from typing import Protocol

from drayman.placement.queueing.limits import exceeds
from drayman.placement.queueing.queues import Amount, QueueTree
from drayman.quota.shares.groups import (
    Group,
    Strength,
    Worker,
    Workers,
    can_exist,
    next_starts,
    strength_of,
)


class Floor(Protocol):
    """The nodes of a cluster: where pods can be, together with all others that are there."""

    def capacity(self) -> int:
        """What all nodes have of the resource that queues share."""

    def node_of(self, worker: str) -> str | None:
        """Where a pod is."""

    def seat(self, group: Group, workers: Workers) -> Mapping[str, str] | None:
        """Places for pods of a group, beside those of it that are there. Where there are some, the pods have them from now on."""

    def put(self, worker: Worker, node: str) -> None:
        """A pod is on a node."""

    def lift(self, worker: str) -> None:
        """A pod is no longer where it was."""

    def trial(self) -> AbstractContextManager[object]:
        """Undoes on leaving whatever was done within it."""


class AccountsView(Protocol):
    """What runs at one moment, as far as the order of queues and their entitlement depend on it."""

    @property
    def tree(self) -> QueueTree: ...

    @property
    def groups(self) -> Mapping[str, Group]: ...

    @property
    def used(self) -> Mapping[str, Amount]:
        """By each queue with those below it."""

    @property
    def firm(self) -> Mapping[str, Amount]:
        """What of it is used by work that is not preemptible."""

    def capacity(self) -> int:
        """What the cluster has of the resource that queues share."""

    def running(self, group: str) -> Workers:
        """The members of a group that have a place."""

    def strength(self, group: str) -> Strength: ...

    def starts(self, group: str) -> list[Workers]:
        """What could start next of a group."""

    def path(self, group: str) -> tuple[str, ...]:
        """The queue of a group and those above it; none if it has no queue."""


class Accounts:
    """What runs at one moment of a cycle."""

    def __init__(
        self,
        tree: QueueTree,
        groups: Iterable[Group],
        floor: Floor,
        running: Mapping[str, str],
    ) -> None:
        """`running` has the node of each pod that runs, in the order in which they are counted."""
        self.tree = tree
        self.groups: Mapping[str, Group] = {each.name: each for each in groups}
        self.floor = floor
        self._workers = {w.name: w for g in self.groups.values() for w in g.workers}
        self._running: dict[str, dict[str, Worker]] = {name: {} for name in self.groups}
        self.used: dict[str, Amount] = dict.fromkeys((each.name for each in tree), 0)
        """By each queue with those below it."""
        self.firm = dict(self.used)
        """What of it is used by work that is not preemptible."""
        for name, node in running.items():
            floor.put(self._workers[name], node)
            self._count(self._workers[name])

    # Questions.

    def capacity(self) -> int:
        return self.floor.capacity()

    def worker(self, name: str) -> Worker:
        return self._workers[name]

    def node_of(self, worker: str) -> str | None:
        return self.floor.node_of(worker)

    def running(self, group: str) -> Workers:
        """The members of a group that have a place."""
        return tuple(self._running[group].values())

    def placement(self) -> dict[str, str]:
        """The node of each pod that has one."""
        found: dict[str, str] = {}
        for members in self._running.values():
            for name in members:
                node = self.floor.node_of(name)
                assert node is not None  # both change together
                found[name] = node
        return found

    def strength(self, group: str) -> Strength:
        return strength_of(self.groups[group], self._running[group].values())

    def starts(self, group: str) -> list[Workers]:
        """What could start next of a group."""
        return next_starts(self.groups[group], self._running[group].values())

    def request(self, group: str) -> Amount:
        """How much the next start of a group takes."""
        return next((amount(each) for each in self.starts(group)), 0)

    def left(self) -> Amount:
        """No more than this is free on all nodes together."""
        members = (m.values() for m in self._running.values())
        return self.floor.capacity() - sum(amount(tuple(each)) for each in members)

    def waiting(self) -> list[str]:
        """The groups of which something waits and could start if there were room."""
        return [
            name
            for name, group in self.groups.items()
            if self.tree.is_leaf(group.queue) and can_exist(group) and self.starts(name)
        ]

    def path(self, group: str) -> tuple[str, ...]:
        """The queue of a group and those above it; none if it has no queue."""
        queue = self.groups[group].queue
        return self.tree.path(queue) if queue in self.tree else ()

    def demand(self) -> dict[str, Amount]:
        """What the work of each queue uses and wants."""
        found: dict[str, Amount] = dict.fromkeys(self.used, 0)
        for name, group in self.groups.items():
            for queue in self.path(name):
                found[queue] += amount(group.workers)
        return found

    def allows(self, group: str, workers: Workers) -> bool:
        """Whether limits, and for work that is not preemptible quotas, leave room for pods of a group."""
        more, is_firm = amount(workers), not self.groups[group].is_preemptible
        for name in self.path(group):
            queue = self.tree[name]
            if exceeds(self.used[name], more, queue.limit):
                return False
            if is_firm and exceeds(self.firm[name], more, queue.quota):
                return False
        return True

    # Changes.

    def seat(self, group: str, workers: Workers) -> bool:
        """Find places for pods of a group; they have them from now on. Returns whether there are any."""
        if not self.allows(group, workers) or self.floor.seat(self.groups[group], workers) is None:
            return False
        for each in workers:
            self._count(each)
        return True

    def put(self, worker: str, node: str) -> None:
        """A pod has a place that is known to be free."""
        self.floor.put(self._workers[worker], node)
        self._count(self._workers[worker])

    def lift(self, worker: str) -> None:
        """A pod no longer has its place."""
        self.floor.lift(worker)
        gone = self._workers[worker]
        del self._running[gone.group][worker]
        self._add(gone, -1)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Undoes on leaving whatever was done within it."""
        kept = {name: dict(members) for name, members in self._running.items()}
        used, firm = dict(self.used), dict(self.firm)
        try:
            with self.floor.trial():
                yield
        finally:
            self._running, self.used, self.firm = kept, used, firm

    def _count(self, worker: Worker) -> None:
        self._running[worker.group][worker.name] = worker
        self._add(worker, 1)

    def _add(self, worker: Worker, sign: int) -> None:
        is_firm = not self.groups[worker.group].is_preemptible
        for name in self.path(worker.group):
            self.used[name] += sign * worker.amount
            if is_firm:
                self.firm[name] += sign * worker.amount


def amount(workers: Sequence[Worker]) -> Amount:
    """What pods take together."""
    return sum((each.amount for each in workers), start=Fraction(0))
