"""The DRA workloads of Kubernetes' scheduler_perf: what is set up, and which pods are measured.

Everything is plain JSON as a client would send it, made one object at a time: the largest workloads have tens of thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

Object = dict[str, Any]

DRIVER: Final = "test-driver.cdi.k8s.io"
DOMAIN: Final = "dra.example.com"
NAMESPACE: Final = "bench"
TEMPLATE: Final = "test-claim-template"
NODE_PREFIX: Final = "scheduler-perf-dra-"
_RESOURCE: Final = "resource.k8s.io/v1"
_LABELLED: Final = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "node-with-dra", "operator": "In", "values": ["true"]}]}
    ]
}


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload at one size."""

    name: str
    nodes: int
    devices: int
    """On each node."""
    pods: int
    """Measured."""
    pods_before: int = 0
    """Placed before the measurement."""
    claims_before: int = 0
    """Allocated before the measurement, without pods."""
    steady_s: float = 0.0
    """How long pods are repeatedly created and deleted; 0: they are created once."""
    bare_nodes: int = 0
    """Nodes without devices."""
    pools: int = 0
    """Slices that all nodes share."""
    classes: int = 1
    kind: str = "template"
    target: float = 300.0
    """Pods per second to reach."""

    def sized(self, nodes: int) -> Workload:
        """The same workload for another number of nodes. What grows with the nodes is scaled; devices that all nodes share are not."""
        if nodes == self.nodes:
            return self
        if self.steady_s and self.pools:
            return replace(self, nodes=nodes)
        if self.steady_s:
            return replace(self, nodes=nodes, claims_before=self._claims_before(nodes))

        def scaled(number: int) -> int:
            return round(number * nodes / self.nodes)

        return replace(
            self,
            nodes=nodes,
            pods=scaled(self.pods),
            pods_before=scaled(self.pods_before),
            claims_before=scaled(self.claims_before),
            # Backtracking pools have no spare device, and with several of them only a perfect packing serves all pods.
            pools=scaled(self.pools) * (2 if self.kind == "backtracking" else 1),
        )

    def _claims_before(self, nodes: int) -> int:
        """Claims before a steady state: none, half of all devices, or all but those that the pods need."""
        if self.claims_before and self.claims_before + self.pods >= self.nodes * self.devices:
            return nodes * self.devices - self.pods
        return round(self.claims_before * nodes / self.nodes)

    # What exists before anything is measured.

    def node_objects(self) -> Iterator[Object]:
        for index in range(self.nodes + self.bare_nodes):
            with_devices = index < self.nodes
            name = f"{NODE_PREFIX}{index}" if with_devices else f"scheduler-perf-{index}"
            yield {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {"node-with-dra": "true"} if with_devices else {},
                },
                "status": {
                    "capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"},
                    "allocatable": {"pods": "110", "cpu": "4", "memory": "32Gi"},
                    "conditions": [{"type": "Ready", "status": "True", "reason": "Bench"}],
                },
            }

    def slice_objects(self) -> Iterator[Object]:
        if self.kind == "partitionable":
            for index in range(self.pools):
                yield from _partitionable_pool(index)
            return
        if self.kind == "backtracking":
            for index in range(self.pools):
                yield from _backtracking_pool(index)
            return
        for index in range(self.nodes):
            yield _node_slice(f"{NODE_PREFIX}{index}", self.devices)
        if self.kind == "consumable":
            for index in range(self.pools):
                yield _shared_slice(index)

    def class_objects(self) -> Iterator[Object]:
        by_driver = f'device.driver == "{DRIVER}"'
        if self.kind == "consumable":
            yield _class("test-class", by_driver, "device.allowMultipleAllocations == true")
            return
        if self.kind in ("extended", "implicit-extended", "extended-scoring"):
            for index in range(self.classes):
                found = _class(f"test-class-{index}", by_driver)
                if self.kind == "extended":
                    found["spec"]["extendedResourceName"] = f"example.com/gpu-{index}"
                elif self.kind == "extended-scoring":
                    found["spec"]["extendedResourceName"] = "example.com/gpu"
                yield found
            return
        yield _class("test-class", by_driver)
        if self.kind == "first-available":
            yield _class("no-devices-class", 'device.driver == "no-such-driver.example.com"')

    def rule_objects(self) -> Iterator[Object]:
        if self.kind == "taints":
            yield {
                "apiVersion": "resource.k8s.io/v1beta2",
                "kind": "DeviceTaintRule",
                "metadata": {"name": "taint-everything"},
                "spec": {
                    "deviceSelector": {},
                    "taint": {
                        "key": "example.com/taint",
                        "value": "tainted",
                        "effect": "NoSchedule",
                    },
                },
            }

    def template_object(self) -> Object | None:
        if self.kind in ("shared", "extended", "implicit-extended", "extended-scoring"):
            return None
        return {
            "apiVersion": _RESOURCE,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": TEMPLATE, "namespace": NAMESPACE},
            "spec": {"spec": {"devices": _CLAIMS.get(self.kind, _ONE_DEVICE)}},
        }

    def allocated_claims(self) -> Iterator[tuple[Object, Object]]:
        """Claims that already hold devices, each with the status to give it."""
        for index in range(self.claims_before):
            claim = _claim(f"init-claim-{index}", _BEFORE.get(self.kind, _ONE_DEVICE))
            yield claim, {"allocation": self._allocation(index)}

    def _allocation(self, index: int) -> Object:
        if self.kind == "partitionable":
            result = _result(f"pool-{index}", "device-2-counters-1")
            return {"devices": {"results": [result]}, "nodeSelector": _LABELLED}
        node = f"{NODE_PREFIX}{index % self.nodes}"
        result = _result(node, f"instance-{index // self.nodes}")
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        return {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }

    # The pods.

    def shared_claims(self, first: int, pods: int) -> Iterator[Object]:
        if self.kind == "shared":
            for index in range(first // 5, (first + pods + 4) // 5):
                yield _claim(f"test-claim-{index}", _ONE_DEVICE)

    def pod_object(self, index: int, name: str) -> Object:
        container: Object = {"name": "pause", "image": "registry.k8s.io/pause:3.10"}
        spec: Object = {"containers": [container]}
        resource = self._extended_resource(index)
        if resource:
            container["resources"] = {"requests": {resource: "1"}, "limits": {resource: "1"}}
        else:
            container["resources"] = {"claims": [{"name": "resource"}]}
            source = (
                {"resourceClaimName": f"test-claim-{index // 5}"}
                if self.kind == "shared"
                else {"resourceClaimTemplateName": TEMPLATE}
            )
            spec["resourceClaims"] = [{"name": "resource", **source}]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }

    def _extended_resource(self, index: int) -> str:
        number = index % self.classes
        if self.kind == "extended":
            return f"example.com/gpu-{number}"
        if self.kind == "extended-scoring":
            return "example.com/gpu"
        if self.kind == "implicit-extended":
            return f"deviceclass.resource.kubernetes.io/test-class-{number}"
        return ""


