"""The table of kinds that are queued as a whole: how each is suspended, where its pods are described, and how it reports.

A row is all that a new kind needs. Jobs are in Kubernetes itself; the others come with definitions that a cluster may or may not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from drayman.api.integers import parse_integer
from drayman.api.struct import Json
from drayman.workloads.queued.names import COMPLETIONS_FOLLOW, MIN_PARALLELISM, annotations_of
from drayman.workloads.queued.places import MAIN, Object, Path, Place, number, read

_SUSPEND: Final = ("spec", "suspend")
_POD: Final = ("", "Pod")
_JOB: Final = ("batch", "Job")
INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of the pods of an indexed Job."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an object ended."""

    succeeded: bool
    message: str


@dataclass(frozen=True, slots=True)
class QueuedKind:
    """What has to be known about a kind."""

    framework: str
    """What it is called in the configuration."""
    group: str
    version: str
    kind: str
    plural: str
    places: Callable[[Object], Sequence[Place]]
    ended: Callable[[Object], Ended | None]
    is_active: Callable[[Object], bool]
    """Whether pods of it may still be running."""
    are_pods_ready: Callable[[Object], bool]
    reclaimable: Callable[[Object], Mapping[str, int]] = lambda _: {}
    """Pods that have ended and are not replaced, by pod set."""
    suspend: Path = _SUSPEND
    may_restore: Callable[[Object], bool] = lambda _: True
    """Whether the templates of a suspended object can be changed already."""
    makes: frozenset[tuple[str, str]] = frozenset({("", "Pod")})
    """The kinds of what its controller makes for it, by group and kind."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def is_suspended(self, obj: Object) -> bool:
        return bool(read(obj, self.suspend))


def _condition(obj: Object, name: str) -> Mapping[str, Json] | None:
    for each in read(obj, ("status", "conditions")) or ():
        if each.get("type") == name and each.get("status") == "True":
            found: Mapping[str, Json] = each
            return found
    return None


def _ended_by(success: str, failure: str, obj: Object) -> Ended | None:
    """For kinds with a condition for each outcome."""
    for name, succeeded in ((success, True), (failure, False)):
        found = _condition(obj, name)
        if found is not None:
            return Ended(succeeded, str(found.get("message") or f"{obj.get('kind')} {name}"))
    return None


# Jobs of Kubernetes.


def _job_count(spec: Json) -> int:
    parallelism = number(read(spec, ("parallelism",)), 1)
    return min(parallelism, number(read(spec, ("completions",)), parallelism))


def _job_places(obj: Object) -> Sequence[Place]:
    count = _job_count(obj.get("spec"))
    annotations = annotations_of(obj)
    least = parse_integer(annotations.get(MIN_PARALLELISM, ""))
    counts: tuple[Path, ...] = ()
    if least is not None:
        counts = (("spec", "parallelism"),)
        if annotations.get(COMPLETIONS_FOLLOW) == "true":
            counts += (("spec", "completions"),)
    indexed = read(obj, ("spec", "completionMode")) == "Indexed"
    index = INDEX if indexed else None
    least = least if least is not None and 0 < least < count else None
    indexes = number(read(obj, ("spec", "completions")), count) if indexed else None
    return (Place(MAIN, ("spec", "template"), count, least, counts, index, indexes),)


def _job_ready(obj: Object) -> bool:
    status = obj.get("status")
    done = number(read(status, ("succeeded",)), 0) + number(read(status, ("ready",)), 0)
    return done >= _job_count(obj.get("spec"))


def _job_active(obj: Object) -> bool:
    status = obj.get("status")
    return any(number(read(status, (name,)), 0) > 0 for name in ("active", "terminating"))


def _job_reclaimable(obj: Object) -> Mapping[str, int]:
    spec, succeeded = obj.get("spec"), number(read(obj, ("status", "succeeded")), 0)
    parallelism = number(read(spec, ("parallelism",)), 1)
    remaining = number(read(spec, ("completions",)), parallelism) - succeeded
    if parallelism == 1 or succeeded == 0 or remaining >= parallelism:
        return {}
    return {MAIN: min(parallelism - remaining, _job_count(spec))}


JOB: Final = QueuedKind(
    "batch/job",
    "batch",
    "v1",
    "Job",
    "jobs",
    _job_places,
    partial(_ended_by, "Complete", "Failed"),
    _job_active,
    _job_ready,
    _job_reclaimable,
    may_restore=lambda obj: not read(obj, ("status", "startTime")),
)


# Sets of Jobs.


def _each(obj: Object, *path: str) -> Iterator[tuple[Path, Object]]:
    for index, item in enumerate(read(obj, path) or ()):
        if isinstance(item, dict):
            yield (*path, index), item


def _job_set_places(obj: Object) -> Sequence[Place]:
    return tuple(
        Place(
            str(each.get("name") or MAIN),
            (*path, "template", "spec", "template"),
            number(each.get("replicas"), 1) * _job_count(read(each, ("template", "spec"))),
            index_label=INDEX,
            subgroup_label="jobset.sigs.k8s.io/job-index",
            subgroups=number(each.get("replicas"), 1),
        )
        for path, each in _each(obj, "spec", "replicatedJobs")
    )


def _job_set_states(obj: Object) -> Iterator[tuple[Object, Mapping[str, Json]]]:
    states = {each.get("name"): each for _, each in _each(obj, "status", "replicatedJobsStatus")}
    for _, each in _each(obj, "spec", "replicatedJobs"):
        yield each, states.get(each.get("name")) or {}


def _job_set_ready(obj: Object) -> bool:
    return all(
        number(state.get("ready"), 0) + number(state.get("succeeded"), 0)
        >= number(each.get("replicas"), 1)
        for each, state in _job_set_states(obj)
    )


def _job_set_active(obj: Object) -> bool:
    return any(number(state.get("active"), 0) for _, state in _job_set_states(obj))


def _job_set_reclaimable(obj: Object) -> Mapping[str, int]:
    found = {}
    for each, state in _job_set_states(obj):
        succeeded = number(state.get("succeeded"), 0)
        if 0 < succeeded <= number(each.get("replicas"), 1):
            name = str(each.get("name") or MAIN)
            found[name] = succeeded * _job_count(read(each, ("template", "spec")))
    return found


JOB_SET: Final = QueuedKind(
    "jobset.x-k8s.io/jobset",
    "jobset.x-k8s.io",
    "v1alpha2",
    "JobSet",
    "jobsets",
    _job_set_places,
    partial(_ended_by, "Completed", "Failed"),
    _job_set_active,
    _job_set_ready,
    _job_set_reclaimable,
    makes=frozenset({_JOB}),
)


# Ray.


def _ray_places(root: Path, obj: Object) -> Sequence[Place]:
    places = [Place("head", (*root, "headGroupSpec", "template"), 1)]
    for index, group in enumerate(read(obj, (*root, "workerGroupSpecs")) or ()):
        count = number(read(group, ("replicas",)), 1) * number(read(group, ("numOfHosts",)), 1)
        name = str(read(group, ("groupName",)) or f"workers-{index}").lower()
        places.append(Place(name, (*root, "workerGroupSpecs", index, "template"), count))
    return tuple(places)


def _ray_job_places(obj: Object) -> Sequence[Place]:
    places = _ray_places(("spec", "rayClusterSpec"), obj)
    if read(obj, ("spec", "submissionMode")) in (None, "", "K8sJobMode") and read(
        obj, ("spec", "submitterPodTemplate")
    ):
        return (*places, Place("submitter", ("spec", "submitterPodTemplate"), 1))
    return places


def _ray_job_ended(obj: Object) -> Ended | None:
    outcome = read(obj, ("status", "jobStatus"))
    deployment = read(obj, ("status", "jobDeploymentStatus"))
    if outcome not in ("SUCCEEDED", "FAILED", "STOPPED") and deployment != "Failed":
        return None
    message = read(obj, ("status", "message")) or f"RayJob {outcome or deployment}"
    return Ended(outcome == "SUCCEEDED", str(message))


RAY_CLUSTER: Final = QueuedKind(
    "ray.io/raycluster",
    "ray.io",
    "v1",
    "RayCluster",
    "rayclusters",
    partial(_ray_places, ("spec",)),
    lambda _: None,
    lambda obj: bool(
        number(read(obj, ("status", "readyWorkerReplicas")), 0)
        or read(obj, ("status", "state")) == "ready"
    ),
    lambda obj: read(obj, ("status", "state")) == "ready",
    makes=frozenset({_POD, _JOB}),
)
RAY_JOB: Final = QueuedKind(
    "ray.io/rayjob",
    "ray.io",
    "v1",
    "RayJob",
    "rayjobs",
    _ray_job_places,
    _ray_job_ended,
    lambda obj: (
        read(obj, ("status", "jobDeploymentStatus"))
        not in (None, "", "Suspended", "New", "Complete", "Failed")
    ),
    lambda obj: read(obj, ("status", "rayClusterStatus", "state")) == "ready",
    makes=frozenset({("ray.io", "RayCluster"), _JOB}),
)


# Jobs of training operators: a map of replica types, each with a template and a number.


def _replica_places(member: str, order: Sequence[str], obj: Object) -> Sequence[Place]:
    replicas = read(obj, ("spec", member)) or {}
    known = [name for name in order if name in replicas]
    return tuple(
        Place(
            name.lower(),
            ("spec", member, name, "template"),
            number(read(replicas, (name, "replicas")), 1),
        )
        for name in [*known, *sorted(set(replicas) - set(known))]
    )


def _replica_states(obj: Object, state: str) -> int:
    statuses = read(obj, ("status", "replicaStatuses")) or {}
    return sum(number(read(each, (state,)), 0) for each in statuses.values())


def _training(group: str, version: str, kind: str, member: str, order: Sequence[str]) -> QueuedKind:
    return QueuedKind(
        f"kubeflow.org/{kind.lower()}",
        group,
        version,
        kind,
        f"{kind.lower()}s",
        partial(_replica_places, member, order),
        partial(_ended_by, "Succeeded", "Failed"),
        lambda obj: _replica_states(obj, "active") > 0,
        lambda obj: _condition(obj, "Running") is not None,
        suspend=("spec", "runPolicy", "suspend"),
        makes=frozenset({_POD, _JOB}),
    )


_KUBEFLOW: Final = "kubeflow.org"
KINDS: Final[tuple[QueuedKind, ...]] = (
    JOB,
    JOB_SET,
    RAY_CLUSTER,
    RAY_JOB,
    _training(_KUBEFLOW, "v2beta1", "MPIJob", "mpiReplicaSpecs", ("Launcher", "Worker")),
    _training(_KUBEFLOW, "v1", "PyTorchJob", "pytorchReplicaSpecs", ("Master", "Worker")),
    _training(_KUBEFLOW, "v1", "TFJob", "tfReplicaSpecs", ("Chief", "Master", "PS", "Worker")),
    _training(_KUBEFLOW, "v1", "XGBoostJob", "xgbReplicaSpecs", ("Master", "Worker")),
    _training(_KUBEFLOW, "v1", "PaddleJob", "paddleReplicaSpecs", ("Master", "Worker")),
    _training(_KUBEFLOW, "v1", "JAXJob", "jaxReplicaSpecs", ("Worker",)),
)
"""Kinds with a field that suspends them."""

BY_FRAMEWORK: Final[Mapping[str, QueuedKind]] = {each.framework: each for each in KINDS}
BY_KIND: Final[Mapping[tuple[str, str], QueuedKind]] = {
    (each.group, each.kind): each for each in KINDS
}
"""By group and kind."""
PODS: Final = "pod"
DEPLOYMENTS: Final = "deployment"
STATEFUL_SETS: Final = "statefulset"
FRAMEWORKS: Final = (*BY_FRAMEWORK, PODS, DEPLOYMENTS, STATEFUL_SETS)
"""Everything that can be queued, as the configuration names it."""
