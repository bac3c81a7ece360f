"""The devices of the example driver, as its slices describe them."""

from __future__ import annotations

from dataclasses import dataclass
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
)
from drayman.drivers.describing import (
    TRUE,
    capacity,
    integer,
    string,
    uuid,
    version,
)
from drayman.drivers.kit.model import Hardware

GPU: Final = "gpu.example.com"
NET: Final = "net.example.com"
CPU: Final = "cpu.example.com"
BINDING_CONDITION: Final = "BindingConditions"
BINDING_FAILURE_CONDITION: Final = "BindingFailureConditions"

GPUS: Final = 8
NICS: Final = 8
_MEMORY_GIBIBYTES: Final = 80
_COMPUTE: Final = 100


@dataclass(frozen=True, slots=True)
class Setting:
    """How the driver was installed."""

    partitions: int = 0
    shared: bool = False
    binding_conditions: bool = False


PLAIN: Final = Setting()


def gpus(node_name: str, setting: Setting = PLAIN, count: int = GPUS) -> Hardware:
    """GPUs, whole or in partitions."""
    devices: list[Device] = []
    for index in range(count):
        devices.extend(_gpu(node_name, index, setting))
    counters = tuple(_counter_set(index) for index in range(count)) if setting.partitions else ()
    return Hardware(groups=(tuple(devices),), counters=counters)


def _gpu(node_name: str, index: int, setting: Setting) -> list[Device]:
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
    setting: Setting,
    *,
    counters_of: int | None = None,
    share: int = 1,
) -> Device:
    amounts = _amounts(share)
    counters: tuple[DeviceCounterConsumption, ...] = ()
    if counters_of is not None:
        counters = (
            DeviceCounterConsumption(
                counter_set=f"gpu-{counters_of}-counters", counters=_counters(amounts)
            ),
        )
    return Device(
        name=name,
        attributes=attributes,
        allow_multiple_allocations=True if setting.shared else None,
        capacity={
            # A shared device is given out in steps of which any number can be requested, and all of it by default.
            name: _in_steps(amount, amount, step, step) if setting.shared else capacity(amount)
            for (name, amount), step in zip(amounts.items(), ("1Gi", "1"), strict=True)
        },
        consumes_counters=counters,
        binding_conditions=(BINDING_CONDITION,) if setting.binding_conditions else None,
        binding_failure_conditions=(
            (BINDING_FAILURE_CONDITION,) if setting.binding_conditions else None
        ),
    )


def _amounts(share: int = 1) -> dict[str, str]:
    """What a GPU has, or one of so many equal parts of it."""
    return {"memory": f"{_MEMORY_GIBIBYTES // share}Gi", "compute": str(_COMPUTE // share)}


def _counters(amounts: dict[str, str]) -> dict[str, Counter]:
    return {name: Counter(value=Quantity.parse(amount)) for name, amount in amounts.items()}


def _counter_set(index: int) -> CounterSet:
    return CounterSet(name=f"gpu-{index}-counters", counters=_counters(_amounts()))


def _in_steps(value: str, default: str, least: str, step: str) -> DeviceCapacity:
    """A capacity of which each request gets a part."""
    whole = Quantity.parse(value)
    return DeviceCapacity(
        value=whole,
        request_policy=CapacityRequestPolicy(
            default=Quantity.parse(default),
            valid_range=CapacityRequestPolicyRange(
                min=Quantity.parse(least), max=whole, step=Quantity.parse(step)
            ),
        ),
    )


def _attributes(kind: str, node_name: str, index: int, model: str) -> dict[str, DeviceAttribute]:
    return {
        "index": integer(index),
        "uuid": DeviceAttribute(string=f"{kind}-{uuid('example', kind, node_name, index)}"),
        "model": string(model),
        "driverVersion": version("1.0.0"),
    }


_BANDWIDTH: Final = _in_steps("100G", default="1G", least="100M", step="1M")
_FUNCTIONS: Final = DeviceCapacity(
    value=Quantity.parse("100"),
    request_policy=CapacityRequestPolicy(
        default=Quantity.parse("1"), valid_values=(Quantity.parse("1"),)
    ),
)


def nics(node_name: str, count: int = NICS) -> Hardware:
    """Network cards that are shared by bandwidth."""
    return Hardware.of(
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
        for index in range(count)
    )


def cpus(numa_nodes: int, cpus_each: int) -> Hardware:
    """CPUs that count against what the node itself has."""
    key = f"{CPU}/cpu"
    return Hardware.of(
        Device(
            name=f"numa-{numa}",
            allow_multiple_allocations=True,
            attributes={"numaNodeID": integer(numa)},
            capacity={key: capacity(str(cpus_each))},
            node_allocatable_resource_mappings={
                "cpu": NodeAllocatableResourceMapping(capacity_key=key)
            },
        )
        for numa in range(numa_nodes)
    )
