"""The workloads of one cycle: what each would get and whom it would drive out, and the order in which they come.

Without fair sharing: those that borrow from nearer by come first, then by priority, then by age. With fair sharing it is a tournament: in
each cohort, the winners of its children compete, by the share that each child would have with the workload. Shares change with every
workload that gets quota, so the next one is found afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.entries import Entry
from drayman.quota.flavors.assignment import Assignment
from drayman.quota.preemption.contest import Target
from drayman.quota.tree.fairness import share_of
from drayman.quota.tree.ledger import Ledger
from drayman.quota.tree.nodes import Node


class Nominee:
    """A head of a queue that may get quota in this cycle."""

    __slots__ = ("assignment", "entry", "queue", "targets")

    def __init__(
        self,
        entry: Entry,
        queue: ClusterQueueState,
        assignment: Assignment,
        targets: tuple[Target, ...],
    ) -> None:
        self.entry = entry
        self.queue = queue
        self.assignment = assignment
        self.targets = targets


def classical_order(nominees: list[Nominee]) -> Iterator[Nominee]:
    return iter(sorted(nominees, key=_classical_key))


def _classical_key(nominee: Nominee) -> tuple[int, int, float, str]:
    return nominee.assignment.borrowing, *nominee.entry.facts.order


def fair_order(nominees: list[Nominee], ledger: Ledger) -> Iterator[Nominee]:
    """The winner of each tournament, one tree after the other. Between two of them, the ledger may change for the last winner only."""
    trees: dict[Node, dict[Node, Nominee]] = {}
    for nominee in sorted(nominees, key=lambda each: each.queue.name):
        place = nominee.queue.place
        trees.setdefault(place.root, {})[place] = nominee
    for root, left in trees.items():
        tournament = _Tournament(root, left, ledger)
        while (winner := tournament.winner) is not None:
            yield winner
            tournament.drop(winner)


_Key = tuple[bool, bool, float, tuple[int, float, str]]
"""Whether more than the own quota would be used, the share, and the place in the queue: the smallest wins."""


class _Tournament:
    """The heads of a tree: in each cohort, the best of the winners of its children.

    A winner changes only what its own queue and the cohorts above use. So all other branches keep their winners, with the shares that
    they would have.
    """

    def __init__(self, root: Node, nominees: dict[Node, Nominee], ledger: Ledger) -> None:
        self._root = root
        self._nominees = nominees
        self._ledger = ledger
        self._winners: dict[Node, Nominee] = {}
        self._standings: dict[Node, list[tuple[_Key, int, Node]]] = {}
        """By cohort, the children that have a winner, as a heap. Those are outdated whose number is not the last one of the child."""
        self._numbers: dict[Node, int] = {}
        self._count = 0
        self._fill(root)

    @property
    def winner(self) -> Nominee | None:
        return self._winners.get(self._root)

    def drop(self, winner: Nominee) -> None:
        """A winner has had its turn, and what it was given counts."""
        place = winner.queue.place
        del self._nominees[place]
        del self._winners[place]
        self._numbers.pop(place, None)
        for cohort in place.ancestors():
            self._judge(cohort)
            if cohort.parent is not None:
                self._enter(cohort, cohort.parent)

    def _fill(self, node: Node) -> None:
        if node.is_queue:
            if node in self._nominees:
                self._winners[node] = self._nominees[node]
            return
        self._standings[node] = []
        for child in node.children:
            self._fill(child)
            self._enter(child, node)
        self._judge(node)

    def _judge(self, cohort: Node) -> None:
        """Find the winner of a cohort."""
        standing = self._standings[cohort]
        while standing and self._numbers.get(standing[0][2]) != standing[0][1]:
            heappop(standing)
        if standing:
            self._winners[cohort] = self._winners[standing[0][2]]
        else:
            self._winners.pop(cohort, None)

    def _enter(self, child: Node, cohort: Node) -> None:
        """Have the winner of a child compete in a cohort."""
        self._numbers.pop(child, None)
        winner = self._winners.get(child)
        if winner is not None:
            self._count += 1
            self._numbers[child] = self._count
            heappush(self._standings[cohort], (self._key(winner, child), self._count, child))

    def _key(self, nominee: Nominee, node: Node) -> _Key:
        usage = nominee.assignment.usage
        wanted = [what for what, amount in usage.quota.items() if amount > 0]
        with self._ledger.trial():
            self._ledger.add(nominee.queue.place, usage)
            share = share_of(node)
            exceeds = not node.is_within_quota(wanted)
        return exceeds, share.infinite, share.value, nominee.entry.facts.order
