"""Jobs whose number of pods changes while they run (`kueue.x-k8s.io/elastic-job`): each size has a Workload of its own, a slice.

When a Job grows, a larger slice waits beside the one that it runs with. The pods that came with it are held by a gate. When it gets quota,
for which only the difference is needed, it takes the place of the smaller one, which is finished. When a Job shrinks, its slice does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from drayman.api.core import Pod
from drayman.api.kueue_workload import FINISHED, WorkloadStatus
from drayman.api.meta import ObjectMeta
from drayman.api.pods import is_active
from drayman.workloads.queued import life
from drayman.workloads.queued.composing import topology_request
from drayman.workloads.queued.kinds import JOB, QueuedKind
from drayman.workloads.queued.names import (
    ELASTIC,
    PREBUILT,
    REPLACES,
    annotations_of,
    labels_of,
    workload_name,
)
from drayman.workloads.queued.places import Object, read

REPLACED: Final = "WorkloadSliceReplaced"
"""Why a slice is over whose place a larger one has taken."""


class Slice(Protocol):
    """A Workload of an elastic Job."""

    @property
    def status(self) -> WorkloadStatus: ...

    @property
    def metadata(self) -> ObjectMeta: ...


S = TypeVar("S", bound=Slice)


def is_elastic(kind: QueuedKind, obj: Object) -> bool:
    """Whether the number of pods of an object may change while it runs. Places in a topology are for a fixed number."""
    if (
        kind is not JOB
        or annotations_of(obj).get(ELASTIC) != "true"
        or labels_of(obj).get(PREBUILT)
    ):
        return False
    annotations = read(obj, ("spec", "template", "metadata", "annotations")) or {}
    request = topology_request(annotations)
    return request is None or not request.names_topology


def resized(obj: Object, count: int) -> Object:
    """A Job with so many pods at a time."""
    return {**obj, "spec": {**obj["spec"], "parallelism": count}}


def slice_name(kind: QueuedKind, obj: Object) -> str:
    """What a further Workload of an object is called: there is one for each generation at most."""
    metadata = obj["metadata"]
    identity = f"{metadata['uid']}\n{metadata.get('generation', 0)}"
    return workload_name(kind.group, kind.kind, metadata["name"], identity)


@dataclass(frozen=True, slots=True)
class Slices(Generic[S]):
    """The Workloads of a Job, by what they are to it."""

    current: S | None = None
    """What it runs with, or waits for if it does not run."""
    growing: S | None = None
    """A larger one that waits for quota."""
    replaced: tuple[S, ...] = field(default=())
    """Whose place another one has taken, and which do not say so yet."""
    surplus: tuple[S, ...] = field(default=())
    """Of no use."""


def slices_of(owned: Sequence[S]) -> Slices[S]:
    """Sort the Workloads of a Job. Those that were replaced long ago are left out."""
    known = [each for each in owned if not _was_replaced(each.status)]
    known.sort(key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name))
    running = [each for each in known if life.is_admitted(each.status) and _runs(each)]
    larger = [each for each in running if _replaces_one_of(each, running)]
    current = next(iter(larger or running or known), None)
    others = [each for each in known if each is not current]
    replaced = tuple(each for each in others if each in running)
    if current is None or current not in running:
        return Slices(current, None, replaced, tuple(others))
    waiting = [each for each in others if each not in running and _replaces_one_of(each, [current])]
    growing = waiting[0] if waiting else None
    surplus = tuple(each for each in others if each not in replaced and each is not growing)
    return Slices(current, growing, replaced, surplus)


def _was_replaced(status: WorkloadStatus) -> bool:
    found = status.condition(FINISHED)
    return found is not None and found.status == "True" and found.reason == REPLACED


def _runs(each: Slice) -> bool:
    return life.holds_quota(each.status) and not life.is_evicted(each.status)


def _replaces_one_of(each: Slice, others: Sequence[Slice]) -> bool:
    named = each.metadata.annotations.get(REPLACES, "")
    return named in {f"{other.metadata.namespace}/{other.metadata.name}" for other in others}


def to_be_let_go(pods: Sequence[Pod], count: int) -> list[Pod]:
    """The pods whose gate is to be removed, so that so many can run: the oldest first."""
    active = [each for each in pods if is_active(each)]
    held = [each for each in active if is_held(each)]
    held.sort(key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name))
    return held[: max(0, count - (len(active) - len(held)))]


def is_held(pod: Pod) -> bool:
    return any(gate.name == ELASTIC for gate in pod.spec.scheduling_gates)
