"""Room that is made: whether there is room for a workload if others go, and whom it is kept from until they have gone.

A workload that has driven others out waits until they are gone. Meanwhile their room is theirs, so it cannot be kept in the book; instead
nobody else is admitted who would leave too little of it (`admit`), unless more important. The next one that has others driven out finds
its room beside all that are waiting like that, so two never count on the same place. That ends when the workload has its room, when it is
refused for anything else than that others have to leave first (`gives_up`), and when they have left and it is still not its turn.

Which of many victims can stay after all is asked again and again. What was found last answers most of it: only the pods have to be placed
again that are on nodes of those who stay. If that fails, the whole search is repeated, as long as that is not too much work altogether;
after that, a victim goes that might have stayed if all others had been placed otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.errors import DecodeError
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import Admission, Workload
from drayman.quota.entries import Entry
from drayman.quota.fitting.departing import Departing
from drayman.quota.fitting.expecting import WorkloadPods
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.fitting.reservation import ReservedPlace, RoomReservation
from drayman.quota.fitting.rooms import Rooms, workload_pods
from drayman.workloads.queued.starting import StartError

MOST_AWAITED: Final = 8
"""For how many workloads room is made at a time: each question is asked beside all of them."""
MOST_PLACED_AGAIN: Final = 256
"""How many pods are placed again, all in all, to see whether a victim can stay."""


class Queued(Protocol):
    """Who knows where workloads stand in their queues, by key, as `QuotaState` does."""

    def is_waiting(self, key: str) -> bool:
        """Whether a workload may get quota in a cycle to come, or got it in one that is not over."""
        ...

    def is_held_back(self, key: str) -> bool:
        """Whether a workload that waits is not tried again before something else changes than the room there is."""
        ...

    def holds_quota(self, key: str) -> bool: ...


class Awaited(Struct, frozen=True):
    """A workload that has driven others out, and waits for their room."""

    wanted: WorkloadPods
    priority: int
    victims: frozenset[str]
    """Those that have not gone yet."""


class _Last:
    """What was found last, and for what."""

    def __init__(
        self, question: object, without: frozenset[str], found: RoomReservation, *, is_local: bool
    ) -> None:
        self.question = question
        self.without = without
        self.found = found
        self.is_local = is_local
        self.work_left = MOST_PLACED_AGAIN


class RoomClearing:
    """Answers for one cluster state, at times that are given. What is supposed is always undone."""

    def __init__(
        self,
        rooms: Rooms,
        departing: Departing,
        flavors: Callable[[], Mapping[str, ResourceFlavorSpec]],
        clock: Callable[[], float],
        queued: Callable[[], Queued],
    ) -> None:
        self._rooms = rooms
        self._departing = departing
        self._flavors = flavors
        self._clock = clock
        self._queued = queued
        self._awaited: dict[str, Awaited] = {}
        self._last: _Last | None = None

    def is_awaited(self, key: str) -> bool:
        """Whether room is being made for a workload."""
        return key in self._awaited

    def _still_awaited(self) -> Mapping[str, Awaited]:
        """The workloads that room is being made for, by key, after those have been left out that it is not made for any more."""
        queued, found = self._queued(), dict[str, Awaited]()
        for key, each in self._awaited.items():
            victims = frozenset(filter(queued.holds_quota, each.victims))
            if queued.is_waiting(key) and (victims or not queued.is_held_back(key)):
                found[key] = each if victims == each.victims else replace(each, victims=victims)
        self._awaited = found
        return found

    def fits(self, entry: Entry, admission: Admission, without: frozenset[str]) -> bool:
        """Whether there would be room for a workload if others, by key, were gone, beside all that room is made for already."""
        wanted = self._wanted(entry.source, admission)
        others = {key: each for key, each in self._still_awaited().items() if key != entry.key}
        if wanted is None or len(others) >= MOST_AWAITED:
            return False
        question = (entry.key, admission, frozenset(others), self._rooms.fitter.moment)
        last = self._last if self._last is not None and self._last.question == question else None
        with self._without(without, others):
            for each in others.values():
                self._place(each.wanted)
            found = self._found(wanted, last, without)
        if isinstance(found, Unfit):
            return False
        if last is None or not last.without > without:
            is_local = self._rooms.fitter.is_about_nodes_alone(wanted, self._clock())
            self._last = _Last(question, without, found, is_local=is_local and not others)
        else:
            last.found, last.without = found, without
        return True

    def unseated(self, entry: Entry, admission: Admission) -> int:
        """How many pods of a workload find no room as things are, beside all that room is made for already."""
        wanted = self._wanted(entry.source, admission)
        if wanted is None:
            return 0
        return wanted.count - self._seats(entry, wanted, None, frozenset())

    def seats(self, entry: Entry, admission: Admission, node: str, without: frozenset[str]) -> int:
        """How many pods of a workload find room on a node if others, by key, are gone, beside all that room is made for already."""
        wanted = self._wanted(entry.source, admission)
        return 0 if wanted is None else self._seats(entry, wanted, node, without)

    def _seats(
        self, entry: Entry, wanted: WorkloadPods, node: str | None, without: frozenset[str]
    ) -> int:
        others = {key: each for key, each in self._still_awaited().items() if key != entry.key}
        with self._without(without, others):
            for each in others.values():
                self._place(each.wanted)
            return self._rooms.fitter.seats(wanted, node, self._clock())

    def nodes_of(self, key: str) -> frozenset[str]:
        """The nodes on which a workload has pods or room."""
        return self._rooms.nodes_of(key)

    def speaks_for_shape(self, _entry: Entry) -> bool:
        """Never: pods may have wishes that are not part of their shape, such as to be on nodes of their own."""
        return False

    def _found(
        self, wanted: WorkloadPods, last: _Last | None, without: frozenset[str]
    ) -> RoomReservation | Unfit:
        """In a trial: room for a workload, from what was found last where fewer have to go now."""
        if last is not None and last.is_local and last.without > without:
            staying = last.without - without
            nodes = frozenset[str]().union(*map(self._rooms.nodes_of, staying))
            moving = frozenset(each.uid for each in last.found.places if each.node in nodes)
            if len(moving) < wanted.count:
                found = self._rooms.fitter.refit(last.found, moving, self._clock())
                if not isinstance(found, Unfit) or last.work_left < wanted.count:
                    return found
            last.work_left -= wanted.count
        return self._rooms.fitter.fit(wanted, self._clock())

    def awaits(self, entry: Entry, admission: Admission, victims: frozenset[str]) -> None:
        """A workload has others driven out."""
        wanted = self._wanted(entry.source, admission)
        if wanted is not None:
            self._awaited[entry.key] = Awaited(wanted, entry.facts.priority, victims)

    def gives_up(self, key: str) -> None:
        """A workload does not wait for the room of others any more."""
        self._awaited.pop(key, None)

    def admit(self, entry: Entry, admission: Admission) -> str | Unfit:
        """Find and keep room for a workload, with room left for all that it is being made for, but for less important ones. Returns what
        to write into its annotation."""
        key, workload = entry.key, entry.source
        if workload is None:
            return Unfit("its pods are not known")
        others = {
            other: each
            for other, each in self._still_awaited().items()
            if other != key and each.priority >= entry.facts.priority
        }
        found = self._rooms.find(workload, admission, self._flavors(), self._clock())
        if isinstance(found, Unfit):
            return found
        if others:
            left_out = self._fitting(others, ()) - self._fitting(others, found.places)
            if left_out:
                first = min(left_out)
                return Unfit(f"room is being made for workload {first}, which comes first")
        self._awaited.pop(key, None)
        self._has_gone(key)
        return self._rooms.keep(workload, found)

    def _has_gone(self, key: str) -> None:
        """A workload that gets quota anew is nobody's victim any more."""
        for other, each in self._awaited.items():
            if key in each.victims:
                self._awaited[other] = replace(each, victims=each.victims - {key})

    def _fitting(
        self, awaited: Mapping[str, Awaited], taken: Iterable[ReservedPlace]
    ) -> frozenset[str]:
        """Those that find room once their victims are gone, beside places that somebody else takes."""
        with self._without(frozenset(), awaited):
            for place in taken:
                self._rooms.book.put_back(place)
            return frozenset(key for key, each in awaited.items() if self._place(each.wanted))

    @contextmanager
    def _without(self, gone: frozenset[str], awaited: Mapping[str, Awaited]) -> Iterator[None]:
        """A trial in which workloads are gone, with the victims of others, and whatever leaves by itself."""
        leaving = gone.union(*(each.victims for each in awaited.values()))
        with self._rooms.trial_without(leaving) as trial:
            self._departing.leave(trial)
            yield

    def _place(self, wanted: WorkloadPods) -> bool:
        """In a trial: suppose that a workload has its room, if there is any."""
        found = self._rooms.fitter.fit(wanted, self._clock())
        if isinstance(found, Unfit):
            return False
        for place in found.places:
            self._rooms.book.put_back(place)
        return True

    def _wanted(self, workload: Workload | None, admission: Admission) -> WorkloadPods | None:
        if workload is None:
            return None
        try:
            return workload_pods(workload, admission, self._flavors())
        except (DecodeError, StartError):
            return None
