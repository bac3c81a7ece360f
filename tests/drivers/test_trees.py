"""What drivers discover on machines like those of the profiles: built trees of sysfs, procfs and device files."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from drayman.api import validation
from drayman.api.resource import Device, DeviceClass, ResourceSliceSpec
from drayman.cel.device import check_selector, compile_selector
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.model import Hardware
from drayman.drivers.known import find_driver
from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.profiles import PROFILES, HardwareNode
from drayman.drivers.profiles.hardware import pool_slices
from drayman.testing import FakeGpu, FakeMachine, FakeNvml
from drayman.testing.trees import add_hardware, nvidia_gpus

SIMULATED_ONLY = {
    "gpu.nvidia.com": ("index", "minor"),  # of releases before 25.12, which the simulated A100 have
    "gpu.intel.com": ("health",),  # comes from a daemon of Intel's
    "dra.net": ("dra.net/ebpf",),  # is not told by sysfs
}
"""Attributes that a profile has and the driver does not know, or knows otherwise."""
TREES = [
    "dgx-a100", "dgx-a100-mig", "dgx-h100", "dgx-h200-mig", "gb200-nvl72", "p4d", "a3-mega", "mi300x", "mi300x-cpx-nps4",
    "gaudi3", "max-1550", "rngd", "tpu-v5e-8", "tpu-v5p", "cpu-individual",
]  # fmt: skip


def driver_for(name: str, profile: str, node: HardwareNode, root: Path) -> Driver | None:
    """The driver of that name for a machine; None where there is only a simulated one."""
    title = node.node.metadata.name
    if name == "gpu.nvidia.com":
        divided = profile.endswith("-mig")
        gpus = [FakeGpu(gpu, mig_enabled=divided) for gpu in nvidia_gpus(node)]
        return NvidiaGpuDriver(title, divided, nvml=Nvml(FakeNvml(gpus)), root=root)
    if name == "compute-domain.nvidia.com":
        return None
    options = {"mode": "individual"} if profile == "cpu-individual" else {}
    return find_driver(name)(title, root=root, **options)


def bare(device: Device, driver: str) -> Device:
    left_out = SIMULATED_ONLY.get(driver, ())
    kept = {name: value for name, value in device.attributes.items() if name not in left_out}
    return replace(device, attributes=kept)


def bare_spec(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    if spec.devices is None:
        return spec
    return replace(spec, devices=tuple(bare(each, spec.driver) for each in spec.devices))


def selects(item: DeviceClass, driver: str, device: Device) -> bool:
    return all(
        compile_selector(selector.cel.expression).matches(driver, device)
        for selector in item.spec.selectors
        if selector.cel is not None
    )


@pytest.mark.parametrize("profile", TREES)
def test_every_driver_publishes_what_the_profile_of_the_machine_has(
    tmp_path: Path, profile: str
) -> None:
    """Slice by slice: names, types and values of attributes, capacities and counters. They are valid, and of a class."""
    node, *_ = PROFILES[profile].unit(0)
    machine = FakeMachine(tmp_path)
    add_hardware(machine, node)
    title = node.node.metadata.name
    found_any = False
    for name in dict.fromkeys(each.spec.driver for each in node.slices):
        driver = driver_for(name, profile, node, machine.root)
        if driver is None:
            continue
        hardware = driver.discover()
        assert isinstance(hardware, Hardware)
        slices = pool_slices(title, name, hardware.groups, hardware.counters)
        wanted = [bare_spec(each.spec) for each in node.slices if each.spec.driver == name]
        assert [bare_spec(each.spec) for each in slices] == wanted
        for each in slices:
            assert list(validation.validate(each, check_selector)) == []
        for device in hardware.devices:
            assert any(selects(each, name, device) for each in node.classes)
        found_any = True
    assert found_any
