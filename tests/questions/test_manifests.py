"""Manifests for a plan are taken as the API server takes them, or refused with file, line, object and field."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from drayman.api.codec import decode
from drayman.api.resource import ResourceClaim
from drayman.placement.world import World
from drayman.questions.errors import ManifestsError
from drayman.questions.manifests import Manifests, read_manifests
from drayman.simulate.expanding import MOST_PODS
from drayman.simulate.snapshot import snapshot
from simulate.cluster import claim, cluster

CONTAINER = {"name": "main", "image": "example.com/image:1"}


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [CONTAINER], **spec},
    }


def deployment(**spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


async def read(*values: dict[str, Any] | str, world: World | None = None) -> Manifests:
    texts = [value if isinstance(value, str) else yaml.safe_dump(value) for value in values]
    data = "---\n".join(texts).encode()
    return await read_manifests([("f.yaml", data)], world or cluster({"a": 1}))


async def test_groups_and_topologies_of_other_schedulers_join_the_cluster() -> None:
    """Though their kinds are not Kubernetes' own: checked by our definitions, and read in any version that has their form."""
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 2},
    }
    topology = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"nodeLabel": "rack"}]},
    }
    found = await read(group, topology, pod())
    assert found.ignored == ()
    assert [each.spec for each in found.wanted.objects.plugin_pod_groups] == [{"minMember": 2}]
    assert [each.metadata.name for each in found.wanted.objects.kueue_topologies] == ["t"]
    with pytest.raises(ManifestsError, match=r"f\.yaml:\d+: PodGroup g: spec\.minMember: "):
        await read({**group, "spec": {"minMember": 0}}, pod())


async def test_defaults_are_filled_in() -> None:
    """Replicas, tolerations, modes of requests: as the cluster would have them."""
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    made = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [request]}},
    }
    wanted = (await read(deployment(), made)).wanted
    (web,) = wanted.workloads
    assert web.title == "deployment/web"
    assert web.template.metadata.namespace == "default"
    assert {t.key for t in web.template.spec.tolerations} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    exactly = wanted.objects.claims[0].spec.devices.requests[0].exactly
    assert exactly is not None
    assert (exactly.allocation_mode, exactly.count) == ("ExactCount", 1)


async def test_older_versions_are_converted() -> None:
    """A claim of v1beta1 is read as what it means today."""
    made = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}},
    }
    (found,) = (await read(made)).wanted.objects.claims
    assert found.spec.devices.requests[0].exactly is not None


async def test_priority_classes_of_the_cluster_and_of_the_files_count() -> None:
    """The number that a name stands for is looked up where the server would look it up."""

    def priority_class(name: str, value: int) -> dict[str, Any]:
        api_version = "scheduling.k8s.io/v1"
        metadata = {"name": name}
        kind = "PriorityClass"
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "value": value}

    world = cluster({"a": 1}, rules=(priority_class("high", 7),))
    found = await read(
        priority_class("higher", 9),
        pod("p", priorityClassName="high"),
        pod("q", priorityClassName="higher"),
        world=world,
    )
    assert [w.template.spec.priority for w in found.wanted.workloads] == [7, 9]


async def test_limits_of_the_namespace_are_applied() -> None:
    """A container that asks for nothing asks for what its namespace says."""
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]},
    }
    found = await read(deployment(), world=cluster({"a": 1}, rules=(limits,)))
    resources = found.wanted.workloads[0].template.spec.containers[0].resources
    assert str(resources.requests["cpu"]) == "3"


async def test_what_the_cluster_has_given_devices_stays() -> None:
    """A claim that exists is not replaced by the one of the files."""
    made = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    found = await read(made, world=cluster({"a": 1}, claims=(claim("c"),)))
    assert found.wanted.objects.claims == ()


async def test_parameters_for_drivers_make_no_other_claim() -> None:
    """A snapshot does not have them, and no pod goes elsewhere for them."""
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}
    opaque = {"driver": "gpu.example.com", "parameters": {"kind": "K"}}
    made = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {**devices, "config": [{"opaque": opaque}]}},
    }
    stored = (await read(made)).wanted.objects
    (text,) = (text for text in snapshot(World(stored, 0.0)) if b"opaque" in text)
    assert b"parameters" not in text
    known = decode(ResourceClaim, text)
    assert (await read(made, world=cluster({"a": 1}, claims=(known,)))).wanted.objects.claims == ()


