"""A plan is what the scheduler then does: the same manifests, submitted to a real cluster, land where the plan said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from controllers.world import NAMESPACE, eventually
from drayman.api.core import Pod
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS, generic
from drayman.questions.manifests import read_manifests
from drayman.questions.worlds import read_with_rules
from drayman.simulate.plan_report import PlanReport
from drayman.simulate.planning import plan
from scheduler.behaviour.stage import Stage, from_template, staged, wants

ENDPOINTS = {
    "Pod": ("v1", "pods"),
    "Job": ("batch/v1", "jobs"),
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "DaemonSet": ("apps/v1", "daemonsets"),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses"),
    "ResourceClaim": ("resource.k8s.io/v1", "resourceclaims"),
}


def pod_spec(template: str = "", **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "example.com/image:1"}
    if template:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [from_template(template)]
    return {"containers": [container], **spec}


def owner(kind: str, name: str, template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A workload whose pods have its name as a label."""
    labels = {"app": name}
    made = {"template": {"metadata": {"labels": labels}, "spec": template}, **spec}
    if kind != "Job":
        made["selector"] = {"matchLabels": labels}
    api_version = ENDPOINTS[kind][0]
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": made}


def away_from(name: str) -> dict[str, Any]:
    """Not on a node that has a pod of this app."""
    term = {
        "labelSelector": {"matchLabels": {"app": name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


WORKLOADS: dict[str, list[dict[str, Any]]] = {
    "pods of a job that take a device each": [
        owner("Job", "train", pod_spec("one", restartPolicy="Never"), parallelism=3, completions=3)
    ],
    "a deployment that spreads over nodes": [
        owner("Deployment", "web", pod_spec(affinity=away_from("web")), replicas=3)
    ],
    "a set, of which not all pods fit": [
        owner("StatefulSet", "db", pod_spec("two"), replicas=4, podManagementPolicy="Parallel")
    ],
    "daemons, on a cordoned node too": [owner("DaemonSet", "agent", pod_spec())],
    "a pod with a claim by name, and one that shares it": [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "shared"},
            "spec": {"devices": {"requests": [wants()]}},
        },
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": pod_spec(resourceClaims=[{"name": "s", "resourceClaimName": "shared"}]),
            }
            for name in ("first", "second")
        ),
    ],
    "more replicas than there are devices": [
        owner("ReplicaSet", "many", pod_spec("one"), replicas=9)
    ],
}
"""One after the other, each on top of the ones before."""


async def submit(stage: Stage, objects: Sequence[dict[str, Any]]) -> None:
    for value in objects:
        api_version, plural = ENDPOINTS[value["kind"]]
        resource = generic(api_version, plural, value["kind"])
        await stage.client.create(resource, value, NAMESPACE)


async def places(stage: Stage, before: set[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Node and devices of each pod that was not there before, and was placed; in order."""
    pods = (await stage.client.list_all(PODS, NAMESPACE)).items
    claims = {  # after the pods, so that none of theirs is missing
        claim.metadata.name: claim
        for claim in (await stage.client.list_all(RESOURCE_CLAIMS, NAMESPACE)).items
    }
    found = []
    for pod in pods:
        if pod.metadata.uid not in before and pod.spec.node_name:
            names = [claims[name] for name in claim_names(pod)]
            devices = sorted(
                result.device
                for claim in names
                if claim.status.allocation is not None
                for result in claim.status.allocation.devices.results
            )
            found.append((pod.spec.node_name, tuple(devices)))
    return sorted(found)


def claim_names(pod: Pod) -> list[str]:
    generated = [s.resource_claim_name for s in pod.status.resource_claim_statuses]
    named = [entry.resource_claim_name for entry in pod.spec.resource_claims]
    return [name for name in (*generated, *named) if name]


def planned(report: PlanReport) -> list[tuple[str, tuple[str, ...]]]:
    """Node and devices of each pod that would be placed, in order."""
    return sorted(
        (pod.node, tuple(sorted(device.device for device in pod.devices)))
        for pod in report.pods
        if pod.waits is None
    )


async def test_pods_land_where_the_plan_said(tmp_path: Path) -> None:
    """Jobs, deployments, sets, daemons and pods go to the nodes, and get the devices, that were announced."""
    async with staged(tmp_path) as stage:
        await stage.device_class()
        await stage.make_template("one", wants())
        await stage.make_template("two", wants(count=2))
        for name, count in (("node-a", 5), ("node-b", 3), ("node-c", 3)):
            await stage.node(name, *(f"gpu-{n}" for n in range(count)))
        await stage.node("node-d", "gpu-0", spec={"unschedulable": True})
        for title, objects in WORKLOADS.items():
            world = await read_with_rules(stage.client, None)
            text = yaml.safe_dump_all(objects).encode()
            wanted = (await read_manifests([(title, text)], world)).wanted
            report = plan(world, wanted)
            expected = planned(report)
            assert expected, f"{title}: the plan places nothing, so nothing is compared"
            before = {pod.metadata.uid for pod in world.objects.pods}
            await submit(stage, objects)
            found = await eventually(
                lambda known=before: places(stage, known),
                lambda found, wanted=expected: len(found) >= len(wanted),
            )
            assert found == expected, title
