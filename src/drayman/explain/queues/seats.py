"""Room for the pods of workloads that get quota, as the control loop keeps it: in a state of its own, beside the room of all others.

The state is made when it is first needed: where there are topologies, whose places depend on free devices, or when somebody gets quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cached_property

from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import Workload
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial
from drayman.placement.world import World, state_of
from drayman.quota.decisions import Reserved
from drayman.quota.fitting.clearing import Clearing
from drayman.quota.fitting.departing import Departing
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.fitting.rooms import Rooms
from drayman.quota.state import QuotaState
from drayman.quota.topology.devices import DeviceCounter

MOST_SEATED = 100
"""For how many that get quota room is looked for: those after them are not about to start."""


class Seats:
    """The room of a world. What is kept in it for an answer is given back after it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.has_topologies = bool(world.objects.kueue_topologies)
        self._is_made = False

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

    def admit(
        self, workload: Workload, decision: Reserved, flavors: Mapping[str, ResourceFlavorSpec]
    ) -> str | Unfit | None:
        """Find and keep room; None where the cluster has no nodes, so that quota alone decides."""
        if not self._world.objects.nodes:
            return None
        return self._rooms[1].admit(workload, decision.admission, flavors, self._world.now)

    @contextmanager
    def clearing(self, state: QuotaState) -> Iterator[None]:
        """Within it, an engine can be asked who would have to go for room."""
        if not self._is_made:
            yield
            return
        cluster, rooms = self._rooms
        departing = Departing(cluster)
        departing.begin(self._world.objects.pods)
        flavors, now = state.books.flavors, self._world.now
        state.ask_for_room(Clearing(rooms, departing, lambda: flavors, lambda: now, lambda: state))
        try:
            yield
        finally:
            state.ask_for_room(None)

    def forget(self, key: str) -> None:
        if self._is_made:
            self._rooms[1].forget(key)

    @contextmanager
    def trial(self) -> Iterator[Trial | None]:
        """Within it, workloads may leave. Only where that matters to quota: to places in a topology."""
        with self._rooms[0].trial() if self.has_topologies else nullcontext() as trial:
            yield trial

    def leave(self, trial: Trial | None, keys: Iterable[str]) -> None:
        """Suppose that workloads are gone, with their pods."""
        if trial is not None:
            self._rooms[1].leave(trial, keys)
