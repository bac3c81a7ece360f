"""NVIDIA's driver for pods on this machine, which has no GPUs: what it finds is a folder and a library that answers like NVML."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

import click
from msgspec.structs import replace

from drayman.drivers.kit.model import Claim, Prepared
from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.profiles import PROFILES
from drayman.plugins.cdi import DeviceNode
from drayman.testing import FakeMachine, FakeNvml
from drayman.testing.trees import add_nvidia_gpus, nvidia_gpus

FOLDER: Final = "DRAYMAN_TEST_GPUS"


class HereDriver(NvidiaGpuDriver):
    """The device files of its machine are others of this one, which has no parameters of NVIDIA's module either."""

    def prepare(self, claim: Claim) -> Prepared:
        made = super().prepare(claim)
        return replace(
            made,
            mounts=[each for each in made.mounts if Path(each.container_path).exists()],
            device_nodes=[_leading_nowhere(node) for node in made.device_nodes],
            devices=[
                replace(each, device_nodes=[_leading_nowhere(node) for node in each.device_nodes])
                for each in made.devices
            ],
        )


class DgxDriver(HereDriver):
    """The GPUs of a DGX H100. A variable names the folder, because it is `drayman up` that makes the driver."""

    options: ClassVar[Sequence[click.Option]] = ()

    def __init__(self, node: str) -> None:
        machine = FakeMachine(Path(os.environ[FOLDER]))
        gpus = nvidia_gpus(PROFILES["dgx-h100"].unit(0)[0])
        add_nvidia_gpus(machine, gpus)
        super().__init__(node, nvml=Nvml(FakeNvml(gpus)), root=machine.root)


def _leading_nowhere(node: DeviceNode) -> DeviceNode:
    return replace(node, host_path="/dev/null", type_="")
