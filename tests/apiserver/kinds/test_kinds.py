"""Rules of single kinds that need more than a table of fields."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.circumstances import (
    UID,
    Objects,
    created,
    make_context,
    refusals,
    resource_of,
)
from drayman.apiserver.served.conversion import from_hub, to_hub
from drayman.apiserver.served.strategy import Object

TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "main", "image": "i:1"}]},
}
SELECTOR = {"matchLabels": {"a": "b"}}


def make(group: str, kind: str, objects: Objects | None = None, **members: Any) -> Object:
    resource = resource_of(group, kind)
    metadata = {"name": "x", "namespace": "ns"} if resource.namespaced else {"name": "x"}
    body = {"metadata": metadata, **copy.deepcopy(members)}
    return created(resource, body, make_context(objects))


def problems(group: str, kind: str, obj: Object) -> set[tuple[str, str]]:
    return refusals(resource_of(group, kind).strategy.validate(obj, make_context()))


def changes(group: str, kind: str, new: Object, old: Object) -> set[tuple[str, str]]:
    strategy = resource_of(group, kind).strategy
    return refusals(strategy.validate_update(new, old, make_context()))


def test_a_job_finds_its_own_pods() -> None:
    """A job's pods are labelled with its name and uid, and it selects by the uid."""
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    job = make("batch", "Job", spec={"template": template})
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/controller-uid"] == labels["controller-uid"] == UID
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "x"
    assert job["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": UID}
    assert problems("batch", "Job", job) == set()


@pytest.mark.parametrize(
    ("group", "kind", "spec", "causes"),
    [
        pytest.param(
            "apps",
            "Deployment",
            {"selector": {"matchLabels": {"a": "c"}}, "template": TEMPLATE},
            {("spec.template.metadata.labels", "Invalid")},
            id="selects others",
        ),
        pytest.param(
            "apps",
            "Deployment",
            {"template": TEMPLATE},
            {("spec.selector", "Required"), ("spec.template.metadata.labels", "Invalid")},
            id="selects nothing",
        ),
        pytest.param(
            "apps",
            "Deployment",
            {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}},
            },
            {("spec.strategy.rollingUpdate.maxUnavailable", "Invalid")},
            id="cannot roll",
        ),
        pytest.param(
            "apps",
            "DaemonSet",
            {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            },
            {("spec.updateStrategy.rollingUpdate.maxSurge", "Invalid")},
            id="rolls twice",
        ),
        pytest.param(
            "apps",
            "ReplicaSet",
            {
                "selector": SELECTOR,
                "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}},
            },
            {("spec.template.spec.restartPolicy", "NotSupported")},
            id="does not restart",
        ),
        pytest.param(
            "batch",
            "CronJob",
            {
                "schedule": "often",
                "jobTemplate": {
                    "spec": {
                        "template": {
                            **TEMPLATE,
                            "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"},
                        }
                    }
                },
            },
            {("spec.schedule", "Invalid")},
            id="schedule",
        ),
        pytest.param(
            "policy",
            "PodDisruptionBudget",
            {"minAvailable": 1, "maxUnavailable": "200%", "selector": SELECTOR},
            {("spec", "Invalid"), ("spec.maxUnavailable", "Invalid")},
            id="budget",
        ),
        pytest.param(
            "scheduling.k8s.io",
            "PodGroup",
            {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}},
            {("spec.schedulingPolicy", "Invalid")},
            id="group of two minds",
        ),
        pytest.param(
            "scheduling.k8s.io",
            "Workload",
            {},
            {("spec.podGroupTemplates", "Required")},
            id="empty workload",
        ),
        pytest.param(
            "scheduling.k8s.io",
            "Workload",
            {
                "controllerRef": {"apiGroup": "Batch", "name": "a/b"},
                "podGroupTemplates": [
                    {
                        "name": "a",
                        "schedulingPolicy": {"basic": {}},
                        "priorityClassName": "Not a name",
                    }
                ],
            },
            {
                ("spec.podGroupTemplates[0].priorityClassName", "Invalid"),
                ("spec.controllerRef.apiGroup", "Invalid"),
                ("spec.controllerRef.kind", "Required"),
                ("spec.controllerRef.name", "Invalid"),
            },
            id="controller of a workload",
        ),
        pytest.param(
            "scheduling.k8s.io",
            "PodGroup",
            {
                "schedulingPolicy": {"gang": {"minCount": -1}},
                "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "not a label"}]},
                "disruptionMode": "Never",
            },
            {
                ("spec.schedulingPolicy.gang.minCount", "Invalid"),
                ("spec.schedulingConstraints.topology", "TooMany"),
                ("spec.schedulingConstraints.topology[1].key", "Invalid"),
                ("spec.disruptionMode", "NotSupported"),
            },
            id="constraints of a group",
        ),
    ],
)
def test_specs_are_refused(
    group: str, kind: str, spec: Object, causes: set[tuple[str, str]]
) -> None:
    """Each broken rule is reported at its field."""
    assert problems(group, kind, make(group, kind, spec=spec)) == causes


