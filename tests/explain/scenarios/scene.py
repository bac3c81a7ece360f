"""Small clusters in which something waits, built in the words of the story that a scenario tells.

Everything is as an API server would accept it, so that the same objects can be explained and be played on a real one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from drayman.api.claim_generation import POD_CLAIM_NAME
from drayman.api.codec import convert, to_dict
from drayman.api.core import Namespace, Node, Pod
from drayman.api.custom_groups import KaiQueue
from drayman.api.jobs import Job
from drayman.api.kueue_workload import Workload
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from drayman.api.workloads import Lease
from drayman.drivers.profiles import parse_profiles, simulate
from drayman.inventory.features import Features
from drayman.placement.world import Objects, World
from drayman.quota.fitting.rooms import ROOM
from oracle.build import claim as claim_of
from oracle.build import device, device_class, exactly, label_selector, piece
from oracle.nodes import JsonObject
from oracle.selectors import GPU, ONLY_GPU

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"
NVIDIA = "gpu.nvidia.com"
"""Driver and class of the NVIDIA profiles."""
ALLOCATABLE = {"cpu": "8", "memory": "16Gi", "pods": "20"}
_SINCE = "2027-01-15T07:00:00Z"
TYPES: dict[str, Any] = {
    "nodes": Node,
    "slices": ResourceSlice,
    "classes": DeviceClass,
    "taint_rules": DeviceTaintRule,
    "claims": ResourceClaim,
    "templates": ResourceClaimTemplate,
    "pods": Pod,
    "pod_groups": PodGroup,
    "kai_queues": KaiQueue,
    "namespaces": Namespace,
    "volumes": PersistentVolume,
    "volume_claims": PersistentVolumeClaim,
    "storage_classes": StorageClass,
    "jobs": Job,
    "leases": Lease,
    "queued_workloads": Workload,
}

Wanted: TypeAlias = Mapping[str, JsonObject | str | None]
"""The claims of a pod by name: a claim to make, the name of a template to make it from, or None for one that is there already."""


class Scene:
    """A cluster. Pods and claims are in namespace `default` unless it is said otherwise.

    `Scene("dgx-h100=2")` begins with the nodes, slices and classes of hardware profiles, `Scene()` with the class `gpu`, which is
    for devices of the driver gpu.example.com. `off` names features that the cluster does without.
    """

    def __init__(self, *profiles: str, off: Iterable[str] = ()) -> None:
        self.features = Features(**dict.fromkeys(off, False))
        self.objects: dict[str, list[JsonObject]] = {field: [] for field in TYPES}
        self.driver = GPU
        self._versions = 0
        self._has_leases = False
        if not profiles:
            self.add("classes", device_class("gpu", ONLY_GPU))
            return
        hardware = simulate(parse_profiles(profiles))
        for each in hardware.nodes:
            self.add("nodes", to_dict(each.node))
            self.add("slices", *(to_dict(slice_) for slice_ in each.slices))
        self.add("classes", *(to_dict(cls) for cls in hardware.classes))
        self.driver = self.objects["slices"][0]["spec"]["driver"]

    def add(self, field: str, *values: JsonObject) -> Scene:
        """Objects as they are; `field` is that of `Objects`."""
        self.objects[field] += values
        return self

    # Hardware.

    def node(
        self,
        name: str,
        devices: Sequence[JsonObject | str] | int = 0,
        *,
        labels: Mapping[str, str] | None = None,
        allocatable: Mapping[str, str] | None = None,
        driver: str = "",
        **spec: Any,
    ) -> Scene:
        """A node with devices of its own: `gpu-0` and so on if only their number is given. `spec` are fields of its spec."""
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        status = {
            "allocatable": {**ALLOCATABLE, **(allocatable or {})},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        self.add("nodes", {"metadata": metadata, "spec": spec, "status": status})
        given = [f"gpu-{n}" for n in range(devices)] if isinstance(devices, int) else devices
        return self.slice(given, pool=name, driver=driver, nodeName=name) if given else self

    def slice(
        self, devices: Sequence[JsonObject | str], *, pool: str, driver: str = "", **fields: Any
    ) -> Scene:
        """A slice of a pool, see `oracle.build.piece`; `nodeName`, `allNodes` and so on say for which nodes."""
        driver = driver or self.driver
        name = fields.pop("name", f"{pool}-{driver}")
        return self.add("slices", piece(devices, driver=driver, pool=pool, name=name, **fields))

    def device_class(self, name: str, *select: str, **spec: Any) -> Scene:
        made = device_class(name, *select)
        return self.add("classes", {**made, "spec": {**made["spec"], **spec}})

    def rule(self, name: str, key: str, effect: str = "NoSchedule", **selector: str) -> Scene:
        """A DeviceTaintRule for the devices that the selector says (`driver`, `pool`, `device`)."""
        spec = {"deviceSelector": selector, "taint": {"key": key, "effect": effect}}
        return self.add("taint_rules", {"metadata": self._metadata(name, "rule", ""), "spec": spec})

    def admitted(self, name: str, template: str, *places: tuple[str, str]) -> Scene:
        """The Workload of a job, admitted, with a place for each of its pods: a node, and devices of it (`gpu-0 gpu-1`) that a claim from
        this template gets."""
        template_of_pods = self._pod(name, "default", {"gpus": template}, {})
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job-{name}"}
        record = [
            {
                "podSet": "main",
                "number": number,
                "node": node,
                "devices": [
                    {"devices": {"results": [_result(self.driver, node, d) for d in names.split()]}}
                ],
            }
            for number, (node, names) in enumerate(places)
        ]
        metadata = self._metadata(f"job-{name}", "workload", "default")
        metadata["ownerReferences"] = [{**owner, "controller": True}]
        metadata["annotations"] = {ROOM: json.dumps({"places": record})}
        pods = {"spec": template_of_pods["spec"]}
        assigned = {"name": "main", "count": len(places)}
        made = {
            "metadata": metadata,
            "spec": {"podSets": [{"name": "main", "count": len(places), "template": pods}]},
            "status": {
                "admission": {"clusterQueue": "all", "podSetAssignments": [assigned]},
                "conditions": [
                    {"type": each, "status": "True", "reason": "x", "message": ""}
                    | {"lastTransitionTime": _SINCE}
                    for each in ("QuotaReserved", "Admitted")
                ],
            },
        }
        return self.add("queued_workloads", made)

    def leases(self, *found: JsonObject) -> Scene:
        """The Leases of schedulers: without this, they could not be read."""
        self._has_leases = True
        return self.add("leases", *found)

    # Who is there already.

    def holds(
        self, pod: str, node: str, devices: str = "", *, namespace: str = "default", **fields: Any
    ) -> Scene:
        """A pod that runs on a node, whose claim `<pod>-claim` has these devices of it (`gpu-0 gpu-1`).

        `shares` are {device: amount of memory} of devices that are shared, `driver` and `cls` are those of the devices, `pool` is
        theirs if it has not the name of the node. The rest is as for `runs`.
        """
        driver = fields.pop("driver", self.driver)
        cls = fields.pop("cls", "gpu" if driver == GPU else driver)
        pool, shares = fields.pop("pool", node), fields.pop("shares", {})
        results = [_result(driver, pool, name) for name in devices.split()]
        for name, amount in shares.items():
            share = {"shareID": _share_id(self._versions), "consumedCapacity": {"memory": amount}}
            results.append(_result(driver, pool, name) | share)
        claim = claim_of(exactly("devices", len(results), cls=cls))
        self.claim(f"{pod}-claim", claim, results, node=node, users=[pod], namespace=namespace)
        return self.runs(pod, node, {f"{pod}-claim": None}, namespace=namespace, **fields)

    def runs(self, name: str, node: str, claims: Wanted | None = None, **fields: Any) -> Scene:
        """A pod that runs on a node. `job` is whose pod it is; the rest is as for `waits`."""
        phase = {"phase": "Running", "startTime": _SINCE}
        return self.waits(name, claims, nodeName=node, status=phase, **fields)

    def claim(
        self,
        name: str,
        claim: JsonObject,
        results: Sequence[JsonObject] = (),
        *,
        node: str = "",
        users: Iterable[str] = (),
        namespace: str = "default",
        **metadata: Any,
    ) -> Scene:
        """A claim; with results it has its devices, on a node if one is named, and these pods use it."""
        made = {
            "metadata": {**self._metadata(name, "claim", namespace), **metadata},
            "spec": claim["spec"],
        }
        if results:
            allocation: JsonObject = {"devices": {"results": list(results)}}
            allocation["allocationTimestamp"] = _SINCE
            if node:
                allocation["nodeSelector"] = only(node)
            made["status"] = {
                "allocation": allocation,
                "reservedFor": [_consumer(user) for user in users],
            }
        return self.add("claims", made)

    def template(self, name: str, claim: JsonObject) -> Scene:
        metadata = self._metadata(name, "template", "default")
        return self.add("templates", {"metadata": metadata, "spec": {"spec": claim["spec"]}})

    def job(self, name: str, claims: Wanted | None = None, **spec: Any) -> Scene:
        """A job, whose pods would use these claims."""
        pod = self._pod(name, "default", claims or {}, {"restartPolicy": "Never"})
        made = {
            "metadata": self._metadata(name, "job", "default"),
            "spec": {"template": {"spec": pod["spec"]}, **spec},
            "status": {"startTime": _SINCE},
        }
        return self.add("jobs", made)

    def volume(self, name: str, *, mode: str = "ReadWriteOnce", node: str = "") -> Scene:
        """A volume with the claim that is bound to it, both of this name; on a disk of a node if one is named."""
        spec = {"capacity": {"storage": "1Ti"}, "accessModes": [mode], "storageClassName": "disks"}
        if node:
            place = label_selector("kubernetes.io/hostname", node)
            spec |= {"local": {"path": "/mnt"}, "nodeAffinity": {"required": place}}
        else:
            spec["hostPath"] = {"path": "/mnt"}
        bound = {"status": {"phase": "Bound"}}
        self.add("volumes", {"metadata": {"name": name}, "spec": spec, **bound})
        metadata = self._metadata(name, "volume-claim", "default")
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        wanted = {"accessModes": [mode], "storageClassName": "disks", "volumeName": name}
        wanted["resources"] = {"requests": {"storage": "1Ti"}}
        return self.add("volume_claims", {"metadata": metadata, "spec": wanted, **bound})

    def storage_class(self, name: str, provisioner: str = "kubernetes.io/no-provisioner") -> Scene:
        """A class whose volumes are chosen together with the node of a pod."""
        mode = {"volumeBindingMode": "WaitForFirstConsumer"}
        return self.add(
            "storage_classes", {"metadata": {"name": name}, "provisioner": provisioner, **mode}
        )

    def disk(self, name: str, size: str, node: str, storage_class: str) -> Scene:
        """A volume on a disk of a node, which nobody has."""
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": label_selector("kubernetes.io/hostname", node)},
        }
        free = {"status": {"phase": "Available"}}
        return self.add("volumes", {"metadata": {"name": name}, "spec": spec, **free})

    def volume_claim(self, name: str, size: str, storage_class: str, **annotations: str) -> Scene:
        """A claim that has no volume yet."""
        metadata = self._metadata(name, "volume-claim", "default")
        metadata["annotations"] = annotations
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": storage_class,
        }
        return self.add("volume_claims", {"metadata": metadata, "spec": spec})

    # Who waits.

    def waits(self, name: str, claims: Wanted | None = None, **fields: Any) -> Scene:
        """A pod, without a node unless `nodeName` says otherwise, and the claims that are to be made for it.

        `cpu`, `memory` and `extended` ({resource: number}) are what its container requests, `labels` and `annotations` its own, `job`
        is whose pod it is, `host_port` a port of the node that it wants, `status` how it is. Other fields are those of its spec.
        """
        namespace = fields.pop("namespace", "default")
        for each, claim in (claims or {}).items():
            if isinstance(claim, dict):
                self.claim(each, claim, namespace=namespace)
        return self.add("pods", self._pod(name, namespace, claims or {}, fields))

    def _pod(self, name: str, namespace: str, claims: Wanted, fields: JsonObject) -> JsonObject:
        metadata = self._metadata(name, "pod", namespace) | fields.pop("metadata", {})
        for key in ("labels", "annotations"):
            if given := fields.pop(key, None):
                metadata[key] = given
        if job := fields.pop("job", ""):
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"job-{job}"}
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        status = {"phase": "Pending", **fields.pop("status", {})}
        spec = {
            "containers": [_container(claims, fields)],
            "resourceClaims": [_entry(*item) for item in claims.items()],
            **fields,
        }
        return {"metadata": metadata, "spec": spec, "status": status}

    def _metadata(self, name: str, kind: str, namespace: str) -> JsonObject:
        self._versions += 1
        made = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": str(self._versions)}
        return {**made, "namespace": namespace} if namespace else made

    def world(self) -> World:
        made = {
            field: tuple(convert(TYPES[field], value) for value in values)
            for field, values in self.objects.items()
        }
        versions = {"leases": "1"} if self._has_leases else {}
        return World(Objects(**made), NOW, versions=versions, features=self.features)


def gpus(count: int = 1, *select: str, cls: str = "gpu", **fields: Any) -> JsonObject:
    """A claim for so many GPUs in one request of that name, see `oracle.build.exactly`."""
    return claim_of(exactly("gpus", count, cls=cls, select=list(select), **fields))


def numbered(number: int, name: str = "gpu") -> str:
    """The names of the first devices of a node."""
    return " ".join(f"{name}-{n}" for n in range(number))


def rooted(*roots: str, **fields: Any) -> list[JsonObject]:
    """Devices `gpu-0`, `gpu-1`, ... at these PCIe roots."""
    return [device(f"gpu-{n}", attrs={ROOT: root}, **fields) for n, root in enumerate(roots)]


def generated(entry: str, pod: str) -> JsonObject:
    """Metadata of a claim that was made from a template for an entry of a pod: `claim(..., **generated(...))`."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"pod-{pod}"}
    return {
        "annotations": {POD_CLAIM_NAME: entry},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }


