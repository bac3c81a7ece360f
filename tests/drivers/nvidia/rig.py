"""A machine with NVIDIA's GPUs that is made of folders and a library that answers like NVML."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from drayman.driver_configs.decoding import decode
from drayman.driver_configs.known import CONFIGS
from drayman.drivers.kit.model import Allocated, Claim
from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.profiles import PROFILES
from drayman.testing import FakeGpu, FakeMachine, FakeNvml
from drayman.testing.trees import add_nvidia_gpus, nvidia_gpus
from patience import PATIENCE_S

HEAD = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}


class Rig:
    """A machine with GPUs, its driver, and programs that note how they were called."""

    def __init__(self, folder: Path, profile: str = "dgx-h200", **options: bool) -> None:
        (self.node, *_) = PROFILES[profile].unit(0)
        self.machine = FakeMachine(folder / "root")
        gpus = nvidia_gpus(self.node)
        add_nvidia_gpus(self.machine, gpus)
        self.fake = FakeNvml(
            [FakeGpu(replace(gpu, model=replace(gpu.model, numbered=False))) for gpu in gpus]
        )
        self.mps = folder / "mps"
        self.own = folder / "plugin"
        self.options = options
        self.driver = self.start()

    def start(self) -> NvidiaGpuDriver:
        driver = NvidiaGpuDriver(
            self.node.node.metadata.name,
            mps_dir=self.mps,
            nvml=Nvml(self.fake),
            root=self.machine.root,
            **self.options,
        )
        self.own.mkdir(exist_ok=True)
        driver.folder = self.own
        return driver

    def claim(self, *names: str, sharing: object = None, uid: str = "u", **more: bool) -> Claim:
        devices = {device.name: device for device in self.driver.discover().devices}
        said = HEAD | ({"sharing": sharing} if sharing else {})
        config = decode(said, CONFIGS["gpu.nvidia.com"])
        return Claim(
            namespace="default",
            name="c",
            uid=uid,
            devices=tuple(
                Allocated(
                    request="r", pool="n", name=name, device=devices[name], config=config, **more
                )
                for name in names
            ),
        )


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)
