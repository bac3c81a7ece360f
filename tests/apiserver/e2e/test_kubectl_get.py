"""kubectl reads: every form of output, watches, descriptions, and what the server says about itself."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from apiserver.e2e.driving import Kubectl
from apiserver.e2e.manifests import claim, config_map, deployment, node, pod


@pytest.fixture
def two_pods(kubectl: Kubectl) -> Kubectl:
    for name, tier in (("first", "web"), ("second", "data")):
        kubectl("create", "-f", "-", given=pod(name, labels={"tier": tier}))
    return kubectl


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_table_has_kubernetes_columns(two_pods: Kubectl) -> None:
    """A list of pods is printed as the real server's table."""
    header, first, second = rows(two_pods("get", "pods"))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert first[:4] == ["first", "0/1", "Pending", "0"]
    assert second[0] == "second"


def test_wide_tables_have_more_columns(two_pods: Kubectl) -> None:
    """`-o wide` shows the columns of lower priority too."""
    header, first, _ = rows(two_pods("get", "pods", "-o", "wide"))
    assert header[5:] == ["IP", "NODE", "NOMINATED", "NODE", "READINESS", "GATES"]
    assert first[5:] == ["<none>"] * 4


def test_json_and_yaml_say_the_same(two_pods: Kubectl) -> None:
    """Both are the whole object."""
    as_json = json.loads(two_pods("get", "pod", "first", "-o", "json"))
    as_yaml = yaml.safe_load(two_pods("get", "pod", "first", "-o", "yaml"))
    assert as_json == as_yaml
    assert as_json["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert as_json["metadata"]["namespace"] == two_pods.namespace


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("name", "pod/first\npod/second\n"),
        ("jsonpath={.items[*].metadata.name}", "first second"),
        ("jsonpath={.items[?(@.metadata.labels.tier=='data')].metadata.name}", "second"),
        ("go-template={{range .items}}{{.metadata.name}};{{end}}", "first;second;"),
        (
            "custom-columns=POD:.metadata.name,TIER:.metadata.labels.tier",
            "POD      TIER\nfirst    web\nsecond   data\n",
        ),
    ],
    ids=["name", "jsonpath", "jsonpath-filter", "go-template", "custom-columns"],
)
def test_other_forms_of_output(two_pods: Kubectl, form: str, expected: str) -> None:
    """What kubectl makes of a list on its own side."""
    assert two_pods("get", "pods", "-o", form) == expected


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (["-l", "tier=web"], ["first"]),
        (["-l", "tier!=web"], ["second"]),
        (["-l", "tier in (web, data)"], ["first", "second"]),
        (["-l", "!tier"], []),
        (["--field-selector", "metadata.name=second"], ["second"]),
        (["--field-selector", "status.phase=Pending"], ["first", "second"]),
        (["--field-selector", "spec.nodeName=elsewhere"], []),
        (["--chunk-size", "1"], ["first", "second"]),
        (["--sort-by", ".metadata.labels.tier"], ["second", "first"]),
    ],
    ids=" ".join,
)
def test_selection(two_pods: Kubectl, selection: list[str], expected: list[str]) -> None:
    """Label and field selectors, pages and order."""
    output = two_pods("get", "pods", "--no-headers", *selection)
    assert [row[0] for row in rows(output)] == expected


def test_several_kinds_at_once(two_pods: Kubectl) -> None:
    """`get all` goes through the category, and a missing name is an error of its own."""
    paused = deployment("web")
    paused["spec"]["replicas"] = 0
    two_pods("create", "-f", "-", given=paused)
    two_pods("wait", "--for=jsonpath={.status.observedGeneration}=1", "deployment/web")
    *found, replica_set = two_pods("get", "all", "-o", "name").split()
    assert found == ["pod/first", "pod/second", "deployment.apps/web"]
    assert replica_set.startswith("replicaset.apps/web-")
    refusal = two_pods.refused("get", "pod", "third")
    assert refusal == 'Error from server (NotFound): pods "third" not found\n'


def test_all_namespaces(two_pods: Kubectl) -> None:
    """`-A` adds the column of the namespace."""
    header, *found = rows(two_pods("get", "pods", "-A"))
    assert header[:2] == ["NAMESPACE", "NAME"]
    assert [two_pods.namespace, "first"] in [row[:2] for row in found]


def test_watch_prints_each_change(two_pods: Kubectl) -> None:
    """`get -w` shows what is there, then every change until the end of the object."""
    watching = two_pods.streaming("get", "pod", "first", "-w", "--output-watch-events")
    with watching as lines:
        assert lines.next()[:2] == ["EVENT", "NAME"]
        assert lines.next()[:2] == ["ADDED", "first"]
        two_pods("label", "pod", "first", "seen=yes")
        assert lines.next()[:2] == ["MODIFIED", "first"]
        two_pods("delete", "pod", "first")
        kinds = [lines.next()[0]]
        while kinds[-1] != "DELETED":
            kinds.append(lines.next()[0])
        assert set(kinds[:-1]) <= {"MODIFIED"}


def test_watch_of_a_list_sees_new_objects(kubectl: Kubectl) -> None:
    """A watch of a kind shows objects that come later."""
    kubectl("create", "configmap", "old")
    with kubectl.streaming("get", "configmaps", "-w", "-o", "name") as lines:
        assert lines.next() == ["configmap/old"]
        kubectl("create", "configmap", "new")
        assert lines.next() == ["configmap/new"]


