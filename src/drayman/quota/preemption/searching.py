"""The search for victims, by whichever rules the configuration has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from drayman.api.kueue_workload import Admission
from drayman.quota.amounts import FlavorResource
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.entries import Entry
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.flavors.ranks import Rank, Serving
from drayman.quota.preemption.classical import classical_targets
from drayman.quota.preemption.contest import Contest, Target, held_by
from drayman.quota.preemption.fair import fair_targets
from drayman.quota.preemption.quarrels import Quarrels
from drayman.quota.preemption.questions import Questions, RoomOfOne, Subject, UnfinishedError
from drayman.quota.settings import FairSharingSettings
from drayman.quota.tree.ledger import Ledger, Usage


def still_there(targets: Iterable[Target]) -> frozenset[str]:
    """The victims that have not been told to go yet, by key."""
    return frozenset(each.entry.key for each in targets if not each.entry.facts.evicted)


class RoomFinder(Protocol):
    """Who knows whether there is room for pods, as `quota/fitting/clearing.py` does."""

    def admit(self, entry: Entry, admission: Admission) -> str | Unfit | None:
        """Find and keep room for all pods of a workload. Returns what to write down, why there is none, or None where none is needed."""
        ...

    def fits(self, entry: Entry, admission: Admission, without: frozenset[str]) -> bool:
        """Whether there would be room for all pods of a workload if others, by key, were gone."""
        ...

    def unseated(self, entry: Entry, admission: Admission) -> int:
        """How many pods of a workload find no room as things are."""
        ...

    def seats(self, entry: Entry, admission: Admission, node: str, without: frozenset[str]) -> int:
        """How many pods of a workload find room on a node if others, by key, are gone."""
        ...

    def nodes_of(self, key: str) -> Collection[str]:
        """The nodes on which a workload has pods or room."""
        ...

    def speaks_for_shape(self, entry: Entry) -> bool:
        """Whether what `fits` says of a workload holds for all of its queue that have its shape."""
        ...

    def awaits(self, entry: Entry, admission: Admission, victims: frozenset[str]) -> None:
        """A workload has others driven out, and waits for their room."""
        ...

    def is_awaited(self, key: str) -> bool:
        """Whether a workload waits for the room of others that it had driven out."""
        ...

    def gives_up(self, key: str) -> None:
        """A workload does not wait for the room of others any more."""
        ...


class _RoomOf(Struct, frozen=True):
    """Room for one workload with one admission."""

    room: RoomFinder
    entry: Entry
    admission: Admission

    def fits(self, without: frozenset[str]) -> bool:
        return self.room.fits(self.entry, self.admission, without)

    def unseated(self) -> int:
        return self.room.unseated(self.entry, self.admission)

    def seats(self, node: str, without: frozenset[str]) -> int:
        return self.room.seats(self.entry, self.admission, node, without)

    def nodes_of(self, key: str) -> Collection[str]:
        return self.room.nodes_of(key)


class Found(Struct, frozen=True):
    """What came of a search for victims."""

    targets: list[Target]
    """Nobody if that cannot be."""
    lacks_room: bool = False
    """Whether quota could be had, and there would still be no room."""
    gave_up: bool = False
    """Whether there are too many candidates to find out."""
    is_unfinished: bool = False
    """Whether the search goes on in the next turn."""


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
        self.questions = Questions()
        self.room: RoomFinder | None = None
        """Asked before anybody is driven out. None: quota alone decides."""
        self.past_use: Callable[[str], float] | None = None
        self.gone: Container[str] = frozenset()
        """Workloads that others have driven out in this cycle: no candidates any more."""

    def search(
        self,
        queue: ClusterQueueState,
        entry: Entry,
        contested: frozenset[FlavorResource],
        wanted: Usage,
        finds_places: Callable[[], bool] | None = None,
        admission: Admission | None = None,
        *,
        is_for_room: bool = False,
    ) -> Found:
        """Whom to drive out so that a workload gets what it wants, and room with this admission if one is given."""
        if self.room is None or admission is None:
            contest = self._contest(
                queue, entry, contested, wanted, finds_places, None, is_for_room
            )
            return self._victims(contest)
        subject = Subject(entry.key, admission, is_for_room)
        room = _RoomOf(self.room, entry, admission)
        asked = self.questions.about(subject, room)
        contest = self._contest(queue, entry, contested, wanted, finds_places, asked, is_for_room)
        try:
            found = self._victims(contest)
        except UnfinishedError:
            return Found([], is_unfinished=True)
        if not self.questions.end(subject, room, frozenset(e.entry.key for e in found.targets)):
            return Found([], is_unfinished=True)
        return found

    def _contest(
        self,
        queue: ClusterQueueState,
        entry: Entry,
        contested: frozenset[FlavorResource],
        wanted: Usage,
        finds_places: Callable[[], bool] | None,
        room: RoomOfOne | None,
        is_for_room: bool,
    ) -> Contest:
        return Contest(
            entry,
            queue,
            contested,
            wanted,
            self._queues,
            self._ledger,
            finds_places,
            self.gone,
            self.past_use if queue.shares_by_past_use else None,
            room,
            is_for_room=is_for_room,
        )

    def _victims(self, contest: Contest) -> Found:
        if self._sharing is not None:
            found = fair_targets(contest, self._sharing.strategies)
        else:
            found = classical_targets(contest)
        if contest.gave_up or (contest.left_out and not found):
            return Found([], gave_up=True)
        if not self.quarrels.may_drive_out(contest.entry.key, still_there(found)):
            return Found([])
        return Found(found, lacks_room=not found and contest.has_asked)

    def serving(
        self, queue: ClusterQueueState, entry: Entry, what: FlavorResource, amount: int
    ) -> Serving:
        """What preemption could do for one flavor and resource, if nothing else were asked for."""
        place = queue.place
        targets = self.search(queue, entry, frozenset((what,)), Usage({what: amount})).targets
        if not targets:
            return Serving(Rank.NO_CANDIDATES, place.lowest_that_fits(what, amount)[0])
        with self._ledger.trial():
            for target in targets:
                holding = held_by(target.entry)
                self._ledger.remove(self._queues[holding.cluster_queue].place, holding.freed)
            borrowing, _ = place.lowest_that_fits(what, amount)
        own = any(held_by(each.entry).cluster_queue == queue.name for each in targets)
        return Serving(Rank.PREEMPT if own else Rank.RECLAIM, borrowing)
