"""Finding GPUs: what NVML says about each, and where sysfs has it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from drayman.drivers.describing import Slot
from drayman.drivers.nvidia.devices import Gpu, GpuModel, Partition
from drayman.drivers.nvidia.nvlink import Linked, attributes
from drayman.drivers.nvidia.nvml import AMPERE, GpuFacts, Nvml, Survey
from drayman.drivers.pci import pci_device

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """A GPU of a machine, and what NVML says about it."""

    gpu: Gpu
    facts: GpuFacts
    is_lost: bool = False
    """Whether it has fallen off the bus. What is said about it is from before."""


def discover(nvml: Nvml, root: Path, known: Iterable[Found] = ()) -> list[Found]:
    """The GPUs of a machine, by their minor numbers. Raises the library's error, and OSError.

    One that is known and cannot be read now stays as it is known: a claim may have it, and it must not look as if it were gone.
    """
    survey = nvml.survey()
    found = [Found(gpu, facts) for gpu, facts in _read(nvml, survey, root)]
    if not survey.is_complete:
        there = {each.gpu.uuid for each in found}
        missing = [each for each in known if each.gpu.uuid not in there]
        found += [replace(each, is_lost=each.is_lost or survey.has_lost) for each in missing]
    return sorted(found, key=lambda each: each.gpu.minor)


def _read(nvml: Nvml, survey: Survey, root: Path) -> list[tuple[Gpu, GpuFacts]]:
    found = [(_gpu(nvml, facts, root), facts) for facts in survey.gpus]
    found.sort(key=lambda each: each[0].minor)
    linked = [Linked(gpu.name, facts.name, facts.bus_id, facts.links) for gpu, facts in found]
    said = attributes(linked)
    return [(replace(gpu, nvlink=said.get(gpu.name, {})), facts) for gpu, facts in found]


def clique(gpus: Iterable[Found]) -> str | None:
    """The NVLink domain that a machine is in: that of its GPUs, if they agree."""
    found = {each.facts.clique for each in gpus}
    return found.pop() if len(found) == 1 else None


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


def existing_partitions(found: Found) -> list[Partition]:
    """The partitions that a GPU in MIG mode has. One that is divided once more is left out: its parts have no place of their own."""
    profiles = {profile.id: profile for profile in found.gpu.model.mig_profiles}
    partitions = []
    for each in found.facts.mig_devices:
        profile = profiles.get(each.instance.profile_id)
        if profile is None or not each.is_whole:
            _log.warning("%s is not published: it is a part of a partition", each.uuid)
        else:
            partitions.append(Partition(profile, each.instance.start, each.uuid))
    return partitions
