"""Which owners an object is charged through: those that exist and would make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from drayman.workloads.queued.entering import Intake, charged_owner
from drayman.workloads.queued.kinds import QueuedKind
from drayman.workloads.queued.names import QUEUE

Object = dict[str, Any]
INDEX = "batch.kubernetes.io/job-completion-index"
VERSIONS = {
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "RayJob": "ray.io/v1",
    "RayCluster": "ray.io/v1",
}


def pod_spec(template: str = "one", gpus: str = "") -> Object:
    container: Object = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    entries = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return (
        {"containers": [container]}
        if gpus
        else {"containers": [{"name": "c"}], "resourceClaims": entries}
    )


def job_spec(**more: Any) -> Object:
    return {"parallelism": 2, "completions": 2, "template": {"spec": pod_spec()}, **more}


def made(
    kind: str, name: str, spec: Object, *, queue: str = "", by: str = "", **metadata: Any
) -> Object:
    """An object whose uid is its name. `by` is kind and name of what it says made it, perhaps with another uid."""
    body: Object = {
        "apiVersion": VERSIONS.get(kind, "v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {QUEUE: queue} if queue else {},
            **metadata,
        },
        "spec": spec,
    }
    if by:
        maker, found, uid = (*by.split(), "")[:3]
        body["metadata"]["ownerReferences"] = [
            {
                "apiVersion": VERSIONS.get(maker, "v1"),
                "kind": maker,
                "name": found,
                "uid": uid or found,
                "controller": True,
            }
        ]
    return body


SET = made(
    "JobSet",
    "set",
    {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": job_spec()}}]},
    queue="q",
)
JOB = made("Job", "job", job_spec(completionMode="Indexed"), queue="q")
PART = made("Job", "part", job_spec(), by="JobSet set")
CLUSTER = {
    "headGroupSpec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
    "workerGroupSpecs": [{"groupName": "w", "replicas": 1, "template": {"spec": pod_spec()}}],
}
RAY = made("RayJob", "ray", {"rayClusterSpec": CLUSTER}, queue="q")
EVERYTHING = (SET, JOB, PART, RAY, made("RayCluster", "rc", CLUSTER, queue="q", by="RayJob ray"))


@dataclass(frozen=True)
class Case:
    obj: Object
    owner: str
    """Through which it is charged; empty: through none."""
    intake: Intake = field(default_factory=Intake)


CASES = {
    "a pod of a Job": Case(made("Pod", "p", pod_spec(), by="Job job"), "job"),
    "a pod of a Job of a JobSet": Case(made("Pod", "p", pod_spec(), by="Job part"), "set"),
    "a Job of a JobSet": Case(PART, "set"),
    "a pod of a RayCluster of a RayJob": Case(
        made("Pod", "p", pod_spec(), by="RayCluster rc"), "ray"
    ),
    "a pod that asks for no devices": Case(
        made("Pod", "p", {"containers": [{"name": "x"}]}, by="Job job"), "job"
    ),
    "an owner that does not exist": Case(made("Pod", "p", pod_spec(), by="Job ghost"), ""),
    "an owner with another uid": Case(made("Pod", "p", pod_spec(), by="Job job other"), ""),
    "an owner of another kind": Case(made("Pod", "p", pod_spec(), by="JobSet set"), ""),
    "a Job under a Job": Case(made("Job", "j", job_spec(), by="Job job"), ""),
    "another template of claims": Case(made("Pod", "p", pod_spec("eight"), by="Job job"), ""),
    "devices that its template does not ask for": Case(
        made("Pod", "p", pod_spec(gpus="8"), by="Job job"), ""
    ),
    "a Job with another template": Case(
        made("Job", "j", job_spec(template={"spec": pod_spec("eight")}), by="JobSet set"), ""
    ),
    "an index beyond the completions": Case(
        made("Pod", "p", pod_spec(), by="Job job", annotations={INDEX: "2"}), ""
    ),
    "the last index": Case(
        made("Pod", "p", pod_spec(), by="Job job", annotations={INDEX: "1"}), "job"
    ),
    "an index beyond the replicas": Case(
        made(
            "Job",
            "j",
            job_spec(),
            by="JobSet set",
            annotations={"jobset.sigs.k8s.io/job-index": "2"},
        ),
        "",
    ),
    "a kind that does not wait": Case(
        made("Pod", "p", pod_spec(), by="Job job"), "", Intake(frozenset({"pod"}))
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_owner_counts_that_would_make_the_object(case: str) -> None:
    """Everything else waits for itself: a reference proves nothing."""

    def find(kind: QueuedKind, name: str) -> Mapping[str, Any] | None:
        return next(
            (e for e in EVERYTHING if (e["kind"], e["metadata"]["name"]) == (kind.kind, name)), None
        )

    found = charged_owner(CASES[case].obj, CASES[case].intake, find)
    assert ("" if found is None else found.obj["metadata"]["name"]) == CASES[case].owner
