"""kr8s, a client with ideas of its own: lists, objects that know how to change themselves, watches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kr8s
import pytest
from kr8s._async_utils import as_sync_func
from kr8s.objects import ConfigMap, Deployment, Pod, new_class

from apiserver.e2e.driving import Server
from apiserver.e2e.manifests import claim, config_map, deployment, pod
from patience import PATIENCE_S

# It warns of every server that is newer than itself.
pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")


@pytest.fixture
def kube(server: Server, namespace: str) -> Iterator[Any]:
    api = kr8s.api(kubeconfig=str(server.kubeconfig), namespace=namespace)
    yield api
    if api._session is not None:  # it leaves its connections to the garbage collector
        as_sync_func(api._session.aclose)()


def test_objects_are_created_and_found(kube: Any) -> None:
    """Create, get, list by label, exists, delete."""
    made = Pod(pod("worker", labels={"tier": "web"}), api=kube)
    made.create()
    assert made.exists()
    assert [found.name for found in kube.get("pods", label_selector="tier=web")] == ["worker"]
    assert Pod.get("worker", api=kube).status.phase == "Pending"
    made.delete()
    made.wait("delete", timeout=int(PATIENCE_S))
    assert not made.exists()
    with pytest.raises(kr8s.NotFoundError):
        Pod.get("worker", api=kube, timeout=0)


def test_objects_are_changed(kube: Any) -> None:
    """Labels, annotations, patches and scale."""
    settings = ConfigMap(config_map("settings", {"a": "1"}), api=kube)
    settings.create()
    settings.label({"tier": "web"})
    settings.annotate({"note": "yes"})
    settings.patch({"data": {"b": "2"}})
    settings.refresh()
    assert settings.labels == {"tier": "web"}
    assert settings.annotations == {"note": "yes"}
    assert settings.raw["data"] == {"a": "1", "b": "2"}
    web = Deployment(deployment("web"), api=kube)
    web.create()
    web.patch({"spec": {"replicas": 4}}, subresource="scale")
    web.refresh()
    assert web.replicas == 4


def test_watch(kube: Any) -> None:
    """A watch sees what is there and what comes."""
    settings = ConfigMap(config_map("settings", {"a": "1"}), api=kube)
    settings.create()
    seen = []
    for kind, found in kube.watch("configmaps"):
        seen.append((kind, found.raw["data"]["a"]))
        if kind == "ADDED":
            settings.patch({"data": {"a": "2"}})
        elif kind == "MODIFIED":
            settings.delete()
        else:
            break
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


def test_kinds_it_does_not_know(kube: Any) -> None:
    """Kinds are found by discovery."""
    assert any(found["name"] == "resourceclaims" for found in kube.api_resources())
    kind = new_class(
        kind="ResourceClaim", version="resource.k8s.io/v1", namespaced=True, plural="resourceclaims"
    )
    kind(claim("gpus"), api=kube).create()
    (found,) = kube.get("resourceclaims.resource.k8s.io")
    assert found.raw["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1


def test_version_and_identity(kube: Any) -> None:
    """The version of the server, and who one is."""
    assert kube.version()["minor"] == "36"
    assert kube.whoami() == "kubernetes-admin"
