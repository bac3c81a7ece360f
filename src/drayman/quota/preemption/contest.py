"""One workload against those that have what it needs: what the searches for victims share.

Whether quota fits is a matter of sums. Whether there is room for pods is a search of another component (`RoomOfOne`). So it is
asked seldom: after one victim, two, four and so on, and when there are no more of them. More are taken than are needed in this way, and
given back in the usual order. What is enough stays enough with more victims, so the outcome is the same as if it had been asked after
every one.

The victims that come first are those that Kueue would take. If there is quota without them and no room, the same rules permit other sets
of victims; those are searched in which the work has room (`victim_sets`), so that a queue gets what is its own wherever others have it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from drayman.placement.victim_sets import Permitted, VictimSets
from drayman.quota.amounts import FlavorResource
from drayman.quota.cluster_queues import ANY, LOWER_PRIORITY, NEVER, NEWER_TOO, ClusterQueueState
from drayman.quota.demands import Unpriced
from drayman.quota.entries import Entry, Holding
from drayman.quota.preemption.questions import RoomOfOne
from drayman.quota.tree.ledger import Ledger, Usage
from drayman.quota.tree.nodes import Node

_MOST_QUESTIONS: Final = 256
"""How often it is asked for one workload. Who needs more than that drives nobody out."""


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
        room: RoomOfOne | None = None,
        *,
        is_for_room: bool = False,
    ) -> None:
        """`finds_places` says whether its pods find places in topologies as the ledger is now; `gone` are no candidates any more.

        `past_use` is what local queues have used, where that counts in the queue. `is_for_room`: there is quota, and no room. What is
        contested in its own queue is room then, which everybody has.
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
        self._room = room
        self._is_for_room = is_for_room
        self._taken: dict[str, None] = {}
        self._ask_at = 1
        self._questions = 0
        self.left_out = False
        """Whether there may be victims that were not tried, because too many sets of them were looked at."""

    @property
    def gave_up(self) -> bool:
        """Whether more questions would have been needed than are asked."""
        return self._questions >= _MOST_QUESTIONS

    @property
    def has_asked(self) -> bool:
        """Whether it was asked for room at all, because there was quota."""
        return self._questions > 0

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Take back at the end whatever is supposed inside."""
        taken, ask_at = dict(self._taken), self._ask_at
        with self.ledger.trial():
            yield
        self._taken, self._ask_at = taken, ask_at

    def fits(self, *, borrowing: bool, finally_: bool = False) -> bool:
        """Whether the workload fits as things are supposed to be, borrowing or not.

        While victims are being taken, No may mean that it was not asked. It always is if this is the question in the end (`finally_`).
        """
        if not self.fits_quota(borrowing=borrowing):
            return False
        return self._room is None or self._is_roomy(self._room, finally_=finally_)

    def _is_roomy(self, room: RoomOfOne, *, finally_: bool) -> bool:
        if not finally_ and len(self._taken) < self._ask_at:
            return False
        if self.gave_up:
            return False
        self._questions += 1
        self._ask_at = 2 * len(self._taken)
        return room.fits(frozenset(self._taken))

    def victim_sets(
        self, candidates: Sequence[Entry], permitted: Permitted[Entry]
    ) -> Iterator[tuple[Entry, ...]]:
        """Victims that make room on nodes, best first, where quota could be had and the first victims make no room."""
        if self._room is None or not self.has_asked or self.gave_up:
            return
        room, on_node = self._room, dict[str, list[Entry]]()
        for each in candidates:
            for node in sorted(room.nodes_of(each.key)):
                on_node.setdefault(node, []).append(each)

        def held(node: str, gone: Sequence[Entry]) -> tuple[int]:
            return (room.seats(node, frozenset(each.key for each in gone)),)

        if not on_node:
            return
        sets = VictimSets(candidates, on_node, permitted, held, (max(1, room.unseated()),))
        for found in sets:
            if found is not None and not self.gave_up:
                yield found
        self.left_out |= sets.gave_up

    def fits_quota(self, *, borrowing: bool) -> bool:
        """The same by quota alone."""
        place = self.place
        for what, amount in self.wanted.quota.items():
            if not borrowing and place.is_borrowing_with(what, amount):
                return False
            if amount > 0 and amount > place.available(what):
                return False
        return self._finds_places is None or self._finds_places()

    def all_in(self, taken: Callable[[Iterable[Entry]], Iterable[Entry]]) -> Permitted[Entry]:
        """Of workloads in an order, those that can be taken one after the other: all of them if they can in any order.

        A queue that exceeds its quota by anything may lose a large workload as well as a small one, so the largest of it goes last. `taken`
        takes them, and says which of them.
        """

        def attempt(order: Sequence[Entry]) -> list[Entry]:
            with self.trial():
                return list(taken(order))

        def permitted(order: Sequence[Entry]) -> list[Entry]:
            found = attempt(order)
            if len(found) == len(order):
                return found
            largest_last = attempt(sorted(order, key=self._size))
            return largest_last if len(largest_last) == len(order) else found

        return permitted

    def _size(self, entry: Entry) -> int:
        freed = held_by(entry).freed.quota
        return sum(freed.get(what, 0) for what in self.contested)

    def queue_of(self, name: str) -> ClusterQueueState:
        return self._queues[name]

    def take(self, entry: Entry) -> None:
        """Suppose that a workload is gone."""
        holding = held_by(entry)
        self.ledger.remove(self._queues[holding.cluster_queue].place, holding.freed)
        self._taken[entry.key] = None

    def give_back(self, entry: Entry) -> None:
        """Suppose that it is there after all."""
        holding = held_by(entry)
        self.ledger.add(self._queues[holding.cluster_queue].place, holding.freed)
        del self._taken[entry.key]

    def without_needless(self, targets: list[Target], *, borrowing: bool) -> list[Target]:
        """Victims without those that can stay, tried from the last to the first."""
        if self._room is None:
            # The last one made it fit, so it goes.
            stays = [
                target
                for target in reversed(targets[:-1])
                if self._can_stay([target], borrowing=borrowing)
            ]
        else:
            stays = self._all_that_can_stay(targets[::-1], borrowing=borrowing)
        return [each for each in targets if each not in stays]

    def _all_that_can_stay(self, targets: Sequence[Target], *, borrowing: bool) -> list[Target]:
        """As one by one, with fewer questions: many together first, and halves of them if they cannot all stay."""
        if not targets or self._can_stay(targets, borrowing=borrowing):
            return list(targets)
        if len(targets) == 1:
            return []
        half = len(targets) // 2
        first = self._all_that_can_stay(targets[:half], borrowing=borrowing)
        return first + self._all_that_can_stay(targets[half:], borrowing=borrowing)

    def _can_stay(self, targets: Sequence[Target], *, borrowing: bool) -> bool:
        """Give back victims, if the workload fits without all of them gone."""
        for each in targets:
            self.give_back(each.entry)
        if self.fits(borrowing=borrowing, finally_=True):
            return True
        for each in targets:
            self.take(each.entry)
        return False

    def may_take(self, candidate: Entry, policy: str) -> bool:
        """Whether a policy of the queue lets it take this workload, which has to have something that is contested."""
        if candidate.key in self._gone or not self._is_in_the_way(candidate):
            return False
        if any(use.claim in self._claims for use in held_by(candidate).claims):
            # Who drives it out would have to pay for the claim then, and has not been asked whether it can.
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

    def _is_in_the_way(self, candidate: Entry) -> bool:
        holding = held_by(candidate)
        if self._is_for_room and holding.cluster_queue == self.queue.name:
            return True
        return not self.contested.isdisjoint(holding.uses)

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
