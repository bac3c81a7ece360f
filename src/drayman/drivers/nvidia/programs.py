"""NVIDIA's own programs: nvidia-smi for time slices, and the control daemon of MPS.

A control daemon serves one claim. It is a process of its own that outlives the driver; its pipe directory is what finds it again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import Final

from drayman.api.quantity import Quantity
from drayman.driver_configs.nvidia import MEBIBYTE, MPS_PIPES, MPS_VARIABLE, MpsConfig
from drayman.drivers.kit.errors import PrepareError

SMI: Final = "nvidia-smi"
MPS_CONTROL: Final = "nvidia-cuda-mps-control"
_TIMEOUT_S: Final = 20.0
_ERROR_LINES: Final = 3
_CONTROL: Final = "control"
_START_S: Final = 10.0
_LOOK_S: Final = 0.05
_QUIT_S: Final = 5


def is_installed(program: str) -> bool:
    return shutil.which(program) is not None


def run(arguments: Sequence[str], *, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """What a program prints. Raises PrepareError with what it complains about.

    It prints into a file: of a pipe one would wait for the end, which does not come from a program that leaves a daemon behind.
    """
    program = arguments[0]
    if not is_installed(program):
        raise PrepareError(f"{program} is not installed on the node")
    with TemporaryFile("w+", errors="replace") as output:
        try:
            done = subprocess.run(
                arguments,
                input=stdin,
                env={**os.environ, **(env or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise PrepareError(f"{program} did not end within {_TIMEOUT_S:g} s") from None
        output.seek(0)
        said = output.read()
    if done.returncode:
        last = " ".join(said.strip().splitlines()[-_ERROR_LINES:])
        raise PrepareError(f"{program} failed with {done.returncode}: {last}")
    return said


def set_time_slice(uuid: str, interval: int) -> None:
    """How long a program keeps a GPU that others want too: 0 for the default, up to 3. Raises PrepareError."""
    run([SMI, "compute-policy", "-i", uuid, "--set-timeslice", str(interval)])


class MpsDaemon:
    """The control daemon of a claim."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def pipes(self) -> Path:
        """Where programs find it."""
        return self.folder / MPS_PIPES

    def start(self, uuids: Sequence[str], config: MpsConfig) -> None:
        """Run it for GPUs, or partitions of them. Raises PrepareError."""
        log = self.folder / "log"
        for folder in (self.folder, self.pipes, log):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)  # programs of other users look for the daemon here
        more = ["-M"] if config.multi_user else []
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(uuids), "CUDA_MPS_LOG_DIRECTORY": str(log)}
        run([MPS_CONTROL, "-d", *more], env={**self._env, **visible})
        self._await()
        for command in commands(uuids, config):
            self.tell(command)

    def _await(self) -> None:
        """A program that starts before there is a daemon to be found goes on without it, and without its limits."""
        end = monotonic() + _START_S
        while not (self.pipes / _CONTROL).exists():
            if monotonic() > end:
                raise PrepareError(f"{MPS_CONTROL} has not opened its pipe within {_START_S:g} s")
            sleep(_LOOK_S)

    def stop(self) -> None:
        """End it and forget its folder; one that does not run is not an error. Raises PrepareError and OSError.

        Programs that still use it get a while to end, and are then ended with it.
        """
        if not self.folder.exists():
            return
        if (self.pipes / _CONTROL).exists() and self._is_running():
            self.tell(f"quit -t {_QUIT_S}")
        shutil.rmtree(self.folder)

    def _is_running(self) -> bool:
        """One that has crashed leaves its pipe behind. Where it does not say which process it is, it is taken to run."""
        note = self.pipes / f"{MPS_CONTROL}.pid"
        pid = note.read_text().strip() if note.exists() else ""
        if not pid:
            return True
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except FileNotFoundError:
            return False
        return MPS_CONTROL.startswith(name)

    def tell(self, command: str) -> str:
        """Raises PrepareError."""
        return run([MPS_CONTROL], stdin=f"{command}\n", env=self._env)

    @property
    def _env(self) -> dict[str, str]:
        return {MPS_VARIABLE: str(self.pipes)}


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
