"""The pods of workloads that do not exist yet, as their controllers would make them.

What decides about places is what counts here: how many pods, their labels, nodes and volumes. The random ends of names are replaced by
numbers that count up, so that the same plan gives the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from msgspec.structs import replace

from drayman.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolumeClaimVolumeSource,
    Pod,
    Toleration,
    Volume,
)
from drayman.api.jobs import Job
from drayman.api.meta import ObjectMeta, OwnerReference
from drayman.api.node_taints import DAEMONS_TOLERATE
from drayman.api.pods import is_finished
from drayman.api.struct import Json
from drayman.api.workloads import (
    DaemonSet,
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from drayman.placement.fit import FITS, PodNeeds
from drayman.placement.state import ClusterState

Owner: TypeAlias = Job | Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet

MOST_PODS: Final = 200_000
"""That one plan is made for: more than the largest clusters run. To ask for more is a slip, and would take all memory."""
_POD: Final = "Pod"
_REPLICA_SET: Final = "ReplicaSet"
_DEPLOYMENT: Final = "Deployment"
_TEMPLATE_HASH: Final = "pod-template-hash"
_PLANNED: Final = "planned"
_JOB_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_SET_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_SET_INDEX: Final = "apps.kubernetes.io/pod-index"
_NAME_FIELD: Final = "metadata.name"
_ORDERED: Final = ("", "OrderedReady")


@dataclass(frozen=True, slots=True)
class Workload:
    """Something that is to be submitted and comes to pods."""

    template: Pod
    """One pod of it, as the API server would store it: itself, where there is no owner."""
    owner: Owner | None = None
    copy_of: str = ""
    """The title of what this is a copy of."""

    @property
    def metadata(self) -> ObjectMeta:
        return self.template.metadata if self.owner is None else self.owner.metadata

    @property
    def original(self) -> str:
        """The title of what was given, of which this may be a copy."""
        return self.copy_of or self.title

    @property
    def title(self) -> str:
        """Kind and name, as kubectl has them."""
        kind = _POD if self.owner is None else self.owner.kind
        return f"{kind.lower()}/{self.metadata.name}"


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
    """Makes pods, each with a number of its own. What a workload has in the cluster already is not made again."""

    def __init__(self, state: ClusterState, pods: Iterable[Pod] = ()) -> None:
        self._state = state
        self._made = 0
        self._counts: dict[str, int] = {}
        self._there: dict[tuple[str, str, str], list[Pod]] = {}
        for pod in pods:
            if pod.metadata.deletion_timestamp is None:
                for kind, name in _belongs_to(pod):
                    key = (pod.metadata.namespace, kind, name)
                    self._there.setdefault(key, []).append(pod)

    def of(self, workload: Workload) -> Iterator[ExpandedPod]:
        """The pods that the workload still lacks, in the order in which they are made."""
        match workload.owner:
            case None:
                yield from self._alone(workload)
            case Job() as job:
                yield from self._job(workload, job)
            case Deployment() as deployment:
                template = _labelled(workload.template, {_TEMPLATE_HASH: _PLANNED})
                yield from self._replicas(workload, template, deployment.spec.replicas)
            case ReplicaSet() | ReplicationController() as keeper:
                yield from self._replicas(workload, workload.template, keeper.spec.replicas)
            case StatefulSet() as stateful_set:
                yield from self._stateful(workload, stateful_set)
            case DaemonSet():
                yield from self._daemons(workload)

    def existing(self, workload: Workload) -> list[Pod]:
        """The pods of the workload that the cluster has."""
        kind = _POD if workload.owner is None else workload.owner.kind
        metadata = workload.metadata
        return self._there.get((metadata.namespace, kind, metadata.name), [])

    def why_none(self, workload: Workload) -> str:
        """What to say about a workload that makes no pods."""
        if isinstance(workload.owner, Job) and workload.owner.spec.suspend:
            return "it is suspended"
        if existing := self.existing(workload):
            return _all_there(workload, existing)
        if isinstance(workload.owner, DaemonSet):
            return "no node is one for its pods"
        return "it asks for none"

    def _alone(self, workload: Workload) -> Iterator[ExpandedPod]:
        if not self.existing(workload):
            yield ExpandedPod(workload.template, workload)

    def _job(self, workload: Workload, job: Job) -> Iterator[ExpandedPod]:
        """As many as may run at once; the others follow when these have ended."""
        if job.spec.suspend:
            return
        there = self.existing(workload)
        done = sum(pod.status.phase == "Succeeded" for pod in there)
        running = [pod for pod in there if not is_finished(pod)]
        wanted = job.spec.parallelism
        if job.spec.completions is not None:
            wanted = min(wanted, job.spec.completions - done)
        if job.spec.completion_mode != "Indexed":
            yield from self._numbered(workload, workload.template, wanted - len(running))
            return
        taken = {p.metadata.labels.get(_JOB_INDEX) for p in there if p.status.phase != "Failed"}
        free = (n for n in range(job.spec.completions or 0) if str(n) not in taken)
        for _, index in zip(range(wanted - len(running)), free, strict=False):
            pod = _labelled(workload.template, {_JOB_INDEX: str(index)})
            yield self._made_from(workload, pod, f"{job.metadata.name}-{index}")

    def _replicas(self, workload: Workload, template: Pod, replicas: int) -> Iterator[ExpandedPod]:
        active = [p for p in self.existing(workload) if not is_finished(p)]
        yield from self._numbered(workload, template, replicas - len(active))

    def _stateful(self, workload: Workload, stateful_set: StatefulSet) -> Iterator[ExpandedPod]:
        spec, base = stateful_set.spec, stateful_set.metadata.name
        there = {pod.metadata.name: pod for pod in self.existing(workload)}
        before = ""
        for ordinal in range(spec.ordinals.start, spec.ordinals.start + spec.replicas):
            name = f"{base}-{ordinal}"
            if name not in there:
                pod = _labelled(workload.template, {_SET_POD_NAME: name, _SET_INDEX: str(ordinal)})
                after = before if spec.pod_management_policy in _ORDERED else ""
                yield self._made_from(
                    workload, _with_volumes(pod, stateful_set, name), name, after=after
                )
            before = name

    def _daemons(self, workload: Workload) -> Iterator[ExpandedPod]:
        """One for each node that it may run on, cordoned ones included."""
        template = _tolerant(workload.template)
        needs = PodNeeds.of(template)
        there = {_node_of(pod) for pod in self.existing(workload)}
        for name, node in self._state.nodes.items():
            if name in there or self._state.static_verdicts.verdict(needs, node.facts) is not FITS:
                continue
            pod = _tied(template, name)
            yield self._made_from(workload, pod, self._numbered_name(workload), node=name)

    def _numbered(self, workload: Workload, template: Pod, count: int) -> Iterator[ExpandedPod]:
        for _ in range(count):
            yield self._made_from(workload, template, self._numbered_name(workload))

    def _numbered_name(self, workload: Workload) -> str:
        """What stands for a random name: one that no pod of the cluster has."""
        namespace, base = workload.metadata.namespace, workload.metadata.name
        key = f"{namespace}/{base}"
        while True:
            self._counts[key] = number = self._counts.get(key, 0) + 1
            name = f"{base}-{number}"
            if (namespace, _POD, name) not in self._there:
                return name

    def _made_from(
        self, workload: Workload, template: Pod, name: str, *, node: str = "", after: str = ""
    ) -> ExpandedPod:
        self._made += 1
        owner = workload.metadata
        kind = "" if workload.owner is None else workload.owner.kind
        reference = OwnerReference(kind=kind, name=owner.name, uid=owner.uid, controller=True)
        metadata = replace(
            template.metadata,
            name=name,
            generate_name="",
            namespace=owner.namespace,
            uid=f"{owner.uid}-{self._made}",
            owner_references=(reference,),
        )
        return ExpandedPod(replace(template, metadata=metadata), workload, node, after)


def _all_there(workload: Workload, existing: Sequence[Pod]) -> str:
    """That nothing is to be made, which does not say that all is well."""
    said = "it is there already" if workload.owner is None else "it has all of its pods already"
    waiting = sum(not pod.spec.node_name and not is_finished(pod) for pod in existing)
    if not waiting:
        return said
    who = "it" if workload.owner is None else f"{waiting:,} of them"
    return f"{said}, but {who} must still find a node: `drayman explain` says why"


def volume_claims_of(stateful_set: StatefulSet) -> Iterator[tuple[str, dict[str, Json]]]:
    """The volume claims that come with a stateful set: the name of each, and its template."""
    spec = stateful_set.spec
    number = min(spec.replicas, MOST_PODS + 1)  # with more there is no plan
    for ordinal in range(spec.ordinals.start, spec.ordinals.start + number):
        for template in spec.volume_claim_templates:
            name = f"{template['metadata']['name']}-{stateful_set.metadata.name}-{ordinal}"
            yield name, template


def _belongs_to(pod: Pod) -> Iterator[tuple[str, str]]:
    """Kind and name of the workloads that a pod is of."""
    yield _POD, pod.metadata.name
    for owner in pod.metadata.owner_references:
        if owner.controller:
            yield owner.kind, owner.name
            if owner.kind == _REPLICA_SET:
                # One of a deployment is named after it, with one more part.
                yield _DEPLOYMENT, owner.name.rpartition("-")[0]


def _labelled(pod: Pod, labels: dict[str, str]) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, labels=pod.metadata.labels | labels))


def _with_volumes(pod: Pod, stateful_set: StatefulSet, name: str) -> Pod:
    """The pod with the volume claims of its ordinal in place of what the template has under their names."""
    names = [t["metadata"]["name"] for t in stateful_set.spec.volume_claim_templates]
    own = tuple(
        Volume(
            name=volume,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(
                claim_name=f"{volume}-{name}"
            ),
        )
        for volume in names
    )
    others = tuple(volume for volume in pod.spec.volumes if volume.name not in names)
    return replace(pod, spec=replace(pod.spec, volumes=(*own, *others)))


def _tolerant(pod: Pod) -> Pod:
    """A daemon looks after its node also when that is in trouble."""
    added = tuple(
        Toleration(key=key, operator="Exists", effect=effect) for key, effect in DAEMONS_TOLERATE
    )
    return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, *added)))


def _tied(pod: Pod, node: str) -> Pod:
    """The pod, for this node alone."""
    requirement = NodeSelectorRequirement(key=_NAME_FIELD, operator="In", values=(node,))
    term = NodeSelectorTerm(match_fields=(requirement,))
    given = pod.spec.affinity or Affinity()
    nodes = replace(
        given.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=NodeSelector(
            node_selector_terms=(term,)
        ),
    )
    return replace(pod, spec=replace(pod.spec, affinity=replace(given, node_affinity=nodes)))


def _node_of(pod: Pod) -> str:
    """The node that a daemon's pod is on, or meant for."""
    affinity = pod.spec.affinity
    required = (
        None
        if affinity is None or affinity.node_affinity is None
        else affinity.node_affinity.required_during_scheduling_ignored_during_execution
    )
    meant: Iterable[str] = (
        value
        for term in (() if required is None else required.node_selector_terms)
        for requirement in term.match_fields
        if requirement.key == _NAME_FIELD
        for value in requirement.values
    )
    return pod.spec.node_name or next(iter(meant), "")
