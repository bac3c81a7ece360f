"""A small cluster to write cases with: nodes with GPUs, pods that have some, and one pod that waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.jobs import Job
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.explain.remedies import RemedyReport, remedies_for
from drayman.explain.spelling import KnownNames, misspelt
from drayman.explain.survey import Survey
from drayman.explain.values import mistaken_values
from drayman.placement.claims import EXTENDED_CLAIM, ClaimsNotReadyError
from drayman.placement.decision.deciding import Decider
from drayman.placement.placing import Found, NotFound
from drayman.placement.world import Objects, World
from explain.applying import apply
from oracle.build import device_class, piece
from oracle.selectors import GPU, ONLY_GPU

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"
GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups"}
JsonObject = dict[str, Any]


def gpus(count: int, **fields: Any) -> list[JsonObject]:
    """Two to a PCIe root, four to a NUMA node, all alike."""
    return [
        {
            "name": f"gpu-{n}",
            "attributes": {
                "model": {"string": "H100"},
                ROOT: {"string": f"root-{n // 2}"},
                NUMA: {"int": n // 4},
            },
            "capacity": {"memory": {"value": "80Gi"}},
            **fields,
        }
        for n in range(count)
    ]


class Cluster:
    """Objects, one after the other. Pods and claims are in namespace `default` unless told."""

    def __init__(self) -> None:
        self.objects = Objects(classes=(convert(DeviceClass, device_class("gpu", ONLY_GPU)),))

    def node(
        self, name: str, devices: list[JsonObject] | int = 0, *, cpu: int = 8, **fields: Any
    ) -> Cluster:
        made = {
            "metadata": {"name": name, "labels": fields.pop("labels", {})},
            "spec": fields,
            "status": {"allocatable": {"cpu": str(cpu), "memory": "16Gi", "pods": "20"}},
        }
        self.add(nodes=convert(Node, made))
        listed = gpus(devices) if isinstance(devices, int) else devices
        if listed:
            content = piece(listed, pool=name, name=name, nodeName=name)
            self.add(slices=convert(ResourceSlice, content))
        return self

    def device_class(self, name: str, *select: str, **fields: Any) -> Cluster:
        made = device_class(name, *select)
        made["spec"] |= fields
        return self.add(classes=convert(DeviceClass, made))

    def taint_rule(self, name: str, key: str, **selector: str) -> Cluster:
        spec = {"deviceSelector": selector, "taint": {"key": key, "effect": "NoSchedule"}}
        made = {"metadata": {"name": name}, "spec": spec}
        return self.add(taint_rules=convert(DeviceTaintRule, made))

    def holder(
        self, name: str, node: str, devices: str = "", *, job: str = "", **fields: Any
    ) -> Cluster:
        """A pod that runs, with a claim for the devices with these numbers (`0 1`)."""
        namespace = fields.pop("namespace", "default")
        metadata: JsonObject = {"name": name, "namespace": namespace, "uid": f"pod-{name}"}
        metadata["annotations"] = fields.pop("annotations", {})
        metadata["labels"] = fields.pop("labels", {})
        if deleted := fields.pop("deleted", None):
            metadata["deletionTimestamp"] = deleted
        if owner := fields.pop("owner", "Job" if job else ""):
            uid = f"{owner.lower()}-{job or name}"
            template = metadata["labels"].get("pod-template-hash")
            made = f"{job or name}-{template}" if template else job or name
            reference = {"kind": owner, "name": made, "uid": uid, "controller": True}
            metadata["ownerReferences"] = [reference]
        claim = fields.pop("claim", f"claim-of-{name}")
        status = {"phase": "Running", "startTime": fields.pop("started", "2027-01-15T07:00:00Z")}
        spec: JsonObject = {"nodeName": node, **_containers(fields), **fields}
        if devices or claim != f"claim-of-{name}":
            spec["resourceClaims"] = [{"name": "devices", "resourceClaimName": claim}]
        self.add(pods=convert(Pod, {"metadata": metadata, "spec": spec, "status": status}))
        if devices:
            self.held_claim(claim, node, devices, [name], namespace)
        return self

    def held_claim(
        self,
        name: str,
        node: str,
        devices: str,
        users: list[str] | None = None,
        namespace: str = "default",
        *,
        group: str = "",
    ) -> Cluster:
        """A claim that has its devices on a node, reserved for pods or for a group of pods."""
        reserved = [
            {"resource": "pods", "name": user, "uid": f"pod-{user}"} for user in users or ()
        ]
        if group:
            reserved.append({**GROUP, "name": group, "uid": f"group-{group}"})
        results = [
            {"request": "gpus", "driver": GPU, "pool": node, "device": f"gpu-{number}"}
            for number in devices.split()
        ]
        fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
        selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
        made = {
            "metadata": _metadata(name, "claim", namespace),
            "spec": asking(count=len(results)),
            "status": {
                "allocation": {"devices": {"results": results}, "nodeSelector": selector},
                "reservedFor": reserved,
            },
        }
        return self.add(claims=convert(ResourceClaim, made))

    def job(
        self,
        name: str,
        *,
        namespace: str = "default",
        annotations: dict[str, str] | None = None,
        **spec: Any,
    ) -> Cluster:
        made = {
            "metadata": {**_metadata(name, "job", namespace), "annotations": annotations or {}},
            "spec": spec,
            "status": {"startTime": "2027-01-15T07:00:00Z"},
        }
        return self.add(jobs=convert(Job, made))

    def template(self, name: str, spec: JsonObject) -> Cluster:
        made = {"metadata": {"name": name, "namespace": "default"}, "spec": {"spec": spec}}
        return self.add(templates=convert(ResourceClaimTemplate, made))

    def claim(
        self, name: str, spec: JsonObject, *, owner: str = "", extended: bool = False
    ) -> Cluster:
        """A claim without devices; `owner` is the pod that it was made for, perhaps for extended resources."""
        metadata = _metadata(name, "claim", "default")
        if extended:
            metadata["annotations"] = {EXTENDED_CLAIM: "true"}
        if owner:
            reference: JsonObject = {"apiVersion": "v1", "kind": "Pod", "name": owner}
            reference |= {"uid": f"pod-{owner}", "controller": True}
            metadata["ownerReferences"] = [reference]
        made = {"metadata": metadata, "spec": spec}
        return self.add(claims=convert(ResourceClaim, made))

    def waiting(self, **fields: Any) -> Cluster:
        """The pod that waits: with a claim from template `wanted`, if there is one, unless told otherwise. `generated` names it."""
        metadata = {"name": "waiting", "namespace": "default", "uid": "pod-waiting"}
        metadata["labels"] = fields.pop("labels", {})
        entries = [{"name": "gpus", "resourceClaimTemplateName": "wanted"}]
        spec = {"resourceClaims": entries if self.objects.templates else [], **_containers(fields)}
        status: JsonObject = {"phase": "Pending"}
        if generated := fields.pop("generated", ""):
            known = {"name": "gpus", "resourceClaimName": generated}
            status["resourceClaimStatuses"] = [known]
        made = {"metadata": metadata, "spec": {**spec, **fields}, "status": status}
        return self.add(pods=convert(Pod, made))

    def add(self, **more: Any) -> Cluster:
        """One more object in one of the lists."""
        for field, value in more.items():
            known = getattr(self.objects, field)
            self.objects = replace(self.objects, **{field: (*known, value)})
        return self

    def world(self) -> World:
        return World(self.objects, NOW)


def asking(*requests: JsonObject, match: tuple[str, ...] = (), **fields: Any) -> JsonObject:
    """The spec of a claim: for GPUs in one request, unless requests are given."""
    listed = requests or (request("gpus", **fields),)
    devices: JsonObject = {"requests": list(listed)}
    if match:
        devices["constraints"] = [{"matchAttribute": attribute} for attribute in match]
    return {"devices": devices}


def request(
    name: str, *, cls: str = "gpu", select: tuple[str, ...] = (), **fields: Any
) -> JsonObject:
    exactly = {"deviceClassName": cls, "allocationMode": "ExactCount", "count": 1, **fields}
    if exactly["allocationMode"] == "All":
        del exactly["count"]
    if select:
        exactly["selectors"] = [{"cel": {"expression": each}} for each in select]
    return {"name": name, "exactly": exactly}


def report_on(world: World) -> RemedyReport:
    """What is said about the pod that waits."""
    pod = world.pod("default", "waiting")
    assert pod is not None
    round_ = Decider(world.state).round(NOW)
    try:
        demand = round_.demand(pod)
    except ClaimsNotReadyError:
        return remedies_for(world, pod, None, None)
    if pod.spec.scheduling_gates or pod.spec.scheduler_name:
        return remedies_for(world, pod, None, None)
    found = round_.find(demand)
    assert isinstance(found, NotFound), "the pod fits as things are"
    survey = Survey(world.state, demand)
    names = misspelt(survey, KnownNames(world.objects.slices))
    return remedies_for(world, pod, demand, found, names, mistaken_values(survey))


def checked(cluster: Cluster) -> list[str]:
    """The sentences of all remedies, each of which was applied and found to do what it says."""
    return checked_in(cluster.world())


def checked_in(world: World) -> list[str]:
    report = report_on(world)
    for remedy in report.remedies:
        after = world.with_objects(apply(world.objects, remedy))
        pod = after.pod("default", "waiting")
        assert pod is not None
        assert not pod.spec.scheduling_gates
        round_ = Decider(after.state).round(NOW)
        demand = round_.demand(pod)
        node = after.state.nodes[remedy.node]
        assert isinstance(round_.find(demand), Found), f"does not help: {remedy.sentence}"
        assert round_.placer(demand).found_on(demand, node) is not None, (
            f"not there: {remedy.sentence}"
        )
    return [remedy.sentence for remedy in report.remedies]


def _metadata(name: str, kind: str, namespace: str) -> JsonObject:
    return {"name": name, "namespace": namespace, "uid": f"{kind}-{name}", "resourceVersion": "1"}


def _containers(fields: JsonObject) -> JsonObject:
    requests = {name: fields.pop(name) for name in ("cpu", "memory") if name in fields}
    requests |= fields.pop("extended", {})
    container: JsonObject = {"name": "main", "resources": {"requests": requests}}
    if port := fields.pop("host_port", None):
        container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
    return {"containers": [container]}
