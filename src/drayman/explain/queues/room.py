"""Room for the pods of workloads, as the control loop keeps it: in a state of its own, beside the room of all others.

The state is made when it is first needed: where there are topologies, whose places depend on free devices, or when somebody gets quota or
may drive out others for it.

Room is looked for once, as things are (`looked_for`). What else is supposed about queues is a matter of quota: whoever was found to have no
room then, if it drove out others, drives out nobody.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Set
from contextlib import contextmanager, nullcontext
from functools import cached_property

from drayman.api.kueue_workload import Admission, Workload
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial
from drayman.placement.world import World, state_of
from drayman.quota.entries import Entry
from drayman.quota.fitting.clearing import RoomClearing
from drayman.quota.fitting.departing import Departing
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.fitting.rooms import Rooms
from drayman.quota.reading import key_of
from drayman.quota.state import QuotaState
from drayman.quota.topology.devices import DeviceCounter

MOST_WITH_ROOM = 100
"""For how many that get quota room is looked for: those after them are not about to start."""


class WorldRoom:
    """The room of a world, as an engine asks for it. What is kept in it for an answer is given back after it."""

    def __init__(self, world: World, state: QuotaState) -> None:
        """`state` is the engine that asks."""
        self._world = world
        self._state = state
        self._is_made = False
        self._roomless: frozenset[str] = frozenset()
        self._roomless_shapes: frozenset[Hashable] = frozenset()
        self._is_looked_for = False
        self._clearing: RoomClearing | None = None
        self._with_room = 0

    @cached_property
    def _rooms(self) -> tuple[ClusterState, Rooms]:
        world = self._world
        state = state_of(world.objects, world.features, world.prices)
        rooms = Rooms(state)
        for pod in world.objects.pods:
            rooms.see(pod)
        for workload in world.objects.queued_workloads:
            rooms.follow(workload)
        self._is_made = True
        return state, rooms

    def counter(self) -> DeviceCounter:
        """Says how many pods with devices nodes hold."""
        return DeviceCounter(self._rooms[0])

    @contextmanager
    def looked_for(self) -> Iterator[None]:
        """Within it, the engine is answered by looking for room."""
        self._is_looked_for, self._clearing, self._with_room = True, None, 0
        try:
            yield
        finally:
            self._is_looked_for, self._clearing = False, None

    @property
    def is_looked_for(self) -> bool:
        """Whether the engine is answered by looking for room."""
        return self._is_looked_for

    def note_roomless(self, keys: Set[str]) -> None:
        """Whom the engine has found to have no room after driving out others for quota."""
        state = self._state
        self._roomless = frozenset(keys)
        shapes = {_shape(state.entries[key]) for key in keys}
        # Of one shape, some may have wishes that are not part of it, such as to be on nodes of their own.
        self._roomless_shapes = frozenset(shapes) - {
            _shape(each)
            for queue in state.books.queues.values()
            for each in queue.waiting
            if each.key not in keys
        }

    def speaks_for_shape(self, entry: Entry) -> bool:
        """Whether what is said of a workload holds for all of its queue that have its shape."""
        return not self.is_looked_for and _shape(entry) in self._roomless_shapes

    def _cleared(self, admission: Admission) -> RoomClearing | None:
        """Who looks for room; None where nobody does, the pods run in another cluster, or this one has no nodes, so that quota decides."""
        state = self._state
        if not self._is_looked_for or not self._world.objects.nodes:
            return None
        if state.books.runs_elsewhere(admission):
            return None
        if self._clearing is None:
            cluster, rooms = self._rooms
            departing = Departing(cluster)
            departing.begin(self._world.objects.pods)
            flavors, now = state.books.flavors, self._world.now
            self._clearing = RoomClearing(
                rooms, departing, lambda: flavors, lambda: now, lambda: state
            )
        return self._clearing

    def admit(self, entry: Entry, admission: Admission) -> str | Unfit | None:
        """Find and keep room; None where none is looked for."""
        clearing = self._cleared(admission)
        if clearing is None or self._with_room >= MOST_WITH_ROOM:
            return None
        found = clearing.admit(entry, admission)
        self._with_room += not isinstance(found, Unfit)
        return found

    def fits(self, entry: Entry, admission: Admission, without: frozenset[str]) -> bool:
        """Whether there would be room for a workload if others, by key, were gone."""
        clearing = self._cleared(admission)
        if clearing is None:
            return entry.key not in self._roomless
        return clearing.fits(entry, admission, without)

    def unseated(self, entry: Entry, admission: Admission) -> int:
        """How many pods of a workload find no room as things are."""
        clearing = self._cleared(admission)
        return 0 if clearing is None else clearing.unseated(entry, admission)

    def seats(self, entry: Entry, admission: Admission, node: str, without: frozenset[str]) -> int:
        """How many pods of a workload find room on a node if others, by key, are gone."""
        clearing = self._cleared(admission)
        return 0 if clearing is None else clearing.seats(entry, admission, node, without)

    def nodes_of(self, key: str) -> frozenset[str]:
        """The nodes on which a workload has pods or room; none where no room is looked for."""
        return frozenset() if self._clearing is None else self._clearing.nodes_of(key)

    def awaits(self, entry: Entry, admission: Admission, victims: frozenset[str]) -> None:
        """A workload has others driven out, and waits for their room."""
        clearing = self._cleared(admission)
        if clearing is not None:
            clearing.awaits(entry, admission, victims)

    def is_awaited(self, key: str) -> bool:
        """Whether a workload waits for the room of others that it had driven out."""
        return self._clearing is not None and self._clearing.is_awaited(key)

    def gives_up(self, key: str) -> None:
        """A workload does not wait for the room of others any more."""
        if self._clearing is not None:
            self._clearing.gives_up(key)

    def follow(self, workload: Workload) -> None:
        """While room is looked for: a workload as it is after a decision."""
        if self._is_made and self.is_looked_for:
            self._rooms[1].follow(workload)

    def restore(self, workloads: Iterable[Workload]) -> None:
        """Have workloads have the room again that they had when the world was read, whatever they were given or gave up since."""
        if not self._is_made:
            return
        rooms, read = self._rooms[1], tuple(workloads)
        # All of it is given back first: some may have been given the places of others.
        for each in read:
            rooms.forget(key_of(each.metadata.namespace, each.metadata.name))
        for each in read:
            rooms.follow(each)

    @contextmanager
    def trial(self) -> Iterator[Trial | None]:
        """Within it, workloads may leave. Only where that matters to quota: to places in a topology."""
        with self._rooms[0].trial() if self._state.has_topologies else nullcontext() as trial:
            yield trial

    def leave(self, trial: Trial | None, keys: Iterable[str]) -> None:
        """Suppose that workloads are gone, with their pods."""
        if trial is not None:
            self._rooms[1].leave(trial, keys)


def _shape(entry: Entry) -> Hashable:
    return entry.waits_in, entry.shape
