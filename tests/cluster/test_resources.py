"""Resources know their paths, their scope and their objects."""

from __future__ import annotations

import pytest

from drayman.api.core import Pod
from drayman.api.errors import DecodeError
from drayman.api.meta import ObjectMeta
from drayman.cluster.options import DeleteOptions, ListOptions, WatchOptions, WriteOptions
from drayman.cluster.patches import Patch
from drayman.cluster.resources import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIMS,
    Identity,
    generic,
    path_of,
)

PATHS = [
    (PODS.target(), "/api/v1/pods"),
    (PODS.target("ns"), "/api/v1/namespaces/ns/pods"),
    (PODS.target("ns", "p"), "/api/v1/namespaces/ns/pods/p"),
    (PODS.target("ns", "p", "binding"), "/api/v1/namespaces/ns/pods/p/binding"),
    (DEVICE_CLASSES.target(None, "gpu"), "/apis/resource.k8s.io/v1/deviceclasses/gpu"),
    (
        RESOURCE_CLAIMS.target("ns", "c", "status"),
        "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status",
    ),
    (
        generic(
            "rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", namespaced=False
        ).target(None, "system:node/a b"),
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode%2Fa%20b",
    ),
]


@pytest.mark.parametrize(("target", "path"), PATHS)
def test_paths(target, path: str) -> None:
    """Requests go where Kubernetes serves the resource, with names that cannot leave their place in the path."""
    assert path_of(target) == path


def test_scope_is_kept() -> None:
    """An object without its namespace, or a cluster-wide one in a namespace, is a mistake of the caller."""
    with pytest.raises(ValueError, match="which namespace"):
        PODS.target(None, "p")
    with pytest.raises(ValueError, match="not in namespaces"):
        DEVICE_CLASSES.target("ns", "gpu")


def test_typed_objects_know_who_they_are() -> None:
    """Identity is read off structs and decoded JSON alike."""
    meta = ObjectMeta(name="p", namespace="ns", uid="u", resource_version="7")
    pod = Pod(metadata=meta)
    assert PODS.codec.identity(pod) == Identity("ns", "p", "u", "7")
    value = PODS.codec.to_value(pod)
    assert PODS.as_values().codec.identity(value) == Identity("ns", "p", "u", "7")
    assert CONFIG_MAPS.codec.identity({}) == Identity("", "", "", "")


def test_list_items_get_the_kind_that_servers_leave_out() -> None:
    """An item of a list is as whole as the same object read by itself."""
    data = b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}'
    meta, items = CONFIG_MAPS.codec.decode_list(data)
    assert meta.resource_version == "9"
    assert items == ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},)
    _, pods = PODS.codec.decode_list(b'{"metadata":{},"items":[{"metadata":{"name":"a"}}]}')
    assert (pods[0].kind, pods[0].metadata.name) == ("Pod", "a")


def test_an_empty_list_may_be_null() -> None:
    """Go writes an empty list as null."""
    assert CONFIG_MAPS.codec.decode_list(b'{"metadata":{},"items":null}')[1] == ()
    assert PODS.codec.decode_list(b'{"metadata":{},"items":null}')[1] == ()


@pytest.mark.parametrize("data", [b"", b"[]", b'"x"', b"{", b"[" * 100_000])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    """A body that is no JSON object is a DecodeError, whatever it is."""
    with pytest.raises(DecodeError):
        CONFIG_MAPS.codec.decode(data)
    with pytest.raises(DecodeError):
        CONFIG_MAPS.codec.decode_list(data)


def test_options_become_the_parameters_kubernetes_reads() -> None:
    """What is not set is not sent."""
    assert ListOptions().query() == ()
    assert dict(ListOptions(label_selector="a in (b)", limit=5, continue_="t").query()) == {
        "labelSelector": "a in (b)",
        "limit": "5",
        "continue": "t",
    }
    assert dict(WatchOptions(resource_version="7", timeout_seconds=9).query()) == {
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "9",
    }
    assert dict(WatchOptions(bookmarks=False).query()) == {"watch": "true"}
    assert dict(WriteOptions(dry_run=True, field_manager="m", force=True).query()) == {
        "dryRun": "All",
        "fieldManager": "m",
        "force": "true",
    }
    assert DeleteOptions(grace_period_seconds=0, uid="u", propagation="Orphan").body() == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": "u"},
    }


def test_a_patch_has_one_of_four_types() -> None:
    """A type that no server knows never leaves the process."""
    with pytest.raises(ValueError, match="not a type of patch"):
        Patch("application/json", {})