async def test_kinds_that_are_not_planned_are_told() -> None:
    """Custom resources, and pods that come at another time."""
    schedule = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {
            "schedule": "@daily",
            "jobTemplate": {
                "spec": {
                    "template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
                }
            },
        },
    }
    custom = {"apiVersion": "example.com/v1", "kind": "Rocket", "metadata": {"name": "r"}}
    assert (await read(custom, schedule, pod())).ignored == ("Rocket", "CronJob")


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3"])
async def test_versions_that_nobody_serves_any_more_are_not_passed_over(version: str) -> None:
    """Pods would seem to lack their claims. It is said what helps."""
    made = {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceClaim", "metadata": {"name": "c"}}  # fmt: skip
    with pytest.raises(ManifestsError) as refused:
        await read(made, pod())
    assert f"resource.k8s.io/{version} is not served any more; `drayman migrate`" in str(refused.value)  # fmt: skip


async def test_kinds_that_only_real_clusters_have_are_no_slips() -> None:
    """They are told as not planned, unlike kinds that do not exist."""
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"}}  # fmt: skip
    assert (await read(policy, pod())).ignored == ("NetworkPolicy",)


async def test_services_among_the_files_get_their_addresses() -> None:
    """As those of most applications have it."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]},
    }
    manifests = await read(service, deployment())
    assert [each.original for each in manifests.wanted.workloads] == ["deployment/web"]


async def test_volumes_are_not_made_for_more_pods_than_a_plan_is_for() -> None:
    """A slip in the number of replicas takes no time and no memory."""
    volume = {
        "metadata": {"name": "v"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    value = deployment(replicas=2_000_000_000, serviceName="web", volumeClaimTemplates=[volume])
    manifests = await read(value | {"kind": "StatefulSet"})
    assert len(manifests.wanted.objects.volume_claims) == MOST_PODS + 1


async def test_nodes_of_the_files_take_pods() -> None:
    """A node in a plan is one that is up: it has no taint that keeps pods away until it reports."""
    status = {"allocatable": {"cpu": "4"}}
    made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "new"}, "status": status}
    (node,) = (await read(made)).wanted.objects.nodes
    assert node.spec.taints == ()
    assert str(node.status.allocatable["cpu"]) == "4"


WRONG: dict[str, tuple[dict[str, Any] | str, str]] = {
    "an unknown field": (
        deployment(replicass=3),
        "f.yaml:6: Deployment web: spec.replicass: unknown field",
    ),
    "a value of the wrong type": (
        deployment(replicas="three"),
        "f.yaml:6: Deployment web: spec.replicas: json: cannot unmarshal string into Go struct field",
    ),
    "a rule of the kind": (
        pod(containers=[]),
        "f.yaml:6: Pod p: spec.containers: Required value",
    ),
    "a name in a template that admission does not find": (
        deployment(
            template={
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [CONTAINER], "priorityClassName": "nope"},
            }
        ),
        "f.yaml:9: Deployment web: spec.template: pods",
    ),
    "a namespace that does not exist": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: other}\n"
        "spec: {containers: [{name: c, image: i}]}\n",
        'f.yaml:1: Pod other/p: namespaces "other" not found',
    ),
    "a kind that does not exist": (
        "apiVersion: v1\nkind: Pdo\n",
        "f.yaml:2: Pdo: kind: there is no kind Pdo in v1",
    ),
    "no kind": ("apiVersion: v1\n", "f.yaml:1: kind: a text is required"),
    "the same object twice": (
        "---\n".join([yaml.safe_dump(pod()), yaml.safe_dump(pod())]),
        'f.yaml:10: Pod p: pods "p" already exists',
    ),
    "a selector that does not compile": (
        "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: c}\nspec:\n  devices:\n"
        "    requests:\n    - name: r\n      deviceClassName: gpu\n      selectors:\n"
        "      - cel:\n          expression: device.foo\n",
        "f.yaml:11: ResourceClaim c: spec.devices.requests[0].exactly.selectors[0].cel.expression: ",
    ),
    "a claim that the cluster has with another spec": (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: there}\nspec:\n  devices:\n"
        "    requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 3}}]\n",
        "f.yaml:4: ResourceClaim there: spec: the cluster has this claim with another spec",
    ),
    "no YAML": ("a: [", "f.yaml:"),
}


@pytest.mark.parametrize("title", WRONG)
async def test_what_is_wrong_is_told_with_its_place(title: str) -> None:
    value, message = WRONG[title]
    with pytest.raises(ManifestsError) as error:
        await read(value, world=cluster({"a": 1}, claims=(claim("there"),)))
    assert str(error.value).startswith(message)


async def test_all_errors_are_told_at_once() -> None:
    """One wrong object does not hide the next."""
    with pytest.raises(ManifestsError) as error:
        await read(pod("p", containers=[]), pod("q", containers=[]))
    assert [finding.object for finding in error.value.findings] == ["Pod p", "Pod q"]


async def test_what_the_cluster_has_may_be_in_the_files_too() -> None:
    """As with `kubectl apply`: a namespace, or a priority class, that is there already is no error, and the file counts."""
    api_version, kind = "scheduling.k8s.io/v1", "PriorityClass"
    known: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "high"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    found = await read(
        namespace,
        {**known, "value": 8},
        pod("p", priorityClassName="high"),
        world=cluster({"a": 1}, rules=({**known, "value": 7},)),
    )
    assert [w.template.spec.priority for w in found.wanted.workloads] == [8]
