"""A cluster is read with the permissions of the asker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from apiserver.e2e.driving import Kubectl
from cli.explain.people import HARDWARE, OWN, Person
from drayman.cluster import HttpClient
from drayman.cluster.resources import typed
from drayman.placement.followed import HELD, Read
from drayman.placement.world import World
from drayman.questions.errors import MayNotListError
from drayman.questions.reading import read_world, sources
from drayman.questions.worlds import read_with_rules


def read(kubeconfig: Path, namespace: str | None = "team-a") -> World:
    async def connected() -> World:
        async with HttpClient.from_environment(kubeconfig) as client:
            return await read_world(client, namespace=namespace)

    return asyncio.run(connected())


def test_an_administrator_sees_everything(kubectl: Kubectl) -> None:
    """Nothing is unseen, and every list has its version."""
    world = read(kubectl.server.kubeconfig, None)
    assert world.unseen == ()
    assert [node.metadata.name for node in world.objects.nodes] == ["example-0", "example-1"]
    assert world.objects.slices
    assert set(world.versions) == {
        typed(kind.type).plural for kind in HELD if kind.read in (Read.NEEDED, Read.WANTED)
    }
    assert list(world.versions) == sorted(world.versions)


def test_what_may_not_be_seen_is_listed(kubectl: Kubectl, person: Person) -> None:
    """Somebody with a namespace of their own gets an answer that says what it lacks."""
    kubectl("create", "job", "mine", "--image=app", "--", "sleep", "1")
    kubectl("create", "job", "other", "--image=app", "--namespace=team-b", "--", "sleep", "1")
    world = read(person(OWN, HARDWARE))
    assert world.unseen == (
        "devicetaintrules.resource.k8s.io",
        "jobs.batch outside of namespace team-a",
        "leases.coordination.k8s.io in namespace kube-system",
        "namespaces",
        "persistentvolumeclaims outside of namespace team-a",
        "persistentvolumes",
        "podgroups.scheduling.k8s.io",
        "pods outside of namespace team-a",
        "resourceclaims.resource.k8s.io outside of namespace team-a",
        "resourceclaimtemplates.resource.k8s.io outside of namespace team-a",
        "storageclasses.storage.k8s.io",
    )
    assert {job.metadata.namespace for job in world.objects.jobs} == {"team-a"}
    scopes = {resource.plural: scope for resource, scope, _ in sources(world, "team-a")}
    assert (scopes["nodes"], scopes["pods"]) == (None, "team-a")
    assert "storageclasses" not in scopes


def test_what_storage_is_left_is_read_for_claims_that_need_it(kubectl: Kubectl) -> None:
    """Drivers are asked what they can provision only if a claim is to get its volume where its pod goes."""
    world = read(kubectl.server.kubeconfig, None)
    assert (world.objects.storage_drivers, world.objects.storage_capacities) == ((), ())
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver"}
    left = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "capacity": "1Gi"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    made = [
        driver | {"metadata": {"name": "left.example.com"}, "spec": {"storageCapacity": True}},
        left | {"metadata": {"name": "left"}, "storageClassName": "left", "nodeTopology": {}},
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "left"},
            "provisioner": "left.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "wants"},
            "spec": spec | {"storageClassName": "left"},
        },
    ]
    items = {"apiVersion": "v1", "kind": "List", "items": made}
    kubectl("create", "-f", "-", given=items)
    try:
        world = read(kubectl.server.kubeconfig, None)
    finally:
        kubectl("delete", "-f", "-", given=items)
    assert [each.metadata.name for each in world.objects.storage_drivers] == ["left.example.com"]
    assert [str(each.capacity) for each in world.objects.storage_capacities] == ["1Gi"]
    assert {"csidrivers", "csistoragecapacities"} <= set(world.versions)


def test_groups_of_other_schedulers_are_read_where_there_are_gangs(kubectl: Kubectl) -> None:
    """They are not asked for unless a pod or a Job is in a gang. Those that share a plural name are kept apart."""
    assert not read(kubectl.server.kubeconfig, None).objects.plugin_pod_groups
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    levels = {"levels": [{"nodeLabel": "rack"}]}
    made = [
        group | {"metadata": {"name": "g"}, "spec": {"minMember": 2}},
        {
            "apiVersion": "kueue.x-k8s.io/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "racks"},
            "spec": levels,
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "gang", "annotations": {"drayman.dev/gang": "2"}},
            "spec": {
                "suspend": True,
                "template": {
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
                },
            },
        },
    ]
    items = {"apiVersion": "v1", "kind": "List", "items": made}
    kubectl("create", "-f", "-", given=items)
    try:
        world = read(kubectl.server.kubeconfig, None)
    finally:
        kubectl("delete", "-f", "-", given=items)
    assert [each.spec for each in world.objects.plugin_pod_groups] == [{"minMember": 2}]
    assert [each.spec for each in world.objects.kueue_topologies] == [levels]
    assert {"podgroups", "podgroups.scheduling.x-k8s.io", "topologies.kueue.x-k8s.io"} <= set(
        world.versions
    )


@pytest.mark.parametrize(
    ("own", "cluster", "namespace", "missing"),
    [
        (OWN, "nodes,deviceclasses", "team-a", "resourceslices.resource.k8s.io in the whole"),
        ("resourceclaims", HARDWARE, "team-a", "pods in namespace team-a"),
        (OWN, HARDWARE, None, " in the whole cluster"),
    ],
    ids=["slices", "pods", "no-namespace"],
)
def test_what_there_is_no_answer_without(
    person: Person, own: str, cluster: str, namespace: str | None, missing: str
) -> None:
    """The error names the permission."""
    with pytest.raises(MayNotListError, match="this needs the permission to list") as error:
        read(person(own, cluster), namespace)
    assert missing in str(error.value)


def test_limits_of_ones_own_namespace_are_taken_into_account(
    kubectl: Kubectl, person: Person
) -> None:
    """Only those of others are listed as unseen."""

    async def connected(kubeconfig: Path) -> World:
        async with HttpClient.from_environment(kubeconfig) as client:
            return await read_with_rules(client, "team-a")

    world = asyncio.run(connected(person(f"{OWN},limitranges", HARDWARE)))
    assert "limitranges outside of namespace team-a" in world.unseen
    assert "limitranges" not in world.unseen
    assert "limitranges" in asyncio.run(connected(person(OWN, HARDWARE))).unseen
