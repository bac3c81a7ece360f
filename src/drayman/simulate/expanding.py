"""The pods of workloads that do not exist yet, as their controllers would make them.

Which pods a workload lacks and what they look like is decided by the functions that the controllers use. Only the random ends of names are
replaced by numbers that count up, so that the same plan gives the same names. Pods that are being deleted, or have ended and will be
replaced, count as gone: a plan is about the final result, not the next step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias, TypeVar

from msgspec.structs import replace

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.jobs import Job, JobStatus
from drayman.api.meta import ObjectMeta
from drayman.api.pods import is_active, is_finished
from drayman.api.struct import Json
from drayman.api.workloads import (
    DaemonSet,
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from drayman.placement.world import World
from drayman.workloads import replica_sets
from drayman.workloads.daemon_sets import placement
from drayman.workloads.daemon_sets.planning import survey
from drayman.workloads.deployments.lineage import new_replica_set
from drayman.workloads.deployments.sizes import only_scales
from drayman.workloads.jobs import pods as job_pods
from drayman.workloads.jobs.census import Census, end_of, is_ours
from drayman.workloads.jobs.deciding import decide
from drayman.workloads.jobs.failures import BackoffTimes, FailureRow
from drayman.workloads.jobs.indexes import NONE
from drayman.workloads.makers import Maker, makers_of
from drayman.workloads.revisions import revision_hash, revision_name
from drayman.workloads.stateful_sets import identity
from drayman.workloads.stateful_sets.planning import keeps_order, ranks

Owner: TypeAlias = Job | Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet
_PodOwner = TypeVar("_PodOwner", Job, replica_sets.ReplicaKeeper, StatefulSet, DaemonSet)

MOST_PODS: Final = 200_000
"""The limit for one plan: more than the largest clusters run. Asking for more is a mistake, and would take all memory."""
_POD: Final = "Pod"
_WITHOUT_WAITING: Final = BackoffTimes(first=0.0, longest=0.0)


@dataclass(frozen=True, slots=True)
class Workload:
    """Something that is to be submitted and results in pods."""

    template: Pod
    """One pod of it, as the API server would store it: itself, where there is no owner."""
    owner: Owner | None = None
    copy_of: str = ""
    """The title of what this is a copy of."""

    @property
    def metadata(self) -> ObjectMeta:
        return self.template.metadata if self.owner is None else self.owner.metadata

    @property
    def kind(self) -> str:
        return _POD if self.owner is None else self.owner.kind

    @property
    def original(self) -> str:
        """The title of the original that was given, of which this may be a copy."""
        return self.copy_of or self.title

    @property
    def title(self) -> str:
        """Kind and name, as kubectl writes them."""
        return f"{self.kind.lower()}/{self.metadata.name}"


@dataclass(frozen=True, slots=True)
class ExpandedPod:
    """A pod of a workload."""

    pod: Pod
    workload: Workload
    node: str = ""
    """The only node that it can go to, where its controller ties it to one."""
    after: str = ""
    """The name of the pod that must run before its controller makes this one."""


class Expansion:
    """Makes pods, each with its own number. Pods that a workload already has in the cluster are not made again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._made = 0
        self._counts: dict[str, int] = {}
        self._jobs = {
            (job.metadata.namespace, job.metadata.name): job for job in world.objects.jobs
        }
        self._there: dict[tuple[str, Maker], list[Pod]] = {}
        for pod in world.objects.pods:
            metadata = pod.metadata
            if metadata.deletion_timestamp is None:
                for maker in (Maker(_POD, metadata.name), *makers_of(pod)):
                    self._there.setdefault((metadata.namespace, maker), []).append(pod)

    def of(self, workload: Workload) -> Iterator[ExpandedPod]:
        """The pods that the workload still lacks, in the order in which they are made."""
        match workload.owner:
            case None:
                if not self.existing(workload):
                    yield ExpandedPod(workload.template, workload)
            case Job() as job:
                yield from self._job(workload, job)
            case Deployment() as deployment:
                yield from self._deployment(workload, deployment)
            case ReplicaSet() | ReplicationController() as keeper:
                yield from self._replicas(workload, keeper)
            case StatefulSet() as stateful_set:
                yield from self._stateful(workload, stateful_set)
            case DaemonSet() as daemon_set:
                yield from self._daemons(workload, daemon_set)

    def existing(self, workload: Workload) -> list[Pod]:
        """The pods of the workload that the cluster has."""
        metadata = workload.metadata
        return self._there.get((metadata.namespace, Maker(workload.kind, metadata.name)), [])

    def why_none(self, workload: Workload) -> str:
        """What to say about a workload that makes no pods."""
        owner, existing = workload.owner, self.existing(workload)
        if isinstance(owner, Job):
            if owner.spec.suspend:
                return "it is suspended"
            if not is_ours(owner):
                return f"it is left to {owner.spec.managed_by}"
        if existing:
            return _all_there(workload, existing)
        if isinstance(owner, DaemonSet):
            return "no node is eligible for its pods"
        if isinstance(owner, Job) and end_of(self._as_it_stands(owner, existing)):
            return "it has ended already"
        if isinstance(owner, Deployment) and owner.spec.paused:
            return "it is paused"
        return "it asks for none"

    def _job(self, workload: Workload, job: Job) -> Iterator[ExpandedPod]:
        """As many as may run at once; the others follow when these have ended."""
        there = self.existing(workload)
        job = self._as_it_stands(job, there)
        if end_of(job) is not None or not is_ours(job):
            return
        census, now = Census(job, tuple(there)), self._world.now
        seeds = decide(census, FailureRow(), _WITHOUT_WAITING, now, most=MOST_PODS + 1).create
        job = _admitted(job, workload.template)
        for seed in seeds:
            pod = _typed(workload, job_pods.pod_of(job, seed))
            indexed = pod.metadata.generate_name.removesuffix("-")
            name = self._numbered_name(workload) if seed.index is None else indexed
            yield self._named(workload, pod, name)

    def _as_it_stands(self, job: Job, pods: Sequence[Pod]) -> Job:
        """The job with its progress: as its status says, or otherwise its pods."""
        known = self._jobs.get((job.metadata.namespace, job.metadata.name))
        if known is not None:
            return replace(job, status=known.status)
        counted = [p for p in pods if p.status.phase == "Succeeded" and not job_pods.is_tracked(p)]
        indexes = NONE.with_indexes(Census(job, ()).indexes(counted))
        status = JobStatus(succeeded=len(counted), completed_indexes=str(indexes))
        return replace(job, status=status)

    def _deployment(self, workload: Workload, deployment: Deployment) -> Iterator[ExpandedPod]:
        if only_scales(deployment, ()) and not self.existing(workload):
            return
        made = codec.convert(ReplicaSet, new_replica_set(deployment, 1, deployment.spec.replicas))
        uid = f"{deployment.metadata.uid}-{made.metadata.name}"
        yield from self._replicas(workload, replace(made, metadata=replace(made.metadata, uid=uid)))

    def _replicas(
        self, workload: Workload, keeper: replica_sets.ReplicaKeeper
    ) -> Iterator[ExpandedPod]:
        lacking = replica_sets.plan(keeper, self.existing(workload), (), self._world.now).create
        pod = _typed(workload, replica_sets.pod_of(_admitted(keeper, workload.template)))
        for _ in range(lacking):
            yield self._named(workload, pod, self._numbered_name(workload))

    def _stateful(self, workload: Workload, stateful_set: StatefulSet) -> Iterator[ExpandedPod]:
        hash_ = revision_hash(stateful_set, stateful_set.status.collision_count)
        revision = revision_name(stateful_set, hash_)
        places = ranks(stateful_set, filter(is_active, self.existing(workload)))
        admitted = _admitted(stateful_set, workload.template)
        in_order, before = keeps_order(stateful_set), ""
        for ordinal in places.ordinals:
            name = identity.pod_name(stateful_set, ordinal)
            if ordinal not in places.replicas:
                body = identity.pod_of(admitted, admitted.spec.template, revision, ordinal)
                after = before if in_order else ""
                yield self._named(workload, _typed(workload, body), name, after=after)
            before = name

    def _daemons(self, workload: Workload, daemon_set: DaemonSet) -> Iterator[ExpandedPod]:
        nodes = (known.node for known in self._world.state.nodes.values())
        ground = survey(daemon_set, nodes, filter(is_active, self.existing(workload)))
        revision = revision_hash(daemon_set, daemon_set.status.collision_count)
        admitted = _admitted(daemon_set, workload.template)
        for node in ground.lacking:
            pod = _typed(workload, placement.pod_of(admitted, revision, node))
            yield self._named(workload, pod, self._numbered_name(workload), node=node)

    def _numbered_name(self, workload: Workload) -> str:
        """What replaces a random name: one that no pod of the cluster has."""
        namespace, base = workload.metadata.namespace, workload.metadata.name
        key = f"{namespace}/{base}"
        while True:
            self._counts[key] = number = self._counts.get(key, 0) + 1
            name = f"{base}-{number}"
            if (namespace, Maker(_POD, name)) not in self._there:
                return name

    def _named(
        self, workload: Workload, pod: Pod, name: str, *, node: str = "", after: str = ""
    ) -> ExpandedPod:
        self._made += 1
        uid = f"{workload.metadata.uid}-{self._made}"
        metadata = replace(pod.metadata, name=name, generate_name="", uid=uid)
        return ExpandedPod(replace(pod, metadata=metadata), workload, node, after)