def test_claimed_volumes_can_be_mounted() -> None:
    """The claims of a stateful set are volumes of its pods."""
    container = {
        **TEMPLATE["spec"]["containers"][0],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    spec = {
        "selector": SELECTOR,
        "serviceName": "s",
        "template": {**TEMPLATE, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "v"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
        ],
    }
    assert problems("apps", "StatefulSet", make("apps", "StatefulSet", spec=spec)) == set()


def test_a_daemon_set_counts_changes_of_its_template() -> None:
    """The annotation for old clients rises when the template changes, and only then."""
    strategy = resource_of("apps", "DaemonSet").strategy
    old = make("apps", "DaemonSet", spec={"selector": SELECTOR, "template": TEMPLATE})
    for image, count in (("i:1", "1"), ("i:2", "2")):
        new = copy.deepcopy(old)
        new["spec"]["template"]["spec"]["containers"][0]["image"] = image
        strategy.prepare_for_update(new, old, make_context())
        annotations = new["metadata"]["annotations"]
        assert annotations["deprecated.daemonset.template.generation"] == count


def test_no_two_services_get_one_address() -> None:
    """An address that is taken is not handed out again."""
    objects = Objects()
    first = make("", "Service", spec={"ports": [{"port": 80}]})
    objects.add("services", {**first, "metadata": {**first["metadata"], "uid": "other"}})
    second = make("", "Service", objects, spec={"ports": [{"port": 80}]})
    assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
    assert problems("", "Service", second) == set()


def test_a_service_keeps_what_it_was_given() -> None:
    """An update that does not mention the address and the node port keeps both."""
    strategy = resource_of("", "Service").strategy
    old = make("", "Service", spec={"type": "NodePort", "ports": [{"port": 80}]})
    new = {"metadata": dict(old["metadata"]), "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    strategy.default(new, make_context())
    strategy.prepare_for_update(new, old, make_context())
    assert new["spec"] == old["spec"]


def test_text_in_a_secret_becomes_data() -> None:
    """Text is folded into the data, over what is there."""
    data = {"a": base64.b64encode(b"old").decode()}
    secret = make("", "Secret", data=data, stringData={"a": "new", "b": "\u00e9"})
    assert {key: base64.b64decode(value) for key, value in secret["data"].items()} == {
        "a": b"new",
        "b": "\u00e9".encode(),
    }
    assert "stringData" not in secret


@pytest.mark.parametrize(
    ("kind", "old", "new", "causes"),
    [
        pytest.param(
            "ConfigMap",
            {"data": {"a": "1"}, "immutable": True},
            {"data": {"a": "2"}},
            {("immutable", "Forbidden"), ("data", "Forbidden")},
            id="thawed",
        ),
        pytest.param(
            "ConfigMap", {"data": {"a": "1"}}, {"data": {"a": "2"}}, set(), id="not frozen"
        ),
        pytest.param("Secret", {"type": "a"}, {"type": "b"}, {("type", "Invalid")}, id="type"),
    ],
)
def test_frozen_data_stays(
    kind: str, old: Object, new: Object, causes: set[tuple[str, str]]
) -> None:
    """What is frozen, and the type of a secret, cannot change."""
    assert changes("", kind, make("", kind, **new), make("", kind, **old)) == causes


@given(
    st.dictionaries(
        st.sampled_from(["involvedObject", "message", "source", "count", "reason"]), st.text()
    )
)
def test_events_are_the_same_in_both_groups(members: dict[str, str]) -> None:
    """Renaming members for the younger group and back gives the same event, but for what it always shows."""
    resource = resource_of("events.k8s.io", "Event")
    event = {
        "metadata": {"name": "e"},
        **{k: v for k, v in members.items() if k in ("message", "reason") and v},
    }
    there = from_hub(resource, event, "v1")
    back = to_hub(resource, there, "v1")
    assert {name: back.get(name) for name in event} == event


def test_a_namespace_holds_itself_by_a_finalizer() -> None:
    """A namespace is labelled with its name, active, and held until its contents are gone."""
    namespace = make("", "Namespace")
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}


@pytest.mark.parametrize(
    ("name", "value", "causes"),
    [
        ("high", 5, set()),
        ("high", 1_000_000_001, {("value", "Forbidden")}),
        ("system-node-critical", 2_000_001_000, set()),
        ("system-mine", 5, {("metadata.name", "Forbidden")}),
    ],
)
def test_the_highest_priorities_are_the_systems(
    name: str, value: int, causes: set[tuple[str, str]]
) -> None:
    """Users' classes end at a billion, and system names are reserved."""
    obj = make("scheduling.k8s.io", "PriorityClass", value=value)
    obj["metadata"]["name"] = name
    assert problems("scheduling.k8s.io", "PriorityClass", obj) == causes


def test_a_binding_is_for_one_role() -> None:
    """Subjects of a binding may change, its role may not."""
    role = {"kind": "Role", "name": "r"}
    old = make("rbac.authorization.k8s.io", "RoleBinding", roleRef=role, subjects=[])
    new = copy.deepcopy(old)
    new["subjects"] = [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]
    assert changes("rbac.authorization.k8s.io", "RoleBinding", new, old) == set()
    new["roleRef"] = {**old["roleRef"], "name": "other"}
    assert changes("rbac.authorization.k8s.io", "RoleBinding", new, old) == {("roleRef", "Invalid")}


def test_a_taint_whose_effect_changes_counts_from_then() -> None:
    """The time of a taint rule is renewed with its effect, unless the client names one."""
    strategy = resource_of("resource.k8s.io", "DeviceTaintRule").strategy
    taint = {"key": "k", "effect": "NoSchedule", "timeAdded": "2024-05-01T10:00:00Z"}
    old = make("resource.k8s.io", "DeviceTaintRule", spec={"taint": taint})
    for change, time in (
        ({"effect": "NoExecute"}, "2026-01-02T03:04:05Z"),
        ({"effect": "NoExecute", "timeAdded": "2024-06-01T00:00:00Z"}, "2024-06-01T00:00:00Z"),
        ({"value": "other"}, "2024-05-01T10:00:00Z"),
    ):
        new = copy.deepcopy(old)
        new["spec"]["taint"].update(change)
        strategy.prepare_for_update(new, old, make_context())
        assert new["spec"]["taint"]["timeAdded"] == time


@pytest.mark.parametrize(
    ("group", "kind"),
    [("apps", "Deployment"), ("apps", "ReplicaSet"), ("batch", "Job"), ("", "ReplicationController")],
)  # fmt: skip
def test_names_that_make_odd_hosts_are_warned_about(group: str, kind: str) -> None:
    """Pods are called after what makes them, and hosts after pods: a name with dots is taken, with a warning on creation only."""
    resource = resource_of(group, kind)
    body = {"metadata": {"name": "a.b", "namespace": "ns"}, "spec": {"template": copy.deepcopy(TEMPLATE)}}  # fmt: skip
    context = make_context()
    made = created(resource, body, context)
    (warning,) = resource.strategy.warnings(made, None, context)
    assert warning.startswith("metadata.name: this is used in Pod names and hostnames")
    assert resource.strategy.warnings(made, made, context) == []


def test_a_daemon_set_keeps_its_template_generation_when_its_status_is_written() -> None:
    """The annotation is part of the spec in all but its form: a status without it does not take it away."""
    note = "deprecated.daemonset.template.generation"
    old = make("apps", "DaemonSet", spec={"selector": SELECTOR, "template": TEMPLATE})
    assert old["metadata"]["annotations"] == {note: "1"}
    new = copy.deepcopy(old)
    del new["metadata"]["annotations"]
    part = resource_of("apps", "DaemonSet").subresource("status")
    assert part is not None
    assert part.strategy is not None
    part.strategy.prepare_for_update(new, old, make_context())
    assert new["metadata"]["annotations"] == {note: "1"}
