"""What a pod of a job says about itself, and what it is made with: its index, its failures, the finalizer that keeps it countable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.core import Pod
from drayman.api.integers import parse_integer
from drayman.api.jobs import Job
from drayman.api.struct import Json
from drayman.workloads.jobs.groups import stated_for_pods
from drayman.workloads.pod_bodies import pod_body

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX: Final = 58
"""Of a generated name: what is left of 63 beside five random characters."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A pod to be made."""

    index: int | None = None
    failures: int | None = None
    """How often its index has failed before, where that is counted by index."""
    ignored_failures: int = 0


def is_tracked(pod: Pod) -> bool:
    return FINALIZER in pod.metadata.finalizers


def index_of(pod: Pod, completions: int) -> int | None:
    """The completion index of a pod; None where it has none that the job could use."""
    index = parse_integer(pod.metadata.annotations.get(INDEX, ""))
    return index if index is not None and 0 <= index < completions else None


def count_in(pod: Pod, annotation: str) -> int:
    return max(0, parse_integer(pod.metadata.annotations.get(annotation, "")) or 0)


def pod_of(job: Job, seed: Seed) -> dict[str, Json]:
    """The pod of a seed."""
    name = job.metadata.name
    prefix = f"{name}-"
    if seed.index is not None:
        ending = f"-{seed.index}-"
        prefix = name[: _LONGEST_PREFIX - len(ending)] + ending
    pod = pod_body(job, job.spec.template, generate_name=prefix)
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["finalizers"] = [*metadata.get("finalizers", ()), FINALIZER]
    if job.metadata.annotations:
        metadata["annotations"] = stated_for_pods(job) | metadata["annotations"]
    if seed.index is not None:
        metadata["annotations"][INDEX] = metadata["labels"][INDEX] = str(seed.index)
        spec["hostname"] = f"{name}-{seed.index}"
        for containers in ("initContainers", "containers"):
            if containers in spec:
                spec[containers] = [_with_index(container) for container in spec[containers]]
    if seed.failures is not None:
        metadata["annotations"][FAILURES] = str(seed.failures)
        if job.spec.pod_failure_policy is not None:
            metadata["annotations"][IGNORED_FAILURES] = str(seed.ignored_failures)
    return pod


def _with_index(container: dict[str, Json]) -> dict[str, Json]:
    variables = container.get("env") or []
    if any(variable.get("name") == _INDEX_VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*variables, {"name": _INDEX_VARIABLE, "valueFrom": source}]}
