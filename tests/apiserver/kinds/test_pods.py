"""Pods: what is refused when they are made and when they change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.circumstances import created, make_context, pod, refusals, resource_of
from drayman.apiserver.kinds.pods.defaults import pull_policy
from drayman.apiserver.kinds.pods.quality import quality_class
from drayman.apiserver.served.strategy import Object

PODS = resource_of("", "Pod")
Change = Callable[[Object], None]


def stored(**spec: Any) -> Object:
    return created(PODS, pod(**spec), make_context())


def container(**members: Any) -> Object:
    return {"containers": [{"name": "main", "image": "i:1", **members}]}


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        pytest.param({"containers": []}, {("spec.containers", "Required")}, id="no containers"),
        pytest.param(
            container(ports=[{"containerPort": 1, "name": "a--b"}]),
            {("spec.containers[0].ports[0].name", "Invalid")},
            id="name of a port",
        ),
        pytest.param(
            container(
                env=[
                    {
                        "name": "A",
                        "value": "x",
                        "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                    }
                ]
            ),
            {("spec.containers[0].env[0].valueFrom", "Invalid")},
            id="value and source",
        ),
        pytest.param(
            container(readinessProbe={}),
            {("spec.containers[0].readinessProbe", "Required")},
            id="probe without handler",
        ),
        pytest.param(
            container(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}),
            {("spec.containers[0].livenessProbe.successThreshold", "Invalid")},
            id="liveness counts once",
        ),
        pytest.param(
            {"initContainers": [{"name": "main", "image": "i", "startupProbe": {"exec": {}}}]},
            {
                ("spec.initContainers[0].name", "Duplicate"),
                ("spec.initContainers[0].startupProbe", "Forbidden"),
            },
            id="init container",
        ),
        pytest.param(
            {
                "volumes": [
                    {"name": "v", "secret": {}},
                    {"name": "w", "hostPath": {"path": "/x", "type": "Pipe"}},
                ]
            },
            {
                ("spec.volumes[0].secret.secretName", "Required"),
                ("spec.volumes[1].hostPath.type", "NotSupported"),
            },
            id="volumes",
        ),
        pytest.param(
            {"tolerations": [{"operator": "Equal"}, {"key": "a", "tolerationSeconds": 1}]},
            {
                ("spec.tolerations[0].operator", "Invalid"),
                ("spec.tolerations[1].effect", "Invalid"),
            },
            id="tolerations",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 0,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "Never",
                        "minDomains": 0,
                    }
                ]
            },
            {
                ("spec.topologySpreadConstraints[0].maxSkew", "Invalid"),
                ("spec.topologySpreadConstraints[0].whenUnsatisfiable", "NotSupported"),
                ("spec.topologySpreadConstraints[0].minDomains", "Invalid"),
            },
            id="spreading",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 5,
                                "preference": {
                                    "matchExpressions": [{"key": "a", "operator": "In"}]
                                },
                            }
                        ]
                    }
                }
            },
            {
                (
                    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
                    ".preference.matchExpressions[0].values",
                    "Required",
                )
            },
            id="preferred nodes",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "c"}]},
            {("spec.resourceClaims[0]", "Invalid")},
            id="claims",
        ),
    ],
)
def test_pods_are_refused(spec: Object, causes: set[tuple[str, str]]) -> None:
    """Each broken rule is reported at its field."""
    obj = stored(**spec)
    assert refusals(PODS.strategy.validate(obj, make_context())) == causes


def change_image(new: Object) -> None:
    new["spec"]["containers"][0]["image"] = "other:2"


def change_command(new: Object) -> None:
    new["spec"]["containers"][0]["command"] = ["sh"]


def add_container(new: Object) -> None:
    new["spec"]["containers"].append({"name": "more", "image": "i"})


def drop_tolerations(new: Object) -> None:
    new["spec"]["tolerations"] = []


def patience(new: Object) -> None:
    new["spec"]["tolerations"][0]["tolerationSeconds"] = 5


def add_gate(new: Object) -> None:
    new["spec"]["schedulingGates"] = [{"name": "g"}]


def select_nodes(new: Object) -> None:
    new["spec"]["nodeSelector"] = {"a": "b"}


def set_deadline(new: Object) -> None:
    new["spec"]["activeDeadlineSeconds"] = 5


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        pytest.param(change_image, set(), id="image"),
        pytest.param(set_deadline, set(), id="deadline"),
        pytest.param(patience, set(), id="seconds of a toleration"),
        pytest.param(change_command, {"spec"}, id="command"),
        pytest.param(
            add_container,
            {
                "spec.containers",
                "spec.containers[1].terminationMessagePolicy",
                "spec.containers[1].imagePullPolicy",
            },
            id="container",
        ),
        pytest.param(drop_tolerations, {"spec.tolerations"}, id="tolerations"),
        pytest.param(add_gate, {"spec.schedulingGates[0].name"}, id="gate"),
        pytest.param(select_nodes, {"spec"}, id="node selector"),
    ],
)
def test_little_may_change_in_a_pod(change: Change, fields: set[str]) -> None:
    """Images, deadlines and patience may change, the rest may not."""
    old = stored()
    new = copy.deepcopy(old)
    change(new)
    errors = PODS.strategy.validate_update(new, old, make_context())
    assert {error.path for error in errors} == fields


def test_a_token_without_an_account_is_one_of_the_default_account() -> None:
    """Other pods that name no account have none."""
    token = {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    spec = stored(volumes=[{"name": "v", **token}])["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert "serviceAccountName" not in stored()["spec"]


def test_the_choice_of_nodes_narrows_while_a_gate_holds() -> None:
    """A pod with gates may get more demands on its node, but lose none."""
    old = stored(schedulingGates=[{"name": "g"}], nodeSelector={"x": "y"})
    new = copy.deepcopy(old)
    new["spec"]["nodeSelector"] = {"x": "y", "a": "b"}
    assert PODS.strategy.validate_update(new, old, make_context()) == []
    errors = PODS.strategy.validate_update(old, new, make_context())
    assert refusals(errors) == {("spec.nodeSelector", "Invalid")}


def test_resizing_changes_amounts_only() -> None:
    """The resize endpoint takes amounts of resources and nothing else from what it is sent."""
    old = stored(**container(resources={"requests": {"cpu": "1"}}))
    new = copy.deepcopy(old)
    new["spec"]["containers"][0].update(image="x", resources={"requests": {"cpu": "2"}})
    resize = PODS.subresource("resize")
    assert resize is not None
    assert resize.strategy is not None
    resize.strategy.prepare_for_update(new, old, make_context())
    assert new["spec"]["containers"][0]["image"] == "i:1"
    assert new["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert resize.strategy.validate_update(new, old, make_context()) == []


def test_resizing_keeps_the_quality_of_service() -> None:
    """A pod that asked for something cannot be resized to ask for nothing."""
    old = stored(**container(resources={"requests": {"cpu": "1"}}))
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["resources"] = {}
    resize = PODS.subresource("resize")
    assert resize is not None
    assert resize.strategy is not None
    errors = resize.strategy.validate_update(new, old, make_context())
    assert ("spec", "Invalid") in refusals(errors)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("registry.example:5000/app", "Always"),
        ("registry.example:5000/app:1", "IfNotPresent"),
        ("app@sha256:0", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_images_that_may_change_are_pulled_always(image: str, policy: str) -> None:
    """Only a tag other than latest, or a digest, promises the same image again."""
    assert pull_policy(image) == policy


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.just("1"))


@given(AMOUNTS, AMOUNTS)
def test_quality_follows_from_compute_resources(limits: Object, requests: Object) -> None:
    """Nothing asked for is BestEffort; equal limits and requests of both are Guaranteed; the rest is Burstable."""
    spec = container(resources={"limits": limits, "requests": {**limits, **requests}})
    asked = (limits.keys() | requests.keys()) & {"cpu", "memory"}
    expected = "Burstable" if asked else "BestEffort"
    if {"cpu", "memory"} <= limits.keys():
        expected = "Guaranteed"
    assert quality_class(spec) == expected


@pytest.mark.parametrize(
    ("spec", "status", "asked", "seconds"),
    [
        pytest.param({}, {}, None, 0, id="runs nowhere"),
        pytest.param({"nodeName": "n"}, {}, None, 30, id="its own grace"),
        pytest.param({"nodeName": "n"}, {}, 5, 5, id="as asked"),
        pytest.param({"nodeName": "n"}, {"phase": "Failed"}, 5, 0, id="done"),
    ],
)
def test_only_running_pods_get_time_to_go(
    spec: Object, status: Object, asked: int | None, seconds: int
) -> None:
    """A deleted pod stays for its grace period, if there is anything to stop."""
    obj = stored(**spec)
    obj["status"].update(status)
    assert PODS.strategy.grace_seconds(obj, asked, make_context()) == seconds


def test_the_container_that_gets_a_share_of_a_gpu_requests_it() -> None:
    """KAI's annotations say which; a kubelet gives a container devices only for what it requests. Pods that are alike stay as they are."""
    share = {"kai.scheduler/gpu-share": "1"}
    containers = [{"name": name, "image": "i:1"} for name in ("one", "two")]

    def resources(**annotations: str) -> list[Any]:
        made = pod(containers=copy.deepcopy(containers))
        given = {key.replace("_", "-"): value for key, value in annotations.items()}
        made["metadata"]["annotations"] = given
        stored = created(PODS, made, make_context())
        return [each.get("resources") or {} for each in stored["spec"]["containers"]]

    asked = {"requests": share, "limits": share}
    assert resources(gpu_fraction="0.5") == [asked, {}]
    assert resources(gpu_memory="4096", gpu_fraction_container_name="two") == [{}, asked]
    assert resources(gpu_fraction="0.5", gpu_fraction_container_name="three") == [{}, {}]
    assert resources(other="0.5") == [{}, {}]
