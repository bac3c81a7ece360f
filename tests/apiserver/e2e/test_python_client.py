"""The official Python client: typed, dynamic and watching."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, dynamic, watch
from kubernetes.client.exceptions import ApiException

from apiserver.e2e.driving import PATIENCE_S
from apiserver.e2e.manifests import claim, config_map, deployment, owned_by, pod


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture
def dynamically(api: client.ApiClient) -> dynamic.DynamicClient:
    return dynamic.DynamicClient(api)


def test_typed_objects_make_the_round_trip(core: client.CoreV1Api, namespace: str) -> None:
    """Models go out and come back as models, with what the server adds."""
    container = client.V1Container(name="main", image="app:1")
    body = client.V1Pod(
        metadata=client.V1ObjectMeta(generate_name="worker-"),
        spec=client.V1PodSpec(containers=[container]),
    )
    made = core.create_namespaced_pod(namespace, body)
    assert made.metadata.name.startswith("worker-")
    found = core.read_namespaced_pod(made.metadata.name, namespace)
    # The scheduler may have written its status meanwhile.
    assert (found.metadata.uid, found.spec) == (made.metadata.uid, made.spec)
    assert found.metadata.creation_timestamp.tzinfo is not None
    assert found.spec.containers[0].image_pull_policy == "IfNotPresent"
    assert (found.status.phase, found.status.qos_class) == ("Pending", "BestEffort")


def test_optimistic_concurrency(core: client.CoreV1Api, namespace: str) -> None:
    """Of two writers of the same version the second gets a conflict."""
    made = core.create_namespaced_config_map(namespace, config_map("settings", {"a": "1"}))
    first = core.replace_namespaced_config_map("settings", namespace, made)
    assert first.metadata.resource_version == made.metadata.resource_version
    made.data = {"a": "2"}
    core.replace_namespaced_config_map("settings", namespace, made)
    made.data = {"a": "3"}
    with pytest.raises(ApiException) as raised:
        core.replace_namespaced_config_map("settings", namespace, made)
    assert (raised.value.status, raised.value.reason) == (409, "Conflict")
    assert core.read_namespaced_config_map("settings", namespace).data == {"a": "2"}


def test_pages(core: client.CoreV1Api, namespace: str) -> None:
    """A list in pages is the list as it was at its beginning."""
    for number in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"settings-{number}"))
    page = core.list_namespaced_config_map(namespace, limit=2)
    names = [item.metadata.name for item in page.items]
    assert page.metadata.remaining_item_count == 3
    core.delete_namespaced_config_map("settings-4", namespace)
    while token := page.metadata._continue:
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
    assert names == [f"settings-{number}" for number in range(5)]


def test_patches_and_subresources(api: client.ApiClient, namespace: str) -> None:
    """Merge patches, and the scale and status of a deployment."""
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, deployment("web", replicas=2))
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    assert (scale.spec.replicas, scale.status.selector) == (2, "app=web")
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 7}})
    status = {"status": {"replicas": 7, "readyReplicas": 3}, "spec": {"replicas": 1}}
    found = apps.patch_namespaced_deployment_status("web", namespace, status)
    assert (found.spec.replicas, found.status.ready_replicas) == (7, 3)


def test_binding_and_eviction(core: client.CoreV1Api, namespace: str) -> None:
    """A pod is bound once, and an eviction marks it for its end."""
    core.create_namespaced_pod(namespace, pod("worker"))
    target = client.V1ObjectReference(kind="Node", name="somewhere")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="worker"), target=target)
    core.create_namespaced_pod_binding("worker", namespace, binding, _preload_content=False)
    assert core.read_namespaced_pod("worker", namespace).spec.node_name == "somewhere"
    with pytest.raises(ApiException) as raised:
        core.create_namespaced_pod_binding("worker", namespace, binding, _preload_content=False)
    assert raised.value.status == 409
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="worker"))
    core.create_namespaced_pod_eviction("worker", namespace, eviction)
    assert core.read_namespaced_pod("worker", namespace).metadata.deletion_timestamp is not None


def test_delete_in_the_foreground(core: client.CoreV1Api, namespace: str) -> None:
    """Dependents go before their owner, and a watch sees it in that order."""
    core.create_namespaced_config_map(namespace, config_map("owner"))
    raw: dict[str, Any] = core.api_client.sanitize_for_serialization(
        core.read_namespaced_config_map("owner", namespace)
    )
    references = owned_by({**raw, "apiVersion": "v1", "kind": "ConfigMap"})
    core.create_namespaced_config_map(
        namespace, config_map("dependent", ownerReferences=references)
    )
    core.delete_namespaced_config_map("owner", namespace, propagation_policy="Foreground")
    version = raw["metadata"]["resourceVersion"]
    ended = []
    for event in _events(core.list_namespaced_config_map, namespace, resource_version=version):
        if event["type"] == "DELETED":
            ended.append(event["object"].metadata.name)
        if "owner" in ended:
            break
    assert ended == ["dependent", "owner"]


def test_watch_follows_another_writer(core: client.CoreV1Api, namespace: str) -> None:
    """Every change by another thread arrives, once and in order."""
    start = core.list_namespaced_config_map(namespace).metadata.resource_version

    def write() -> None:
        core.create_namespaced_config_map(namespace, config_map("counter", {"n": "0"}))
        for number in range(1, 20):
            core.patch_namespaced_config_map("counter", namespace, {"data": {"n": str(number)}})
        core.delete_namespaced_config_map("counter", namespace)

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    for event in _events(core.list_namespaced_config_map, namespace, resource_version=start):
        seen.append((event["type"], event["object"].data["n"]))
        if event["type"] == "DELETED":
            break
    writer.join()
    changes = [("MODIFIED", str(number)) for number in range(1, 20)]
    assert seen == [("ADDED", "0"), *changes, ("DELETED", "19")]


def test_watch_begins_with_what_is_there(core: client.CoreV1Api, namespace: str) -> None:
    """A streaming list sends every object, then a bookmark that says so."""
    for name in ("one", "two"):
        core.create_namespaced_config_map(namespace, config_map(name))
    stream = _events(
        core.list_namespaced_config_map,
        namespace,
        send_initial_events=True,
        resource_version_match="NotOlderThan",
        allow_watch_bookmarks=True,
    )
    seen = []
    for event in stream:
        if event["type"] == "BOOKMARK":
            marks = event["raw_object"]["metadata"]["annotations"]
            break
        seen.append((event["type"], event["object"].metadata.name))
    assert seen == [("ADDED", "one"), ("ADDED", "two")]
    assert marks == {"k8s.io/initial-events-end": "true"}


def _events(function: Any, *arguments: str, **options: Any) -> Iterator[dict[str, Any]]:
    """A watch that is stopped when the test has seen enough, and ends by itself if it never does."""
    watching = watch.Watch()
    options["timeout_seconds"] = int(PATIENCE_S)
    try:
        yield from watching.stream(function, *arguments, **options)
    finally:
        watching.stop()


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_dynamic_client_in_every_version(
    dynamically: dynamic.DynamicClient, namespace: str, version: str
) -> None:
    """A claim can be read in each version that is served, whichever it was written in."""
    versions = {"api_version": f"resource.k8s.io/{version}", "kind": "ResourceClaim"}
    stored = dynamically.resources.get(api_version="resource.k8s.io/v1", kind="ResourceClaim")
    stored.create(body=claim("gpus"), namespace=namespace)
    found = dynamically.resources.get(**versions).get(name="gpus", namespace=namespace)
    assert found.apiVersion == f"resource.k8s.io/{version}"
    request = found.spec.devices.requests[0].to_dict()
    exact = request if version == "v1beta1" else request["exactly"]
    assert (request["name"], exact["deviceClassName"]) == ("gpu", "gpu.example.com")
    assert (exact["count"], exact["allocationMode"]) == (1, "ExactCount")


def test_dynamic_server_side_apply(dynamically: dynamic.DynamicClient, namespace: str) -> None:
    """The dynamic client applies, and gets a conflict for a field of another manager."""
    maps = dynamically.resources.get(api_version="v1", kind="ConfigMap")
    options = {"namespace": namespace, "name": "settings"}
    maps.server_side_apply(config_map("settings", {"a": "1"}), field_manager="one", **options)
    theirs = config_map("settings", {"a": "2"})
    with pytest.raises(dynamic.exceptions.ConflictError) as raised:
        maps.server_side_apply(theirs, field_manager="two", **options)
    (cause,) = json.loads(raised.value.body)["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.a")
    taken = maps.server_side_apply(theirs, field_manager="two", force_conflicts=True, **options)
    assert taken.data.to_dict() == {"a": "2"}
    owners = {entry.manager for entry in taken.metadata.managedFields}
    assert owners == {"two"}


def test_dynamic_watch(dynamically: dynamic.DynamicClient, namespace: str) -> None:
    """A watch through the dynamic client."""
    maps = dynamically.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body=config_map("settings"), namespace=namespace)
    event = next(maps.watch(namespace=namespace, timeout=int(PATIENCE_S)))
    assert (event["type"], event["object"].metadata.name) == ("ADDED", "settings")


def test_errors_are_statuses(core: client.CoreV1Api, namespace: str) -> None:
    """The body of an error is a Status with reason and causes."""
    with pytest.raises(ApiException) as raised:
        core.create_namespaced_pod(
            namespace, {"metadata": {"name": "-"}, "spec": {"containers": []}}
        )
    status = json.loads(raised.value.body)
    assert (status["kind"], status["reason"], status["code"]) == ("Status", "Invalid", 422)
    fields = [cause["field"] for cause in status["details"]["causes"]]
    assert fields == ["metadata.name", "spec.containers"]
