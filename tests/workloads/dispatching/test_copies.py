"""What workers get: bodies of copies, what pods need, and how that compares with what is there."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api import codec
from drayman.api.kueue_workload import PodSet, WorkloadSpec
from drayman.api.meta import ObjectMeta
from drayman.api.resource import DeviceClass, ResourceClaimTemplate
from drayman.workloads.dispatching.copies import (
    Match,
    copy_of,
    is_copy_of,
    job_copy,
    match,
    needs_of,
    workload_content,
    workload_copy,
)
from drayman.workloads.dispatching.names import (
    CONTROLLER,
    content_of,
    is_left_to_dispatcher,
    leave_to_dispatcher,
)
from drayman.workloads.queued.composing import pod_sets_of
from drayman.workloads.queued.kinds import BY_FRAMEWORK, JOB, KINDS
from drayman.workloads.queued.starting import Additions, start, with_additions

LABELS = {"batch.kubernetes.io/controller-uid": "u1", "app": "x"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main"}]}}
OBJECT: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "train",
        "namespace": "ns",
        "uid": "u1",
        "resourceVersion": "5",
        "labels": {"kueue.x-k8s.io/queue-name": "q"},
        "ownerReferences": [{"kind": "CronJob"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "1"},
    },
    "spec": {
        "suspend": False,
        "managedBy": CONTROLLER,
        "parallelism": 2,
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
        "template": TEMPLATE,
    },
    "status": {"active": 2},
}


def started() -> dict[str, Any]:
    """The object as it is on the manager once it has been started there."""
    added = Additions("main", 2, {"kueue.x-k8s.io/podset": "main"}, node_selector={"zone": "a"})
    template = with_additions(TEMPLATE, added)
    return {**OBJECT, "spec": {**OBJECT["spec"], "template": template}}


def test_a_job_is_copied_as_it_was_described() -> None:
    """Suspended, without what the manager's start has added, without a status, and with its selector, which the worker has to accept."""
    sets = pod_sets_of(JOB, OBJECT)
    made = job_copy(JOB, started(), "w", sets, "o")
    assert made["metadata"] == {
        "name": "train",
        "namespace": "ns",
        "labels": {
            "kueue.x-k8s.io/queue-name": "q",
            "kueue.x-k8s.io/prebuilt-workload-name": "w",
            "kueue.x-k8s.io/multikueue-origin": "o",
        },
        "annotations": {"mine": "1", "drayman.dev/copy-of": "u1"},
    }
    assert "status" not in made
    spec = made["spec"]
    assert spec["template"] == TEMPLATE
    assert spec["suspend"] is True
    assert spec["manualSelector"] is True
    assert "managedBy" not in spec
    assert pod_sets_of(JOB, made) == sets


def test_a_job_that_runs_with_fewer_pods_is_copied_with_all() -> None:
    """Partial admission on the manager is the manager's."""
    least = {"annotations": {"kueue.x-k8s.io/job-min-parallelism": "1"}}
    obj = {**OBJECT, "metadata": {**OBJECT["metadata"], **least}}
    sets = pod_sets_of(JOB, obj)
    fewer = {**obj, "spec": {**obj["spec"], "parallelism": 1}}
    assert start(JOB, obj, [Additions("main", 1)])
    assert job_copy(JOB, fewer, "w", sets, "o")["spec"]["parallelism"] == 2


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.framework)
def test_every_kind_can_be_left_to_the_dispatcher(kind: Any) -> None:
    """Beside the field that suspends it; one that names its controller keeps it."""
    obj: dict[str, Any] = {"spec": {}}
    assert not is_left_to_dispatcher(kind, obj)
    leave_to_dispatcher(kind, obj)
    assert is_left_to_dispatcher(kind, obj)
    other: dict[str, Any] = {"spec": {"managedBy": "me", "runPolicy": {"managedBy": "me"}}}
    leave_to_dispatcher(kind, other)
    assert not is_left_to_dispatcher(kind, other)


