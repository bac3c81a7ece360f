"""From Jobs and their like to pod sets, and how they are started and put back (case G17 of the specification)."""

from __future__ import annotations

from copy import deepcopy

import msgspec
import pytest
from msgspec.structs import replace

from drayman.api.core import Toleration
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import (
    Admission,
    AdmissionCheckState,
    PodSetAssignment,
    PodSetUpdate,
    TopologyAssignment,
    TopologyRequest,
)
from drayman.workloads.queued.composing import (
    CompositionError,
    Importance,
    pod_sets_of,
    workload_for,
)
from drayman.workloads.queued.kinds import BY_FRAMEWORK, JOB, JOB_SET, RAY_JOB, Ended
from drayman.workloads.queued.names import workload_name
from drayman.workloads.queued.places import pointer, read
from drayman.workloads.queued.slices import is_elastic
from drayman.workloads.queued.starting import (
    StartError,
    additions_for,
    as_started,
    restore,
    same_pod_sets,
    start,
    suspend,
)
from workloads.queued.objects import job, template

FLAVORS = {
    "spot": ResourceFlavorSpec(
        node_labels={"kind": "spot"}, tolerations=(Toleration(key="spot", operator="Exists"),)
    )
}


def admission(*names, count=None, **more):
    return Admission(
        cluster_queue="q",
        pod_set_assignments=tuple(
            PodSetAssignment(name=name, flavors={"cpu": "spot"}, count=count, **more)
            for name in names
        ),
    )


def patched(obj, operations):
    """What a JSON patch of additions and replacements makes of an object."""
    obj = deepcopy(obj)
    for operation in operations:
        *way, last = operation["path"][1:].split("/")
        part = obj
        for step in way:
            part = part[int(step)] if isinstance(part, list) else part.setdefault(step, {})
        part[last] = operation["value"]
    return obj


def started(kind, obj, given):
    sets = pod_sets_of(kind, obj)
    return patched(obj, start(kind, obj, additions_for("w", sets, given, FLAVORS)))


def ray_spec(**more):
    workers = [{"groupName": "Small", "replicas": 3, "numOfHosts": 2, "template": template()}]
    return {"headGroupSpec": {"template": template()}, "workerGroupSpecs": workers, **more}


def of(kind, **spec):
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "x", "namespace": "default", "uid": "u"},
        "spec": spec,
    }


MPI = BY_FRAMEWORK["kubeflow.org/mpijob"]
REPLICAS = {"Worker": {"replicas": 4, "template": template()}, "Launcher": {"template": template()}}
JOBS = [
    {"name": "leader", "template": {"spec": {"template": template()}}},
    {"name": "workers", "replicas": 3, "template": {"spec": {"parallelism": 4, "completions": 2, "template": template()}}},
]  # fmt: skip
SETS = {
    "a Job": (JOB, job(parallelism=3, completions=5), {"main": (3, None)}),
    "a Job with fewer completions than pods at a time": (
        JOB,
        job(parallelism=5, completions=2),
        {"main": (2, None)},
    ),
    "a Job without numbers": (JOB, of(JOB, template=template()), {"main": (1, None)}),
    "a set of Jobs": (
        JOB_SET,
        of(JOB_SET, replicatedJobs=JOBS),
        {"leader": (1, None), "workers": (6, None)},
    ),
    "a Ray cluster": (
        BY_FRAMEWORK["ray.io/raycluster"],
        of(BY_FRAMEWORK["ray.io/raycluster"], **ray_spec()),
        {"head": (1, None), "small": (6, None)},
    ),
    "a Ray job with a submitter": (
        RAY_JOB,
        of(RAY_JOB, rayClusterSpec=ray_spec(), submitterPodTemplate=template()),
        {"head": (1, None), "small": (6, None), "submitter": (1, None)},
    ),
    "an MPI job": (MPI, of(MPI, mpiReplicaSpecs=REPLICAS), {"launcher": (1, None), "worker": (4, None)}),
}  # fmt: skip


@pytest.mark.parametrize("case", SETS)
def test_what_an_object_comes_to(case):
    """Each pod set by its name, with its count and the least that will do."""
    kind, obj, wanted = SETS[case]
    found = pod_sets_of(kind, obj)
    assert {each.name: (each.count, each.min_count) for each in found} == wanted
    assert all(each.template["spec"]["containers"] for each in found)


