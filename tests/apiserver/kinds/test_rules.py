"""Rules of workloads, quotas and small kinds, one broken rule at a time."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.kinds.circumstances import created, make_context, refusals, resource_of
from drayman.apiserver.served.strategy import Object

Causes = set[tuple[str, str]]
TEMPLATE: Object = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "main", "image": "i:1"}]},
}
ONCE: Object = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
SELECTOR: Object = {"matchLabels": {"a": "b"}}


def make(group: str, kind: str, **members: Any) -> Object:
    resource = resource_of(group, kind)
    metadata = {"name": "x", "namespace": "ns"} if resource.namespaced else {"name": "x"}
    return created(resource, {"metadata": metadata, **copy.deepcopy(members)}, make_context())


def refused(group: str, kind: str, **members: Any) -> Causes:
    obj = make(group, kind, **members)
    return refusals(resource_of(group, kind).strategy.validate(obj, make_context()))


def refused_update(group: str, kind: str, new: Object, old: Object) -> Causes:
    strategy = resource_of(group, kind).strategy
    return refusals(strategy.validate_update(new, old, make_context()))


def job(**spec: Any) -> Object:
    return {"template": ONCE, **spec}


def indexed(**spec: Any) -> Object:
    return job(completionMode="Indexed", completions=3, **spec)


def failure(**rule: Any) -> Object:
    return job(podFailurePolicy={"rules": [rule]})


RULE = "spec.podFailurePolicy.rules[0]"
JOBS: dict[str, tuple[Object, Causes]] = {
    "labels of somebody else": (
        job(template={**ONCE, "metadata": {"labels": {"job-name": "y"}}}),
        {("spec.template.metadata.labels[job-name]", "Invalid")},
    ),
    "selector of its own": (
        job(selector={"matchLabels": {"a": "b"}}),
        {("spec.selector", "Invalid")},
    ),
    "pods it does not select": (
        job(manualSelector=True, selector={"matchLabels": {"a": "c"}}),
        {("spec.template.metadata.labels", "Invalid")},
    ),
    "manager": (job(managedBy="x"), {("spec.managedBy", "Invalid")}),
    "failed indexes without a limit of each": (
        indexed(maxFailedIndexes=4),
        {("spec.backoffLimitPerIndex", "Required"), ("spec.maxFailedIndexes", "Invalid")},
    ),
    "a very large job": (
        job(
            completionMode="Indexed",
            completions=100_001,
            parallelism=20_000,
            backoffLimitPerIndex=1,
        ),
        {("spec.maxFailedIndexes", "Required"), ("spec.parallelism", "Invalid")},
    ),
    "replacement": (
        job(podReplacementPolicy="Never"),
        {("spec.podReplacementPolicy", "NotSupported")},
    ),
    "rule of nothing": (
        failure(action="Stop"),
        {(f"{RULE}.action", "NotSupported"), (RULE, "Invalid")},
    ),
    "index of no job": (
        failure(action="FailIndex", onPodConditions=[{"type": "a b", "status": "Maybe"}]),
        {
            (f"{RULE}.action", "Invalid"),
            (f"{RULE}.onPodConditions[0].type", "Invalid"),
            (f"{RULE}.onPodConditions[0].status", "NotSupported"),
        },
    ),
    "exit codes": (
        failure(
            action="Ignore",
            onExitCodes={"operator": "In", "values": [2, 2, 0], "containerName": "other"},
        ),
        {
            (f"{RULE}.onExitCodes.containerName", "Invalid"),
            (f"{RULE}.onExitCodes.values[1]", "Duplicate"),
            (f"{RULE}.onExitCodes.values[2]", "Invalid"),
            (f"{RULE}.onExitCodes.values", "Invalid"),
        },
    ),
    "success without indexes": (
        job(successPolicy={"rules": [{"succeededCount": 1}]}),
        {("spec.successPolicy", "Invalid")},
    ),
    "success": (
        indexed(
            successPolicy={
                "rules": [
                    {"succeededIndexes": "0,2", "succeededCount": 3},
                    {},
                    {"succeededIndexes": "2-1"},
                ]
            }
        ),
        {
            ("spec.successPolicy.rules[0].succeededCount", "Invalid"),
            ("spec.successPolicy.rules[1]", "Required"),
            ("spec.successPolicy.rules[2].succeededIndexes", "Invalid"),
        },
    ),
}


@pytest.mark.parametrize(("spec", "causes"), JOBS.values(), ids=JOBS.keys())
def test_a_job_is_refused_at_its_field(spec: Object, causes: Causes) -> None:
    """Each broken rule of a job is reported at its field."""
    assert refused("batch", "Job", spec=spec) == causes


def test_the_labels_made_up_for_pods_become_those_of_a_job_without_any() -> None:
    """A job that names no labels has those of its template, the generated ones too; one that names some keeps them."""
    for labels in ({}, {"a": "b"}):
        made = make("batch", "Job", spec=job(template={**ONCE, "metadata": {"labels": labels}}))
        assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
        assert made["metadata"]["labels"]["job-name"] == "x"
    resource = resource_of("batch", "Job")
    body = {"metadata": {"name": "x", "namespace": "ns", "labels": {"a": "b"}}, "spec": job()}
    made = created(resource, copy.deepcopy(body), make_context())
    assert made["metadata"]["labels"] == {"a": "b"}


def test_completions_of_an_indexed_job_change_with_its_parallelism() -> None:
    """The number of indexes grows and shrinks together with the number of pods at a time, or not at all."""
    old = make("batch", "Job", spec=indexed(parallelism=3))
    new = copy.deepcopy(old)
    new["spec"]["completions"] = 5
    assert refused_update("batch", "Job", new, old) == {("spec.completions", "Invalid")}
    new["spec"]["parallelism"] = 5
    assert refused_update("batch", "Job", new, old) == set()


def test_a_daemon_set_is_not_asked_for_a_selector() -> None:
    """Without a selector a daemon set selects nothing, its own pods included; that alone is reported."""
    causes = refused("apps", "DaemonSet", spec={"template": TEMPLATE})
    assert causes == {("spec.template.metadata.labels", "Invalid")}


def test_most_of_a_stateful_set_is_settled() -> None:
    """What cannot change in a stateful set is refused as a whole."""
    old = make("apps", "StatefulSet", spec={"selector": SELECTOR, "template": TEMPLATE})
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 3
    assert refused_update("apps", "StatefulSet", new, old) == set()
    new["spec"]["serviceName"] = "other"
    assert refused_update("apps", "StatefulSet", new, old) == {("spec", "Forbidden")}


def limits(**item: Any) -> Object:
    return {"spec": {"limits": [item]}}


LIMIT = "spec.limits[0]"
SMALL: dict[str, tuple[str, str, Object, Causes]] = {
    "limits of something": ("", "LimitRange", limits(type="Disk"), {(f"{LIMIT}.type", "Invalid")}),
    "limits out of order": (
        "",
        "LimitRange",
        limits(type="Container", min={"cpu": "3"}, max={"cpu": "2"}, default={"cpu": "1"}),
        {
            (f"{LIMIT}.min[cpu]", "Invalid"),
            (f"{LIMIT}.default[cpu]", "Invalid"),
            (f"{LIMIT}.defaultRequest[cpu]", "Invalid"),
        },
    ),
    "defaults of a pod": (
        "",
        "LimitRange",
        limits(type="Pod", default={"cpu": "1"}, maxLimitRequestRatio={"gpu": "500m"}),
        {
            (f"{LIMIT}.default", "Forbidden"),
            (f"{LIMIT}.maxLimitRequestRatio[gpu]", "Invalid"),
        },
    ),
    "limits of storage": (
        "",
        "LimitRange",
        limits(type="PersistentVolumeClaim"),
        {(f"{LIMIT}.limits", "Required")},
    ),
    "quota of everything": (
        "",
        "ResourceQuota",
        {
            "spec": {
                "hard": {
                    "pods": "1",
                    "count/x.example": "1",
                    "requests.example.com/gpu": "1",
                    "hugepages-2Mi": "1",
                    "requests.storage": "1Gi",
                }
            }
        },
        set(),
    ),
    "quota of nothing": (
        "",
        "ResourceQuota",
        {"spec": {"hard": {"gpus": "1", "pods": "-1"}, "scopes": ["BestEffort", "NotBestEffort"]}},
        {
            ("spec.hard[gpus]", "Invalid"),
            ("spec.hard[pods]", "Invalid"),
            ("spec.scopes", "Invalid"),
        },
    ),
    "runtime without handler": (
        "node.k8s.io",
        "RuntimeClass",
        {"overhead": {"podFixed": {"gpu": "1"}}},
        {("handler", "Required"), ("overhead.limits[gpu]", "Invalid")},
    ),
    "runtime on certain nodes": (
        "node.k8s.io",
        "RuntimeClass",
        {
            "handler": "h",
            "scheduling": {
                "nodeSelector": {"a b": "c"},
                "tolerations": [{"key": "a", "operator": "Exists"}] * 2,
            },
        },
        {
            ("scheduling.nodeSelector", "Invalid"),
            ("scheduling.tolerations[1]", "Duplicate"),
        },
    ),
    "role of roles": (
        "rbac.authorization.k8s.io",
        "ClusterRole",
        {
            "aggregationRule": {},
            "rules": [{"verbs": ["get"], "nonResourceURLs": ["/"], "resources": ["x"]}],
        },
        {
            ("aggregationRule.clusterRoleSelectors", "Required"),
            ("rules[0].nonResourceURLs", "Invalid"),
        },
    ),
    "account that cannot exist": (
        "rbac.authorization.k8s.io",
        "RoleBinding",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "A_"}],
        },
        {("subjects[0].name", "Invalid")},
    ),
    "ranges of a node": (
        "",
        "Node",
        {"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24", "x"]}},
        {("spec.podCIDRs[2]", "Invalid"), ("spec.podCIDRs", "Invalid")},
    ),
    "budget": (
        "policy",
        "PodDisruptionBudget",
        {"spec": {"unhealthyPodEvictionPolicy": ""}},
        {("spec.unhealthyPodEvictionPolicy", "NotSupported")},
    ),
}


@pytest.mark.parametrize(("group", "kind", "members", "causes"), SMALL.values(), ids=SMALL.keys())
def test_a_small_kind_is_refused_at_its_field(
    group: str, kind: str, members: Object, causes: Causes
) -> None:
    """Each broken rule is reported at its field."""
    assert refused(group, kind, **members) == causes


def test_scopes_of_a_quota_are_settled() -> None:
    """A quota counts the same pods all its life."""
    old = make("", "ResourceQuota", spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"]})
    new = copy.deepcopy(old)
    del new["spec"]["scopes"]
    assert refused_update("", "ResourceQuota", new, old) == {("spec.scopes", "Invalid")}


POOL = {"driver": "d.example", "poolName": "p", "generation": 1}
ANSWERS: dict[str, tuple[Object, Causes]] = {
    "no generation": (
        {"poolCount": 1, "pools": [{**POOL, "generation": 0}]},
        {("status.pools[0].generation", "Required")},
    ),
    "generation below zero": (
        {"poolCount": 1, "pools": [{**POOL, "generation": -1}]},
        {("status.pools[0].generation", "Invalid")},
    ),
    "part of a name": (
        {"poolCount": 1, "pools": [{**POOL, "poolName": "a//b"}]},
        {("status.pools[0].poolName", "Invalid")},
    ),
    "one condition twice": (
        {
            "poolCount": 0,
            "conditions": [
                {
                    "type": "A",
                    "status": "True",
                    "reason": "R",
                    "lastTransitionTime": "2024-01-01T00:00:00Z",
                }
            ]
            * 2,
        },
        {("status.conditions[1]", "Duplicate"), ("status.conditions[1].type", "Duplicate")},
    ),
}


@pytest.mark.parametrize(("status", "causes"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_about_pools_is_refused_at_its_field(status: Object, causes: Causes) -> None:
    """Each broken rule of the answer to a request about pools is reported at its field."""
    resource = resource_of("resource.k8s.io", "ResourcePoolStatusRequest")
    strategy = resource.subresources[0].strategy
    assert strategy is not None
    old = make("resource.k8s.io", "ResourcePoolStatusRequest", spec={"driver": "d.example"})
    new = {**old, "status": status}
    assert refusals(strategy.validate_update(new, old, make_context())) == causes


def test_an_answer_about_pools_is_final() -> None:
    """A second answer is refused, and still checked where it differs."""
    strategy = resource_of("resource.k8s.io", "ResourcePoolStatusRequest").subresources[0].strategy
    assert strategy is not None
    old = make("resource.k8s.io", "ResourcePoolStatusRequest", spec={"driver": "d.example"})
    old["status"] = {"poolCount": 1}
    new = {**old, "status": {"poolCount": -1}}
    causes = refusals(strategy.validate_update(new, old, make_context()))
    assert causes == {("status", "Invalid"), ("status.poolCount", "Invalid")}


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("coordination.k8s.io", "Lease"),
        ("node.k8s.io", "RuntimeClass"),
        ("policy", "PodDisruptionBudget"),
        ("resource.k8s.io", "ResourcePoolStatusRequest"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "VolumeAttachment"),
    ],
)
def test_some_kinds_are_not_replaced_blindly(group: str, kind: str) -> None:
    """These kinds want to know which version an update is meant for."""
    assert resource_of(group, kind).requires_version_on_update
