"""NVIDIA's own programs: nvidia-smi for time slices, and the control daemon of MPS.

A control daemon serves one claim. It is a process of its own that outlives the driver; its pipe directory is what finds it again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from drayman.api.quantity import Quantity
from drayman.driver_configs.nvidia import MEBIBYTE, MpsConfig
from drayman.drivers.kit.errors import PrepareError

SMI: Final = "nvidia-smi"
MPS_CONTROL: Final = "nvidia-cuda-mps-control"
_TIMEOUT_S: Final = 20.0
_ERROR_LINES: Final = 3


def run(arguments: Sequence[str], *, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """What a program prints. Raises PrepareError with what it complains about."""
    program = arguments[0]
    if shutil.which(program) is None:
        raise PrepareError(f"{program} is not installed on the node")
    try:
        done = subprocess.run(
            arguments,
            input=stdin,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PrepareError(f"{program} did not end within {_TIMEOUT_S:g} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-_ERROR_LINES:]
        raise PrepareError(f"{program} failed with {done.returncode}: {' '.join(said)}")
    return done.stdout


def set_time_slice(uuid: str, interval: int) -> None:
    """How long a program keeps a GPU that others want too: 0 for the default, up to 3. Raises PrepareError."""
    run([SMI, "compute-policy", "-i", uuid, f"--set-timeslice={interval}"])


class MpsDaemon:
    """The control daemon of a claim."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def pipes(self) -> Path:
        """Where programs find it."""
        return self._folder / "pipe"

    def start(self, uuids: Sequence[str], config: MpsConfig) -> None:
        """Run it for GPUs, or partitions of them. Raises PrepareError."""
        log = self._folder / "log"
        for folder in (self.pipes, log):
            folder.mkdir(parents=True, exist_ok=True)
        more = ["--multiuser-server"] if config.multi_user else []
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(uuids), "CUDA_MPS_LOG_DIRECTORY": str(log)}
        run([MPS_CONTROL, "-d", *more], env={**self._env, **visible})
        for command in commands(uuids, config):
            self.tell(command)

    def stop(self) -> None:
        """End it and forget its folder; one that does not run is not an error. Raises PrepareError and OSError."""
        if not self._folder.exists():
            return
        if (self.pipes / "control").exists():
            self.tell("quit")
        shutil.rmtree(self._folder)

    def tell(self, command: str) -> str:
        """Raises PrepareError."""
        return run([MPS_CONTROL], stdin=f"{command}\n", env=self._env)

    @property
    def _env(self) -> dict[str, str]:
        return {"CUDA_MPS_PIPE_DIRECTORY": str(self.pipes)}


def commands(uuids: Sequence[str], config: MpsConfig) -> list[str]:
    """What a control daemon is told about what programs get of its GPUs. Raises PrepareError."""
    found = []
    if config.default_active_thread_percentage is not None:
        found.append(
            f"set_default_active_thread_percentage {config.default_active_thread_percentage}"
        )
    limits: dict[int, Quantity] = {}
    if config.default_pinned_device_memory_limit is not None:
        limits = dict.fromkeys(range(len(uuids)), config.default_pinned_device_memory_limit)
    for device, limit in config.default_per_device_pinned_memory_limit.items():
        limits[_index(device, uuids)] = limit
    found += [
        f"set_default_device_pinned_mem_limit {index} {_mebibytes(limit)}M"
        for index, limit in sorted(limits.items())
    ]
    return found


def _index(device: str, uuids: Sequence[str]) -> int:
    """The place of a device, given by its UUID or its place, among those that a daemon serves."""
    if device in uuids:
        return uuids.index(device)
    if device.isdecimal() and int(device) < len(uuids):
        return int(device)
    raise PrepareError(
        f"sharing.mpsConfig.defaultPerDevicePinnedMemoryLimit[{device}]: the claim has no such device"
    )


def _mebibytes(limit: Quantity) -> int:
    return limit.rounded_up() // MEBIBYTE.rounded_up()
