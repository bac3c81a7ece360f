"""The DRA workloads of Kubernetes' scheduler_perf as objects: nodes, slices, classes, taint rules and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice

JsonObject = dict[str, Any]

DRIVER: Final = "test-driver.cdi.k8s.io"
DOMAIN: Final = "dra.example.com"
_LABEL: Final = "node-with-dra"
_FOR_LABELLED: Final = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": _LABEL, "operator": "In", "values": ["true"]}]}
    ]
}


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster, and the claims that pods bring one after the other."""

    name: str
    nodes: tuple[Node, ...]
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]
    spec_of_pod: Callable[[int], JsonObject]
    pods: int
    rules: tuple[DeviceTaintRule, ...] = ()
    preallocated: tuple[ResourceClaim, ...] = field(default=())
    kept: int | None = None  # claims held at a time in a steady state
    is_floating: bool = False

    def claims(self, number: int) -> Iterator[tuple[int, ResourceClaim]]:
        """The claim of each pod, with a number that is equal for pods of the same shape."""
        for index in range(number):
            spec = self.spec_of_pod(index)
            yield id(spec), _claim(f"claim-{index}", spec)


def _claim(name: str, spec: JsonObject) -> ResourceClaim:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return convert(ResourceClaim, {"metadata": metadata, "spec": {"devices": spec}})


def _nodes(number: int) -> tuple[Node, ...]:
    return tuple(
        convert(Node, {"metadata": {"name": f"scheduler-perf-dra-{i}", "labels": {_LABEL: "true"}}})
        for i in range(number)
    )


