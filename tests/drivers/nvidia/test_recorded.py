"""What was read from a machine that is there: a virtual machine with an H200, in November 2026.

Its own profile is of a machine of the vendor, with NUMA nodes and several roots; here the product is compared, and where it sits is not.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from drayman.api.resource import Device
from drayman.drivers.describing import Slot
from drayman.drivers.kit.model import Hardware
from drayman.drivers.nvidia.devices import Gpu
from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.profiles import PROFILES
from drayman.drivers.profiles.nvidia_products import MODELS
from drayman.testing import FakeGpu, FakeMachine, FakeNvml
from drayman.testing.trees import add_nvidia_gpus, devices_of

UUID = "GPU-9d544c67-7f09-01a2-9c5d-e0764a05beb6"
ATTRIBUTES = {
    "addressingMode": {"string": "None"},
    "architecture": {"string": "Hopper"},
    "brand": {"string": "Nvidia"},
    "cudaComputeCapability": {"version": "9.0.0"},
    "cudaDriverVersion": {"version": "13.0.0"},
    "driverVersion": {"version": "580.159.4"},
    "productName": {"string": "NVIDIA H200"},
    "resource.kubernetes.io/pciBusID": {"string": "0000:00:06.0"},
    "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    "type": {"string": "gpu"},
    "uuid": {"string": UUID},
}
COUNTERS = {
    "copy-engines": "8",
    "decoders": "7",
    "encoders": "0",
    "jpeg-engines": "7",
    "memory": "140Gi",
    "multiprocessors": "132",
    "ofa-engines": "1",
} | {f"memory-slice-{number}": "1" for number in range(8)}
OF_THE_PLACE = (
    "driverVersion",
    "parentUUID",
    "resource.kubernetes.io/numaNode",
    "resource.kubernetes.io/pciBusID",
    "resource.kubernetes.io/pcieRoot",
)
"""Attributes in which partitions differed from those of the profile."""


@pytest.fixture
def driver(tmp_path: Path, request: pytest.FixtureRequest) -> NvidiaGpuDriver:
    """No NUMA node, no NVLink and no graphics: the virtual machine has been given the GPU alone."""
    (model,) = (each for each in MODELS if each.product == "NVIDIA H200")
    gpu = Gpu(
        replace(model, addressing_mode="None"), 0, UUID, Slot("0000:00:06.0", "pci0000:00", None)
    )
    machine = FakeMachine(tmp_path)
    add_nvidia_gpus(machine, [gpu])
    nvml = Nvml(FakeNvml([FakeGpu(gpu, links=())], driver="580.159.04"))
    return NvidiaGpuDriver("n", dynamic_mig=request.param, nvml=nvml, root=machine.root)


def described(device: Device) -> dict[str, Any]:
    found: dict[str, Any] = to_builtins(device.attributes)
    return {name: {kind: value for kind, value in each.items() if value is not None}
            for name, each in found.items()}  # fmt: skip


@pytest.mark.parametrize("driver", [False], indirect=True)
def test_a_whole_gpu_is_published_as_it_was(driver: NvidiaGpuDriver) -> None:
    """Each attribute with its type, and its memory."""
    (device,) = driver.discover().devices
    assert (device.name, described(device)) == ("gpu-0", ATTRIBUTES)
    assert {name: str(each.value) for name, each in device.capacity.items()} == {
        "memory": "143771Mi"
    }


@pytest.mark.parametrize("driver", [True], indirect=True)
def test_its_partitions_are_those_of_the_profile(driver: NvidiaGpuDriver) -> None:
    """26 devices and their counters, as NVML described them on the machine, but for what is of the place."""
    found: Hardware = driver.discover()
    (node, *_) = PROFILES["dgx-h200-mig"].unit(0)
    wanted = [
        each for each in devices_of(node, "gpu.nvidia.com") if each.name.split("-mig")[0] == "gpu-0"
    ]
    (counters,) = found.counters
    assert {name: str(each.value) for name, each in counters.counters.items()} == COUNTERS
    assert [each.name for each in found.devices] == [each.name for each in wanted]
    assert len(wanted) == 26
    for device, simulated in zip(found.devices[1:], wanted[1:], strict=True):
        ours, theirs = described(device), described(simulated)
        differing = {name for name in ours | theirs if ours.get(name) != theirs.get(name)}
        assert differing <= set(OF_THE_PLACE)
        assert device.capacity == simulated.capacity
        assert device.consumes_counters == simulated.consumes_counters
