"""The example driver of Kubernetes SIG Node: fake GPUs, network cards and CPUs, each kind a driver of its own.

How the driver offers its GPUs is set at installation; each of the settings that its manifests ask for is a profile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    NodeAllocatableResourceMapping,
    ResourceSlice,
)
from drayman.drivers.profiles import machines
from drayman.drivers.profiles.hardware import (
    TRUE,
    HardwareNode,
    capacity,
    device_class,
    fingerprint,
    integer,
    pool_slices,
    string,
    version,
)
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.profile import Profile

GPU: Final = "gpu.example.com"
NET: Final = "net.example.com"
CPU: Final = "cpu.example.com"
CLASSES: Final = (
    device_class(GPU, f"device.driver == '{GPU}'", extended_resource="example.com/gpu"),
    device_class(NET, f"device.driver == '{NET}'"),
    device_class(CPU, f"device.driver == '{CPU}'"),
)
BINDING_CONDITION: Final = "BindingConditions"
BINDING_FAILURE_CONDITION: Final = "BindingFailureConditions"

_MACHINE: Final = Machine("example", 64, "256Gi")
_GPUS: Final = 8
_NICS: Final = 8
_MEMORY_GIBIBYTES: Final = 80
_COMPUTE: Final = 100


@dataclass(frozen=True, slots=True)
class _Setting:
    """How the driver was installed."""

    partitions: int = 0
    shared: bool = False
    binding_conditions: bool = False


def _gpus(node_name: str, setting: _Setting) -> tuple[ResourceSlice, ...]:
    devices: list[Device] = []
    for index in range(_GPUS):
        devices.extend(_gpu(node_name, index, setting))
    counters = tuple(_counter_set(index) for index in range(_GPUS)) if setting.partitions else ()
    return pool_slices(node_name, GPU, [tuple(devices)], counters)


def _gpu(node_name: str, index: int, setting: _Setting) -> list[Device]:
    """A GPU as one device, or as its partitions and then as a whole, which exclude each other."""
    attributes = _attributes("gpu", node_name, index, "LATEST-GPU-MODEL")
    if not setting.partitions:
        return [_offered(f"gpu-{index}", attributes, setting)]
    attributes["partitionable"] = TRUE
    parts = [
        _offered(
            f"gpu-{index}-partition-{part}",
            {**attributes, "partition": integer(part)},
            setting,
            counters_of=index,
            share=setting.partitions,
        )
        for part in range(setting.partitions)
    ]
    whole = _offered(f"gpu-{index}-full", {**attributes, "full": TRUE}, setting, counters_of=index)
    return [*parts, whole]


def _offered(
    name: str,
    attributes: dict[str, DeviceAttribute],
    setting: _Setting,
    *,
    counters_of: int | None = None,
    share: int = 1,
) -> Device:
    memory = Quantity.parse(f"{_MEMORY_GIBIBYTES // share}Gi")
    compute = Quantity.parse(str(_COMPUTE // share))
    consumed = {"memory": Counter(value=memory), "compute": Counter(value=compute)}
    return Device(
        name=name,
        attributes=attributes,
        allow_multiple_allocations=True if setting.shared else None,
        capacity={
            "memory": _amount(memory, "1Gi", shared=setting.shared),
            "compute": _amount(compute, "1", shared=setting.shared),
        },
        consumes_counters=()
        if counters_of is None
        else (
            DeviceCounterConsumption(counter_set=f"gpu-{counters_of}-counters", counters=consumed),
        ),
        binding_conditions=(BINDING_CONDITION,) if setting.binding_conditions else None,
        binding_failure_conditions=(
            (BINDING_FAILURE_CONDITION,) if setting.binding_conditions else None
        ),
    )


def _amount(value: Quantity, step: str, *, shared: bool) -> DeviceCapacity:
    """A capacity; for a shared device, in steps of which any number can be requested, and all of it by default."""
    if not shared:
        return DeviceCapacity(value=value)
    unit = Quantity.parse(step)
    return DeviceCapacity(
        value=value,
        request_policy=CapacityRequestPolicy(
            default=value,
            valid_range=CapacityRequestPolicyRange(min=unit, max=value, step=unit),
        ),
    )


def _counter_set(index: int) -> CounterSet:
    return CounterSet(
        name=f"gpu-{index}-counters",
        counters={
            "memory": Counter(value=Quantity.parse(f"{_MEMORY_GIBIBYTES}Gi")),
            "compute": Counter(value=Quantity.parse(str(_COMPUTE))),
        },
    )


def _attributes(kind: str, node_name: str, index: int, model: str) -> dict[str, DeviceAttribute]:
    digits = fingerprint("example", kind, node_name, index, size=16)
    cuts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return {
        "index": integer(index),
        "uuid": DeviceAttribute(string=f"{kind}-{'-'.join(cuts)}"),
        "model": string(model),
        "driverVersion": version("1.0.0"),
    }


_BANDWIDTH: Final = DeviceCapacity(
    value=Quantity.parse("100G"),
    request_policy=CapacityRequestPolicy(
        default=Quantity.parse("1G"),
        valid_range=CapacityRequestPolicyRange(
            min=Quantity.parse("100M"), max=Quantity.parse("100G"), step=Quantity.parse("1M")
        ),
    ),
)
_FUNCTIONS: Final = DeviceCapacity(
    value=Quantity.parse("100"),
    request_policy=CapacityRequestPolicy(
        default=Quantity.parse("1"), valid_values=(Quantity.parse("1"),)
    ),
)


def _nics(node_name: str) -> tuple[ResourceSlice, ...]:
    devices = tuple(
        Device(
            name=f"nic-{index}",
            allow_multiple_allocations=True,
            attributes=_attributes("net", node_name, index, "LATEST-NET-MODEL"),
            capacity={
                "vfs": _FUNCTIONS,
                "ingressBandwidth": _BANDWIDTH,
                "egressBandwidth": _BANDWIDTH,
            },
        )
        for index in range(_NICS)
    )
    return pool_slices(node_name, NET, [devices])


def _cpus(node_name: str) -> tuple[ResourceSlice, ...]:
    """CPUs that count against what the node itself has."""
    key = f"{CPU}/cpu"
    devices = tuple(
        Device(
            name=f"numa-{numa}",
            allow_multiple_allocations=True,
            attributes={"numaNodeID": integer(numa)},
            capacity={key: capacity(str(_MACHINE.cpus // _MACHINE.numa_nodes))},
            node_allocatable_resource_mappings={
                "cpu": NodeAllocatableResourceMapping(capacity_key=key)
            },
        )
        for numa in range(_MACHINE.numa_nodes)
    )
    return pool_slices(node_name, CPU, [devices])


def _build(spot: Spot, setting: _Setting) -> HardwareNode:
    return HardwareNode(
        machines.node(spot, _MACHINE, {}),
        (*_gpus(spot.name, setting), *_nics(spot.name), *_cpus(spot.name)),
        CLASSES,
    )


def _profile(name: str, summary: str, setting: _Setting) -> Profile:
    return Profile(name, summary, partial(_build, setting=setting))


PROFILES: Final = (
    _profile("example", "the example driver: 8 fake GPUs, 8 NICs shared by bandwidth, CPUs", _Setting()),
    _profile("example-partitions", "example with each GPU whole or in four", _Setting(partitions=4)),
    _profile("example-shared", "example with GPUs shared by memory and compute", _Setting(shared=True)),
    _profile("example-shared-partitions", "example with GPUs in four, each part shared", _Setting(partitions=4, shared=True)),
    _profile("example-binding-conditions", "example with GPUs that are made ready before binding", _Setting(binding_conditions=True)),
)  # fmt: skip