def test_training_jobs_say_it_in_their_run_policy() -> None:
    obj: dict[str, Any] = {"spec": {}}
    leave_to_dispatcher(BY_FRAMEWORK["kubeflow.org/pytorchjob"], obj)
    assert obj == {"spec": {"runPolicy": {"managedBy": CONTROLLER}}}


SPEC = WorkloadSpec(
    pod_sets=(
        PodSet(
            template={
                "spec": {
                    "containers": [
                        {"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}
                    ],
                    "resourceClaims": [
                        {"name": "a", "resourceClaimTemplateName": "t"},
                        {"name": "b", "resourceClaimTemplateName": "unknown"},
                        {"name": "c", "resourceClaimName": "shared"},
                    ],
                }
            }
        ),
    ),
    queue_name="q",
    priority=3,
)


def template_of(*classes: str, uid: str = "") -> ResourceClaimTemplate:
    requests = [{"name": f"r{n}", "exactly": {"deviceClassName": c}} for n, c in enumerate(classes)]
    value = {"spec": {"spec": {"devices": {"requests": requests}}}}
    found: ResourceClaimTemplate = codec.convert(ResourceClaimTemplate, value)
    return found


def class_of(name: str, **spec: Any) -> DeviceClass:
    found: DeviceClass = codec.convert(DeviceClass, {"metadata": {"name": name}, "spec": spec})
    return found


def test_a_workload_needs_what_its_pods_name() -> None:
    """Templates, the classes of their requests, and classes behind extended resources. What is missing here is named."""
    behind = class_of("behind", extendedResourceName="example.com/gpu")
    needs = needs_of(
        SPEC,
        {"t": template_of("mine", "gone")},
        {"mine": class_of("mine"), "behind": behind, "unused": class_of("unused")},
    )
    assert needs.templates == (template_of("mine", "gone"),)
    assert [each.metadata.name for each in needs.classes] == ["mine", "behind"]
    assert needs.missing == ("ResourceClaimTemplate unknown", "DeviceClass gone")


def test_a_copy_knows_its_original_and_its_content() -> None:
    """Another priority is no other workload; another size or queue is."""
    made = workload_copy(ObjectMeta(namespace="ns", name="w", uid="uid"), SPEC, "o")
    metadata: ObjectMeta = codec.convert(ObjectMeta, made["metadata"])
    assert made["spec"]["priority"] == 3
    assert is_copy_of(metadata, "uid", workload_content(SPEC))
    assert not is_copy_of(metadata, "other", workload_content(SPEC))
    more = WorkloadSpec(pod_sets=(PodSet(count=2),), queue_name="q")
    assert workload_content(more) != workload_content(SPEC)


@pytest.mark.parametrize(
    ("labels", "same", "wanted"),
    [
        pytest.param(None, True, Match.MISSING, id="nothing there"),
        pytest.param({}, True, Match.SAME, id="its own, which says the same"),
        pytest.param({}, False, Match.FOREIGN, id="its own, which says something else"),
        pytest.param({"kueue.x-k8s.io/multikueue-origin": "o"}, True, Match.SAME, id="our copy"),
        pytest.param(
            {"kueue.x-k8s.io/multikueue-origin": "o"}, False, Match.OUTDATED, id="an old copy"
        ),
        pytest.param(
            {"kueue.x-k8s.io/multikueue-origin": "x"}, False, Match.FOREIGN, id="another's copy"
        ),
    ],
)
def test_what_a_worker_has_is(labels: dict[str, str] | None, same: bool, wanted: Match) -> None:
    original = template_of("c")
    if labels is None:
        assert match(original, None, "o") is wanted
        return
    value = copy_of(original if same else template_of("d"), "o")
    value["metadata"]["labels"] = labels
    there: ResourceClaimTemplate = codec.convert(ResourceClaimTemplate, value)
    assert match(original, there, "o") is wanted


def test_equal_contents_have_equal_hashes() -> None:
    """Whatever the order of their members."""
    assert content_of({"a": [1, {"x": 1, "y": 2}], "b": 2}) == content_of(
        {"b": 2, "a": [1, {"y": 2, "x": 1}]}
    )
    assert content_of({"a": 1}) != content_of({"a": 2})
