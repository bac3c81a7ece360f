"""Everything about one workload in a queue, or about a Job or pod that a queue holds."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.errors import ApiError
from drayman.api.jobs import Job
from drayman.api.kueue_workload import Workload
from drayman.api.meta import ObjectMeta
from drayman.api.pods import is_active, is_finished, is_leaving
from drayman.explain.answer import Explanation
from drayman.explain.queues.composed import of_job, of_pod
from drayman.explain.queues.forecast import Forecast
from drayman.explain.queues.remedies import remedies_for
from drayman.explain.queues.standing import Line, owned_by_uid
from drayman.placement.world import World
from drayman.quota.reading import key_of
from drayman.reasons.reason import Headline, Reason
from drayman.workloads.dispatching.names import CONTROLLER
from drayman.workloads.queued.composing import CompositionError
from drayman.workloads.queued.names import QUEUE
from drayman.workloads.queued.pods import group_of, is_fast, is_gated, total_of


def is_held_by_queue(world: World, pod: Pod) -> bool:
    """Whether a pod waits for quota, and there is anything to say about it."""
    is_waiting = not (pod.spec.node_name or is_finished(pod) or is_leaving(pod))
    return is_waiting and is_gated(pod) and knows_queues(world)


def waits_in_queue(world: World, job: Job) -> bool:
    """The same for a Job that is suspended, or whose pods are in another cluster."""
    has_no_pods = job.spec.suspend or job.spec.managed_by == CONTROLLER
    return bool(has_no_pods) and QUEUE in job.metadata.labels and knows_queues(world)


def knows_queues(world: World) -> bool:
    """Whether the world has queues at all. Otherwise it was read without them, or the user may not see them."""
    objects = world.objects
    return bool(objects.cluster_queues or objects.local_queues or objects.queued_workloads)


def explain_queued(world: World, workload: Workload) -> Explanation:
    """Why a workload waits for quota and what would help, or what it holds."""
    metadata = workload.metadata
    return _explained(
        world, Line(world), key_of(metadata.namespace, metadata.name), "Workload", metadata
    )


def explain_queued_job(world: World, job: Job) -> Explanation:
    """The same for a suspended Job, by its Workload."""
    found = _workload_of(world, job)
    if isinstance(found, Headline):
        return _told(world, "Job", job.metadata, found)
    line, key = found
    answer = _explained(world, line, key, "Job", job.metadata)
    if answer.headline.reason is Reason.RUNS and not line.runs_elsewhere(key):
        text = f"{answer.headline.sentence} The job is about to be resumed."
        return replace(answer, headline=Headline.of(Reason.SUSPENDED, text))
    return answer


def explain_queued_pod(world: World, pod: Pod) -> Explanation:
    """The same for a pod that is held by the gate of its queue."""
    found = _workload_of(world, pod)
    if isinstance(found, Headline):
        return _told(world, "Pod", pod.metadata, found)
    line, key = found
    answer = _explained(world, line, key, "Pod", pod.metadata)
    return (
        answer if line.runs_elsewhere(key) else replace(answer, headline=_of_pod(answer.headline))
    )


class QueuedHeadlines:
    """The headlines of many pods and Jobs that queues hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._line: Line | None = None
        self._found: dict[str, Headline] = {}

    def of_pod(self, pod: Pod) -> Headline:
        key = self._existing(pod)
        found = self._of(pod)
        return found if key is not None and self._known().runs_elsewhere(key) else _of_pod(found)

    def of_job(self, job: Job) -> Headline:
        return self._of(job)

    def _known(self) -> Line:
        if self._line is None:
            self._line = Line(self._world)
        return self._line

    def _existing(self, owner: Pod | Job) -> str | None:
        line = self._known()
        key = _existing(owner, line.owned)
        return key if key in line.queues.workloads else None

    def _of(self, owner: Pod | Job) -> Headline:
        line = self._known()
        key = self._existing(owner)
        if key is None:
            found = _workload_of(self._world, owner)
            return found if isinstance(found, Headline) else found[0].headline(found[1])
        if key not in self._found:
            self._found[key] = line.headline(key)
        return self._found[key]


def _of_pod(headline: Headline) -> Headline:
    """A pod whose workload has quota is let go at any moment."""
    if headline.reason is not Reason.RUNS:
        return headline
    text = f"{headline.sentence} The gate of the pod is about to be removed."
    return Headline.of(Reason.GATED, text)


def _workload_of(world: World, owner: Pod | Job) -> tuple[Line, str] | Headline:
    """The workload of an object, made if there is none yet, or why none can be made."""
    # An engine that knows all queues and workloads is most of the work, so it is built once, with a workload that does not exist yet.
    key = _existing(owner, owned_by_uid(world.objects.queued_workloads))
    if key is not None:
        line = Line(world)
        if key in line.queues.workloads:
            return line, key
    held = Reason.GATED if isinstance(owner, Pod) else Reason.SUSPENDED
    if QUEUE not in owner.metadata.labels:
        text = f"It is held for a queue, but names none (label {QUEUE})."
        return Headline.of(Reason.QUEUE_MISSING, text)
    if isinstance(owner, Pod) and (lacking := _incomplete(world, owner)) is not None:
        return lacking
    try:
        workload = of_pod(world, owner) if isinstance(owner, Pod) else of_job(world, owner)
        line = Line(world, (workload,))
    except (CompositionError, ApiError) as error:
        return Headline.of(held, f"No Workload can be made for it: {error}.")
    return line, key_of(workload.metadata.namespace, workload.metadata.name)


def _incomplete(world: World, pod: Pod) -> Headline | None:
    """For a pod whose group is not whole yet."""
    group, total = group_of(pod), total_of(pod)
    if not group or total is None or is_fast(pod):
        return None
    there = sum(
        is_active(each)
        and group_of(each) == group
        and each.metadata.namespace == pod.metadata.namespace
        for each in world.objects.pods
    )
    if there >= total:
        return None
    text = (
        f"Pod group {group} waits for quota when it is whole: it has {there:,} of {total:,} pods."
    )
    return Headline.of(Reason.GANG_INCOMPLETE, text)


def _existing(owner: Pod | Job, owned: Mapping[str, str]) -> str | None:
    """The key of the workload of an object, where there is one. `owned` has the workloads of owners, by uid."""
    key = owned.get(owner.metadata.uid)
    if key is None and isinstance(owner, Pod) and group_of(owner):
        key = key_of(owner.metadata.namespace, group_of(owner))
    return key


def _explained(world: World, line: Line, key: str, kind: str, metadata: ObjectMeta) -> Explanation:
    if key not in line.queues.workloads:
        problem = next(each.message for each in line.queues.problems if each.name == key)
        text = f"The workload cannot be understood: {problem}."
        return _told(world, kind, metadata, Headline.of(Reason.QUEUE_MISSING, text))
    headline = line.headline(key)
    answer = _told(world, kind, metadata, headline)
    if line.entry(key) is None:
        return answer
    place = line.place(key)
    if headline.reason.kind is None or (place.position is None and not place.message):
        return replace(answer, queue=place)
    help_ = remedies_for(line, key)
    return replace(
        answer,
        queue=place,
        estimate=Forecast(line).estimate(key),
        remedies=help_.remedies,
        untried=help_.untried,
    )


def _told(world: World, kind: str, metadata: ObjectMeta, headline: Headline) -> Explanation:
    return Explanation(
        kind=kind,
        name=metadata.name,
        namespace=metadata.namespace,
        headline=headline,
        nodes=len(world.state.nodes),
        unseen=world.unseen,
        evidence={**world.versions, kind.lower(): metadata.resource_version},
    )
