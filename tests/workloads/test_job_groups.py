"""Which Jobs get a group of pods, and what it looks like."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.jobs import Job
from drayman.workloads.jobs.groups import group_name, group_of, may_begin, wants_group, workload_of
from drayman.workloads.jobs.pods import Seed, pod_of

TOGETHER = {"completionMode": "Indexed", "parallelism": 4, "completions": 4}


def job(name: str = "train", stated: dict[str, str] | None = None, **spec: Any) -> Job:
    metadata = {"name": name, "namespace": "ml", "uid": "u", "annotations": stated or {}}
    return convert(Job, {"metadata": metadata, "spec": {**TOGETHER, **spec}})


CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "all pods at the same time": ({}, True),
    "without indexes": ({"completionMode": "NonIndexed"}, False),
    "a single pod": ({"parallelism": 1, "completions": 1}, False),
    "one after the other": ({"parallelism": 2}, False),
    "in a group already": (
        {"template": {"spec": {"schedulingGroup": {"podGroupName": "g"}}}},
        False,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_which_jobs_get_a_group(case: str) -> None:
    """Those whose pods all run at the same time, if nothing else says with whom they start."""
    spec, wanted = CASES[case]
    assert wants_group(job(**spec)) is wanted


def test_a_job_that_something_manages_is_left_alone() -> None:
    """Its pods may be grouped with those of other Jobs."""
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "s"}
    metadata = {"name": "a", "ownerReferences": [{**owner, "controller": True}]}
    assert not wants_group(convert(Job, {"metadata": metadata, "spec": TOGETHER}))


def test_a_group_and_its_workload() -> None:
    """Both belong to the job, refer to each other, and want all of its pods."""
    given = job(template={"spec": {"priorityClassName": "high"}})
    workload, group = workload_of(given), group_of(given)
    for made in (workload, group):
        (owner,) = made.metadata.owner_references
        assert (owner.uid, owner.controller, made.metadata.namespace) == ("u", True, "ml")
    reference = workload.spec.controller_ref
    assert reference is not None
    assert (reference.api_group, reference.kind, reference.name) == ("batch", "Job", "train")
    (template,) = workload.spec.pod_group_templates
    named = group.spec.pod_group_template_ref
    assert named is not None
    assert named.workload is not None
    assert named.workload.workload_name == workload.metadata.name
    assert named.workload.pod_group_template_name == template.name
    for policies in (template, group.spec):
        assert policies.scheduling_policy.gang is not None
        assert policies.scheduling_policy.gang.min_count == 4
        assert policies.priority_class_name == "high"


def test_names_of_groups() -> None:
    """The same for the same job, another one for another job of its name, and never too long."""
    first, again = job(), convert(Job, {"metadata": {"name": "train", "uid": "v"}})
    assert group_name(first) == group_name(job()) != group_name(again)
    assert group_name(first).startswith("train-")
    assert len(group_name(job("n" * 253))) <= 253


def test_a_job_that_has_begun_without_a_group_goes_on_without() -> None:
    """Pods cannot join a group later."""
    assert may_begin(job(), ())
    begun = {"metadata": {"name": "train"}, "spec": TOGETHER, "status": {"failed": 1}}
    assert not may_begin(convert(Job, begun), ())


def test_pods_carry_what_their_job_states_about_them() -> None:
    """What the template says itself comes first, and other annotations stay on the job."""
    stated = {"drayman.dev/gang": "4", "drayman.dev/required-level": "rack", "example.com/a": "b"}
    template = {"metadata": {"annotations": {"drayman.dev/gang": "2"}}}
    annotations = pod_of(job(stated=stated, template=template), Seed(0))["metadata"]["annotations"]
    assert annotations["drayman.dev/gang"] == "2"
    assert annotations["drayman.dev/required-level"] == "rack"
    assert "example.com/a" not in annotations