def _admitted(owner: _PodOwner, pod: Pod) -> _PodOwner:
    """The owner with its template as the API server fills it in for a pod."""
    given = owner.spec.template
    metadata = {**(given.get("metadata") or {})}
    metadata["labels"] = {**pod.metadata.labels, **(metadata.get("labels") or {})}
    metadata["annotations"] = {**pod.metadata.annotations, **(metadata.get("annotations") or {})}
    spec = {**(given.get("spec") or {}), **codec.to_dict(pod.spec)}
    template = {"metadata": metadata, "spec": spec}
    return replace(owner, spec=replace(owner.spec, template=template))


def _typed(workload: Workload, body: dict[str, Json]) -> Pod:
    """A pod as its controller sends it, with what the API server adds."""
    template, made = workload.template, codec.convert(Pod, body)
    own = made.metadata
    metadata = replace(
        template.metadata,
        generate_name=own.generate_name,
        namespace=own.namespace,
        labels=own.labels,
        annotations=own.annotations,
        owner_references=own.owner_references,
        finalizers=own.finalizers,
    )
    # Most pods differ in nothing but their metadata, and a plan may have very many.
    spec = template.spec if made.spec == template.spec else made.spec
    return replace(template, metadata=metadata, spec=spec)


def _all_there(workload: Workload, existing: Sequence[Pod]) -> str:
    """A note that nothing is to be made, which does not mean that all is well."""
    said = "it is there already" if workload.owner is None else "it has all of its pods already"
    waiting = sum(not pod.spec.node_name and not is_finished(pod) for pod in existing)
    if not waiting:
        return said
    who = "it" if workload.owner is None else f"{waiting:,} of them"
    return f"{said}, but {who} must still find a node: `drayman explain` says why"


def volume_claims_of(stateful_set: StatefulSet) -> Iterator[dict[str, Json]]:
    """The volume claims that come with a stateful set."""
    # No plan is made for more pods than this.
    for ordinal in islice(identity.ordinals_of(stateful_set), MOST_PODS + 1):
        yield from identity.claim_bodies(stateful_set, ordinal)
