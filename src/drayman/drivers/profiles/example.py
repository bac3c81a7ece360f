"""The example driver of Kubernetes SIG Node: fake GPUs, network cards and CPUs, each kind a driver of its own.

How the driver offers its GPUs is set at installation; each of the settings that its manifests ask for is a profile.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from drayman.api.resource import ResourceSlice
from drayman.drivers.classes import classes_of
from drayman.drivers.example.devices import CPU, GPU, NET, Setting, cpus, gpus, nics
from drayman.drivers.kit.model import Hardware
from drayman.drivers.profiles import machines
from drayman.drivers.profiles.hardware import HardwareNode, pool_slices
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.profile import Profile

_MACHINE: Final = Machine("example", 64, "256Gi")


def _slices(spot: Spot, driver: str, hardware: Hardware) -> tuple[ResourceSlice, ...]:
    return pool_slices(spot.name, driver, hardware.groups, hardware.counters)


def _build(spot: Spot, setting: Setting) -> HardwareNode:
    return HardwareNode(
        machines.node(spot, _MACHINE),
        (
            *_slices(spot, GPU, gpus(spot.name, setting)),
            *_slices(spot, NET, nics(spot.name)),
            *_slices(spot, CPU, cpus(_MACHINE.numa_nodes, _MACHINE.cpus // _MACHINE.numa_nodes)),
        ),
        classes_of(GPU, NET, CPU),
    )


def _profile(name: str, summary: str, setting: Setting) -> Profile:
    return Profile(name, summary, partial(_build, setting=setting))


PROFILES: Final = (
    _profile("example", "the example driver: 8 fake GPUs, 8 NICs shared by bandwidth, CPUs", Setting()),
    _profile("example-partitions", "example with each GPU whole or in four", Setting(partitions=4)),
    _profile("example-shared", "example with GPUs shared by memory and compute", Setting(shared=True)),
    _profile("example-shared-partitions", "example with GPUs in four, each part shared", Setting(partitions=4, shared=True)),
    _profile("example-binding-conditions", "example with GPUs that are made ready before binding", Setting(binding_conditions=True)),
)  # fmt: skip
