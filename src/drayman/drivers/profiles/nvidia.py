"""What NVIDIA's drivers publish: `gpu.nvidia.com`, whole, divided (dynamic MIG) or passed through, and `compute-domain.nvidia.com`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from drayman.api.resource import Device, DeviceAttribute, ResourceSlice
from drayman.drivers.describing import FALSE, Slot, capacity, integer, place, string, uuid, version
from drayman.drivers.profiles import mig
from drayman.drivers.profiles.hardware import pool_slices

DRIVER: Final = "gpu.nvidia.com"
COMPUTE_DOMAIN_DRIVER: Final = "compute-domain.nvidia.com"


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A product: what is the same for every GPU of it."""

    product: str
    architecture: str
    compute_capability: str
    memory_mebibytes: int
    mig_profiles: tuple[mig.Profile, ...]
    pci_id: str
    addressing_mode: str = "HMM"
    divides_when_idle: bool = True
    """Whether MIG can be switched without a reset. Where it cannot, a GPU in MIG mode is not offered as a whole."""
    numbered: bool = False
    """Whether GPUs have an `index`, as releases of the driver before 25.12 published it."""

    @property
    def divided(self) -> mig.Amounts:
        """What a GPU that can be divided offers as a whole: a little less memory than one that cannot."""
        return self.mig_profiles[-1].amounts

    def attributes(self) -> dict[str, DeviceAttribute]:
        """The attributes that every device of the product has."""
        return {
            "productName": string(self.product),
            "brand": string("Nvidia"),
            "architecture": string(self.architecture),
            "cudaComputeCapability": version(self.compute_capability),
            "driverVersion": version("580.126.9"),
            "cudaDriverVersion": version("13.0.0"),
        }


def labels(model: GpuModel, count: int, machine: str) -> dict[str, str]:
    """What GPU feature discovery writes on a node."""
    product = model.product.replace(" ", "-")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.memory": str(model.memory_mebibytes),
        "nvidia.com/gpu.family": model.architecture.lower(),
        "nvidia.com/gpu.machine": machine,
    }


def whole_gpus(node_name: str, model: GpuModel, slots: Sequence[Slot]) -> tuple[ResourceSlice, ...]:
    """One slice with one device per GPU."""
    memory = {"memory": capacity(f"{model.memory_mebibytes}Mi")}
    devices = tuple(
        Device(
            name=f"gpu-{index}",
            attributes=_gpu_attributes(model, slot, _uuid(node_name, index), index),
            capacity=memory,
        )
        for index, slot in enumerate(slots)
    )
    return pool_slices(node_name, DRIVER, [devices])


def passed_through_gpus(
    node_name: str, model: GpuModel, slots: Sequence[Slot]
) -> tuple[ResourceSlice, ...]:
    """GPUs that are bound to vfio-pci, for virtual machines."""
    memory = {"addressableMemory": capacity(f"{model.memory_mebibytes}Mi")}
    devices = tuple(
        Device(
            name=f"gpu-vfio-{index}",
            attributes={
                "type": string("vfio"),
                "uuid": DeviceAttribute(string=_uuid(node_name, index).removeprefix("GPU-")),
                "productName": string(model.product),
                "vendorID": string("0x10de"),
                "deviceID": string(model.pci_id),
                "iommuFDEnabled": FALSE,
                **place(slot),
            },
            capacity=memory,
        )
        for index, slot in enumerate(slots)
    )
    return pool_slices(node_name, DRIVER, [devices])


def dividable_gpus(
    node_name: str, model: GpuModel, slots: Sequence[Slot]
) -> tuple[ResourceSlice, ...]:
    """Dynamic MIG: a slice of counters, then one slice per GPU with the whole and every possible partition."""
    counters = tuple(mig.counter_set(f"gpu-{index}", model.divided) for index in range(len(slots)))
    groups = [
        _with_partitions(index, model, slot, _uuid(node_name, index))
        for index, slot in enumerate(slots)
    ]
    return pool_slices(node_name, DRIVER, groups, counters)


def compute_domain(node_name: str) -> tuple[ResourceSlice, ...]:
    """The channel and the daemon of multi-node NVLink, one of each per node."""
    devices = tuple(
        Device(name=f"{sort}-0", attributes={"type": string(sort), "id": integer(0)})
        for sort in ("channel", "daemon")
    )
    return pool_slices(node_name, COMPUTE_DOMAIN_DRIVER, [devices])


def _with_partitions(index: int, model: GpuModel, slot: Slot, uuid: str) -> tuple[Device, ...]:
    gpu = f"gpu-{index}"
    whole = Device(
        name=gpu,
        attributes=_gpu_attributes(model, slot, uuid, index),
        capacity=mig.capacities(model.divided),
        consumes_counters=mig.consumption(gpu, model.divided, 0, mig.MEMORY_SLICES),
    )
    partitions = [
        device
        for profile in model.mig_profiles
        for device in _placed(gpu, profile, model, slot, uuid)
    ]
    # The driver lists them by name, and the order of a slice is the order of choice.
    partitions.sort(key=lambda device: device.name)
    return (whole, *partitions) if model.divides_when_idle else tuple(partitions)


def _placed(gpu: str, profile: mig.Profile, model: GpuModel, slot: Slot, uuid: str) -> list[Device]:
    """A partition at each place it may start. Where it starts shows in its name and counters alone."""
    attributes = {
        "type": string("mig"),
        "profile": string(profile.name),
        "parentUUID": DeviceAttribute(string=uuid),
        **model.attributes(),
        **place(slot),
    }
    return [
        Device(
            name=profile.device_name(gpu, start),
            attributes=attributes,
            capacity=mig.capacities(profile.amounts),
            consumes_counters=mig.consumption(gpu, profile.amounts, start, profile.size),
        )
        for start in profile.starts
    ]


def _gpu_attributes(
    model: GpuModel, slot: Slot, uuid: str, index: int
) -> dict[str, DeviceAttribute]:
    attributes = {
        "type": string("gpu"),
        "uuid": DeviceAttribute(string=uuid),
        **model.attributes(),
        "addressingMode": string(model.addressing_mode),
        **place(slot),
    }
    if model.numbered:
        attributes |= {"index": integer(index), "minor": integer(index)}
    return attributes


def _uuid(node_name: str, index: int) -> str:
    return f"GPU-{uuid('gpu', node_name, index)}"
