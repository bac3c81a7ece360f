"""HorizontalPodAutoscalers: defaults, what is refused, and how a table shows what they go by."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.circumstances import NOW, created, make_context, refusals, resource_of
from drayman.apiserver.kinds.autoscaling_v1 import BEHAVIOR, CONDITIONS, CURRENT
from drayman.apiserver.kinds.autoscaling_v1 import METRICS as METRICS_ANNOTATION
from drayman.apiserver.served.conversion import from_hub, to_hub
from drayman.apiserver.served.shaping import normalised
from drayman.apiserver.served.strategy import Object

RESOURCE = resource_of("autoscaling", "HorizontalPodAutoscaler")
ANNOTATIONS = (METRICS_ANNOTATION, BEHAVIOR, CONDITIONS, CURRENT)
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def make(**spec: Any) -> Object:
    given = {"scaleTargetRef": WEB, "maxReplicas": 3, **copy.deepcopy(spec)}
    body = {"metadata": {"name": "x", "namespace": "ns"}, "spec": given}
    return created(RESOURCE, body, make_context(version="v2"))


def resource(name: str = "cpu", **target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def test_what_is_left_out_is_filled_in() -> None:
    """At least one pod, by the use of processors, and careful steps in both directions where any are given."""
    plain = make()["spec"]
    assert plain["minReplicas"] == 1
    assert plain["metrics"] == [resource(type="Utilization", averageUtilization=80)]
    behavior = make(behavior={"scaleDown": {"selectPolicy": "Min"}})["spec"]["behavior"]
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert [policy["type"] for policy in behavior["scaleUp"]["policies"]] == ["Pods", "Percent"]
    assert behavior["scaleDown"] == {
        "selectPolicy": "Min",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    }


def external(**target: Any) -> dict[str, Any]:
    return {"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}


METRIC = "spec.metrics[0]"
UP = "spec.behavior.scaleUp"
REFUSED: dict[str, tuple[dict[str, Any], set[tuple[str, str]]]] = {
    "nothing wrong": ({}, set()),
    "no most": ({"maxReplicas": 0}, {("spec.maxReplicas", "Required"), ("spec.maxReplicas", "Invalid")}),
    "fewer than none": ({"minReplicas": -1}, {("spec.minReplicas", "Invalid")}),
    "more at least than at most": ({"minReplicas": 5}, {("spec.maxReplicas", "Invalid")}),
    "nothing to scale": (
        {"scaleTargetRef": {"apiVersion": "apps/v1"}},
        {("spec.scaleTargetRef.kind", "Required"), ("spec.scaleTargetRef.name", "Required")},
    ),
    "a target without a group": ({"scaleTargetRef": {**WEB, "apiVersion": "v1"}}, {("spec.scaleTargetRef.apiVersion", "Invalid")}),
    "a replication controller has none": ({"scaleTargetRef": {"apiVersion": "v1", "kind": "ReplicationController", "name": "web"}}, set()),
    "an unknown metric": ({"metrics": [{"type": "Mood"}]}, {(f"{METRIC}.type", "NotSupported")}),
    "a metric of another type": (
        {"metrics": [{**resource(type="Utilization", averageUtilization=5), "type": "Pods"}]},
        {(f"{METRIC}.pods", "Required")},
    ),
    "two metrics in one": (
        {"metrics": [{**resource(type="Utilization", averageUtilization=5), **external(type="Value", value="1"), "type": "Resource"}]},
        {(f"{METRIC}.external", "Forbidden")},
    ),
    "no amount": ({"metrics": [resource(type="Utilization")]}, {(f"{METRIC}.resource.target.averageUtilization", "Required")}),
    "both amounts": (
        {"metrics": [external(type="Value", value="1", averageValue="1")]},
        {(f"{METRIC}.external.target.value", "Forbidden")},
    ),
    "nothing as an amount": ({"metrics": [external(type="Value", value="0")]}, {(f"{METRIC}.external.target.value", "Invalid")}),
    "an unknown target": (
        {"metrics": [resource(type="Guess", averageUtilization=0)]},
        {(f"{METRIC}.resource.target.type", "Invalid"), (f"{METRIC}.resource.target.averageUtilization", "Invalid")},
    ),
    "no steps": (
        {"behavior": {"scaleUp": {"policies": [], "selectPolicy": "Most", "stabilizationWindowSeconds": 4000}}},
        {(f"{UP}.policies", "Required"), (f"{UP}.selectPolicy", "NotSupported"), (f"{UP}.stabilizationWindowSeconds", "Invalid")},
    ),
    "odd steps": (
        {"behavior": {"scaleUp": {"policies": [{"type": "Half", "value": 0, "periodSeconds": 4000}], "tolerance": "-1"}}},
        {
            (f"{UP}.policies[0].type", "NotSupported"),
            (f"{UP}.policies[0].value", "Invalid"),
            (f"{UP}.policies[0].periodSeconds", "Invalid"),
            (f"{UP}.tolerance", "Invalid"),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """The field and reason of every error."""
    spec, causes = REFUSED[case]
    made = make()
    made["spec"].update(copy.deepcopy(spec))
    assert refusals(RESOURCE.strategy.validate(made, make_context())) == causes


def test_an_update_is_judged_like_a_creation() -> None:
    """But a target that is not touched may stay as it is."""
    old = make()
    old["spec"]["scaleTargetRef"] = {**WEB, "apiVersion": "v1"}
    new = copy.deepcopy(old)
    for each in (new, old):
        each["metadata"]["resourceVersion"] = "1"
    new["spec"]["maxReplicas"] = -1
    causes = refusals(RESOURCE.strategy.validate_update(new, old, make_context()))
    assert causes == {("spec.maxReplicas", "Invalid")}


def test_its_row_tells_what_it_goes_by() -> None:
    """Each metric as it is and should be, two at most."""
    metrics = [
        resource(type="Utilization", averageUtilization=80),
        resource("memory", type="AverageValue", averageValue="1Gi"),
        external(type="Value", value="5"),
    ]
    made = make(metrics=metrics)
    current = {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 7}},
    }
    made["status"] = {"currentMetrics": [current], "currentReplicas": 2}
    row = {column.name: column.cell(made, NOW) for column in RESOURCE.columns}
    assert row["Reference"] == "Deployment/web"
    assert row["Targets"] == "cpu: 7%/80%, memory: <unknown>/1Gi + 1 more..."
    assert (row["MinPods"], row["MaxPods"], row["Replicas"]) == ("1", 3, 2)


METRICS: list[dict[str, Any]] = [
    resource("memory", type="AverageValue", averageValue="1Gi"),
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "main",
            "target": {"type": "Utilization", "averageUtilization": 50},
        },
    },
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "open", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "5"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "web", "apiVersion": "v1"},
            "metric": {"name": "requests"},
            "target": {"type": "Value", "value": "5"},
        },
    },
    external(type="AverageValue", averageValue="5"),
    resource(type="Utilization", averageUtilization=70),
]


def through_v1(obj: Object) -> Object:
    shown = from_hub(RESOURCE, obj, "v1")
    assert shown["apiVersion"] == "autoscaling/v1"
    assert shown["spec"].keys() <= {
        "scaleTargetRef",
        "minReplicas",
        "maxReplicas",
        "targetCPUUtilizationPercentage",
    }
    return normalised(RESOURCE, to_hub(RESOURCE, copy.deepcopy(shown), "v1"))


@given(st.lists(st.sampled_from(METRICS[:-1]), max_size=4), st.booleans(), st.booleans())
def test_nothing_is_lost_on_the_way_through_the_older_version(
    metrics: list[dict[str, Any]], moves: bool, decided: bool
) -> None:
    """Metrics, behavior and what was measured come back from annotations; the share of processors comes last."""
    spec: dict[str, Any] = {"metrics": [*metrics, METRICS[-1]]}
    if moves:
        spec["behavior"] = {"scaleDown": {"selectPolicy": "Min", "tolerance": "100m"}}
    made = make(**spec)
    made["metadata"]["annotations"] = {"own": "kept"}
    current = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "3"}}}  # fmt: skip
    made["status"] = {"desiredReplicas": 2, "currentReplicas": 1, "currentMetrics": [current]}
    if decided:
        made["status"]["conditions"] = [{"type": "AbleToScale", "status": "True"}]
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    made = normalised(RESOURCE, {**made, **kind})
    assert through_v1(made) == made


@pytest.mark.parametrize("text", ["{", "5", "[5]", '[{"type": {}}]', '{"ScaleUp": 5}', "[" * 99999])
def test_annotations_that_say_nothing_are_passed_over(text: str) -> None:
    """What cannot be read as the field that it stands for is as if it were not there, and goes away."""
    body = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "x", "annotations": dict.fromkeys(ANNOTATIONS, text)},
        "spec": {"scaleTargetRef": WEB, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
        "status": {"currentReplicas": 1},
    }
    hub = to_hub(RESOURCE, body, "v1")
    assert hub["spec"]["metrics"] == [resource(type="Utilization", averageUtilization=50)]
    assert "behavior" not in hub["spec"]
    assert "annotations" not in hub["metadata"]
    assert hub["status"] == {"currentReplicas": 1}
