"""The three example drivers. Their devices are told to containers by environment variables, so they run anywhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

import click

from drayman.driver_configs.decoding import Config
from drayman.driver_configs.example import GpuConfig
from drayman.drivers.example import devices
from drayman.drivers.example.devices import CPU, GPU, NET, Setting
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.model import Allocated, Claim, Hardware, Prepared, PreparedDevice

_COUNT = click.IntRange(0, 4096)


class _ExampleDriver(Driver):
    """Sets variables, and needs nothing undone."""

    prefix: ClassVar[str]
    amounts: ClassVar[dict[str, str]] = {}
    """How variables call what a claim has of a capacity, where that is not its own name."""

    def prepare(self, claim: Claim) -> Prepared:
        return Prepared(
            devices=[
                PreparedDevice(device=each, env=self._variables(claim, each))
                for each in claim.devices
            ],
            env={"DRA_RESOURCE_DRIVER_NAME": self.name, "KUBERNETES_NODE_NAME": self.node},
        )

    def _variables(self, claim: Claim, device: Allocated) -> dict[str, str]:
        stem = f"{self.prefix}_{_suffix(device.name)}"
        found = {
            stem: device.name,
            f"{self.prefix}_{_word(device.name)}_RESOURCE_CLAIM": claim.uid,
            "DRA_ADMIN_ACCESS": "true" if device.admin_access else "false",
        }
        for capacity, amount in device.consumed.items():
            name = capacity.rpartition("/")[2]
            found[f"{stem}_{self.amounts.get(name, _word(name))}"] = str(amount)
        return found


class ExampleGpuDriver(_ExampleDriver):
    """`gpu.example.com`."""

    name = GPU
    prefix = "GPU_DEVICE"
    configs: ClassVar[tuple[type[Config], ...]] = (GpuConfig,)
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(["--gpus"], type=_COUNT, default=devices.GPUS, show_default=True),
        click.Option(["--partitions"], type=_COUNT, default=0, help="Parts of each GPU."),
        click.Option(["--shared"], is_flag=True, help="Share GPUs by memory and compute."),
    )

    def __init__(
        self, node: str, gpus: int = devices.GPUS, partitions: int = 0, shared: bool = False
    ) -> None:
        super().__init__(node)
        self._count = gpus
        self._setting = Setting(partitions=partitions, shared=shared)

    def discover(self) -> Hardware:
        return devices.gpus(self.node, self._setting, self._count)

    def _variables(self, claim: Claim, device: Allocated) -> dict[str, str]:
        found = super()._variables(claim, device)
        stem = f"{self.prefix}_{_suffix(device.name)}"
        config = device.config
        if isinstance(config, GpuConfig) and config.sharing is not None:
            sharing = config.sharing
            found[f"{stem}_SHARING_STRATEGY"] = sharing.strategy
            if sharing.time_slicing_config is not None:
                found[f"{stem}_TIMESLICE_INTERVAL"] = sharing.time_slicing_config.interval
            if sharing.space_partitioning_config is not None:
                count = sharing.space_partitioning_config.partition_count
                found[f"{stem}_PARTITION_COUNT"] = str(count)
        return found


class ExampleNetDriver(_ExampleDriver):
    """`net.example.com`."""

    name = NET
    prefix = "NET_DEVICE"
    amounts: ClassVar[dict[str, str]] = {
        "ingressBandwidth": "INGRESS_RATE",
        "egressBandwidth": "EGRESS_RATE",
    }
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(["--nics"], type=_COUNT, default=devices.NICS, show_default=True),
    )

    def __init__(self, node: str, nics: int = devices.NICS) -> None:
        super().__init__(node)
        self._count = nics

    def discover(self) -> Hardware:
        return devices.nics(self.node, self._count)


class ExampleCpuDriver(_ExampleDriver):
    """`cpu.example.com`: the CPUs of the machine, as one NUMA node."""

    name = CPU
    prefix = "CPU_DEVICE"
    amounts: ClassVar[dict[str, str]] = {"cpu": "CONSUMED_CPU"}

    def discover(self) -> Hardware:
        return devices.cpus(1, os.cpu_count() or 1)


def _suffix(name: str) -> str:
    """`gpu-3` is 3, `gpu-0-partition-1` is 0_PARTITION_1."""
    return _word(name.partition("-")[2] or name)


def _word(name: str) -> str:
    """As the name of a variable can have it."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).upper()