def test_describe_pod(two_pods: Kubectl) -> None:
    """A description joins the object with its events."""
    found = two_pods.object("pod", "first")["metadata"]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "first.1"},
        "involvedObject": {
            "kind": "Pod",
            "name": "first",
            "namespace": two_pods.namespace,
            "uid": found["uid"],
            "apiVersion": "v1",
        },
        "reason": "FailedScheduling",
        "message": "no node has a GPU",
        "type": "Warning",
        "source": {"component": "scheduler"},
    }
    two_pods("create", "-f", "-", given=event)
    text = two_pods("describe", "pod", "first")
    assert "Labels:       tier=web" in text
    assert re.search(r"^QoS Class: +BestEffort$", text, re.MULTILINE)
    assert ["Warning", "FailedScheduling"] in [row[:2] for row in rows(text)]
    assert "no node has a GPU" in text


def test_describe_other_kinds(kubectl: Kubectl) -> None:
    """Descriptions of kinds that kubectl knows in detail."""
    name = f"node-of-{kubectl.namespace}"
    kubectl("create", "-f", "-", given=deployment("web"))
    kubectl("create", "-f", "-", given=node(name))
    kubectl("create", "-f", "-", given=claim("gpus"))
    kubectl("create", "-f", "-", given=config_map("settings", {"mode": "fast"}))
    kubectl("wait", "--for=jsonpath={.status.updatedReplicas}=2", "deployment/web")
    assert "2 desired | 2 updated | 2 total | 0 available" in kubectl(
        "describe", "deployment", "web"
    )
    assert "Unschedulable:      false" in kubectl("describe", "node", name)
    assert "gpu.example.com" in kubectl("describe", "resourceclaim", "gpus")
    assert "mode:\n----\nfast\n" in kubectl("describe", "configmap", "settings")
    assert "Status:       Active" in kubectl("describe", "namespace", kubectl.namespace)


def test_events(kubectl: Kubectl) -> None:
    """`kubectl events` finds those about an object."""
    assert "No events found" in kubectl.attempt("events").stderr
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "settings.1"},
        "regarding": {
            "kind": "ConfigMap",
            "name": "settings",
            "namespace": kubectl.namespace,
            "apiVersion": "v1",
        },
        "reason": "Changed",
        "note": "somebody changed it",
        "type": "Normal",
        "action": "Change",
        "reportingController": "example.com/test",
        "reportingInstance": "test-1",
        "eventTime": "2026-01-02T03:04:05.000006Z",
    }
    kubectl("create", "-f", "-", given=event)
    text = kubectl("events", "--for", "configmap/settings")
    assert rows(text)[1][1:4] == ["Normal", "Changed", "ConfigMap/settings"]
    assert "somebody changed it" in kubectl("get", "events")


@pytest.mark.parametrize("form", ["plaintext", "plaintext-openapiv2"])
def test_explain(kubectl: Kubectl, form: str) -> None:
    """`explain` reads the OpenAPI documents of version 3, and of version 2."""
    text = kubectl("explain", "resourceclaims.spec.devices.requests", f"--output={form}")
    assert "KIND:" in text
    assert "ResourceClaim" in text
    assert "exactly" in text
    assert "firstAvailable" in text


def test_explain_describes_what_people_look_up(kubectl: Kubectl) -> None:
    """Kinds, their parts and their fields all have a description."""
    for words in ("pod.spec", "deployment.spec.strategy", "service.spec", "rc.status", "csr.spec"):
        text = kubectl("explain", words)
        assert "DESCRIPTION:" in text
        assert "<empty>" not in text
        assert "no description" not in text


def test_explain_recursively(kubectl: Kubectl) -> None:
    """`explain --recursive` shows the tree; a field that is not there is named."""
    text = kubectl("explain", "pod.spec", "--recursive")
    assert ["resourceClaimName", "<string>"] in [row[:2] for row in rows(text)]
    assert 'field "nothing" does not exist' in kubectl.refused("explain", "pod.nothing")


def test_api_resources_and_versions(kubectl: Kubectl) -> None:
    """Discovery lists what is served, with short names and scope."""
    table = rows(kubectl("api-resources"))
    assert ["pods", "po", "v1", "true", "Pod"] in table
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in table
    assert ["deviceclasses", "resource.k8s.io/v1", "false", "DeviceClass"] in table
    versions = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "batch/v1", "resource.k8s.io/v1", "resource.k8s.io/v1beta1"} <= set(
        versions
    )
    names = kubectl("api-resources", "--api-group=resource.k8s.io", "-o", "name").split()
    assert "resourceclaims.resource.k8s.io" in names


def test_raw_paths(two_pods: Kubectl) -> None:
    """`get --raw` reads any path."""
    path = f"/api/v1/namespaces/{two_pods.namespace}/pods?limit=1"
    page = json.loads(two_pods("get", "--raw", path))
    assert page["kind"] == "PodList"
    assert [item["metadata"]["name"] for item in page["items"]] == ["first"]
    assert page["metadata"]["remainingItemCount"] == 1
    assert two_pods("get", "--raw", "/readyz") == "ok"
    assert json.loads(two_pods("get", "--raw", "/version"))["minor"] == "36"
    assert "apiserver_request_total" in two_pods("get", "--raw", "/metrics")
    assert "apis/apps/v1" in json.loads(two_pods("get", "--raw", "/openapi/v3"))["paths"]
