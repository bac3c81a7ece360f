"""Annotations of `drayman.dev` that are mistakes: whoever writes one is told at once."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.kinds.circumstances import created, make_context, pod, resource_of

GANG = "drayman.dev/gang"
UNKNOWN = "nobody reads this"
TO_TEMPLATE = "put it into spec.template.metadata.annotations"


def told(group: str, kind: str, value: dict[str, Any]) -> list[str]:
    resource, context = resource_of(group, kind), make_context()
    made = created(resource, value, context)
    assert resource.strategy.warnings(made, copy.deepcopy(made), context) == []
    return list(resource.strategy.warnings(made, None, context))


def a_pod(labels: dict[str, str] | None = None, **annotations: str) -> dict[str, Any]:
    made = dict(pod())
    made["metadata"]["annotations"] = annotations
    made["metadata"]["labels"] = labels or {}
    return made


def workload(annotations: dict[str, str], template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "w", "namespace": "ns", "annotations": annotations},
        "spec": {"template": template, **spec},
    }


def template(restart: str = "Never", **annotations: str) -> dict[str, Any]:
    made = a_pod({"app": "w"}, **annotations)
    made["spec"]["restartPolicy"] = restart
    return made


PODS = {
    "nothing of ours": ({"example.com/gnag": "2", "drayman.development/x": "1"}, []),
    "all is well": ({GANG: "2", "drayman.dev/gang-timeout": "10m", "drayman.dev/runtime": "2h"}, []),
    "a slip": (
        {"drayman.dev/gnag": "2"},
        [f"metadata.annotations[drayman.dev/gnag]: {UNKNOWN}; did you mean {GANG}?"],
    ),
    "like nothing": (
        {"drayman.dev/sandwich": "2"},
        [f"metadata.annotations[drayman.dev/sandwich]: {UNKNOWN}"],
    ),
    "not a number": ({GANG: "two"}, [f"metadata.annotations[{GANG}]: 'two' is not a number of pods"]),
    "not a duration": (
        {"drayman.dev/runtime": "fast"},
        [
            "metadata.annotations[drayman.dev/runtime]: 'fast' is not a duration such as 90m or 2h30m,"
            " and is ignored"
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PODS)
def test_pods(name: str) -> None:
    """What is wrong with which annotation; nothing about what belongs to others."""
    annotations, expected = PODS[name]
    assert told("", "Pod", a_pod(**annotations)) == expected


def test_a_label_is_not_an_annotation() -> None:
    """Other schedulers have labels for this. Those that may be labels are left alone."""
    labels = {GANG: "2", "drayman.dev/spot": "true", "drayman.dev/mine": "x"}
    assert told("", "Pod", a_pod(labels)) == [
        f"metadata.labels[{GANG}]: has no effect as a label; make it an annotation"
    ]


def test_templates() -> None:
    """The field is that of the template."""
    value = workload({}, template(**{"drayman.dev/gang": "0"}))
    (said,) = told("batch", "Job", value)
    assert said == f"spec.template.metadata.annotations[{GANG}]: 0 is less than 1"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"])
def test_workloads_do_not_pass_annotations_on(kind: str) -> None:
    """Only those of Jobs count for their pods."""
    value = workload({GANG: "2"}, template("Always"), selector={"matchLabels": {"app": "w"}})
    if kind == "StatefulSet":
        value["spec"]["serviceName"] = "w"
    assert told("apps", kind, value) == [
        f"metadata.annotations[{GANG}]: has no effect here; {TO_TEMPLATE}"
    ]


SIZES = {
    "as many as there are": ("Deployment", {"replicas": 2}, []),
    "more than there are": (
        "Deployment",
        {"replicas": 1},
        ["but spec.replicas is 1: they would wait for ever"],
    ),
    "none wanted for now": ("ReplicaSet", {"replicas": 0}, []),
    "one after the other": (
        "StatefulSet",
        {"replicas": 2, "serviceName": "w"},
        ["but the set makes one after the other: set spec.podManagementPolicy to Parallel"],
    ),
    "at the same time": (
        "StatefulSet",
        {"replicas": 2, "serviceName": "w", "podManagementPolicy": "Parallel"},
        [],
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_gangs_that_never_come_together(name: str) -> None:
    """Too few pods, or pods that wait for each other."""
    kind, spec, expected = SIZES[name]
    value = workload({}, template("Always", **{GANG: "2"}), selector={"matchLabels": {"app": "w"}})
    value["spec"] |= spec
    field = f"spec.template.metadata.annotations[{GANG}]: 2 pods start together, "
    assert told("apps", kind, value) == [f"{field}{each}" for each in expected]


def test_jobs() -> None:
    """Slips and values as with pods; what only pods have is told to belong there."""
    fine = {GANG: "2", "drayman.dev/min-runtime": "5m"}
    assert told("batch", "Job", workload(fine, template(), parallelism=2)) == []
    wrong = {"drayman.dev/gnag": "2", "drayman.dev/cost": "low", "drayman.dev/min-runtime": "soon"}
    said = told("batch", "Job", workload(wrong, template()))
    assert said[0].endswith(f"did you mean {GANG}?")
    assert (
        said[1] == f"metadata.annotations[drayman.dev/cost]: has no effect on a Job; {TO_TEMPLATE}"
    )
    assert "'soon' is not a duration" in said[2]
    assert len(said) == 3


def test_a_job_and_its_template_state_things_together() -> None:
    """A mistake is told where it is; what one of them lacks may be stated by the other."""
    size, level = "drayman.dev/slice-size", "drayman.dev/slice-level"
    together = workload({GANG: "2", size: "2"}, template(**{level: "a/rack"}), parallelism=2)
    assert told("batch", "Job", together) == []
    (said,) = told("batch", "Job", workload({GANG: "1"}, template(**{size: "some", level: "a/b"})))
    assert said.startswith(f"spec.template.metadata.annotations[{size}]: 'some'")
    (said,) = told("batch", "Job", workload({GANG: "1", size: "2"}, template()))
    assert said.startswith(f"metadata.annotations[{level}]: is required")


def test_a_job_with_fewer_pods_than_its_gang() -> None:
    """They would wait for ever for pods that are not made."""
    (said,) = told("batch", "Job", workload({GANG: "3"}, template(), parallelism=2))
    assert said == (
        f"metadata.annotations[{GANG}]: 3 pods start together, but the job has no more than 2 at a time"
        " (spec.parallelism): they would wait for ever"
    )
