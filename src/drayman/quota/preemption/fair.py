"""Preemption by fair shares: who borrows more than the workload would gives up quota, until the shares would turn round.

Candidates are the workloads of its own queue that its policy lets it take, and those of queues that borrow something contested. The queue
to take from is found from the root of the tree down: into the child with the highest share, again and again. Own workloads are taken
without a look at shares. So are those of others as long as the workload stays within the quota of its queue; beyond it a strategy compares
the two branches that meet in the lowest cohort that both queues are in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from drayman.quota.cluster_queues import NEVER
from drayman.quota.entries import Entry
from drayman.quota.preemption.contest import Contest, Target, held_by
from drayman.quota.reasons import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAMATION,
)
from drayman.quota.settings import FINAL_SHARE
from drayman.quota.tree.fairness import Share, share_of
from drayman.quota.tree.nodes import Node


def fair_targets(contest: Contest, strategies: tuple[str, ...]) -> list[Target]:
    """The victims, or none if no permitted set of them would do."""
    candidates = _candidates(contest)
    if not candidates:
        return []
    with contest.trial():
        search = _Search(contest)
        search.begin()
        found = search.first(candidates, strategies[0])
        if not found and len(strategies) > 1:
            found = search.second()
        search.end()
        if not found:
            return []
        return contest.without_needless(search.targets, borrowing=True)


def _candidates(contest: Contest) -> list[Entry]:
    found = contest.in_own_queue()
    policy = contest.queue.spec.preemption.reclaim_within_cohort
    if contest.place.parent is not None and policy != NEVER:
        for place in contest.place.root.queues():
            if place is contest.place or place.is_within_quota(contest.contested):
                continue
            holders = contest.queue_of(place.name).holders.values()
            found += [each for each in holders if contest.may_take(each, policy)]
    found.sort(key=contest.order)
    return found


class _Search:
    """The search. While it runs, the workload counts as if it had its quota, because shares are compared with it."""

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.targets: list[Target] = []
        self._passed_over: list[Entry] = []

    def begin(self) -> None:
        self.contest.ledger.add(self.contest.place, self.contest.wanted)

    def end(self) -> None:
        self.contest.ledger.remove(self.contest.place, self.contest.wanted)

    def first(self, candidates: list[Entry], strategy: str) -> bool:
        """Take candidates by the first strategy. Whether they are enough."""
        order = _Order(self.contest, candidates)
        # What own victims free does not bring a workload home that would borrow beside them.
        is_at_home = self.contest.place.is_within_quota(self.contest.contested)
        for place in order:
            if place is self.contest.place:
                if self._take(order.pop(place), IN_CLUSTER_QUEUE):
                    return True
            elif is_at_home:
                if self._take(order.pop(place), IN_COHORT_RECLAMATION):
                    return True
            elif self._first_of(order, place, strategy):
                return True
        return self._is_enough()

    def _first_of(self, order: _Order, place: Node, strategy: str) -> bool:
        """Take the first workload of a queue that the strategy allows. Afterwards another queue may have the highest share."""
        mine, theirs = _branches(self.contest.place, place)
        mine_now, theirs_now = share_of(mine), share_of(theirs)
        while order.has(place):
            candidate = order.pop(place)
            if strategy == FINAL_SHARE:
                allowed = mine_now.compare(self._share_without(theirs, candidate)) <= 0
            else:
                allowed = mine_now.compare(theirs_now) < 0
            if allowed:
                return self._take(candidate, IN_COHORT_FAIR_SHARING)
            self._passed_over.append(candidate)
        return False

    def second(self) -> bool:
        """Once more for those that were passed over, at most one of each queue: those whose branch has the larger share as it is."""
        order = _Order(self.contest, self._passed_over)
        for place in order:
            mine, theirs = _branches(self.contest.place, place)
            if share_of(mine).compare(share_of(theirs)) < 0 and self._take(
                order.pop(place), IN_COHORT_FAIR_SHARING
            ):
                return True
            order.drop(place)
        return self._is_enough()

    def _take(self, entry: Entry, reason: str) -> bool:
        self.contest.take(entry)
        self.targets.append(Target(entry, reason))
        return self._fits(finally_=False)

    def _is_enough(self) -> bool:
        """Whether those that were taken are enough, now that there are no more of them."""
        return bool(self.targets) and self._fits(finally_=True)

    def _fits(self, *, finally_: bool) -> bool:
        self.end()
        fits = self.contest.fits(borrowing=True, finally_=finally_)
        self.begin()
        return fits

    def _share_without(self, branch: Node, entry: Entry) -> Share:
        with self.contest.trial():
            self.contest.take(entry)
            return share_of(branch)


class _Order:
    """The queues to take from, one after the other, as shares change."""

    def __init__(self, contest: Contest, candidates: Iterable[Entry]) -> None:
        self._contest = contest
        self._own = contest.place
        self._path = {contest.place, *contest.place.ancestors()}
        self._left: dict[Node, deque[Entry]] = {}
        for each in candidates:
            place = contest.queue_of(held_by(each).cluster_queue).place
            self._left.setdefault(place, deque()).append(each)
        self._pruned: set[Node] = set()

    def __iter__(self) -> Iterator[Node]:
        root = self._own.root
        if root is self._own:
            while self.has(root):
                yield root
            return
        while root not in self._pruned:
            found = self._next(root)
            if found is not None:
                yield found

    def has(self, place: Node) -> bool:
        return bool(self._left.get(place))

    def pop(self, place: Node) -> Entry:
        return self._left[place].popleft()

    def drop(self, place: Node) -> None:
        self._pruned.add(place)

    def _next(self, cohort: Node) -> Node | None:
        """The queue below a cohort that is reached by following the highest share. None if a branch turned out to be a dead end."""
        queue, queue_share = None, None
        branch, branch_share = None, None
        for child in cohort.children:
            if child in self._pruned:
                continue
            share = share_of(child)
            if self._is_dead(child, share):
                self._pruned.add(child)
            elif child.is_queue:
                if (
                    queue is None
                    or queue_share is None
                    or self._beats(child, share, queue, queue_share)
                ):
                    queue, queue_share = child, share
            elif branch_share is None or share.compare(branch_share) >= 0:
                branch, branch_share = child, share
        leads = branch_share is not None and (
            queue_share is None or branch_share.compare(queue_share) >= 0
        )
        if branch is not None and leads:
            return self._next(branch)
        if queue is None:
            self._pruned.add(cohort)
        return queue

    def _is_dead(self, child: Node, share: Share) -> bool:
        if child.is_queue:
            return (not share.borrows and child is not self._own) or not self.has(child)
        return not share.borrows and child not in self._path

    def _beats(self, one: Node, share: Share, other: Node, other_share: Share) -> bool:
        """Whether a queue is taken from before another: it has the larger share, or with equal ones the better first candidate."""
        difference = share.compare(other_share)
        if difference:
            return difference > 0
        mine, theirs = self._left[one][0], self._left[other][0]
        return self._contest.order(mine) < self._contest.order(theirs)


def _branches(one: Node, other: Node) -> tuple[Node, Node]:
    """The two nodes just below the lowest cohort that both are in."""
    above = [other, *other.ancestors()]
    mine = one
    for cohort in one.ancestors():
        if cohort in above:
            return mine, above[above.index(cohort) - 1]
        mine = cohort
    raise LookupError(f"{one} and {other} are in different trees")
