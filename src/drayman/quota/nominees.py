"""The workloads of one cycle: what each would get and whom it would drive out, and the order in which they come.

Without fair sharing: those that borrow from nearer by come first, then by priority, then by age. With fair sharing it is a tournament: in
each cohort, the winners of its children compete, by the share that each child would have with the workload. Shares change with every
workload that gets quota, so the next one is found afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.entries import Entry
from drayman.quota.flavors.assignment import Assignment
from drayman.quota.preemption.contest import Target
from drayman.quota.tree.fairness import Share, share_of
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
    """The winner of each tournament, one tree after the other."""
    trees: dict[Node, dict[Node, Nominee]] = {}
    for nominee in sorted(nominees, key=lambda each: each.queue.name):
        place = nominee.queue.place
        trees.setdefault(place.root, {})[place] = nominee
    for root, left in trees.items():
        while left:
            winner = _Tournament(left, ledger).winner(root)
            if winner is None:
                break
            del left[winner.queue.place]
            yield winner


class _Tournament:
    """One round among the heads of a tree."""

    def __init__(self, nominees: dict[Node, Nominee], ledger: Ledger) -> None:
        self._nominees = nominees
        self._keys: dict[tuple[Node, Entry], tuple[bool, Share]] = {}
        for place, nominee in nominees.items():
            with ledger.trial():
                ledger.add(place, nominee.assignment.usage)
                amounts = nominee.assignment.usage.quota
                wanted = [what for what, amount in amounts.items() if amount > 0]
                for node in (place, *place.ancestors()):
                    if node.parent is not None:
                        key = (not node.is_within_quota(wanted), share_of(node))
                        self._keys[node.parent, nominee.entry] = key

    def winner(self, node: Node) -> Nominee | None:
        if node.is_queue:
            return self._nominees.get(node)
        best: Nominee | None = None
        for child in node.children:
            found = self.winner(child)
            if found is not None and (best is None or self._beats(found, best, node)):
                best = found
        return best

    def _beats(self, one: Nominee, other: Nominee, cohort: Node) -> bool:
        borrows, share = self._keys[cohort, one.entry]
        other_borrows, other_share = self._keys[cohort, other.entry]
        if borrows != other_borrows:
            return other_borrows
        difference = share.compare(other_share)
        if difference:
            return difference < 0
        return one.entry.facts.order < other.entry.facts.order
