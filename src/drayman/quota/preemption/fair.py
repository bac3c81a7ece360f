"""Preemption by fair shares: who borrows more than the workload would gives up quota, until the shares would turn round.

Candidates are the workloads of its own queue that its policy lets it take, and those of queues that borrow something contested. The queue
to take from is found from the root of the tree down: into the child with the highest share, again and again. Own workloads are taken
without a look at shares. So are those of others as long as the workload stays within the quota of its queue; beyond it a strategy compares
the two branches that meet in the lowest cohort that both queues are in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from heapq import heappop, heappush

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
        with contest.trial():
            found = search.first(candidates, strategies[0])
            if not found and len(strategies) > 1:
                found = search.second()
            if found:
                search.end()
                return contest.without_needless(search.targets, borrowing=True)
        for strategy in strategies:
            targets = search.elsewhere(candidates, strategy)
            if targets:
                return targets
    return []


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
        self._path = {contest.place, *contest.place.ancestors()}
        # What own victims free does not bring a workload home that would borrow beside them.
        self._is_at_home = False

    def begin(self) -> None:
        self.contest.ledger.add(self.contest.place, self.contest.wanted)
        self._is_at_home = self.contest.place.is_within_quota(self.contest.contested)

    def end(self) -> None:
        self.contest.ledger.remove(self.contest.place, self.contest.wanted)

    def first(self, candidates: list[Entry], strategy: str) -> bool:
        """Take candidates by the first strategy. Whether they are enough."""
        order = _Order(self.contest, candidates)
        for place in order:
            if place is self.contest.place:
                if self._take(order.pop(place), IN_CLUSTER_QUEUE):
                    return True
            elif self._is_at_home:
                if self._take(order.pop(place), IN_COHORT_RECLAMATION):
                    return True
            elif self._first_of(order, place, strategy):
                return True
        return self._is_enough()

    def _first_of(self, order: _Order, place: Node, strategy: str) -> bool:
        """Take the first workload of a queue that the strategy allows. Afterwards another queue may have the highest share."""
        mine, theirs = _branches(self.contest.place, place)
        mine_now, theirs_now = share_of(mine), share_of(theirs)
        if mine_now.compare(theirs_now) > 0:
            # Theirs is smaller still without one of theirs, so no strategy allows that.
            self._passed_over += order.pop_all(place)
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

    def elsewhere(self, candidates: list[Entry], strategy: str) -> list[Target]:
        """The victims where others go first: those that make room on nodes.

        Queues are not compared with each other then: victims are taken from each that borrows as the strategy allows.
        """
        contest = self.contest

        def taken_of(order: Iterable[Entry]) -> Iterator[Entry]:
            return (target.entry for target in self._allowed(order, strategy))

        for chosen in contest.victim_sets(candidates, contest.all_in(taken_of)):
            first = {each.key for each in chosen}
            rest = [each for each in candidates if each.key not in first]
            with contest.trial():
                targets = list(self._allowed(chosen, strategy))
                for target in self._allowed(rest, strategy):
                    targets.append(target)
                    if self._fits_quota():
                        break
                self.end()
                if contest.fits(borrowing=True, finally_=True):
                    return contest.without_needless(targets, borrowing=True)
        return []

    def _allowed(self, entries: Iterable[Entry], strategy: str) -> Iterator[Target]:
        """Those that can be taken one after the other. Each is taken when it comes."""
        for each in entries:
            reason = self._right_to(each, strategy)
            if reason:
                self.contest.take(each)
                yield Target(each, reason)

    def _right_to(self, entry: Entry, strategy: str) -> str:
        """Why a workload can be taken now; empty if it cannot."""
        contest = self.contest
        place = contest.queue_of(held_by(entry).cluster_queue).place
        if place is contest.place:
            return IN_CLUSTER_QUEUE
        branch = (each for each in (place, *place.ancestors()) if each not in self._path)
        if not all(share_of(each).borrows for each in branch):
            return ""
        if self._is_at_home:
            return IN_COHORT_RECLAMATION
        mine, theirs = _branches(contest.place, place)
        mine_now, theirs_now = share_of(mine), share_of(theirs)
        if strategy != FINAL_SHARE:
            allowed = mine_now.compare(theirs_now) < 0
        elif mine_now.compare(theirs_now) > 0:
            allowed = False  # theirs is smaller still without one of theirs
        else:
            allowed = mine_now.compare(self._share_without(theirs, entry)) <= 0
        return IN_COHORT_FAIR_SHARING if allowed else ""

    def _take(self, entry: Entry, reason: str) -> bool:
        self.contest.take(entry)
        self.targets.append(Target(entry, reason))
        return self._fits(finally_=False)

    def _is_enough(self) -> bool:
        """Whether those that were taken are enough, now that there are no more of them."""
        return bool(self.targets) and self._fits(finally_=True)

    def _fits(self, *, finally_: bool) -> bool:
        with self._without_own():
            return self.contest.fits(borrowing=True, finally_=finally_)

    def _fits_quota(self) -> bool:
        with self._without_own():
            return self.contest.fits_quota(borrowing=True)

    @contextmanager
    def _without_own(self) -> Iterator[None]:
        """Within it, the workload does not count."""
        self.contest.ledger.remove(self.contest.place, self.contest.wanted)
        yield
        self.contest.ledger.add(self.contest.place, self.contest.wanted)

    def _share_without(self, branch: Node, entry: Entry) -> Share:
        if branch.is_queue:
            freed = held_by(entry).freed.quota
            return share_of(branch, {what: -amount for what, amount in freed.items()})
        with self.contest.trial():
            self.contest.take(entry)
            return share_of(branch)


class _Order:
    """The queues to take from, one after the other, as shares change.

    Between two of them only the queue that came up last may change, and the cohorts above it. So each cohort keeps the standing of its
    children, and only those are judged again.
    """

    def __init__(self, contest: Contest, candidates: Iterable[Entry]) -> None:
        self._contest = contest
        self._own = contest.place
        self._path = {contest.place, *contest.place.ancestors()}
        self._left: dict[Node, deque[Entry]] = {}
        for each in candidates:
            place = contest.queue_of(held_by(each).cluster_queue).place
            self._left.setdefault(place, deque()).append(each)
        self._dropped: set[Node] = set()
        self._standings: dict[Node, _Standing] = {}
        for place in self._left:
            self._enter(place)

    def __iter__(self) -> Iterator[Node]:
        root = self._own.root
        if root is self._own:
            while self.has(root):
                yield root
            return
        while (found := self._next(root)) is not None:
            yield found
            self._judge_again(found)

    def has(self, place: Node) -> bool:
        return bool(self._left.get(place))

    def pop(self, place: Node) -> Entry:
        return self._left[place].popleft()

    def pop_all(self, place: Node) -> list[Entry]:
        found = list(self._left[place])
        self._left[place].clear()
        return found

    def drop(self, place: Node) -> None:
        self._dropped.add(place)

    def _next(self, cohort: Node) -> Node | None:
        """The queue below a cohort that is reached by following the highest share. Branches that are dead ends are passed over."""
        standing = self._standings.get(cohort)
        while standing is not None and (child := standing.first()) is not None:
            found = child if child.is_queue else self._next(child)
            if found is not None:
                return found
            standing.leave(child)
        return None

    def _enter(self, place: Node) -> None:
        """Have a queue take part, with the cohorts above it."""
        child = place
        for cohort in place.ancestors():
            standing = self._standings.get(cohort)
            is_known = standing is not None
            if standing is None:
                positions = {each: number for number, each in enumerate(cohort.children)}
                standing = self._standings[cohort] = _Standing(positions)
            self._judge(child, standing)
            if is_known:
                return
            child = cohort

    def _judge_again(self, place: Node) -> None:
        child = place
        for cohort in place.ancestors():
            self._judge(child, self._standings[cohort])
            child = cohort

    def _judge(self, child: Node, standing: _Standing) -> None:
        share = share_of(child)
        if child in self._dropped or self._is_dead(child, share):
            standing.leave(child)
        elif child.is_queue:
            standing.put(child, share, self._contest.order(self._left[child][0]))
        elif not standing.has_left(child):
            standing.put(child, share)

    def _is_dead(self, child: Node, share: Share) -> bool:
        if child.is_queue:
            return (not share.borrows and child is not self._own) or not self.has(child)
        return not share.borrows and child not in self._path


class _Standing:
    """The children of a cohort that may be taken from: the highest share first. With equal ones, cohorts come before queues, of cohorts
    the last one, and of queues the one with the better first candidate."""

    def __init__(self, positions: Mapping[Node, int]) -> None:
        self._positions = positions
        self._heap: list[tuple[bool, float, bool, tuple[object, ...], int, Node]] = []
        self._numbers: dict[Node, int] = {}
        """The last one of each child; others are outdated. 0: it has left, and does not come back."""
        self._count = 0

    def put(self, child: Node, share: Share, order: tuple[object, ...] = ()) -> None:
        self._count += 1
        self._numbers[child] = self._count
        tie = order if child.is_queue else (-self._positions[child],)
        item = (not share.infinite, -share.value, child.is_queue, tie, self._count, child)
        heappush(self._heap, item)

    def leave(self, child: Node) -> None:
        self._numbers[child] = 0

    def has_left(self, child: Node) -> bool:
        return self._numbers.get(child) == 0

    def first(self) -> Node | None:
        heap = self._heap
        while heap and self._numbers[heap[0][-1]] != heap[0][-2]:
            heappop(heap)
        return heap[0][-1] if heap else None


def _branches(one: Node, other: Node) -> tuple[Node, Node]:
    """The two nodes just below the lowest cohort that both are in."""
    above = [other, *other.ancestors()]
    mine = one
    for cohort in one.ancestors():
        if cohort in above:
            return mine, above[above.index(cohort) - 1]
        mine = cohort
    raise LookupError(f"{one} and {other} are in different trees")
