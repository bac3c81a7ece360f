"""A cluster in a file: what is kept, what is left out, and what is said about files that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup, KaiTopology, KueueTopology, PluginPodGroup
from drayman.api.jobs import Job
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate
from drayman.api.workloads import DaemonSet, Deployment, ReplicaSet, StatefulSet
from drayman.placement.world import Objects, World
from drayman.simulate.snapshot import SnapshotError, read_snapshot, snapshot
from simulate.cluster import cluster, held, node, piece, pod

NOW = 1_000.0
SECRET = "hunter2"
"""Wherever it is in the cluster, it must not be in the snapshot."""


def lines(world: World) -> bytes:
    return b"".join(b"---\n%b\n" % text for text in snapshot(world))


def block(world: World) -> bytes:
    return yaml.safe_dump_all(json.loads(text) for text in snapshot(world)).encode()


def listed(world: World) -> bytes:
    items = [json.loads(text) for text in snapshot(world)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


GROUP: dict[str, Any] = {"metadata": {"name": "g", "namespace": "default"}}
TOPOLOGY = {"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "rack"}]}}


def full() -> World:
    """A bit of everything."""
    world = cluster(
        {"a": 2, "b": 0},
        pods=(pod("p", "one", nodeName="a"), pod("q", claim="c")),
        claims=(held("c", "a", "gpu-0"),),
        jobs=(convert(Job, {"metadata": {"name": "j", "namespace": "default"}}),),
        deployments=(convert(Deployment, {"metadata": {"name": "d", "namespace": "default"}}),),
        pod_groups=(convert(PodGroup, GROUP),),
        plugin_pod_groups=(convert(PluginPodGroup, {**GROUP, "spec": {"minMember": 2}}),),
        kai_pod_groups=(convert(KaiPodGroup, {**GROUP, "spec": {"minMember": "odd"}}),),
        kai_topologies=(convert(KaiTopology, TOPOLOGY),),
        kueue_topologies=(convert(KueueTopology, TOPOLOGY),),
        rules=({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}},),
    )
    world.versions = {"pods": "12"}
    world.unseen = ("jobs.batch",)
    return world


@pytest.mark.parametrize("form", [lines, block, listed])
def test_a_snapshot_is_the_cluster(form: Any) -> None:
    """Whatever it is written as, the same objects, time, versions and gaps come back."""
    world = full()
    read = read_snapshot("f", form(world), now=NOW)
    assert read.objects == world.objects
    assert (read.now, read.versions, read.unseen) == (world.now, world.versions, world.unseen)


_NAMES = st.text("abc", min_size=1, max_size=3)


@given(st.dictionaries(_NAMES, st.integers(0, 3), max_size=4), st.sampled_from([lines, block]))
def test_any_cluster_comes_back(devices: dict[str, int], form: Any) -> None:
    """Reading what was written gives the same objects, for any number of nodes and devices."""
    world = cluster(devices)
    assert read_snapshot("f", form(world), now=NOW).objects == world.objects


def test_other_versions_with_the_same_fields_are_read() -> None:
    """A topology of an older Kueue is one all the same. A group of a scheduler that is not known is passed over."""
    documents = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},
        {"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "Topology", **TOPOLOGY},
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", **GROUP},
    ]
    for text in (yaml.safe_dump_all(documents), "\n".join(map(json.dumps, documents))):
        objects = read_snapshot("f", text.encode(), now=NOW).objects
        assert [each.spec for each in objects.kueue_topologies] == [TOPOLOGY["spec"]]
        groups = (objects.pod_groups, objects.plugin_pod_groups, objects.kai_pod_groups)
        assert groups == ((), (), ())


def test_what_states_a_gang_is_kept() -> None:
    """Also annotations that do not say whose they are."""
    annotations = {
        "pod-group-name": "g",
        "kueue.x-k8s.io/pod-group-total-count": "2",
        "kai.scheduler/topology": "racks",
        "private.example.com/token": SECRET,
    }
    member = convert(
        Pod, {"metadata": {"name": "p", "namespace": "default", "annotations": annotations}}
    )
    world = World(Objects(pods=(member,), nodes=cluster({"a": 0}).objects.nodes), NOW)
    (kept,) = read_snapshot("f", lines(world), now=NOW).objects.pods
    assert sorted(kept.metadata.annotations) == sorted(annotations)[:-1]


def test_what_kubectl_prints_is_a_snapshot() -> None:
    """Lists of one kind, in other versions, without a head: the time is that of reading."""
    made = piece("a", 1)
    device = {"name": "gpu-0", "basic": {"attributes": {"model": {"string": "x"}}}}
    old = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": made.spec.driver,
            "nodeName": "a",
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }
    nodes = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}]}
    read = read_snapshot("f", yaml.safe_dump_all([nodes, old]).encode(), now=NOW)
    assert read.now == NOW
    assert [n.metadata.name for n in read.objects.nodes] == ["a"]
    (found,) = read.objects.slices[0].spec.devices
    assert set(found.attributes) == {"model"}


def test_secrets_and_what_people_keep_in_pods_are_left_out() -> None:
    """No environment, command, annotation of users, or copy of what was applied, also not in the templates of jobs."""
    annotations = {
        "example.com/token": SECRET,
        "kubectl.kubernetes.io/last-applied-configuration": SECRET,
        "drayman.dev/run-for": "10s",
    }
    container = {"name": "c", "env": [{"name": "A", "value": SECRET}], "command": [SECRET]}
    metadata = {"annotations": annotations}
    template = {"metadata": metadata, "spec": {"containers": [container]}}
    job = {
        "metadata": {"name": "j", "namespace": "default", **metadata},
        "spec": {"template": template},
    }
    given = pod("p", metadata=metadata, containers=[{**container, "args": [SECRET]}])
    world = World(Objects(pods=(given,), jobs=(convert(Job, job),)), NOW)
    text = lines(world)
    assert SECRET.encode() not in text
    assert text.count(b"run-for") == 3
    assert b'"name":"c"' in text


WORKLOADS: dict[str, Any] = {
    "deployments": Deployment,
    "replica_sets": ReplicaSet,
    "stateful_sets": StatefulSet,
    "daemon_sets": DaemonSet,
}


@pytest.mark.parametrize("member", WORKLOADS)
def test_workloads_are_kept_without_their_templates(member: str) -> None:
    """Their pods are there by themselves."""
    metadata = {"name": "w", "namespace": "default", "annotations": {"example.com/token": SECRET}}
    container = {"name": "c", "env": [{"name": "A", "value": SECRET}]}
    spec: dict[str, Any] = {"template": {"spec": {"containers": [container]}}}
    if member == "stateful_sets":
        spec["volumeClaimTemplates"] = [{"metadata": {"name": SECRET}}]
    written = convert(WORKLOADS[member], {"metadata": metadata, "spec": spec})
    text = lines(World(Objects(**{member: (written,)}), NOW))
    assert SECRET.encode() not in text
    (read,) = getattr(read_snapshot("f", text, now=NOW).objects, member)
    assert (read.kind, read.metadata.name) == (written.kind, "w")


def test_what_is_between_claims_and_drivers_is_left_out() -> None:
    """Parameters of classes, templates and claims, and what drivers say of devices; that there are any is kept."""
    opaque = {"driver": "d", "parameters": {"kind": "K", "password": SECRET}}
    asked = {"devices": {"config": [{"requests": ["r"], "opaque": opaque}]}}
    metadata = {"name": "x", "namespace": "default"}
    inner = {"metadata": {"annotations": {"example.com/token": SECRET}}, "spec": asked}
    status = {
        "allocation": {"devices": {"config": [{"source": "FromClaim", "opaque": opaque}]}},
        "devices": [{"driver": "d", "pool": "p", "device": "x", "data": {"a": SECRET}}],
    }
    objects = Objects(
        classes=(convert(DeviceClass, {"metadata": metadata, "spec": {"config": [{"opaque": opaque}]}}),),
        templates=(convert(ResourceClaimTemplate, {"metadata": metadata, "spec": inner}),),
        claims=(convert(ResourceClaim, {"metadata": metadata, "spec": asked, "status": status}),),
    )  # fmt: skip
    text = lines(World(objects, NOW))
    assert SECRET.encode() not in text
    assert text.count(b'"opaque":{"driver":"d"}') == 4


def test_what_is_stated_about_alignment_is_kept() -> None:
    """It decides about devices; without it, another cluster would be read."""
    parameters = {"apiVersion": "drayman.dev/v1alpha1", "kind": "AlignmentPolicy"}
    stated = {"driver": "drayman.dev", "parameters": {**parameters, "levels": ["numaNode"]}}
    unknown = {"driver": "drayman.dev", "parameters": {"kind": "K", "password": SECRET}}
    config = [{"opaque": stated}, {"opaque": unknown}]
    metadata = {"name": "x", "annotations": {"drayman.dev/align": "pcieRoot"}}
    objects = Objects(
        claims=(convert(ResourceClaim, {"metadata": metadata, "spec": {"devices": {"config": config}}}),)
    )  # fmt: skip
    text = lines(World(objects, NOW))
    assert SECRET.encode() not in text
    (read,) = read_snapshot("f", text, now=NOW).objects.claims
    assert read.metadata.annotations == {"drayman.dev/align": "pcieRoot"}
    assert read.spec.devices.config[0] == objects.claims[0].spec.devices.config[0]


WRONG: dict[str, tuple[str, str]] = {
    "no cluster": ("kind: ConfigMap\napiVersion: v1\n", "f: is not a snapshot of a cluster"),
    "a field of another type": (
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\nspec:\n  unschedulable: 3\n",
        "f:6: Node a: spec.unschedulable: ",
    ),
    "another version": (
        "apiVersion: v7\nkind: Node\nmetadata:\n  name: a\n",
        "f:1: Node a: apiVersion: ",
    ),
    "a version that never was": (
        "apiVersion: resource.k8s.io/v9\nkind: ResourceSlice\nmetadata:\n  name: a\n",
        "f:1: ResourceSlice a: apiVersion: ",
    ),
    "no YAML": ("{a: [", "f:1: "),
    "half a line": ('---\n{"apiVersion":"v1","kind":"Node","metadata":{"na\n', "f:"),
    "nothing": ("", "f: is not a snapshot of a cluster"),
}


@pytest.mark.parametrize("title", WRONG)
def test_what_is_wrong_is_told_with_its_place(title: str) -> None:
    text, message = WRONG[title]
    with pytest.raises(SnapshotError) as error:
        read_snapshot("f", text.encode(), now=NOW)
    assert str(error.value).startswith(message)


def test_objects_of_other_kinds_are_passed_over() -> None:
    """A file may hold more than a cluster is read from."""
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    text = lines(World(Objects(nodes=(node("a"),)), NOW)) + json.dumps(other).encode()
    assert len(read_snapshot("f", text, now=NOW).objects.nodes) == 1
