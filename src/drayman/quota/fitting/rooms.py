"""Room of admitted workloads, by the objects that a cluster shows: what control loops and schedulers call.

Whoever admits a workload finds room for it (`find`, `keep`) and writes the text that it gets into the annotation `drayman.dev/room` of the
Workload, together with the admission. Everybody who follows the Workloads (`follow`, `forget`) and pods (`see`, `lose`) of the cluster then
keeps the same room, in a state of their own: the scheduler in the one that it decides in, so that nobody else gets the room before the
pods are there. When a pod appears, `see` says which place is its own.

A pod is one of a workload if the workload is its owner's, or its own, or has the name of its group, or is named by its annotation; it is in
the pod set that its label names, or in the only one there is. Room is looked for in any case. It is kept only where pods will be known as
the workload's: those that an owner has other objects make, as a JobSet does, could not get at what is kept for them.

Who writes the annotation should be who admits. Our own server sees to that (`apiserver/security/admission_records.py`); elsewhere anybody
might who may change Workloads. So it is believed only for workloads that hold quota, and only as far as their pods ask for it (`record`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from drayman.allocator import Policy
from drayman.api.claim_generation import owning_group
from drayman.api.core import Pod
from drayman.api.custom_groups import spec_of
from drayman.api.errors import DecodeError
from drayman.api.integers import parse_integer
from drayman.api.kueue import ResourceFlavorSpec, pod_template_of, status_of
from drayman.api.kueue_workload import Admission, Workload, WorkloadSpec, WorkloadStatus
from drayman.api.meta import controller_of
from drayman.api.pods import entry_claims, is_finished
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial
from drayman.quota.fitting.belonging import (
    handles_of,
    handles_of_pod,
    may_belong,
    pod_set_of,
    pods_of,
)
from drayman.quota.fitting.book import PlaceChanged, RoomBook
from drayman.quota.fitting.expecting import PodSetPods, WorkloadPods
from drayman.quota.fitting.fitter import Fitter, Unfit
from drayman.quota.fitting.record import Belief, belief_in, read, text_of
from drayman.quota.fitting.reservation import (
    ReservedPlace,
    RoomReservation,
    SharedClaim,
    place_of,
    restored,
)
from drayman.quota.topology.assignments import placement_of
from drayman.workloads.queued.life import holds_quota, is_evicted
from drayman.workloads.queued.life import is_finished as has_finished
from drayman.workloads.queued.names import PODS_THERE, WORKLOAD
from drayman.workloads.queued.starting import StartError, additions_for, as_started

ROOM: Final = "drayman.dev/room"
"""Annotation of Workloads: where their pods go, as `RoomRecord`."""
_MAKERS: Final = frozenset(
    {"Pod", "Job", "StatefulSet", "ReplicaSet", "RayCluster"}
    | {"PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"}
)
"""Kinds that make all their pods themselves, or are pods, so that pods of their workloads are known by their owners."""


def workload_pods(
    workload: Workload, admission: Admission, flavors: Mapping[str, ResourceFlavorSpec]
) -> WorkloadPods:
    """The pods that a workload has once it is started with an admission. Raises DecodeError and StartError."""
    spec = spec_of(WorkloadSpec, workload)
    status = status_of(WorkloadStatus, workload)
    added = additions_for(
        workload.metadata.name, spec.pod_sets, admission, flavors, status.admission_checks
    )
    assigned = {each.name: each for each in admission.pod_set_assignments}
    started = as_started(spec.pod_sets, added)
    needed = _less(workload, status)
    sets = []
    for pod_set in started:
        given = assigned.get(pod_set.name)
        topology = None if given is None else given.topology_assignment
        sets.append(
            PodSetPods(
                pod_set.name,
                needed(pod_set.name, pod_set.count),
                pod_template_of(pod_set.template),
                None if topology is None else placement_of(topology),
            )
        )
    return WorkloadPods(workload.metadata.namespace, workload.metadata.name, tuple(sets))


def _less(workload: Workload, status: WorkloadStatus) -> Callable[[str, int], int]:
    """For how many pods of a set room is needed: neither for those that ended for good, nor for those that another slice has."""
    done = {each.name: each.count for each in status.reclaimable_pods}
    there = parse_integer(workload.metadata.annotations.get(PODS_THERE, "")) or 0
    return lambda name, count: max(0, count - max(there, done.get(name, 0)))


class Rooms:
    """The room of all admitted workloads in one state of the cluster."""

    def __init__(
        self,
        state: ClusterState,
        policy: Policy = Policy.BEST,
        changed: PlaceChanged | None = None,
    ) -> None:
        """`changed` is called with a waiting pod whose place has changed though neither it nor its workload did (`RoomBook`)."""
        self._state = state
        self.book = RoomBook(state, changed)
        self.fitter = Fitter(state, self.book, policy)
        self._texts: dict[str, str] = {}  # by key of the workload, what was last read
        self._moved: dict[str, None] = {}  # workloads whose pods are elsewhere than is written down
        self._handles: dict[str, frozenset[str]] = {}  # of workloads, by their key
        self._by_handle: dict[str, str] = {}  # the other way round
        self._open: dict[str, Workload] = {}  # whose room cannot be judged yet
        self._leaving: dict[str, None] = {}  # workloads that were told to go, and have not gone
        self._pods: dict[str, dict[str, Pod]] = {}  # by handle of a workload, and by uid

    def find(
        self,
        workload: Workload,
        admission: Admission,
        flavors: Mapping[str, ResourceFlavorSpec],
        now: float,
    ) -> RoomReservation | Unfit:
        """Room for a workload, which is not kept for it yet. What was kept for it before is given back."""
        try:
            wanted = workload_pods(workload, admission, flavors)
        except (DecodeError, StartError) as error:
            return Unfit(str(error))
        self.forget(wanted.key)
        return self.fitter.fit(wanted, now)

    def keep(self, workload: Workload, found: RoomReservation) -> str:
        """Keep room that was found for a workload just now. Returns what to write into its annotation, in the same write as its admission
        or before.

        If it comes to nothing after all, because the write failed, `forget` gives the room back.
        """
        if not _are_known(workload, found.workload):
            found = RoomReservation(found.workload, ())
        self.book.keep(found)
        self._note_handles(workload)
        text = text_of(found)
        if not text:
            # Too much to be written down: nobody else could keep it.
            self.book.release(found.key)
            found = RoomReservation(found.workload, ())
            self.book.keep(found)
            text = text_of(found)
        self._texts[found.key] = text
        return text

    def replace(self, reservation: RoomReservation) -> str:
        """A workload has other places. Returns what to write into its annotation."""
        self.book.replace(reservation)
        text = self._texts[reservation.key] = text_of(reservation)
        return text

    def rearrange(self, workload: Workload, found: RoomReservation) -> str:
        """Keep other room for a workload. Its pods that are bound have theirs. Returns what to write into its annotation."""
        self._keep_nothing(found.key)
        text = self.keep(workload, found)
        for pod in self._bound_first(found.key):
            self.see(pod)
        return text

    @contextmanager
    def trial_without(self, gone: Iterable[str]) -> Iterator[Trial]:
        """A trial of the state in which workloads, by key, have given up their room, and their pods are gone.

        So are all that have been told to go.
        """
        with self._state.trial() as trial:
            self.leave(trial, {**self._leaving, **dict.fromkeys(gone)})
            yield trial

    def nodes_of(self, key: str) -> frozenset[str]:
        """The nodes on which a workload has pods or room."""
        reservation = self.book.get(key)
        kept = frozenset() if reservation is None else reservation.nodes
        return kept.union(pod.spec.node_name for pod in self._pods_of(key) if pod.spec.node_name)

    def leave(self, trial: Trial, keys: Iterable[str]) -> None:
        """In a trial: workloads have given up their room, and their pods are gone."""
        for key in keys:
            reservation = self.book.get(key)
            if reservation is not None:
                self.book.set_aside(reservation)
            for pod in self._pods_of(key):
                if trial.counts(pod.metadata.uid):
                    trial.evict(pod.metadata.uid, self._state.claims_used_by(pod))

    def follow(self, workload: Workload) -> tuple[tuple[Pod, ReservedPlace], ...]:
        """A Workload as the server shows it. Returns pods seen before that now have a place."""
        key = f"{workload.metadata.namespace}/{workload.metadata.name}"
        text = workload.metadata.annotations.get(ROOM, "")
        status = _holding_status(workload)
        admission = None if status is None else status.admission
        if status is None or admission is None:
            self.forget(key)
            return ()
        self._note_handles(workload)
        if is_evicted(status) or not text:
            self._keep_nothing(key)
            if is_evicted(status):
                self._leaving[key] = None
            return ()
        self._leaving.pop(key, None)
        if self._texts.get(key) != text:
            self._keep_nothing(key)
            if self._take_over(key, workload, admission, text):
                self._texts[key] = text
            found = [(pod, self.see(pod)) for pod in self._bound_first(key)]
        else:
            found = []
        self._note_needs(key, workload, status, admission)
        return tuple((pod, place) for pod, place in found if place is not None)

    def _take_over(self, key: str, workload: Workload, admission: Admission, text: str) -> bool:
        """Keep what is written down, as far as it is believed. Whether that is settled."""
        self._open.pop(key, None)
        try:
            record = read(text)
            # Flavors matter to where pods may go, and that is decided.
            wanted = workload_pods(workload, admission, {})
        except (DecodeError, StartError):
            return True  # nobody can tell what is to be kept
        state = self._state
        if not self.fitter.is_imaginable(wanted):
            return True
        belief = belief_in(wanted, record, state.find_template, state.find_claim)
        if belief is Belief.TRUE:
            self.book.keep(restored(wanted, record, state.mapped_devices))
        elif belief is Belief.OPEN:
            self._open[key] = workload
        return belief is not Belief.OPEN

    def follow_again(self) -> tuple[tuple[Pod, ReservedPlace], ...]:
        """Claims or templates have come, of which some room may have been waiting to be believed. Returns what `follow` does."""
        return tuple(found for each in tuple(self._open.values()) for found in self.follow(each))

    def text_of(self, key: str) -> str | None:
        """What is written down about the room of a workload, as far as is known."""
        return self._texts.get(key)

    @property
    def has_moved(self) -> bool:
        """Whether pods of some workload are elsewhere than is written down."""
        return bool(self._moved)

    def take_moved(self) -> dict[str, str]:
        """What is to be written into the annotations of workloads, by key, whose pods are elsewhere than it says. It counts as written."""
        moved, self._moved = self._moved, {}
        found = {key: self.book.get(key) for key in moved}
        return {key: self.replace(each) for key, each in found.items() if each is not None}

    def _note_needs(
        self, key: str, workload: Workload, status: WorkloadStatus, admission: Admission
    ) -> None:
        """Pods that have ended and are not replaced need no room, nor do those that an elastic workload has no more."""
        needed = _less(workload, status)
        counts = {each.name: each.count for each in admission.pod_set_assignments}
        self.book.needs(key, {name: needed(name, n) for name, n in counts.items() if n is not None})

    def forget(self, key: str) -> None:
        """The Workload is gone, or was not admitted after all."""
        self._keep_nothing(key)
        self._leaving.pop(key, None)
        for handle in self._handles.pop(key, frozenset()):
            self._by_handle.pop(handle, None)

    def _keep_nothing(self, key: str) -> None:
        self.book.release(key)
        self._texts.pop(key, None)
        self._moved.pop(key, None)
        self._open.pop(key, None)

    def see(self, pod: Pod) -> ReservedPlace | None:
        """A pod as the server shows it, with or without a node. Returns its place; None if it has none.

        Once the pod has a node it counts there, and its place does not count any more. A caller that keeps the place for the pod in another
        way before that notes it (`RoomBook.fulfil`).
        """
        if not may_belong(pod):
            return None
        if is_finished(pod):
            self.lose(pod)
            return None
        for handle in handles_of_pod(pod):
            self._pods.setdefault(handle, {})[pod.metadata.uid] = pod
        key = self.workload_of(pod)
        reservation = None if key is None else self.book.get(key)
        # Where a pod may go that is held by a gate is not settled: pods of a topology get their domain when it is removed.
        if key is None or reservation is None or pod.spec.scheduling_gates:
            return None
        pod_set = pod_set_of(pod, [each.name for each in reservation.workload.pod_sets])
        place = self.book.hand_over(key, pod_set, pod)
        if pod.spec.node_name:
            self._settle(pod)
        return place

    def _settle(self, pod: Pod) -> None:
        """The place of a bound pod is where the pod is: that is what the next one needs, and nothing else."""
        moved = self.book.settle(pod.metadata.uid, partial(self._place_of, pod))
        if moved is not None:
            self._moved[moved] = None

    def _place_of(self, pod: Pod, place: ReservedPlace) -> ReservedPlace | None:
        """What a bound pod has; None if not all of it is known yet."""
        claims = self._state.claims_used_by(pod)
        entries = sum(name != "" for _, name in entry_claims(pod))
        extended = pod.status.extended_resource_claim_status is not None
        own, shared = [], []
        for claim in claims:
            allocation, maker = claim.status.allocation, controller_of(claim.metadata)
            if allocation is None or owning_group(claim) is not None:
                return None
            if maker is not None and maker.uid == pod.metadata.uid:
                own.append(allocation)
            else:
                shared.append(SharedClaim(uid=claim.metadata.uid, allocation=allocation))
        # The claim for extended resources may not be known yet.
        if len(claims) < entries + extended or (place.devices and not own):
            return None
        mapped, node = self._state.mapped_devices, pod.spec.node_name
        return place_of(place.pod_set, place.number, place.pod, node, own, shared, mapped)

    def lose(self, pod: Pod) -> None:
        """A pod is gone or has ended. Its place is kept for the next one until the workload says that none comes (`reclaimablePods`)."""
        if pod.spec.node_name:
            self._settle(pod)
        for handle in handles_of_pod(pod):
            known = self._pods.get(handle, {})
            known.pop(pod.metadata.uid, None)
            if not known:
                self._pods.pop(handle, None)
        self.book.vacate(pod.metadata.uid)

    def _note_handles(self, workload: Workload) -> None:
        key = f"{workload.metadata.namespace}/{workload.metadata.name}"
        handles = frozenset(handles_of(workload))
        if self._handles.get(key) != handles:
            for handle in self._handles.get(key, frozenset()):
                self._by_handle.pop(handle, None)
            self._handles[key] = handles
            self._by_handle.update(dict.fromkeys(handles, key))

    def workload_of(self, pod: Pod) -> str | None:
        """The key of the workload that a pod is of; None if it is of none that is followed."""
        known = map(self._by_handle.get, handles_of_pod(pod))
        return next((key for key in known if key is not None), None)

    def _bound_first(self, key: str) -> list[Pod]:
        return sorted(self._pods_of(key), key=lambda pod: not pod.spec.node_name)

    def _pods_of(self, key: str) -> Iterable[Pod]:
        handles = self._handles.get(key, (key,))
        return pods_of(handles, lambda handle: self._pods.get(handle, {}).values()).values()


def _are_known(workload: Workload, wanted: WorkloadPods) -> bool:
    """Whether it can be told of pods that they are those of a workload."""
    owners = workload.metadata.owner_references
    if PODS_THERE in workload.metadata.annotations:
        return False  # Those that are there already would take what is kept for the others.
    return all(owner.kind in _MAKERS for owner in owners) or all(
        WORKLOAD in each.template.metadata.annotations for each in wanted.pod_sets
    )


def _holding_status(workload: Workload) -> WorkloadStatus | None:
    """The status of a workload that holds quota, if only until its pods have stopped."""
    try:
        status = status_of(WorkloadStatus, workload)
    except DecodeError:
        return None
    if not holds_quota(status) or has_finished(status):
        return None
    return status
