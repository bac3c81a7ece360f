"""Whether a worker has room for the pods of a workload: the search that would place them, on the worker's cluster as it is followed here.

What the workload needs and the worker does not have yet, claim templates and device classes, is supposed to be there: it is copied before
the workload is. If there is no room now, the same question is asked about the cluster as if it were unused, in a state of its own that is
made when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.errors import DecodeError
from drayman.api.kueue import pod_template_of
from drayman.api.kueue_workload import Workload, WorkloadSpec
from drayman.api.resource import ResourceClaim, ResourceClaimStatus
from drayman.cluster.informer import Informer, Notice
from drayman.cluster.informers import Informers
from drayman.cluster.resources import typed
from drayman.inventory.features import Features
from drayman.placement.followed import FOLLOWED, Followed
from drayman.placement.state import ClusterState
from drayman.quota.fitting.expecting import PodSetPods, WorkloadPods
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.fitting.rooms import Rooms
from drayman.workloads.dispatching.copies import Needs
from drayman.workloads.dispatching.ranking import Room

DELETED: Final = "DELETED"
_WORKLOADS: Final = typed(Workload)


class WorkerRoom:
    """Answers for one worker. `changed` is called when an answer may be another one."""

    def __init__(self, informers: Informers, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._followed: list[tuple[Followed, Informer[Any]]] = [
            (kind, informers.informer(typed(kind.type))) for kind in FOLLOWED
        ]
        self._now = _new_state()
        self._kept = Rooms(self._now)
        self._unused: ClusterState | None = None
        for kind, informer in self._followed:
            informer.add_handler(self._handler(kind))
        informers.informer(_WORKLOADS).add_handler(self._workload)

    def ask(
        self, namespace: str, name: str, spec: WorkloadSpec, needs: Needs, now: float
    ) -> tuple[Room, str]:
        """What there is for a workload, and why it is not enough."""
        try:
            wanted = _pods_of(namespace, name, spec)
        except DecodeError as error:
            return Room.NEVER, str(error)
        found = _try(self._now, self._kept, wanted, needs, now)
        if not isinstance(found, Unfit):
            return Room.NOW, ""
        if found.gave_up:
            return Room.LATER, found.message
        unused = self._as_unused()
        ever = _try(unused, Rooms(unused), wanted, needs, now)
        is_possible = not isinstance(ever, Unfit) or ever.gave_up
        return (Room.LATER if is_possible else Room.NEVER), found.message

    def _as_unused(self) -> ClusterState:
        if self._unused is None:
            self._unused = _new_state()
            for kind, informer in self._followed:
                for each in informer.cache:
                    _put_unused(self._unused, kind, each)
        return self._unused

    def _handler(self, kind: Followed) -> Callable[[Notice[Any]], None]:
        def handle(notice: Notice[Any]) -> None:
            gone = notice.type == DELETED
            if gone:
                kind.remove(self._now, notice.object)
            elif kind.put(self._now, notice.object) is False:
                return
            if kind.type is Pod:
                self._kept.lose(notice.object) if gone else self._kept.see(notice.object)
            elif self._unused is not None:
                if gone:
                    kind.remove(self._unused, notice.object)
                else:
                    _put_unused(self._unused, kind, notice.object)
            self._changed()

        return handle

    def _workload(self, notice: Notice[Workload]) -> None:
        if notice.type == DELETED:
            metadata = notice.object.metadata
            self._kept.forget(f"{metadata.namespace}/{metadata.name}")
        else:
            self._kept.follow(notice.object)
        self._changed()


def _new_state() -> ClusterState:
    return ClusterState(Features(), _wake_nobody)


def _wake_nobody(_change: object) -> None:
    """Pods that wait here wait for their own scheduler."""


def _put_unused(state: ClusterState, kind: Followed, value: Any) -> None:
    if kind.type is Pod:
        return
    if isinstance(value, ResourceClaim):
        value = replace(value, status=ResourceClaimStatus())
    kind.put(state, value)


def _pods_of(namespace: str, name: str, spec: WorkloadSpec) -> WorkloadPods:
    """The pods as they are described. Which flavor the worker gives them is not known yet. Raises DecodeError."""
    sets = (
        PodSetPods(each.name, each.count, pod_template_of(each.template)) for each in spec.pod_sets
    )
    return WorkloadPods(namespace, name, tuple(sets))


def _try(
    state: ClusterState, rooms: Rooms, wanted: WorkloadPods, needs: Needs, now: float
) -> object:
    with state.trial():
        for template in needs.templates:
            state.set_template(template)
        for each in needs.classes:
            state.set_class(each)
        return rooms.fitter.fit(wanted, now)
