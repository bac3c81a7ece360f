"""Small clusters to explain things on, built object by object and named by what matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.jobs import Job
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.api.workloads import DaemonSet, Deployment, ReplicaSet, StatefulSet
from drayman.explain.answer import Explanation
from drayman.explain.pod import explain_pod
from drayman.explain.survey import Survey
from drayman.inventory.features import Features
from drayman.placement.decision.deciding import Decider
from drayman.placement.world import Objects, World
from oracle.build import claim as claim_of
from oracle.build import device, device_class, exactly, piece
from oracle.nodes import JsonObject
from oracle.selectors import GPU, NIC, ONLY_GPU, ONLY_NIC

ALLOCATABLE = {"cpu": "8", "memory": "16Gi", "pods": "20"}
ROOT = "resource.kubernetes.io/pcieRoot"
NOW = 1_900_000_000.0
WORKLOADS: dict[str, Any] = {
    "deployments": Deployment,
    "replica_sets": ReplicaSet,
    "stateful_sets": StatefulSet,
    "daemon_sets": DaemonSet,
}


class Town:
    """Nodes with devices, and pods and claims on them. Everything is in namespace `default` unless it is said otherwise."""

    def __init__(self, *, off: Iterable[str] = ()) -> None:
        self.features = Features(**dict.fromkeys(off, False))
        self.nodes: list[JsonObject] = []
        self.slices: list[JsonObject] = []
        self.classes = [device_class("gpu", ONLY_GPU), device_class("nic", ONLY_NIC)]
        self.claims: list[JsonObject] = []
        self.pods: list[JsonObject] = []
        self.jobs: list[JsonObject] = []
        self.rules: list[JsonObject] = []
        self.workloads: dict[str, list[JsonObject]] = {field: [] for field in WORKLOADS}
        self._versions = 0

    def node(
        self,
        name: str,
        devices: Sequence[JsonObject | str] | int = 0,
        *,
        driver: str = GPU,
        labels: dict[str, str] | None = None,
        allocatable: dict[str, str] | None = None,
        **spec: Any,
    ) -> Town:
        """A node with devices of its own, `d0` and so on if only their number is given."""
        given = [f"d{i}" for i in range(devices)] if isinstance(devices, int) else devices
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        status = {"allocatable": {**ALLOCATABLE, **(allocatable or {})}}
        self.nodes.append({"metadata": metadata, "spec": spec, "status": status})
        if given:
            self.slice(given, driver=driver, pool=name, nodeName=name)
        return self

    def slice(self, devices: Sequence[JsonObject | str], **scope: Any) -> Town:
        """Devices of a pool, for the nodes that the scope says."""
        driver, pool = scope.pop("driver", GPU), scope.pop("pool")
        name = scope.pop("name", f"{driver}-{pool}")
        self.slices.append(piece(devices, driver=driver, pool=pool, name=name, **scope))
        return self

    def rooted(self, name: str, *roots: str, **fields: Any) -> Town:
        """A node with a device `d0`, `d1`, ... at each of these PCIe roots."""
        return self.node(
            name, [device(f"d{i}", attrs={ROOT: root}) for i, root in enumerate(roots)], **fields
        )

    def holds(
        self,
        pod: str,
        node: str,
        *devices: str,
        driver: str = GPU,
        namespace: str = "default",
        shares: dict[str, str] | None = None,
        **fields: Any,
    ) -> Town:
        """A pod on a node, whose claim `<pod>-claim` has these devices, or shares of them."""
        results = [{"request": "req", "driver": driver, "pool": node, "device": d} for d in devices]
        for name, amount in (shares or {}).items():
            share = {"shareID": f"{pod}-{name}", "consumedCapacity": {"memory": amount}}
            results.append(
                {"request": "req", "driver": driver, "pool": node, "device": name} | share
            )
        allocation = {
            "devices": {"results": results},
            "allocationTimestamp": "2026-01-01T00:00:00Z",
        }
        user = {"resource": "pods", "name": pod, "uid": f"uid-{pod}"}
        cls = "nic" if driver == NIC else "gpu"
        made = claim_of(exactly("req", max(len(devices), 1), cls=cls))
        self.claims.append(
            {
                **made,
                "metadata": self._metadata(f"{pod}-claim", namespace),
                "status": {"allocation": allocation, "reservedFor": [user]},
            }
        )
        return self.runs(pod, node, namespace=namespace, claim=f"{pod}-claim", **fields)

    def runs(
        self, name: str, node: str, *, namespace: str = "default", claim: str = "", **fields: Any
    ) -> Town:
        """A pod on a node."""
        self.pods.append(
            self._pod(name, namespace, [claim] if claim else [], nodeName=node, **fields)
        )
        return self

    def wants(self, *claims: JsonObject, name: str = "pending", **fields: Any) -> Town:
        """A pod without a node, with claims `c0`, `c1`, ... that have no devices."""
        names = [f"c{len(self.claims) + i}" for i in range(len(claims))]
        for title, made in zip(names, claims, strict=True):
            metadata = {**made["metadata"], **self._metadata(title, "default")}
            self.claims.append({**made, "metadata": metadata})
        self.pods.append(self._pod(name, "default", names, **fields))
        return self

    def _pod(self, name: str, namespace: str, claims: Sequence[str], **fields: Any) -> JsonObject:
        requests = {r: str(fields.pop(r)) for r in ("cpu", "memory") if r in fields}
        metadata = {**self._metadata(name, namespace), **fields.pop("metadata", {})}
        spec = {
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "resourceClaims": [{"name": c, "resourceClaimName": c} for c in claims],
            **fields,
        }
        return {"metadata": metadata, "spec": spec, "status": {"startTime": "2026-01-01T00:00:00Z"}}

    def _metadata(self, name: str, namespace: str) -> JsonObject:
        self._versions += 1
        uid = f"uid-{name}"
        return {
            "name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(self._versions)
        }  # fmt: skip

    def world(self) -> World:
        objects = Objects(
            nodes=tuple(convert(Node, item) for item in self.nodes),
            slices=tuple(convert(ResourceSlice, item) for item in self.slices),
            classes=tuple(convert(DeviceClass, item) for item in self.classes),
            taint_rules=tuple(convert(DeviceTaintRule, item) for item in self.rules),
            claims=tuple(convert(ResourceClaim, item) for item in self.claims),
            pods=tuple(convert(Pod, item) for item in self.pods),
            jobs=tuple(convert(Job, item) for item in self.jobs),
            **{
                field: tuple(convert(WORKLOADS[field], item) for item in items)
                for field, items in self.workloads.items()
            },
        )
        return World(objects, NOW, features=self.features, versions={"pods": "7"})

    def explain(self, name: str = "pending") -> Explanation:
        """What is said of a pod, remedies left aside."""
        world = self.world()
        pod = world.pod("default", name)
        assert pod is not None
        return explain_pod(world, pod, with_remedies=False)

    def survey(self, name: str = "pending") -> Survey:
        """All nodes as a pod sees them."""
        world = self.world()
        pod = world.pod("default", name)
        assert pod is not None
        return Survey(world.state, Decider(world.state).round(world.now).demand(pod))


__all__ = ["GPU", "NIC", "NOW", "ROOT", "Town"]