def _class(name: str, *expressions: str) -> Object:
    return {
        "apiVersion": _RESOURCE,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": text}} for text in expressions]},
    }


def _claim(name: str, spec: Object) -> Object:
    return {
        "apiVersion": _RESOURCE,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"devices": spec},
    }


def _result(pool: str, device: str) -> Object:
    return {"request": "req-0", "driver": DRIVER, "pool": pool, "device": device}


def _request(**more: object) -> Object:
    return {"name": "req-0", "exactly": {"deviceClassName": "test-class", **more}}


_ONE_DEVICE: Final[Object] = {"requests": [_request()]}
_HALF: Final[Object] = {"capacity": {"requests": {"memory": "40Gi"}}}
_CLAIMS: Final[dict[str, Object]] = {
    "first-available": {
        "requests": [
            {
                "name": "req-0",
                "firstAvailable": [
                    {"name": "sub-0", "deviceClassName": "no-devices-class"},
                    {"name": "sub-1", "deviceClassName": "test-class"},
                ],
            }
        ]
    },
    "taints": {
        "requests": [_request(tolerations=[{"key": "example.com/taint", "operator": "Exists"}])]
    },
    "partitionable": {
        "requests": [_request(count=2)],
        "constraints": [{"requests": ["req-0"], "matchAttribute": f"{DOMAIN}/slice"}],
    },
    "backtracking": {"requests": [_request(count=7)]},
    "consumable": {"requests": [_request(**_HALF), {**_request(**_HALF), "name": "req-1"}]},
}
"""What the claims of a kind of workload ask for, if it is not one device."""
_PREALLOCATED: Final = (
    f'device.capacity["{DOMAIN}"].counters.compareTo(quantity("2")) >= 0'
    f' && device.attributes["{DOMAIN}"].preallocate'
)
_BEFORE: Final[dict[str, Object]] = {
    "partitionable": {"requests": [_request(selectors=[{"cel": {"expression": _PREALLOCATED}}])]}
}
"""The same for claims that are allocated before the measurement."""


