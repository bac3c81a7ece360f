"""Keeps the room of workloads that were admitted from queues, so that it is still there when their pods are.

The controller that admits a workload has found a place for each of its pods and written that down (`quota/fitting`). Until a pod appears,
its place is out of reach for all others. Then it is promised to the pod (`Nominations`), which takes it, or something else that is free and
suits it better. The promise ends with the admission, or when the workload needs no more pods than it has on nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.kueue_workload import Workload
from drayman.placement.nominations import Nominations
from drayman.placement.state import ClusterState, promised_holder
from drayman.quota.fitting.reservation import ReservedPlace
from drayman.quota.fitting.rooms import Rooms


class KeptPlace(Struct, frozen=True):
    """What is kept for a pod of a workload."""

    workload: str
    """By namespace and name."""
    node: str
    holders: tuple[str, ...]
    """The names under which the ledger has the devices."""


class AdmittedRoom:
    """Follows Workloads, and the pods that belong to them."""

    def __init__(self, state: ClusterState, nominations: Nominations) -> None:
        self._state = state
        self._rooms = Rooms(state, changed=self._place_changed)
        self._nominations = nominations

    def note_workload(self, workload: Workload) -> None:
        self._promise_all(self._rooms.follow(workload))

    def note_claims(self) -> None:
        """A claim or a template has come: room may be believed that was not, because it named them."""
        self._promise_all(self._rooms.follow_again())

    def _promise_all(self, found: Iterable[tuple[Pod, ReservedPlace]]) -> None:
        for pod, place in found:
            if not pod.spec.node_name:
                self._promise(pod, place)

    def forget_workload(self, workload: Workload) -> None:
        self._rooms.forget(f"{workload.metadata.namespace}/{workload.metadata.name}")

    def note_waiting(self, pod: Pod) -> None:
        """A pod of ours waits for a node."""
        place = self._rooms.see(pod)
        if place is not None and pod.metadata.uid not in self._nominations:
            self._promise(pod, place)

    def note_placed(self, pod: Pod) -> None:
        """A pod has a node, or is none of ours."""
        self._rooms.see(pod)

    def note_gone(self, pod: Pod) -> None:
        """A pod is deleted: if the workload goes on, another one takes its place."""
        self._rooms.lose(pod)

    def set_aside(self) -> None:
        """In a trial: nothing is kept for pods to come. What is promised to pods that wait still is."""
        for each in self._rooms.book:
            self._rooms.book.set_aside(each)

    def kept(self) -> Iterator[KeptPlace]:
        """The places that are out of reach for others."""
        book = self._rooms.book
        for reservation in book:
            for place in reservation.places:
                if book.counts(place):
                    yield KeptPlace(reservation.key, place.node, book.holders(place))
        for each in self._nominations:
            key = self._rooms.workload_of(each.pod)
            if key is not None:
                numbers = range(len(each.devices))
                holders = tuple(promised_holder(each.uid, number) for number in numbers)
                yield KeptPlace(key, each.node, holders)

    def _place_changed(self, pod: Pod, place: ReservedPlace | None) -> None:
        if place is not None:
            self._promise(pod, place)
            return
        promised = self._nominations.get(pod.metadata.uid)
        if promised is not None and promised.is_asked_for:
            self._nominations.withdraw(pod.metadata.uid)

    def _promise(self, pod: Pod, place: ReservedPlace) -> None:
        self._rooms.book.fulfil(pod.metadata.uid)
        if self._state.counts(pod.metadata.uid):
            # It was decided about before its Workload was seen, or this version of it, and the server does not show its node yet.
            return
        self._nominations.keep(pod, place.node, place.allocations)


class ReservedPlaces:
    """What is reserved for admitted workloads in a cluster that was read, as the scheduler keeps it."""

    def __init__(
        self, state: ClusterState, workloads: Iterable[Workload], pods: Iterable[Pod]
    ) -> None:
        """Counts it in the state: to be called in a trial."""
        self._state = state
        self.nominations = Nominations(state)
        self._room = AdmittedRoom(state, self.nominations)
        for workload in workloads:
            self._room.note_workload(workload)
        for pod in pods:
            if pod.spec.node_name:
                self._room.note_placed(pod)
            else:
                self._room.note_waiting(pod)

    @contextmanager
    def disregarded(self) -> Iterator[None]:
        """Within it, nothing is reserved."""
        with self._state.trial(), self.nominations.ignored():
            self._room.set_aside()
            yield

    def workloads_on(self, nodes: Collection[str]) -> list[str]:
        """The workloads, by namespace and name, for which places on these nodes are reserved."""
        return sorted({each.workload for each in self._room.kept() if each.node in nodes})

    @cached_property
    def by_holder(self) -> Mapping[str, str]:
        """The workloads, by namespace and name, by the names under which the ledger has their devices."""
        return {name: each.workload for each in self._room.kept() for name in each.holders}