def mounted(name: str) -> JsonObject:
    """A volume of a pod, through the volume claim of that name."""
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def near(app: str) -> list[JsonObject]:
    """Terms of pod affinity: on the node of pods with this label `app`."""
    labels = {"matchLabels": {"app": app}}
    return [{"labelSelector": labels, "topologyKey": "kubernetes.io/hostname"}]


def only(node: str) -> JsonObject:
    """A node selector for one node."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    return {"nodeSelectorTerms": [{"matchFields": fields}]}


def _result(driver: str, pool: str, name: str) -> JsonObject:
    return {"request": "devices", "driver": driver, "pool": pool, "device": name}


def _share_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def _consumer(pod: str) -> JsonObject:
    return {"resource": "pods", "name": pod, "uid": f"pod-{pod}"}


def _entry(name: str, claim: JsonObject | str | None) -> JsonObject:
    if isinstance(claim, str):
        return {"name": name, "resourceClaimTemplateName": claim}
    return {"name": name, "resourceClaimName": name}


def _container(claims: Wanted, fields: JsonObject) -> JsonObject:
    requests = {name: str(fields.pop(name)) for name in ("cpu", "memory") if name in fields}
    extended = {name: str(number) for name, number in fields.pop("extended", {}).items()}
    resources: JsonObject = {"requests": {**requests, **extended}, "limits": extended}
    resources["claims"] = [{"name": name} for name in claims]
    container = {"name": "main", "image": "example.com/work:1", "resources": resources}
    if port := fields.pop("host_port", None):
        container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
    return container
