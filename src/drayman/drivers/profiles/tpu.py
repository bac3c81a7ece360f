"""Google's TPU hosts, as `tpu.google.com` publishes them: all chips of a host are used together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from drayman.api.resource import ResourceSlice
from drayman.drivers.classes import classes_of
from drayman.drivers.google.devices import DRIVER, Host, chip
from drayman.drivers.profiles import processors
from drayman.drivers.profiles.hardware import pool_slices
from drayman.drivers.profiles.machines import Machine
from drayman.drivers.profiles.profile import Profile


@dataclass(frozen=True, slots=True)
class _Host:
    """A machine type with chips."""

    machine: Machine
    version: str
    generation: str
    """The version, as the driver has it."""
    accelerator: str
    chips: int
    topology: str

    def labels(self) -> dict[str, str]:
        return {
            "cloud.google.com/gke-tpu-accelerator": self.accelerator,
            "cloud.google.com/gke-tpu-topology": self.topology,
            "cloud.google.com/gke-accelerator-count": str(self.chips),
            "tpu.google.com/accelerator": self.accelerator,
            "tpu.google.com/chip-count": str(self.chips),
            "tpu.google.com/topology": self.topology,
        }


def _chips(node_name: str, host: _Host) -> tuple[ResourceSlice, ...]:
    """Chips are named by their IOMMU groups, which count from zero."""
    common = Host(host.generation, host.accelerator, host.chips, host.topology)
    found = tuple(chip(node_name, common, index, str(index)) for index in range(host.chips))
    return pool_slices(node_name, DRIVER, [found])


def _profile(name: str, host: _Host) -> Profile:
    machine = replace(host.machine, labels=host.labels())
    return processors.profile(
        name,
        f"{machine.instance_type}: {host.chips} chips {host.version}, {host.topology}",
        machine,
        partial(_chips, host=host),
        classes_of(DRIVER),
    )


_V5E: Final = "tpu-v5-lite-podslice"
_V5P: Final = "tpu-v5p-slice"
_V6E: Final = "tpu-v6e-slice"

PROFILES: Final = (
    _profile("tpu-v5e", _Host(Machine("ct5lp-hightpu-4t", 112, "192Gi"), "v5e", "v5litepod", _V5E, 4, "2x2")),
    _profile("tpu-v5e-8", _Host(Machine("ct5lp-hightpu-8t", 224, "384Gi"), "v5e", "v5litepod", _V5E, 8, "2x4")),
    _profile("tpu-v5p", _Host(Machine("ct5p-hightpu-4t", 208, "448Gi"), "v5p", "v5p", _V5P, 4, "2x2x1")),
    _profile("tpu-v6e", _Host(Machine("ct6e-standard-4t", 180, "720Gi"), "v6e", "v6e", _V6E, 4, "2x2")),
    _profile("tpu-v6e-8", _Host(Machine("ct6e-standard-8t", 180, "1440Gi"), "v6e", "v6e", _V6E, 8, "2x4")),
)  # fmt: skip
