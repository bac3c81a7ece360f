"""Classical preemption: within the queue by priority, and elsewhere from those that use more than their own quota.

Outside its queue a workload meets two sorts of candidates. Where the request is within the quota of the queue, or of a cohort that the
queue and the candidate's cohort do not share, the workload comes first whatever it is (`RECLAIM`). Otherwise the candidate is taken by its
priority: while the workload borrows only if the queue's policy `borrowWithinCohort` says so (`BY_FORCE`), or else only if it ends up not
borrowing (`AT_HOME`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from drayman.quota.amounts import FlavorResource
from drayman.quota.cluster_queues import NEVER, ClusterQueueState
from drayman.quota.entries import Entry
from drayman.quota.preemption.contest import Contest, Target, held_by
from drayman.quota.reasons import IN_CLUSTER_QUEUE, IN_COHORT_RECLAMATION, WHILE_BORROWING
from drayman.quota.tree.nodes import Node


class Claim(Enum):
    """By what right a workload is taken."""

    OWN_QUEUE = "own queue"
    RECLAIM = "reclaim"
    BY_FORCE = "by force"
    AT_HOME = "at home"


_REASONS: Final = {
    Claim.OWN_QUEUE: IN_CLUSTER_QUEUE,
    Claim.RECLAIM: IN_COHORT_RECLAMATION,
    Claim.BY_FORCE: WHILE_BORROWING,
    Claim.AT_HOME: IN_COHORT_RECLAMATION,
}
"""What a victim is told. It is the right by which it may be taken that counts, also where the workload then borrows nothing."""


class Candidate(Struct, frozen=True):
    entry: Entry
    claim: Claim
    common: Node | None
    """The lowest cohort that both are in; None within one queue."""


class Candidates(Struct, frozen=True):
    """All that could be taken, in the order in which they are."""

    reclaimed: list[Candidate]
    by_priority: list[Candidate]
    own: list[Candidate]

    def __iter__(self) -> Iterator[Candidate]:
        lists = (self.reclaimed, self.by_priority, self.own)
        for evicted in (True, False):
            for each in lists:
                for candidate in each:
                    if candidate.entry.facts.evicted is evicted:
                        yield candidate


def classical_targets(contest: Contest) -> list[Target]:
    """The victims, or none if no permitted set of them would do."""
    candidates = _collect(contest)
    with contest.trial():
        for borrowing in _attempts(contest, candidates):
            found = _attempt(contest, candidates, borrowing=borrowing)
            if found:
                return found
        for borrowing in _attempts(contest, candidates):
            found = _elsewhere(contest, candidates, borrowing=borrowing)
            if found:
                return found
    return []


def _elsewhere(contest: Contest, candidates: Candidates, *, borrowing: bool) -> list[Target]:
    """The same where other victims go first: those that make room on nodes."""
    by_key = {each.entry.key: each for each in candidates}

    def taken_of(order: Iterable[Entry]) -> Iterator[Entry]:
        chosen = (by_key[each.key] for each in order)
        return (each.entry for each in _taken(contest, chosen, borrowing=borrowing))

    entries = [each.entry for each in by_key.values()]
    for first in contest.victim_sets(entries, contest.all_in(taken_of)):
        chosen = {each.key: by_key[each.key] for each in first}
        rest = (each for key, each in by_key.items() if key not in chosen)
        with contest.trial():
            taken = list(_taken(contest, chosen.values(), borrowing=borrowing))
            for each in _taken(contest, rest, borrowing=borrowing):
                taken.append(each)
                if contest.fits_quota(borrowing=borrowing):
                    break
            if contest.fits(borrowing=borrowing, finally_=True):
                targets = [Target(each.entry, _REASONS[each.claim]) for each in taken]
                return contest.without_needless(targets, borrowing=borrowing)
    return []


def _taken(
    contest: Contest, candidates: Iterable[Candidate], *, borrowing: bool
) -> Iterator[Candidate]:
    """Those that can be taken one after the other. Each is taken when it comes."""
    for each in candidates:
        if _is_open(contest, each, borrowing=borrowing):
            contest.take(each.entry)
            yield each


def _attempts(contest: Contest, candidates: Candidates) -> tuple[bool, ...]:
    """Whether the workload may borrow in the end, one attempt after the other."""
    place = contest.place
    by_force = contest.queue.borrows_by_force
    elsewhere = candidates.reclaimed or candidates.by_priority
    under_nominal = all(
        place.usage.get(what, 0) < place.quota(what).nominal for what in contest.contested
    )
    if not elsewhere or (not by_force and not under_nominal):
        return (True,)
    if not by_force and not candidates.reclaimed:
        return (False, True)
    return (True, False)


def _attempt(contest: Contest, candidates: Candidates, *, borrowing: bool) -> list[Target]:
    with contest.trial():
        targets: list[Target] = []
        for candidate in _taken(contest, candidates, borrowing=borrowing):
            targets.append(Target(candidate.entry, _REASONS[candidate.claim]))
            if contest.fits(borrowing=borrowing):
                return contest.without_needless(targets, borrowing=borrowing)
        if targets and contest.fits(borrowing=borrowing, finally_=True):
            return contest.without_needless(targets, borrowing=borrowing)
    return []


def _is_open(contest: Contest, candidate: Candidate, *, borrowing: bool) -> bool:
    """Whether a candidate can still be taken after others were: its queue, and the cohorts up to the common one, exceed their quota."""
    if candidate.claim is Claim.OWN_QUEUE:
        return True
    if borrowing and candidate.claim is Claim.AT_HOME:
        return False
    node: Node | None = contest.queue_of(held_by(candidate.entry).cluster_queue).place
    while node is not None and node is not candidate.common:
        if node.is_within_quota(contest.contested):
            return False
        node = node.parent
    return True


def _collect(contest: Contest) -> Candidates:
    own = [Candidate(each, Claim.OWN_QUEUE, None) for each in contest.in_own_queue()]
    reclaimed: list[Candidate] = []
    by_priority: list[Candidate] = []
    if contest.queue.spec.preemption.reclaim_within_cohort != NEVER:
        first, remaining = _fits_quota(contest.place, contest.wanted.quota)
        below = contest.place
        for cohort in contest.place.ancestors():
            for queue in _exceeding(contest, cohort, below):
                for candidate in _of_queue(contest, queue, cohort, comes_first=first):
                    claimed = candidate.claim is Claim.RECLAIM
                    (reclaimed if claimed else by_priority).append(candidate)
            fits, remaining = _fits_quota(cohort, remaining)
            first = first or fits
            below = cohort
    for each in (reclaimed, by_priority, own):
        each.sort(key=lambda candidate: contest.order(candidate.entry))
    return Candidates(reclaimed, by_priority, own)


def _exceeding(contest: Contest, node: Node, left_out: Node) -> Iterator[ClusterQueueState]:
    """The queues below a cohort, but for one of its branches, that exceed their quota in branches that exceed theirs."""
    for child in node.children:
        if child is left_out or child.is_within_quota(contest.contested):
            continue
        if child.is_queue:
            yield contest.queue_of(child.name)
        else:
            yield from _exceeding(contest, child, left_out)


def _of_queue(
    contest: Contest, queue: ClusterQueueState, common: Node, *, comes_first: bool
) -> Iterator[Candidate]:
    policy = contest.queue.spec.preemption.reclaim_within_cohort
    for entry in queue.holders.values():
        if not contest.may_take(entry, policy):
            continue
        if comes_first:
            claim = Claim.RECLAIM
        elif contest.queue.borrows_by_force and not _is_too_important(contest, entry):
            claim = Claim.BY_FORCE
        else:
            claim = Claim.AT_HOME
        yield Candidate(entry, claim, common)


def _is_too_important(contest: Contest, candidate: Entry) -> bool:
    """Whether a candidate is not taken for a workload that goes on borrowing."""
    priority = candidate.facts.priority
    threshold = contest.queue.force_threshold
    if threshold is not None and priority > threshold:
        return True
    return priority >= contest.entry.facts.priority


def _fits_quota(
    node: Node, wanted: Mapping[FlavorResource, int]
) -> tuple[bool, dict[FlavorResource, int]]:
    """Whether the quota of a node holds a request on top of what is used, and what its free local part leaves of it."""
    fits = not any(node.is_borrowing_with(what, amount) for what, amount in wanted.items())
    rest = {what: max(0, amount - node.local_available(what)) for what, amount in wanted.items()}
    return fits, rest
