"""The kinds that state gangs, over HTTP as people use them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.e2e.driving import Kubectl, running

Object = dict[str, Any]

GROUPS: dict[str, Object] = {
    "podgroups.scheduling.k8s.io": {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]},
        },
    },
    "workloads.scheduling.k8s.io": {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "train"},
            "podGroupTemplates": [{"name": "w", "schedulingPolicy": {"basic": {}}}],
        },
    },
    "podgroups.scheduling.x-k8s.io": {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "spec": {"minMember": 8, "scheduleTimeoutSeconds": 300, "minResources": {"cpu": "8"}},
    },
    "podgroups.scheduling.run.ai": {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "spec": {"minSubGroup": 1, "subGroups": [{"name": "a", "minMember": 2}]},
    },
}
HEADS = {
    "podgroups.scheduling.k8s.io": ["NAME", "POLICY", "WORKLOAD", "STATUS", "AGE"],
    "workloads.scheduling.k8s.io": ["NAME", "AGE"],
    "podgroups.scheduling.x-k8s.io": ["NAME", "PHASE", "MIN", "MEMBER", "RUNNING", "SUCCEEDED", "FAILED", "AGE"],
    "podgroups.scheduling.run.ai": ["NAME", "AGE"],
}  # fmt: skip


def covers(found: Any, wanted: Any) -> bool:
    """Whether everything that was given is there; the server may add defaults."""
    if isinstance(wanted, dict):
        return all(covers(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(covers, found, wanted))
    return bool(found == wanted)


@pytest.mark.parametrize("kind", GROUPS)
def test_groups_can_be_applied_shown_and_deleted(kubectl: Kubectl, kind: str) -> None:
    """Each kind goes by its full name, since several groups have a PodGroup."""
    value = {**GROUPS[kind], "metadata": {"name": "train"}}
    kubectl("apply", "-f", "-", given=value)
    kubectl("apply", "-f", "-", given=value)
    shown = kubectl("get", kind)
    assert shown.splitlines()[0].split() == HEADS[kind]
    found = json.loads(kubectl("get", kind, "train", "-o", "json"))
    assert covers(found["spec"], value["spec"])
    kubectl("delete", kind, "train", "--wait=false")


@pytest.mark.parametrize("kind", ["topologies.kai.scheduler", "topologies.kueue.x-k8s.io"])
def test_topologies(kubectl: Kubectl, kind: str) -> None:
    """They belong to the cluster, and their levels do not change."""
    version = {"topologies.kai.scheduler": "kai.scheduler/v1alpha1"}.get(
        kind, "kueue.x-k8s.io/v1beta1"
    )
    levels = [{"nodeLabel": "example.com/block"}, {"nodeLabel": "kubernetes.io/hostname"}]
    value = {
        "apiVersion": version,
        "kind": "Topology",
        "metadata": {"name": kubectl.namespace},
        "spec": {"levels": levels},
    }
    kubectl("apply", "-f", "-", given=value)
    change = json.dumps({"spec": {"levels": levels[:1]}})
    refused = kubectl.refused("patch", kind, kubectl.namespace, "--type=merge", "-p", change)
    assert "immutable" in refused
    kubectl("delete", kind, kubectl.namespace)


@pytest.fixture(scope="module")
def grouping(tmp_path_factory: pytest.TempPathFactory, kubectl_home: Path) -> Iterator[Kubectl]:
    """A cluster that makes groups for Jobs."""
    config = tmp_path_factory.mktemp("grouping") / "config"
    with running(config, "--ephemeral", "--feature-gates", "WorkloadWithJob=true") as server:
        yield Kubectl(server, "default", kubectl_home)


def test_a_job_with_a_group(grouping: Kubectl) -> None:
    """With the gate, the pods of a Job that run at the same time are in a PodGroup that goes with the Job."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    together = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    value = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {**together, "template": {"spec": pod}},
    }
    grouping("apply", "-f", "-", given=value)
    grouping("wait", "--for=jsonpath={.status.active}=2", "job/train", "--timeout=150s")
    (group,) = json.loads(grouping("get", "podgroups.scheduling.k8s.io", "-o", "json"))["items"]
    pods = json.loads(grouping("get", "pods", "-o", "json"))["items"]
    assert {each["spec"]["schedulingGroup"]["podGroupName"] for each in pods} == {
        group["metadata"]["name"]
    }
    grouping("delete", "job", "train", "--wait")
    grouping(
        "wait",
        "--for=delete",
        f"podgroups.scheduling.k8s.io/{group['metadata']['name']}",
        "--timeout=150s",
    )
