"""The search for victims, by whichever rules the configuration has."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from drayman.quota.amounts import FlavorResource
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.entries import Entry
from drayman.quota.flavors.ranks import Rank, Serving
from drayman.quota.preemption.classical import classical_targets
from drayman.quota.preemption.contest import Contest, Target, held_by
from drayman.quota.preemption.fair import fair_targets
from drayman.quota.preemption.quarrels import Quarrels
from drayman.quota.settings import FairSharingSettings
from drayman.quota.tree.ledger import Ledger, Usage


def still_there(targets: Iterable[Target]) -> frozenset[str]:
    """The victims that have not been told to go yet, by key."""
    return frozenset(each.entry.key for each in targets if not each.entry.facts.evicted)


class Preemptor:
    """Finds victims. It supposes only, and changes nothing."""

    def __init__(
        self,
        queues: Mapping[str, ClusterQueueState],
        ledger: Ledger,
        sharing: FairSharingSettings | None,
    ) -> None:
        self._queues = queues
        self._ledger = ledger
        self._sharing = sharing
        self.quarrels = Quarrels()
        self.past_use: Callable[[str], float] | None = None
        self.gone: Container[str] = frozenset()
        """Workloads that others have driven out in this cycle: no candidates any more."""

    def targets(
        self,
        queue: ClusterQueueState,
        entry: Entry,
        contested: frozenset[FlavorResource],
        wanted: Usage,
        finds_places: Callable[[], bool] | None = None,
    ) -> list[Target]:
        """Whom to drive out so that a workload gets what it wants; nobody if that cannot be."""
        contest = Contest(
            entry,
            queue,
            contested,
            wanted,
            self._queues,
            self._ledger,
            finds_places,
            self.gone,
            self.past_use if queue.shares_by_past_use else None,
        )
        if self._sharing is not None:
            found = fair_targets(contest, self._sharing.strategies)
        else:
            found = classical_targets(contest)
        return found if self.quarrels.may_drive_out(entry.key, still_there(found)) else []

    def serving(
        self, queue: ClusterQueueState, entry: Entry, what: FlavorResource, amount: int
    ) -> Serving:
        """What preemption could do for one flavor and resource, if nothing else were asked for."""
        place = queue.place
        targets = self.targets(queue, entry, frozenset((what,)), Usage({what: amount}))
        if not targets:
            return Serving(Rank.NO_CANDIDATES, place.lowest_that_fits(what, amount)[0])
        with self._ledger.trial():
            for target in targets:
                holding = held_by(target.entry)
                self._ledger.remove(self._queues[holding.cluster_queue].place, holding.freed)
            borrowing, _ = place.lowest_that_fits(what, amount)
        own = any(held_by(each.entry).cluster_queue == queue.name for each in targets)
        return Serving(Rank.PREEMPT if own else Rank.RECLAIM, borrowing)
