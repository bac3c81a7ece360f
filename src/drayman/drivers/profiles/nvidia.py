"""Simulated GPUs of NVIDIA: `gpu.nvidia.com`, whole, divided (dynamic MIG) or passed through, and `compute-domain.nvidia.com`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.api.resource import Device, ResourceSlice
from drayman.drivers.describing import Slot, integer, string, uuid
from drayman.drivers.nvidia import devices
from drayman.drivers.nvidia.devices import DRIVER, MEBIBYTE, Gpu, GpuModel
from drayman.drivers.profiles.hardware import pool_slices

COMPUTE_DOMAIN_DRIVER: Final = "compute-domain.nvidia.com"
DRIVERS: Final = (DRIVER, COMPUTE_DOMAIN_DRIVER)


def labels(model: GpuModel, count: int, machine: str) -> dict[str, str]:
    """What GPU feature discovery writes on a node."""
    product = model.product.replace(" ", "-")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.memory": str((model.memory_bytes or 0) // MEBIBYTE),
        "nvidia.com/gpu.family": model.architecture.lower(),
        "nvidia.com/gpu.machine": machine,
    }


def whole_gpus(node_name: str, model: GpuModel, slots: Sequence[Slot]) -> tuple[ResourceSlice, ...]:
    """One slice with one device per GPU."""
    found = tuple(map(devices.whole, _gpus(node_name, model, slots)))
    return pool_slices(node_name, DRIVER, [found])


def passed_through_gpus(
    node_name: str, model: GpuModel, slots: Sequence[Slot]
) -> tuple[ResourceSlice, ...]:
    """GPUs that are bound to vfio-pci, for virtual machines."""
    found = tuple(map(devices.passed_through, _gpus(node_name, model, slots)))
    return pool_slices(node_name, DRIVER, [found])


def dividable_gpus(
    node_name: str, model: GpuModel, slots: Sequence[Slot]
) -> tuple[ResourceSlice, ...]:
    """Dynamic MIG: a slice of counters, then one slice per GPU with the whole and every possible partition."""
    found = devices.dividable(_gpus(node_name, model, slots))
    return pool_slices(node_name, DRIVER, found.groups, found.counters)


def compute_domain(node_name: str) -> tuple[ResourceSlice, ...]:
    """The channel and the daemon of multi-node NVLink, one of each per node."""
    found = tuple(
        Device(name=f"{sort}-0", attributes={"type": string(sort), "id": integer(0)})
        for sort in ("channel", "daemon")
    )
    return pool_slices(node_name, COMPUTE_DOMAIN_DRIVER, [found])


def _gpus(node_name: str, model: GpuModel, slots: Sequence[Slot]) -> list[Gpu]:
    return [
        Gpu(model, index, f"GPU-{uuid('gpu', node_name, index)}", slot)
        for index, slot in enumerate(slots)
    ]