def _class(name: str, *expressions: str) -> DeviceClass:
    selectors = [{"cel": {"expression": text}} for text in expressions]
    return convert(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": selectors}})


def _of_driver(driver: str) -> str:
    return f'device.driver == "{driver}"'


def _slice(name: str, pool: str, count: int, where: JsonObject, **content: Any) -> ResourceSlice:
    declared = {"name": pool, "generation": 1, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "pool": declared, **where, **content}
    return convert(ResourceSlice, {"metadata": {"name": name}, "spec": spec})


def _local_slices(nodes: tuple[Node, ...], devices: int) -> tuple[ResourceSlice, ...]:
    made = [
        {
            "name": f"instance-{i}",
            "attributes": {
                "model": {"string": "A100"},
                "family": {"string": "GPU"},
                "driverVersion": {"version": "1.2.3"},
                f"{DOMAIN}/numa": {"int": i},
            },
            "capacity": {"memory": {"value": "1Gi"}},
        }
        for i in range(devices)
    ]
    names = [node.metadata.name for node in nodes]
    return tuple(_slice(name, name, 1, {"nodeName": name}, devices=made) for name in names)


def _wants(cls: str, count: int = 1, **fields: Any) -> JsonObject:
    return {"deviceClassName": cls, "allocationMode": "ExactCount", "count": count, **fields}


def _one(cls: str, **fields: Any) -> JsonObject:
    return {"requests": [{"name": "req-0", "exactly": _wants(cls, **fields)}]}


def _local(
    name: str, nodes: int, devices: int, pods: int, spec: Callable[[int], JsonObject], **fields: Any
) -> Workload:
    made = _nodes(nodes)
    classes = fields.pop("classes", (_class("test-class", _of_driver(DRIVER)),))
    return Workload(name, made, _local_slices(made, devices), classes, spec, pods, **fields)


def template() -> Workload:
    """SchedulingWithResourceClaimTemplate/5000pods_500nodes."""
    spec = _one("test-class")
    return _local("template", 500, 10, 4_900, lambda _: spec)


def template_wide() -> Workload:
    """The same on ten times as many nodes."""
    spec = _one("test-class")
    return _local("template-5000-nodes", 5_000, 10, 4_900, lambda _: spec)


def template_beside_fabric() -> Workload:
    """The template workload on nodes that also see 2,000 shareable devices, which the class does not want."""
    own, fabric = template(), consumable()
    classes = (_class("test-class", "device.allowMultipleAllocations != true"),)
    floating = tuple(slice_ for slice_ in fabric.slices if not slice_.spec.node_name)
    return replace(
        own, name="template-beside-fabric", slices=(*own.slices, *floating), classes=classes
    )


def shared_claims() -> Workload:
    """SchedulingWithResourceClaim/5000pods_500nodes: one search for five pods."""
    spec = _one("test-class")
    return _local("shared-claims", 500, 2, 950, lambda _: spec)


def first_available() -> Workload:
    """FirstAvailable: the first class has no devices."""
    listed = [
        {"name": "sub-0", **_wants("no-devices-class")},
        {"name": "sub-1", **_wants("test-class")},
    ]
    spec = {"requests": [{"name": "req-0", "firstAvailable": listed}]}
    classes = (
        _class("no-devices-class", _of_driver("no-devices.example.com")),
        _class("test-class", _of_driver(DRIVER)),
    )
    return _local("first-available", 500, 10, 4_900, lambda _: spec, classes=classes)


def taints() -> Workload:
    """DeviceTaintToleration, with a rule that selects every device."""
    taint = {"key": "example.com/taint", "value": "tainted", "effect": "NoSchedule"}
    content = {
        "metadata": {"name": "everything"},
        "spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint},
    }
    tolerated = [{"key": "example.com/taint", "operator": "Exists"}]
    rules = (convert(DeviceTaintRule, content),)
    spec = _one("test-class", tolerations=tolerated)
    return _local("taints", 500, 10, 4_900, lambda _: spec, rules=rules)


def _counted(name: str, numbers: tuple[int, ...], pool: int, **attributes: Any) -> JsonObject:
    counters = {f"counter{n}": {"value": "1"} for n in numbers}
    return {
        "name": name,
        "attributes": {f"{DOMAIN}/slice": {"int": pool}, **attributes},
        "capacity": {"counters": {"value": str(len(numbers))}},
        "consumesCounters": [{"counterSet": "counter-set", "counters": counters}],
    }


def _partitioned(pool: int) -> Iterator[ResourceSlice]:
    name, where = f"pool-{pool:04}", {"nodeSelector": _FOR_LABELLED}
    limits = {f"counter{n}": {"value": "1"} for n in (1, 2, 3, 4)}
    shared = [{"name": "counter-set", "counters": limits}]
    yield _slice(f"{name}-counters", name, 2, where, sharedCounters=shared)
    devices = [
        _counted("device-2-counters-1", (1, 2), pool, preallocate={"bool": True}),
        _counted("device-2-counters-2", (3, 4), pool),
        *(_counted(f"device-1-counter-{n}", (n,), pool) for n in (1, 2, 3, 4)),
    ]
    yield _slice(f"{name}-devices", name, 2, where, devices=devices)


def partitionable() -> Workload:
    """Partitionable/2000pods_100nodes: half of every pool is held, claims want two devices of one pool."""
    slices = tuple(slice_ for pool in range(2_000) for slice_ in _partitioned(pool))
    big = f'device.capacity["{DRIVER}"].counters.compareTo(quantity("2")) >= 0'
    marked = f'device.attributes["{DRIVER}"].?preallocate.orValue(false)'
    selectors = [{"cel": {"expression": text}} for text in (big, marked)]
    initial = tuple(
        _claim(f"initial-{i}", _one("test-class", selectors=selectors)) for i in range(2_000)
    )
    spec = {
        "requests": [{"name": "req-0", "exactly": _wants("test-class", 2)}],
        "constraints": [{"requests": ["req-0"], "matchAttribute": f"{DOMAIN}/slice"}],
    }
    classes = (_class("test-class", _of_driver(DRIVER)),)
    return Workload(
        "partitionable",
        _nodes(100),
        slices,
        classes,
        lambda _: spec,
        1_900,
        preallocated=initial,
        kept=1_000,
        is_floating=True,
    )


def backtracking() -> Workload:
    """PartitionableBacktracking: of eight devices only the last seven fit together."""
    nodes = _nodes(1)
    where = {"nodeSelector": _FOR_LABELLED}
    cpus = {f"cpu{n}": {"value": "1"} for n in range(1, 9)}
    shared = [
        {"name": "counter-set-for-cpu", "counters": cpus},
        {"name": "counter-set-for-mem", "counters": {"mem": {"value": "70Gi"}}},
    ]
    devices = [
        {
            "name": f"device-{n}",
            "consumesCounters": [
                {"counterSet": "counter-set-for-cpu", "counters": {f"cpu{n}": {"value": "1"}}},
                {
                    "counterSet": "counter-set-for-mem",
                    "counters": {"mem": {"value": "20Gi" if n == 1 else "10Gi"}},
                },
            ],
        }
        for n in range(1, 9)
    ]
    slices = (
        _slice("counters", "pool", 2, where, sharedCounters=shared),
        _slice("devices", "pool", 2, where, devices=devices),
    )
    classes = (_class("test-class", _of_driver(DRIVER)),)
    spec = _one("test-class", count=7)
    return Workload(
        "backtracking", nodes, slices, classes, lambda _: spec, 500, kept=0, is_floating=True
    )


def consumable() -> Workload:
    """ConsumableCapacity/2000pods_100nodes: two requests of 40Gi over 2,000 shareable devices of 80Gi.

    Every node has 20 devices of its own as well, which the class does not want.
    """
    nodes = _nodes(100)
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    device = {
        "name": "shareable-device",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
    }
    where = {"nodeSelector": _FOR_LABELLED}
    slices = tuple(
        _slice(f"shared-{i:04}", f"shared-{i:04}", 1, where, devices=[device]) for i in range(2_000)
    )
    classes = (_class("test-class", _of_driver(DRIVER), "device.allowMultipleAllocations == true"),)
    wanted = _wants("test-class", capacity={"requests": {"memory": "40Gi"}})
    spec = {"requests": [{"name": f"req-{i}", "exactly": wanted} for i in (0, 1)]}
    return Workload(
        "consumable",
        nodes,
        (*_local_slices(nodes, 20), *slices),
        classes,
        lambda _: spec,
        1_900,
        kept=1_000,
        is_floating=True,
    )


def _extended(number: int) -> Workload:
    """ExtendedResource with many classes on 500 nodes: the claims that the scheduler makes for such pods."""
    classes = tuple(_class(f"test-class-{i}", _of_driver(DRIVER)) for i in range(number))
    specs = [_one(f"test-class-{i}") for i in range(number)]
    return _local(
        f"extended-{number}-classes", 500, 10, 4_900, lambda pod: specs[pod % number], classes=classes
    )  # fmt: skip


WORKLOADS: Final[dict[str, Callable[[], Workload]]] = {
    "template": template,
    "template-5000-nodes": template_wide,
    "template-beside-fabric": template_beside_fabric,
    "shared-claims": shared_claims,
    "first-available": first_available,
    "taints": taints,
    "partitionable": partitionable,
    "backtracking": backtracking,
    "consumable": consumable,
    "extended-25-classes": lambda: _extended(25),
    "extended-50-classes": lambda: _extended(50),
}
