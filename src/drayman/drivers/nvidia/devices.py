"""GPUs as `gpu.nvidia.com` publishes them. The driver and simulated hardware both describe them with these functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from drayman.api.resource import Device, DeviceAttribute, DeviceCapacity
from drayman.drivers.describing import FALSE, Slot, capacity, integer, place, string, version
from drayman.drivers.kit.model import Hardware
from drayman.drivers.nvidia import mig

DRIVER: Final = "gpu.nvidia.com"
MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A product: what is the same for every GPU of it on a machine."""

    product: str
    architecture: str
    compute_capability: str
    memory_bytes: int | None
    """None for a GPU that uses the memory of its host."""
    mig_profiles: tuple[mig.Profile, ...]
    pci_id: str = ""
    addressing_mode: str | None = "HMM"
    divides_when_idle: bool = True
    """Whether MIG can be switched without a reset. Where it cannot, a GPU in MIG mode is not offered as a whole."""
    numbered: bool = False
    """Whether GPUs have an `index`, as releases of the driver before 25.12 published it."""
    brand: str = "Nvidia"
    driver_version: str = "580.126.9"
    cuda_version: str = "13.0.0"

    @property
    def memory(self) -> dict[str, DeviceCapacity]:
        """As a capacity, where it has any."""
        if self.memory_bytes is None:
            return {}
        whole, rest = divmod(self.memory_bytes, MEBIBYTE)
        return {"memory": capacity(str(self.memory_bytes) if rest else f"{whole}Mi")}

    @property
    def divided(self) -> mig.Amounts:
        """What a GPU that can be divided offers as a whole: a little less memory than one that cannot."""
        return mig.maxima(self.mig_profiles)

    def attributes(self) -> dict[str, DeviceAttribute]:
        """The attributes that every device of the product has."""
        return {
            "productName": string(self.product),
            "brand": string(self.brand),
            "architecture": string(self.architecture),
            "cudaComputeCapability": version(self.compute_capability),
            "driverVersion": version(self.driver_version),
            "cudaDriverVersion": version(self.cuda_version),
        }


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of a machine."""

    model: GpuModel
    minor: int
    """The number of its device file."""
    uuid: str
    slot: Slot
    nvlink: Mapping[str, DeviceAttribute] = field(default_factory=dict)
    """What is to be said about its links, where the product does not say it."""

    @property
    def name(self) -> str:
        return f"gpu-{self.minor}"


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of a GPU that somebody has made (static MIG)."""

    profile: mig.Profile
    start: int
    uuid: str


def whole(gpu: Gpu) -> Device:
    """A GPU that is not divided."""
    return Device(
        name=gpu.name,
        attributes=_gpu_attributes(gpu),
        capacity=gpu.model.memory,
    )


def passed_through(gpu: Gpu) -> Device:
    """A GPU that is bound to vfio-pci, for virtual machines."""
    return Device(
        name=f"gpu-vfio-{gpu.minor}",
        attributes={
            "type": string("vfio"),
            "uuid": DeviceAttribute(string=gpu.uuid.removeprefix("GPU-")),
            "productName": string(gpu.model.product),
            "vendorID": string("0x10de"),
            "deviceID": string(gpu.model.pci_id),
            "iommuFDEnabled": FALSE,
            **place(gpu.slot),
        },
        capacity={f"addressable{name.title()}": each for name, each in gpu.model.memory.items()},
    )


def dividable(gpus: Sequence[Gpu]) -> Hardware:
    """Dynamic MIG: the counters, and for each GPU the whole and every possible partition."""
    return Hardware(
        groups=tuple(map(_with_partitions, gpus)),
        counters=tuple(
            mig.counter_set(gpu.name, gpu.model.divided, mig.slices(gpu.model.mig_profiles))
            for gpu in gpus
        ),
    )


def partitions(gpu: Gpu, found: Sequence[Partition]) -> list[Device]:
    """Static MIG: the partitions that a GPU has."""
    return [
        Device(
            name=each.profile.device_name(gpu.name, each.start),
            attributes=_partition_attributes(gpu, each.profile)
            | {"uuid": DeviceAttribute(string=each.uuid)},
            capacity={
                **mig.capacities(each.profile.amounts),
                **{
                    f"memorySlice{index}": capacity("1")
                    for index in range(each.start, each.start + each.profile.size)
                },
            },
        )
        for each in found
    ]


def _with_partitions(gpu: Gpu) -> tuple[Device, ...]:
    model = gpu.model
    everything = mig.slices(model.mig_profiles)
    entire = Device(
        name=gpu.name,
        attributes=_gpu_attributes(gpu),
        capacity=mig.capacities(model.divided),
        consumes_counters=mig.consumption(gpu.name, model.divided, 0, everything),
    )
    parts = [part for profile in model.mig_profiles for part in _placed(gpu, profile)]
    # The driver lists them by name, and the order of a slice is the order of choice.
    parts.sort(key=lambda device: device.name)
    return (entire, *parts) if model.divides_when_idle else tuple(parts)


def _placed(gpu: Gpu, profile: mig.Profile) -> list[Device]:
    """A partition at each place it may start. Where it starts shows in its name and counters alone."""
    attributes = _partition_attributes(gpu, profile)
    return [
        Device(
            name=profile.device_name(gpu.name, start),
            attributes=attributes,
            capacity=mig.capacities(profile.amounts),
            consumes_counters=mig.consumption(gpu.name, profile.amounts, start, profile.size),
        )
        for start in profile.starts
    ]


def _partition_attributes(gpu: Gpu, profile: mig.Profile) -> dict[str, DeviceAttribute]:
    return {
        "type": string("mig"),
        "profile": string(profile.name),
        "parentUUID": DeviceAttribute(string=gpu.uuid),
        **gpu.model.attributes(),
        **place(gpu.slot),
    }


def _gpu_attributes(gpu: Gpu) -> dict[str, DeviceAttribute]:
    model = gpu.model
    attributes = {
        "type": string("gpu"),
        "uuid": DeviceAttribute(string=gpu.uuid),
        **model.attributes(),
    }
    if model.addressing_mode is not None:
        attributes["addressingMode"] = string(model.addressing_mode)
    attributes |= {**place(gpu.slot), **gpu.nvlink}
    if model.numbered:
        attributes |= {"index": integer(gpu.minor), "minor": integer(gpu.minor)}
    return attributes
