"""One cycle of admission: the head of every queue is looked at once, and gets quota, drives others out, or is refused.

First everybody is nominated on the same state of things: which flavors, and whom it would take. Then they come one by one, in an order that
is fair between queues, and each is held against what those before it have taken. What is only reserved for the length of the cycle (for
those that wait for victims, or that must not lose their own quota to borrowers meanwhile) is taken back at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from drayman.api.kueue_workload import BLOCKED_ON_PREEMPTION_GATES
from drayman.quota.admissions import admission_of, uses_of_claims
from drayman.quota.amounts import FlavorResource
from drayman.quota.cluster_queues import ANY, ClusterQueueState
from drayman.quota.decisions import Decision, Preempted, Refused, Reserved
from drayman.quota.demands import Unpriced
from drayman.quota.entries import Attempt, Entry, Refusal
from drayman.quota.flavors.assigning import Assigner, Pinned, Rules
from drayman.quota.flavors.assignment import Assignment, Mode
from drayman.quota.flavors.placing import Placing
from drayman.quota.flavors.reducing import can_shrink, largest
from drayman.quota.nominees import Nominee, classical_order, fair_order
from drayman.quota.preemption.contest import Target, held_by
from drayman.quota.preemption.for_room import preempted_for
from drayman.quota.preemption.searching import Found, Preemptor, still_there
from drayman.quota.reasons import (
    WAITING_FOR_PODS_READY,
    WAITING_FOR_PREEMPTED,
    WAITING_FOR_QUOTA,
    WAITING_FOR_ROOM,
)
from drayman.quota.tree.ledger import Ledger, Usage
from drayman.quota.waiting import Again


class Cycle:
    """The heads of all queues, and what becomes of them."""

    def __init__(
        self,
        rules: Rules,
        preemptor: Preemptor,
        placing: Placing,
        queues: Mapping[str, ClusterQueueState],
        ledger: Ledger,
        number: int,
        *,
        one_at_a_time: bool = False,
        is_blocked: bool = False,
    ) -> None:
        """`number` counts cycles.

        `one_at_a_time`: nobody gets quota until the pods of whoever got it before are ready; `is_blocked`: some are not.
        """
        self._rules = rules
        self._preemptor = preemptor
        self._placing = placing
        self._queues = queues
        self._ledger = ledger
        self._number = number
        self._decisions: list[Decision] = []
        self._one_at_a_time = one_at_a_time
        self._is_blocked = is_blocked
        self._gone: dict[str, Entry] = {}
        self._to_come: dict[str, Nominee] = {}
        self._roomless: dict[str, tuple[Again, Refusal]] = {}
        """Why those find no room, by key, that could have quota if others went, and when they are tried again."""

    def run(self, heads: Iterable[tuple[ClusterQueueState, Entry]]) -> list[Decision]:
        """Decide about heads of queues that are active and serve them. Whoever gets quota is for the caller to count."""
        nominees = [self._nominee(queue, entry) for queue, entry in heads]
        with self._ledger.trial():
            if self._rules.shares_fairly:
                order = fair_order(nominees, self._ledger)
            else:
                order = classical_order(nominees)
            self._to_come = {each.entry.key: each for each in nominees}
            for nominee in order:
                del self._to_come[nominee.entry.key]
                self._process(nominee)
        return self._decisions

    # Nomination.

    def _nominee(self, queue: ClusterQueueState, entry: Entry) -> Nominee:
        attempt = Attempt(self._number, queue.changes)
        if entry.attempt.is_outdated(attempt):
            entry.positions = {}
        entry.attempt = attempt
        replaced = _replaced(queue, entry)
        if not replaced:
            return Nominee(entry, queue, *self._solution(queue, entry))
        found = self._solution_without(replaced, queue, entry, _flavors_of(replaced.values()))
        return Nominee(entry, queue, *found)

    def _solution_without(
        self,
        gone: Mapping[str, Entry],
        queue: ClusterQueueState,
        entry: Entry,
        pinned: Pinned | None,
    ) -> tuple[Assignment, tuple[Target, ...]]:
        """What it would be if others gave up their quota."""
        with self._ledger.trial():
            self._take(gone.values())
            self._preemptor.gone = gone
            found = self._solution(queue, entry, pinned)
            self._preemptor.gone = frozenset()
        return found

    def _solution(
        self, queue: ClusterQueueState, entry: Entry, pinned: Pinned | None = None
    ) -> tuple[Assignment, tuple[Target, ...]]:
        """What a workload would get and whom it would take: in full if possible, with fewer pods otherwise.

        `pinned`: with these flavors and no others.
        """
        assigner = Assigner(self._rules, queue, entry, pinned)
        full = self._placing.placed(assigner.assign())
        if full.mode is Mode.FIT:
            return full, ()
        targets = self._targets(queue, entry, full)
        demands = entry.facts.demands
        if targets or isinstance(demands, Unpriced) or not can_shrink(demands):
            return full, targets
        is_unfinished = self._is_unfinished(entry)

        def attempt(counts: list[int]) -> tuple[Assignment, tuple[Target, ...]] | None:
            nonlocal is_unfinished
            fewer = self._placing.placed(assigner.assign(counts))
            if fewer.mode is Mode.FIT:
                return fewer, ()
            victims = self._targets(queue, entry, fewer)
            is_unfinished = is_unfinished or self._is_unfinished(entry)
            return (fewer, victims) if victims else None

        found = None if is_unfinished else largest(demands, attempt)
        return (full, ()) if found is None or is_unfinished else found

    def _is_unfinished(self, entry: Entry) -> bool:
        """Whether the last search for victims goes on in the next cycle: until then, nothing smaller is given."""
        again, _ = self._roomless.get(entry.key, (Again.ROOM, None))
        return again is Again.AT_ONCE

    def _targets(
        self, queue: ClusterQueueState, entry: Entry, assignment: Assignment
    ) -> tuple[Target, ...]:
        if assignment.mode is not Mode.PREEMPT:
            return ()
        finds_places = None
        if self._placing.units(assignment):
            finds_places = partial(self._placing.finds_places, assignment)
        found = self._preemptor.search(
            queue,
            entry,
            assignment.contested,
            assignment.usage,
            finds_places,
            admission_of(queue.name, assignment),
        )
        self._roomless.pop(entry.key, None)
        if found.lacks_room or found.gave_up or found.is_unfinished:
            again = Again.AT_ONCE if found.is_unfinished else self._again_for_room(entry)
            self._roomless[entry.key] = again, Refusal(WAITING_FOR_ROOM, _without_room(found))
        return tuple(found.targets)

    def _again_for_room(self, entry: Entry) -> Again:
        room = self._preemptor.room
        is_of_all = room is not None and room.speaks_for_shape(entry)
        return Again.ROOM_OF_ALL if is_of_all else Again.ROOM

    # Processing.

    def _process(self, nominee: Nominee) -> None:
        is_early = self._think_again(nominee)
        mode = nominee.assignment.mode
        if mode is Mode.NO_FIT:
            self._refuse(nominee, Again.NO_QUOTA, nominee.assignment.refusal)
            return
        if mode is Mode.PREEMPT and not nominee.targets:
            self._hold(nominee)
            found = Again.NO_QUOTA, nominee.assignment.refusal
            self._refuse(nominee, *self._roomless.get(nominee.entry.key, found))
            return
        if is_early:
            text = "It will fit when those are gone that others preempt"
            self._ledger.add(nominee.queue.place, nominee.assignment.usage)
            self._refuse(nominee, Again.VICTIMS, Refusal(WAITING_FOR_PREEMPTED, text))
            return
        if not self._fits(nominee):
            self._skip(nominee, "Workload no longer fits after processing another workload")
            return
        if not self._leaves_room(nominee):
            other = self._preemptor.quarrels.gave_way_to(nominee.entry.key)
            self._skip(nominee, f"It was preempted for {other}, which is next")
            return
        if nominee.targets and nominee.entry.facts.gates_closed:
            text = "preemption is needed, and is not allowed before all preemption gates are open"
            self._refuse(nominee, Again.ALONE, Refusal(BLOCKED_ON_PREEMPTION_GATES, text))
            return
        if self._is_blocked and not nominee.targets:
            text = "waiting for all admitted workloads to be in PodsReady condition"
            self._refuse(nominee, Again.ALONE, Refusal(WAITING_FOR_PODS_READY, text))
            return
        self._ledger.add(nominee.queue.place, nominee.assignment.usage)
        self._gone.update(_replaced(nominee.queue, nominee.entry))
        if nominee.targets:
            self._preempt(nominee)
        else:
            self._is_blocked = self._one_at_a_time
            admission = admission_of(nominee.queue.name, nominee.assignment)
            claims = uses_of_claims(nominee.assignment)
            self._decisions.append(Reserved(nominee.entry.key, admission, claims))

    def _is_overtaken(self, nominee: Nominee) -> bool:
        """Whether others that came before have driven out its victims, or need the room that it was to have."""
        if any(each.entry.key in self._gone for each in nominee.targets):
            return True
        room = self._preemptor.room
        if room is None or not self._gone or not nominee.targets:
            return False
        victims = frozenset(each.entry.key for each in nominee.targets)
        admission = admission_of(nominee.queue.name, nominee.assignment)
        return not room.fits(nominee.entry, admission, victims)

    def _think_again(self, nominee: Nominee) -> bool:
        """Find another solution with the same flavors, where others came before in this cycle.

        They have taken the places, drive out those that this one would have driven out, or need the room of those. Returns whether it
        fits only because others are driven out, and so not before they are gone.
        """
        overlaps = self._is_overtaken(nominee)
        if not overlaps and self._placing.are_free(nominee.assignment):
            return False
        gone = {**(self._gone if overlaps else {}), **_replaced(nominee.queue, nominee.entry)}
        pinned = nominee.assignment.flavors
        found = self._solution_without(gone, nominee.queue, nominee.entry, pinned)
        nominee.assignment, nominee.targets = found
        return overlaps and nominee.assignment.mode is Mode.FIT

    def _fits(self, nominee: Nominee) -> bool:
        """Whether it fits beside those that came before, without those that they and it drive out."""
        usage = nominee.assignment.usage
        replaced = _replaced(nominee.queue, nominee.entry)
        if not self._gone and not nominee.targets and not replaced:
            return nominee.queue.place.fits(usage.quota)
        leaving = {**self._gone, **replaced}
        leaving |= {each.entry.key: each.entry for each in nominee.targets}
        with self._ledger.trial():
            self._take(leaving.values())
            return nominee.queue.place.fits(usage.quota)

    def _leaves_room(self, nominee: Nominee) -> bool:
        """Whether there is room for the workload that drove this one out, if that comes later in this cycle."""
        later = self._to_come.get(self._preemptor.quarrels.gave_way_to(nominee.entry.key))
        if later is None or not (later.targets or later.assignment.mode is Mode.FIT):
            return True
        with self._ledger.trial():
            self._ledger.add(nominee.queue.place, nominee.assignment.usage)
            leaving = {**self._gone, **{each.entry.key: each.entry for each in nominee.targets}}
            leaving |= {each.entry.key: each.entry for each in later.targets}
            self._take(leaving.values())
            return later.queue.place.fits(later.assignment.usage.quota)

    def _take(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            holding = held_by(entry)
            self._ledger.remove(self._queues[holding.cluster_queue].place, holding.freed)

    def _hold(self, nominee: Nominee) -> None:
        """Keep from others what a workload could use, though nobody may be driven out for it, until the end of the cycle.

        A queue that can reclaim from anybody need not: it gets back what others borrow.
        """
        if nominee.queue.spec.preemption.reclaim_within_cohort == ANY:
            return
        place = nominee.queue.place
        borrows = nominee.assignment.borrowing > 0
        kept: dict[FlavorResource, int] = {}
        for what, amount in nominee.assignment.usage.quota.items():
            quota = place.quota(what)
            if borrows and quota.borrowing_limit is None:
                kept[what] = amount
                continue
            most = quota.nominal + (quota.borrowing_limit or 0 if borrows else 0)
            kept[what] = max(0, min(amount, most - place.usage.get(what, 0)))
        self._ledger.add(place, Usage(kept))

    def _preempt(self, nominee: Nominee) -> None:
        by = nominee.entry
        self._preemptor.quarrels.drove_out(by.key, still_there(nominee.targets))
        if self._preemptor.room is not None:
            admission = admission_of(nominee.queue.name, nominee.assignment)
            victims = frozenset(each.entry.key for each in nominee.targets)
            self._preemptor.room.awaits(by, admission, victims)
        for target in nominee.targets:
            self._gone[target.entry.key] = target.entry
            if target.entry.facts.evicted:
                continue
            text = preempted_for(by, nominee.queue.name, target.reason)
            self._decisions.append(Preempted(target.entry.key, by.key, target.reason, text))
        text = f"Pending the preemption of {len(nominee.targets)} workload(s)"
        self._refuse(nominee, Again.VICTIMS, Refusal(WAITING_FOR_PREEMPTED, text))

    def _skip(self, nominee: Nominee, text: str) -> None:
        self._refuse(nominee, Again.AT_ONCE, Refusal(WAITING_FOR_QUOTA, text))

    def _refuse(self, nominee: Nominee, again: Again, refusal: Refusal | None) -> None:
        said = refusal or Refusal(WAITING_FOR_QUOTA, "insufficient unused quota")
        entry = nominee.entry
        if self._preemptor.room is not None and again not in (Again.VICTIMS, Again.AT_ONCE):
            self._preemptor.room.gives_up(entry.key)
        # Who preempts begins with the first flavor again: with its victims gone, everything may be otherwise.
        entry.positions = {} if again is Again.VICTIMS else nominee.assignment.positions
        if again is Again.NO_QUOTA:
            # Of a search that goes on with other flavors, what it came to the last time is said until it has come to its end: otherwise
            # who is tried again and again, as the head of a strict queue is, would say something else each time.
            if not entry.positions:
                entry.refusal = said
            said = entry.refusal or said
        self._decisions.append(Refused(entry.key, said.reason, said.message))
        nominee.queue.waiting.refuse(entry, again)


def _without_room(found: Found) -> str:
    """Why nobody is driven out for quota, though that is allowed."""
    if found.is_unfinished:
        return "who has to be preempted for quota and room is being looked for"
    if found.gave_up:
        return "too many might have to go for quota and room to say who, so nobody is preempted"
    return "others could be preempted for quota, but there would be no room for all of its pods"


def _replaced(queue: ClusterQueueState, entry: Entry) -> dict[str, Entry]:
    """The workload whose place another one takes, if that holds quota of the same queue."""
    old = queue.holders.get(entry.facts.replaces) if entry.facts.replaces else None
    if old is None or not entry.facts.takes_the_place_of(old.facts):
        return {}
    return {old.key: old}


def _flavors_of(entries: Iterable[Entry]) -> dict[tuple[str, str], str]:
    """What workloads hold, by pod set and resource."""
    return {
        (assigned.name, resource): flavor
        for entry in entries
        for assigned in held_by(entry).admission.pod_set_assignments
        for resource, flavor in assigned.flavors.items()
    }
