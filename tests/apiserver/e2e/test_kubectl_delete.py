"""kubectl deletes: each cascade, finalizers, collections, namespaces. Garbage collection does its part in the server."""

from __future__ import annotations

import pytest

from apiserver.e2e.driving import Kubectl
from apiserver.e2e.manifests import Object, config_map, deployment, owned_by, pod

FINALIZER = "example.com/hold"


def names(kubectl: Kubectl, kind: str = "configmaps") -> list[str]:
    return kubectl("get", kind, "-o", "jsonpath={.items[*].metadata.name}").split()


def gone(kubectl: Kubectl, *objects: str) -> None:
    """Wait until objects are no longer there."""
    kubectl("wait", "--for=delete", *objects, "--timeout=150s")


def family(kubectl: Kubectl, **metadata: object) -> Object:
    """An owner, a child of it and a grandchild; the child's metadata can be told."""
    kubectl("create", "-f", "-", given=config_map("owner"))
    owner = kubectl.object("configmap", "owner")
    child = config_map("child", ownerReferences=owned_by(owner), **metadata)
    kubectl("create", "-f", "-", given=child)
    found = kubectl.object("configmap", "child")
    kubectl("create", "-f", "-", given=config_map("grandchild", ownerReferences=owned_by(found)))
    return owner


def test_background_takes_dependents_later(kubectl: Kubectl) -> None:
    """The owner goes at once, its dependents and theirs follow."""
    family(kubectl)
    answer = kubectl("delete", "configmap", "owner", "--cascade=background")
    assert answer.startswith('configmap "owner" deleted')
    gone(kubectl, "configmap/child", "configmap/grandchild")
    assert names(kubectl) == []


def test_foreground_takes_dependents_first(kubectl: Kubectl) -> None:
    """The owner stays until the dependents that block it are gone."""
    family(kubectl, finalizers=[FINALIZER])
    kubectl("delete", "configmap", "owner", "--cascade=foreground", "--wait=false")
    gone(kubectl, "configmap/grandchild")
    owner = kubectl.object("configmap", "owner")["metadata"]
    assert owner["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in owner
    kubectl("wait", "--for=jsonpath={.metadata.deletionTimestamp}", "configmap/child")
    assert names(kubectl) == ["child", "owner"]
    kubectl("patch", "configmap", "child", "-p", '{"metadata":{"finalizers":null}}')
    gone(kubectl, "configmap/child", "configmap/owner")


def test_orphan_sets_dependents_free(kubectl: Kubectl) -> None:
    """Dependents stay and no longer name the owner."""
    family(kubectl)
    kubectl("delete", "configmap", "owner", "--cascade=orphan")
    assert names(kubectl) == ["child", "grandchild"]
    assert "ownerReferences" not in kubectl.object("configmap", "child")["metadata"]
    assert kubectl.object("configmap", "grandchild")["metadata"]["ownerReferences"]


def test_a_dependent_with_another_owner_stays(kubectl: Kubectl) -> None:
    """Only the reference to the owner that is gone is taken away."""
    for name in ("one", "two"):
        kubectl("create", "configmap", name)
    owners = [kubectl.object("configmap", name) for name in ("one", "two")]
    references = [*owned_by(owners[0]), *owned_by(owners[1])]
    kubectl("create", "-f", "-", given=config_map("shared", ownerReferences=references))
    kubectl("delete", "configmap", "one")
    reference = "{.metadata.ownerReferences[0].name}"
    kubectl("wait", f"--for=jsonpath={reference}=two", "configmap/shared", "--timeout=150s")
    assert len(kubectl.object("configmap", "shared")["metadata"]["ownerReferences"]) == 1
    kubectl("delete", "configmap", "two")
    gone(kubectl, "configmap/shared")


def test_an_object_of_an_owner_that_never_was_goes(kubectl: Kubectl) -> None:
    """A reference with the uid of nobody is one to an owner that is gone."""
    kubectl("create", "configmap", "owner")
    (reference,) = owned_by(kubectl.object("configmap", "owner"))
    reference["uid"] = "00000000-0000-0000-0000-000000000000"
    kubectl("create", "-f", "-", given=config_map("stray", ownerReferences=[reference]))
    gone(kubectl, "configmap/stray")
    assert names(kubectl) == ["owner"]


def test_dependents_of_other_kinds_go_too(kubectl: Kubectl) -> None:
    """Owners and dependents may be of different groups."""
    kubectl("create", "-f", "-", given=deployment("web"))
    owner = kubectl.object("deployment", "web")
    kubectl("create", "-f", "-", given=pod("worker", ownerReferences=owned_by(owner)))
    kubectl("delete", "deployment", "web")
    gone(kubectl, "pod/worker")


def test_a_finalizer_holds_an_object(kubectl: Kubectl) -> None:
    """An object with a finalizer is marked, and goes when the last one is taken away."""
    kubectl("create", "-f", "-", given=config_map("held", finalizers=[FINALIZER]))
    kubectl("delete", "configmap", "held", "--wait=false")
    assert "deletionTimestamp" in kubectl.object("configmap", "held")["metadata"]
    kubectl("patch", "configmap", "held", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')  # fmt: skip
    gone(kubectl, "configmap/held")


def test_a_bound_pod_waits_for_its_grace(kubectl: Kubectl) -> None:
    """A pod on a node is terminating until its kubelet says otherwise; force ends it at once."""
    manifest = pod("worker")
    manifest["spec"]["nodeName"] = "somewhere"
    kubectl("create", "-f", "-", given=manifest)
    kubectl("delete", "pod", "worker", "--wait=false")
    assert kubectl("get", "pod", "worker", "--no-headers").split()[2] == "Terminating"
    assert kubectl.object("pod", "worker")["metadata"]["deletionGracePeriodSeconds"] == 30
    kubectl("delete", "pod", "worker", "--force", "--grace-period=0")
    assert names(kubectl, "pods") == []


@pytest.mark.parametrize(
    ("selection", "left"),
    [(["--all"], []), (["-l", "tier=web"], ["data"]), (["web", "data"], [])],
    ids=["all", "selector", "names"],
)
def test_several_at_once(kubectl: Kubectl, selection: list[str], left: list[str]) -> None:
    """Collections, selections and lists of names."""
    for name in ("web", "data"):
        kubectl("create", "-f", "-", given=config_map(name, labels={"tier": name}))
    kubectl("delete", "configmaps", *selection)
    assert names(kubectl) == left


def test_the_end_of_a_namespace(kubectl: Kubectl) -> None:
    """Everything in it goes first; nothing new gets in meanwhile."""
    other = f"{kubectl.namespace}-other"
    kubectl("create", "namespace", other)
    inside = Kubectl(kubectl.server, other, kubectl.home)
    inside("create", "-f", "-", given=config_map("held", finalizers=[FINALIZER]))
    inside("create", "-f", "-", given=deployment("web"))
    kubectl("delete", "namespace", other, "--wait=false")
    gone(inside, "deployment/web")
    assert kubectl("get", "namespace", other, "--no-headers").split()[1] == "Terminating"
    refusal = inside.refused("create", "configmap", "late")
    assert "because it is being terminated" in refusal
    inside("patch", "configmap", "held", "-p", '{"metadata":{"finalizers":null}}')
    gone(kubectl, f"namespace/{other}")
    assert "(NotFound)" in kubectl.refused("get", "namespace", other)


def test_default_namespaces_stay(kubectl: Kubectl) -> None:
    """The namespaces of the system cannot be deleted."""
    assert "this namespace may not be deleted" in kubectl.refused("delete", "namespace", "default")
