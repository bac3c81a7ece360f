"""Workloads that have quota and no room: whom they may drive out for it, and what they are told.

The rules are those of preemption for quota: the same candidates, in the same order, with the same reasons, and as few of them. Only what is
contested is another thing. Whoever is on the way out anyway is waited for, and nobody else is driven out meanwhile.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from drayman.quota.cluster_queues import NEVER, ClusterQueueState
from drayman.quota.decisions import Decision, Preempted, Refused
from drayman.quota.entries import Entry, Holding
from drayman.quota.preemption.contest import Target
from drayman.quota.preemption.searching import Found, Preemptor, RoomFinder, still_there
from drayman.quota.reasons import WAITING_FOR_PREEMPTED, WAITING_FOR_ROOM
from drayman.quota.waiting import Again

MOST_OF_A_QUEUE: Final = 8
"""For how many of a queue victims are looked for until something changes in the cluster. Thousands may wait for room."""


class ForRoom:
    """Decides about workloads without room."""

    def __init__(self, preemptor: Preemptor) -> None:
        self._preemptor = preemptor
        self._tried: Counter[str] = Counter()

    def begin_again(self) -> None:
        """Something in the cluster may have made room, or queues have other rules."""
        self._tried.clear()

    def decide(
        self, queue: ClusterQueueState, entry: Entry, holding: Holding, lacking: str
    ) -> tuple[Again, list[Decision]]:
        """What becomes of a workload that got quota and found no room, which `lacking` describes. It has given the quota back."""
        room = self._preemptor.room
        if room is None:
            return Again.ROOM, [Refused(entry.key, WAITING_FOR_ROOM, lacking)]
        why = self._why_not(queue, entry, is_awaited=room.is_awaited(entry.key))
        if not why and room.fits(entry, holding.admission, frozenset()):
            text = _with(lacking, "others are about to leave, and then there will be room")
            return Again.ROOM, [Refused(entry.key, WAITING_FOR_ROOM, text)]
        if why:
            room.gives_up(entry.key)
            return Again.ROOM, [Refused(entry.key, WAITING_FOR_ROOM, _with(lacking, why))]
        found = self._victims(queue, entry, holding)
        if found.is_unfinished:
            return Again.AT_ONCE, [Refused(entry.key, WAITING_FOR_ROOM, lacking)]
        self._tried[queue.name] += 1
        if any(each.entry.assumed for each in found.targets):
            # They were given quota just now, and nobody else knows yet.
            return Again.AT_ONCE, [Refused(entry.key, WAITING_FOR_ROOM, lacking)]
        if found.targets:
            return Again.ROOM, self._driven_out(room, queue, entry, holding, found.targets, lacking)
        room.gives_up(entry.key)
        text = _with(lacking, _why_nobody(found))
        return Again.ROOM, [Refused(entry.key, WAITING_FOR_ROOM, text)]

    def _victims(self, queue: ClusterQueueState, entry: Entry, holding: Holding) -> Found:
        """Whom a workload would drive out for room, if it may, with what it was to get."""
        return self._preemptor.search(
            queue,
            entry,
            holding.uses,
            holding.usage,
            admission=holding.admission,
            is_for_room=True,
        )

    def _why_not(self, queue: ClusterQueueState, entry: Entry, *, is_awaited: bool) -> str:
        """What keeps a workload from driving out anybody, whoever is there. `is_awaited`: it has driven out some already."""
        policy = queue.spec.preemption
        if policy.within_cluster_queue == NEVER and policy.reclaim_within_cohort == NEVER:
            return f"ClusterQueue {queue.name} preempts nobody"
        if entry.facts.gates_closed:
            return "it preempts nobody before all its preemption gates are open"
        if self._tried[queue.name] >= MOST_OF_A_QUEUE and not is_awaited:
            return "others of its queue that wait for room come first"
        return ""

    def _driven_out(
        self,
        room: RoomFinder,
        queue: ClusterQueueState,
        entry: Entry,
        holding: Holding,
        targets: list[Target],
        lacking: str,
    ) -> list[Decision]:
        self._preemptor.quarrels.drove_out(entry.key, still_there(targets))
        room.awaits(entry, holding.admission, frozenset(each.entry.key for each in targets))
        decisions: list[Decision] = []
        for target in targets:
            if not target.entry.facts.evicted:
                text = preempted_for(entry, queue.name, target.reason)
                text = f"{text}: there is quota for it, and no room for its pods"
                decisions.append(Preempted(target.entry.key, entry.key, target.reason, text))
        text = f"Pending the preemption of {len(targets)} workload(s) for room: {lacking}"
        return [*decisions, Refused(entry.key, WAITING_FOR_PREEMPTED, text)]


def preempted_for(by: Entry, queue: str, reason: str) -> str:
    """What those are told that have to go."""
    return f"Preempted to accommodate a workload ({by.facts.uid}) of ClusterQueue {queue} due to {reason}"


def _with(lacking: str, why: str) -> str:
    """What is lacking may be a sentence of its own."""
    return f"{lacking.rstrip('.')}; {why}"


def _why_nobody(found: Found) -> str:
    if found.gave_up:
        return "too many might have to go to say who, so nobody is preempted"
    if found.lacks_room:
        return "if all left that it may preempt, there would still be no room"
    return "there is nobody that it may preempt"