def _slice(name: str, pool: Object, **spec: object) -> Object:
    return {
        "apiVersion": _RESOURCE,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "pool": pool, **spec},
    }


def _node_slice(node: str, devices: int) -> Object:
    def device(index: int) -> Object:
        return {
            "name": f"instance-{index}",
            "attributes": {
                "model": {"string": "A100"},
                "family": {"string": "GPU"},
                "driverVersion": {"version": "1.2.3"},
                f"{DOMAIN}/numa": {"int": index},
            },
            "capacity": {"memory": {"value": "1Gi"}},
        }

    pool = {"name": node, "generation": 0, "resourceSliceCount": 1}
    return _slice(node, pool, nodeName=node, devices=[device(i) for i in range(devices)])


def _partitionable_pool(index: int) -> Iterator[Object]:
    pool = {"name": f"pool-{index}", "generation": 1, "resourceSliceCount": 2}
    counters = {f"counter{i}": {"value": "1"} for i in range(1, 5)}

    def device(name: str, *used: int, **attributes: object) -> Object:
        consumed = {f"counter{i}": {"value": "1"} for i in used}
        return {
            "name": name,
            "attributes": {f"{DOMAIN}/slice": {"int": index}, **attributes},
            "capacity": {f"{DOMAIN}/counters": {"value": str(len(used))}},
            "consumesCounters": [{"counterSet": "counter-set", "counters": consumed}],
        }

    yield _slice(
        f"slice-{index}-counters",
        pool,
        nodeSelector=_LABELLED,
        sharedCounters=[{"name": "counter-set", "counters": counters}],
    )
    preallocate = {f"{DOMAIN}/preallocate": {"bool": True}}
    devices = [
        device("device-2-counters-1", 1, 2, **preallocate),
        device("device-2-counters-2", 3, 4, **{f"{DOMAIN}/preallocate": {"bool": False}}),
        *(device(f"device-1-counter-{i}", i) for i in range(1, 5)),
    ]
    yield _slice(f"slice-{index}-devices", pool, nodeSelector=_LABELLED, devices=devices)


def _backtracking_pool(index: int) -> Iterator[Object]:
    pool = {"name": f"pool-{index}", "generation": 1, "resourceSliceCount": 2}
    cpus = {f"cpu{i}": {"value": "1"} for i in range(1, 9)}

    def device(number: int, memory: str) -> Object:
        cpu = {"counterSet": "counter-set-for-cpu", "counters": {f"cpu{number}": {"value": "1"}}}
        mem = {"counterSet": "counter-set-for-mem", "counters": {"mem": {"value": memory}}}
        return {"name": f"device-{number}", "consumesCounters": [cpu, mem]}

    yield _slice(
        f"slice-{index}-counters",
        pool,
        nodeSelector=_LABELLED,
        sharedCounters=[
            {"name": "counter-set-for-cpu", "counters": cpus},
            {"name": "counter-set-for-mem", "counters": {"mem": {"value": "70Gi"}}},
        ],
    )
    devices = [device(1, "20Gi"), *(device(number, "10Gi") for number in range(2, 9))]
    yield _slice(f"slice-{index}-devices", pool, nodeSelector=_LABELLED, devices=devices)


def _shared_slice(index: int) -> Object:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    device = {
        "name": "shareable-device",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
    }
    pool = {"name": f"shared-{index}", "generation": 1, "resourceSliceCount": 1}
    return _slice(f"shared-{index}", pool, nodeSelector=_LABELLED, devices=[device])
