"""One workload against those that have what it needs: what the searches for victims share."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from msgspec import Struct

from drayman.quota.amounts import FlavorResource
from drayman.quota.cluster_queues import ANY, LOWER_PRIORITY, NEVER, NEWER_TOO, ClusterQueueState
from drayman.quota.demands import Unpriced
from drayman.quota.entries import Entry, Holding
from drayman.quota.tree.ledger import Ledger, Usage
from drayman.quota.tree.nodes import Node


class Target(Struct, frozen=True):
    """A workload that has to go, and why it may be made to."""

    entry: Entry
    reason: str


class Contest:
    """A workload that would fit if others gave up quota."""

    def __init__(
        self,
        entry: Entry,
        queue: ClusterQueueState,
        contested: frozenset[FlavorResource],
        wanted: Usage,
        queues: Mapping[str, ClusterQueueState],
        ledger: Ledger,
        finds_places: Callable[[], bool] | None = None,
        gone: Container[str] = frozenset(),
        past_use: Callable[[str], float] | None = None,
    ) -> None:
        """`finds_places` says whether its pods find places in topologies as the ledger is now; `gone` are no candidates any more.

        `past_use` is what local queues have used, where that counts in the queue.
        """
        self.entry = entry
        self.queue = queue
        self.place: Node = queue.place
        self.contested = contested
        self.wanted = wanted
        self.ledger = ledger
        self._queues = queues
        self._finds_places = finds_places
        self._gone = gone
        self._past_use = past_use
        demands = () if isinstance(entry.facts.demands, Unpriced) else entry.facts.demands
        self._claims = {price.claim for demand in demands for price in demand.claims}

    def fits(self, *, borrowing: bool) -> bool:
        """Whether the workload fits as the ledger is now, borrowing or not."""
        place = self.place
        for what, amount in self.wanted.quota.items():
            if not borrowing and place.is_borrowing_with(what, amount):
                return False
            if amount > 0 and amount > place.available(what):
                return False
        return self._finds_places is None or self._finds_places()

    def queue_of(self, name: str) -> ClusterQueueState:
        return self._queues[name]

    def take(self, entry: Entry) -> None:
        """Suppose that a workload is gone."""
        holding = held_by(entry)
        self.ledger.remove(self._queues[holding.cluster_queue].place, holding.freed)

    def give_back(self, entry: Entry) -> None:
        """Suppose that it is there after all."""
        holding = held_by(entry)
        self.ledger.add(self._queues[holding.cluster_queue].place, holding.freed)

    def without_needless(self, targets: list[Target], *, borrowing: bool) -> list[Target]:
        """Victims without those that can stay, tried from the last but one to the first. The last one made it fit, so it goes."""
        kept = list(targets)
        for target in reversed(targets[:-1]):
            self.give_back(target.entry)
            if self.fits(borrowing=borrowing):
                kept.remove(target)
            else:
                self.take(target.entry)
        return kept

    def may_take(self, candidate: Entry, policy: str) -> bool:
        """Whether a policy of the queue lets it take this workload, which has to have something that is contested."""
        holding = held_by(candidate)
        if candidate.key in self._gone or self.contested.isdisjoint(holding.uses):
            return False
        if any(use.claim in self._claims for use in holding.claims):
            # It would have to pay for the claim when that one is gone, and has not been asked whether it can.
            return False
        mine, theirs = self.entry.facts, candidate.facts
        if policy == ANY:
            return True
        if policy == LOWER_PRIORITY:
            return theirs.priority < mine.priority
        if policy == NEWER_TOO:
            if theirs.priority != mine.priority:
                return theirs.priority < mine.priority
            return mine.queued_since < theirs.queued_since
        return False

    def in_own_queue(self) -> list[Entry]:
        """Workloads of its own queue that it may take."""
        policy = self.queue.spec.preemption.within_cluster_queue
        if policy == NEVER:
            return []
        return [each for each in self.queue.holders.values() if self.may_take(each, policy)]

    def order(self, candidate: Entry) -> tuple[bool, bool, float, int, float, str]:
        """Whom to take first: those already told to go, others' workloads, unimportant ones, those that came last.

        Among those of its own queue, the ones whose local queue used most, where that counts.
        """
        facts, holding = candidate.facts, held_by(candidate)
        own = holding.cluster_queue == self.queue.name
        return (
            not facts.evicted,
            own,
            -self._past_use(facts.queue) if own and self._past_use is not None else 0.0,
            facts.priority,
            -holding.reserved_at,
            facts.uid,
        )


def held_by(entry: Entry) -> Holding:
    if entry.holding is None:
        raise LookupError(f"{entry} holds no quota")
    return entry.holding
