"""What quota would say of manifests that name a queue, and how their pods would start.

For each, the Workload is made that it would get, and the engine decides about it behind all that wait already and are as important. What
gets quota is planned as it would be started: not suspended, without the gate, on the nodes of its flavors. What gets none is planned
with its gate, so that it takes no room from others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace as changed

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod, PodSchedulingGate
from drayman.api.custom_groups import spec_of
from drayman.api.errors import ApiError
from drayman.api.jobs import Job
from drayman.api.kueue_workload import Workload as QueuedWorkload
from drayman.api.kueue_workload import WorkloadSpec
from drayman.api.struct import ApiStruct, Json
from drayman.api.times import timestamp_at
from drayman.api.workloads import DaemonSet, Deployment, ReplicaSet, StatefulSet
from drayman.explain.answer import Estimate
from drayman.explain.queue_answer import PlaceInQueue
from drayman.explain.queues.composed import of_group, of_job, of_pod
from drayman.explain.queues.explaining import knows_queues
from drayman.explain.queues.forecast import Forecast
from drayman.explain.queues.standing import Line
from drayman.placement.gangs.dialects.kueue import NAME, TOTAL
from drayman.placement.world import World
from drayman.quota.reading import key_of
from drayman.reasons.reason import Headline, Reason
from drayman.simulate.copying import Wanted, objects_of
from drayman.simulate.expanding import Workload
from drayman.simulate.plan_report import PlannedPod, PlanReport
from drayman.workloads.queued.composing import CompositionError
from drayman.workloads.queued.names import GATE, QUEUE
from drayman.workloads.queued.pods import group_of
from drayman.workloads.queued.starting import Additions, StartError, additions_for

MOST_REPLICAS = 1000
"""Of a Deployment, each of whose pods is a workload of its own."""


class PlannedQueued(ApiStruct, kw_only=True):
    """What quota would say of one workload."""

    name: str
    """As kind/name."""
    namespace: str
    headline: Headline
    pods: int
    place: PlaceInQueue
    estimate: Estimate | None = None
    """When it would start, if it would wait."""
    count: int = 1
    """How many workloads alike this stands for: copies, and those of the pods of a Deployment."""


class _Planned(Struct, frozen=True, eq=False):
    """A workload of the manifests, with the Workloads that it would have."""

    workload: Workload
    copy: int
    keys: tuple[str, ...] = ()
    problem: Headline | None = None
    """Why no Workload can be made of it."""


def names_queue(workload: Workload) -> bool:
    """Whether something would wait in a queue."""
    return QUEUE in workload.metadata.labels and not isinstance(workload.owner, DaemonSet)


class QueuePlan:
    """The decisions of quota about manifests."""

    def __init__(self, world: World, copies: Sequence[Wanted]) -> None:
        self._copies = copies
        self._world = world.with_objects(world.objects.joined(objects_of(copies)))
        self._planned: list[_Planned] = []
        made: dict[str, QueuedWorkload] = {}
        there = _workloads_there(world)
        for number, wanted in enumerate(copies, start=1):
            for workload in filter(names_queue, wanted.workloads):
                metadata = workload.metadata
                known = there.get((metadata.namespace, workload.kind, metadata.name))
                if known is not None:
                    self._planned.append(_Planned(workload, number, (known,)))
                    continue
                try:
                    own = list(self._made(workload, wanted.workloads))
                except (CompositionError, ApiError) as error:
                    text = f"No Workload can be made for it: {error}."
                    problem = Headline.of(Reason.GATED, text)
                    self._planned.append(_Planned(workload, number, (), problem))
                    continue
                keys = tuple(key_of(each.metadata.namespace, each.metadata.name) for each in own)
                made.update(zip(keys, own, strict=True))
                self._planned.append(_Planned(workload, number, keys))
        self._line = Line(self._world, made.values())
        self._forecast: Forecast | None = None

    def answers(self) -> Iterator[PlannedQueued]:
        """What is said of each: of those alike, once for all that get the same answer."""
        alike: dict[tuple[str, str, Reason], list[str]] = {}
        for planned in self._planned:
            if planned.problem is not None:
                yield _unmade(planned.workload, planned.problem)
            for key in planned.keys:
                reason = self._line.headline(key).reason
                title = planned.workload.original
                group = alike.setdefault((planned.workload.metadata.namespace, title, reason), [])
                if key not in group:
                    group.append(key)
        for (namespace, title, _), keys in alike.items():
            yield self._answer(namespace, title, keys)

    def copies(self) -> list[Wanted]:
        """The manifests as they would be started, or held."""
        by_workload = {id(each.workload): each for each in self._planned}
        return [
            changed(
                wanted,
                workloads=tuple(
                    self._started(by_workload[id(each)]) if id(each) in by_workload else each
                    for each in wanted.workloads
                ),
            )
            for wanted in self._copies
        ]

    def report(self, report: PlanReport) -> PlanReport:
        """The plan, with what quota says about pods that it holds."""
        refused = {
            (each.workload.metadata.namespace, each.workload.original, each.copy): headline
            for each in self._planned
            if (headline := self._refusal(each)) is not None
        }

        def told(pod: PlannedPod) -> PlannedPod:
            headline = refused.get((pod.namespace, pod.workload, pod.copy))
            if headline is None or pod.waits is None or pod.waits.reason is not Reason.GATED:
                return pod
            return replace(pod, waits=headline)

        held = {copy for _, _, copy in refused}
        waiting = {pod.copy for pod in report.pods if pod.waits is not None}
        return replace(
            report,
            pods=tuple(map(told, report.pods)),
            fits=report.fits and not held,
            copies_fitting=report.copies - len(held | waiting),
        )

    # What there would be.

    def _made(
        self, workload: Workload, all_of_them: Iterable[Workload]
    ) -> Iterator[QueuedWorkload]:
        match workload.owner:
            case Job() as job:
                yield self._new(of_job(self._world, job))
            case Deployment() | ReplicaSet() as keeper:
                for number in range(min(keeper.spec.replicas, MOST_REPLICAS)):
                    yield self._new(of_pod(self._world, _numbered(workload, number)))
            case StatefulSet() as stateful_set:
                total = stateful_set.spec.replicas
                if total:
                    name = workload.metadata.name
                    pods = [_numbered(workload, number, name, total) for number in range(total)]
                    yield self._new(of_group(self._world, workload.metadata.namespace, name, pods))
            case None if group_of(workload.template):
                yield self._new(self._group(workload, all_of_them))
            case None:
                yield self._new(of_pod(self._world, workload.template))
            case _:
                return

    def _group(self, workload: Workload, all_of_them: Iterable[Workload]) -> QueuedWorkload:
        """The Workload of a group: its pods in the manifests and in the cluster."""
        namespace, group = workload.metadata.namespace, group_of(workload.template)
        pods = [
            each.template
            for each in all_of_them
            if each.owner is None
            and group_of(each.template) == group
            and each.metadata.namespace == namespace
        ]
        known = {each.metadata.name for each in pods}
        pods += [
            pod
            for pod in self._world.objects.pods
            if group_of(pod) == group
            and pod.metadata.namespace == namespace
            and pod.metadata.name not in known
        ]
        return of_group(self._world, namespace, group, pods)

    def _new(self, workload: QueuedWorkload) -> QueuedWorkload:
        """As if it came last."""
        metadata = replace(workload.metadata, creation_timestamp=timestamp_at(self._world.now + 1))
        return replace(workload, metadata=metadata)

    # What becomes of it.

    def _is_admitted(self, key: str) -> bool:
        """Whether it gets quota now, or has it already."""
        entry = self._line.entry(key)
        has_quota = entry is not None and entry.holding is not None
        return has_quota or self._line.is_admitted_now(key)

    def _refusal(self, planned: _Planned) -> Headline | None:
        if planned.problem is not None:
            return planned.problem
        held = (key for key in planned.keys if not self._is_admitted(key))
        return next((self._line.headline(key) for key in held), None)

    def _answer(self, namespace: str, title: str, keys: list[str]) -> PlannedQueued:
        first = keys[0]
        headline = self._line.headline(first)
        estimate = None
        if headline.reason.kind is not None:
            self._forecast = self._forecast or Forecast(self._line)
            estimate = self._forecast.estimate(first)
        spec = spec_of(WorkloadSpec, self._line.queues.workloads[first])
        return PlannedQueued(
            name=title,
            namespace=namespace,
            headline=headline,
            pods=sum(each.count for each in spec.pod_sets),
            place=self._line.place(first),
            estimate=estimate,
            count=len(keys),
        )

    def _started(self, planned: _Planned) -> Workload:
        given = [key for key in planned.keys if self._is_admitted(key)]
        workload = planned.workload
        owner = workload.owner
        if isinstance(owner, Job):
            owner = replace(owner, spec=replace(owner.spec, suspend=False))
        if isinstance(owner, Deployment | ReplicaSet) and given:
            owner = replace(owner, spec=replace(owner.spec, replicas=len(given)))
        if not given:
            return changed(workload, owner=owner, template=_gated(workload.template))
        template = _let_go(workload.template, self._additions(given[0]))
        if owner is not None:
            body: dict[str, Json] = dict(owner.spec.template)
            spec = dict(body.get("spec") or {})
            spec.pop("schedulingGates", None)
            owner = replace(owner, spec=replace(owner.spec, template={**body, "spec": spec}))
        return changed(workload, owner=owner, template=template)

    def _additions(self, key: str) -> Additions | None:
        """What the pods of a workload get when they start. Those of several pod sets are planned without it."""
        if key not in self._line.settled.given:
            return None  # it has been started already
        spec = spec_of(WorkloadSpec, self._line.queues.workloads[key])
        admission = self._line.settled.given[key].admission
        flavors = self._line.queues.state.books.flavors
        try:
            (found,) = additions_for(key, spec.pod_sets, admission, flavors)
        except (StartError, ValueError):
            return None
        return found


def queue_plan(world: World, copies: Sequence[Wanted]) -> QueuePlan | None:
    """What quota says of manifests; None if none of them names a queue, or no queues are known."""
    if not any(names_queue(each) for wanted in copies for each in wanted.workloads):
        return None
    known = copies[0].objects
    if not knows_queues(world) and not (known.cluster_queues or known.local_queues):
        return None
    return QueuePlan(world, copies)


def _workloads_there(world: World) -> dict[tuple[str, str, str], str]:
    """The keys of workloads that exist, by namespace, kind and name of what they were made for."""
    return {
        (workload.metadata.namespace, owner.kind, owner.name): key_of(
            workload.metadata.namespace, workload.metadata.name
        )
        for workload in world.objects.queued_workloads
        for owner in workload.metadata.owner_references
    }


def _unmade(workload: Workload, problem: Headline) -> PlannedQueued:
    metadata = workload.metadata
    queue = f"{metadata.namespace}/{metadata.labels[QUEUE]}"
    return PlannedQueued(
        name=workload.original,
        namespace=metadata.namespace,
        headline=problem,
        pods=0,
        place=PlaceInQueue(workload="", local_queue=queue),
    )


def _numbered(workload: Workload, number: int, group: str = "", total: int = 0) -> Pod:
    """One of the pods of a set, as its controller would make it."""
    template = workload.template
    metadata = template.metadata
    labels = {**metadata.labels, QUEUE: workload.metadata.labels[QUEUE]}
    annotations = dict(metadata.annotations)
    if group:
        labels[NAME] = group
        annotations[TOTAL] = str(total)
    name = f"{workload.metadata.name}-{number}"
    return replace(
        template,
        metadata=replace(
            metadata,
            namespace=workload.metadata.namespace,
            name=name,
            uid=f"planned-{name}",
            labels=labels,
            annotations=annotations,
        ),
    )


def _gated(pod: Pod) -> Pod:
    others = tuple(each for each in pod.spec.scheduling_gates if each.name != GATE)
    gates = (*others, PodSchedulingGate(name=GATE))
    return replace(pod, spec=replace(pod.spec, scheduling_gates=gates))


def _let_go(pod: Pod, added: Additions | None) -> Pod:
    gates = tuple(each for each in pod.spec.scheduling_gates if each.name != GATE)
    spec = replace(pod.spec, scheduling_gates=gates)
    if added is not None:
        spec = replace(
            spec,
            node_selector={**spec.node_selector, **added.node_selector},
            tolerations=(*spec.tolerations, *added.tolerations),
        )
    return replace(pod, spec=spec)