def test_an_object_without_pods_is_none():
    """There is nothing to wait for."""
    with pytest.raises(CompositionError, match="describes no pods"):
        pod_sets_of(JOB_SET, of(JOB_SET))


def test_the_workload_of_a_job():
    """Named after the Job and a hash, owned by it, and kept while it is in use."""
    value = job()
    value["metadata"]["labels"] |= {"team": "a", "kueue.x-k8s.io/max-exec-time-seconds": "60"}
    made = workload_for(JOB, value, Importance(3), copied=["team"])
    metadata, spec = made["metadata"], made["spec"]
    assert metadata["name"] == workload_name("batch", "Job", "train", "uid-train")
    assert metadata["name"].startswith("job-train-")
    assert metadata["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]
    assert metadata["labels"] == {"team": "a", "kueue.x-k8s.io/job-uid": "uid-train"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("Job", True)
    assert (spec["queueName"], spec["priority"]) == ("team", 3)
    assert spec["maximumExecutionTimeSeconds"] == 60


def test_names_are_never_too_long():
    """And stay different."""
    one, other = (workload_name("batch", "Job", "j" * 253, uid) for uid in "ab")
    assert len(one) == 253
    assert one != other


EVERY = {
    case: SETS[case]
    for case in ("a Job", "a set of Jobs", "a Ray job with a submitter", "an MPI job")
}


@pytest.mark.parametrize("case", EVERY)
def test_g17_started_with_what_the_flavor_says_and_restored_exactly(case):
    """Node labels and tolerations of the flavor are in every template while it runs, and nothing of it is left afterwards."""
    kind, obj, _ = EVERY[case]
    obj = patched(obj, [suspend(kind)])
    sets = pod_sets_of(kind, obj)
    running = started(kind, obj, admission(*(each.name for each in sets)))
    assert not kind.is_suspended(running)
    for place in kind.places(running):
        given = read(running, place.template)
        assert given["spec"]["nodeSelector"] == {"kind": "spot"}
        assert given["spec"]["tolerations"] == [{"key": "spot", "operator": "Exists"}]
        assert given["metadata"]["labels"]["kueue.x-k8s.io/podset"] == place.name
    stopped = patched(running, [suspend(kind)])
    assert patched(stopped, restore(kind, stopped, sets)) == obj
    assert restore(kind, obj, sets) == []


def test_g17_what_the_template_says_itself_stays():
    """Selectors and tolerations of its own are kept, before and after."""
    own = {"nodeSelector": {"zone": "a"}, "tolerations": [{"key": "own", "operator": "Exists"}]}
    value = job(template=template(**own))
    running = started(JOB, value, admission("main"))
    spec = running["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"zone": "a", "kind": "spot"}
    assert [each["key"] for each in spec["tolerations"]] == ["own", "spot"]
    back = patched(running, [suspend(JOB), *restore(JOB, running, pod_sets_of(JOB, value))])
    assert back == value


def test_a_job_that_is_content_with_fewer_pods():
    """It gets as many as were admitted, and all of them back when it is stopped."""
    value = job(parallelism=10, completions=10)
    value["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "4"}
    (only,) = pod_sets_of(JOB, value)
    assert (only.count, only.min_count) == (10, 4)
    running = started(JOB, value, admission("main", count=6))
    assert (running["spec"]["parallelism"], running["spec"]["completions"]) == (6, 10)
    back = patched(running, [suspend(JOB), *restore(JOB, running, [only])])
    assert back == value
    value["metadata"]["annotations"]["kueue.x-k8s.io/job-completions-equal-parallelism"] = "true"
    running = started(JOB, value, admission("main", count=6))
    assert (running["spec"]["parallelism"], running["spec"]["completions"]) == (6, 6)


def test_pods_that_get_their_nodes_from_the_workload_are_gated():
    """Until they have them, and they name the Workload."""
    running = started(
        JOB, job(), admission("main", topology_assignment=TopologyAssignment(levels=("host",)))
    )
    given = running["spec"]["template"]
    assert given["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/topology"}]
    assert given["metadata"]["annotations"] == {"kueue.x-k8s.io/workload": "w"}


def test_what_a_check_adds_must_not_contradict_the_template():
    """The place and both values are named."""
    value = job(template=template(nodeSelector={"kind": "own"}))
    with pytest.raises(StartError, match="node selector kind would have to be own and spot"):
        started(JOB, value, admission("main"))
    checks = [
        AdmissionCheckState(
            name="c", pod_set_updates=(PodSetUpdate(name="main", node_selector={"kind": "b"}),)
        )
    ]
    with pytest.raises(StartError, match="spot and b"):
        additions_for("w", pod_sets_of(JOB, job()), admission("main"), FLAVORS, checks)


def test_a_running_job_is_compared_with_what_was_started():
    """Its templates have additions, its count may be smaller; a template that somebody changed is noticed."""
    value = job(parallelism=4, completions=4)
    value["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    sets = pod_sets_of(JOB, value)
    given = additions_for("w", sets, admission("main", count=3), FLAVORS)
    running = patched(value, start(JOB, value, given))
    assert same_pod_sets(pod_sets_of(JOB, running), as_started(sets, given))
    running["spec"]["parallelism"] = 4
    assert not same_pod_sets(pod_sets_of(JOB, running), as_started(sets, given))


def test_an_index_label_is_no_difference():
    """A Workload that Kueue made for a plain Job has a topology request with only an index label; the Job still matches it."""
    (made,) = pod_sets_of(JOB, job(completionMode="Indexed"))
    label = TopologyRequest(pod_index_label="batch.kubernetes.io/job-completion-index")
    assert same_pod_sets([made], [replace(made, topology_request=label)])
    required = TopologyRequest(required="rack")
    assert not same_pod_sets([made], [replace(made, topology_request=required)])


@pytest.mark.parametrize(
    ("annotation", "value", "elastic"),
    [
        ("kueue.x-k8s.io/podset-group-name", "g", True),
        ("kueue.x-k8s.io/podset-required-topology", "rack", False),
        ("kueue.x-k8s.io/podset-unconstrained-topology", "true", False),
        ("kueue.x-k8s.io/podset-unconstrained-topology", "false", True),
    ],
)
def test_only_jobs_without_a_topology_are_elastic(annotation, value, elastic):
    """A place in a topology is for a fixed number of pods."""
    annotated = template()
    annotated["metadata"]["annotations"] = {annotation: value}
    found = job(template=annotated)
    found["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
    assert is_elastic(JOB, found) is elastic


def status(**fields):
    value = job(parallelism=3, completions=5)
    return {**value, "status": fields}


def test_what_the_status_of_a_job_says():
    """Whether it is active and ready, which pods it needs no longer, and how it ended."""
    complete = {"type": "Complete", "status": "True", "message": "done"}
    assert JOB.ended(status(conditions=[complete])) == Ended(True, "done")
    assert JOB.ended(status(conditions=[{**complete, "type": "Failed"}])) == Ended(False, "done")
    assert JOB.ended(status(conditions=[{**complete, "status": "False"}])) is None
    assert [JOB.is_active(status(active=n)) for n in (0, 1)] == [False, True]
    assert [JOB.are_pods_ready(status(ready=n, succeeded=1)) for n in (1, 2)] == [False, True]
    assert [JOB.reclaimable(status(succeeded=n)) for n in (0, 2, 3, 5)] == [
        {},
        {},
        {"main": 1},
        {"main": 3},
    ]
    assert not JOB.may_restore(status(startTime="2026-01-01T00:00:00Z"))


def test_paths_as_patches_write_them():
    """Slashes and tildes in names are escaped."""
    assert pointer(("metadata", "labels", "a/b~c", 0)) == "/metadata/labels/a~1b~0c/0"


def test_statements_about_topology_are_taken_over():
    """From the annotations of the template, with the index of Indexed Jobs; a size that is none is refused."""
    annotated = template()
    annotated["metadata"]["annotations"] = {
        "kueue.x-k8s.io/podset-required-topology": "rack",
        "kueue.x-k8s.io/podset-slice-size": "2",
        "kueue.x-k8s.io/podset-slice-required-topology": "host",
    }
    (only,) = pod_sets_of(JOB, job(completionMode="Indexed", template=annotated))
    assert only.topology_request is not None
    found = msgspec.to_builtins(only.topology_request)
    assert found == {
        "required": "rack",
        "podIndexLabel": "batch.kubernetes.io/job-completion-index",
        "podSetSliceRequiredTopology": "host",
        "podSetSliceSize": 2,
    }
    annotated["metadata"]["annotations"]["kueue.x-k8s.io/podset-slice-size"] = "none"
    with pytest.raises(CompositionError, match="is not a positive number"):
        pod_sets_of(JOB, job(template=annotated))
