"""Finding GPUs: what NVML says about each, and where sysfs has it."""

from __future__ import annotations

from pathlib import Path

from drayman.drivers.describing import Slot
from drayman.drivers.nvidia.devices import Gpu, GpuModel, Partition
from drayman.drivers.nvidia.nvml import AMPERE, GpuFacts, Nvml
from drayman.drivers.pci import pci_device


def discover(nvml: Nvml, root: Path) -> list[tuple[Gpu, GpuFacts]]:
    """The GPUs of a machine, by their minor numbers. Raises the library's error, and OSError."""
    found = [(_gpu(nvml, facts, root), facts) for facts in nvml.gpus()]
    return sorted(found, key=lambda each: each[0].minor)


def _gpu(nvml: Nvml, facts: GpuFacts, root: Path) -> Gpu:
    pci = pci_device(root, facts.bus_id)
    model = GpuModel(
        product=facts.name,
        architecture=facts.architecture,
        compute_capability=facts.compute_capability,
        memory_bytes=facts.memory_bytes,
        mig_profiles=facts.mig_profiles,
        pci_id="" if pci is None else pci.device,
        addressing_mode=facts.addressing_mode,
        divides_when_idle=facts.architecture != AMPERE,
        brand=facts.brand,
        driver_version=nvml.driver_version,
        cuda_version=nvml.cuda_version,
    )
    slot = Slot(facts.bus_id, None, None) if pci is None else pci.slot
    return Gpu(model, facts.minor, facts.uuid, slot)


def existing_partitions(nvml: Nvml, gpu: Gpu) -> list[Partition]:
    """The partitions that a GPU in MIG mode has."""
    profiles = {profile.id: profile for profile in gpu.model.mig_profiles}
    return [
        Partition(profiles[each.instance.profile_id], each.instance.start, each.uuid)
        for each in nvml.mig_devices(gpu.uuid)
        if each.instance.profile_id in profiles
    ]
