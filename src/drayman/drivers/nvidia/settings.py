"""Settings of whole GPUs that claims ask for: how many processes may use one at once, and how long each keeps it.

What is changed is written down before, and that alone is set back, whatever the options are by then. Where GPUs are lent, whoever lends
them wants them back as they were, and settings outlive the driver and the virtual machine that it runs in. So all can be kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from drayman.driver_configs.nvidia import TimeSlicingConfig
from drayman.drivers.kit.checkpoint import this_boot
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.nvidia import programs
from drayman.drivers.nvidia.devices import Gpu
from drayman.drivers.nvidia.nvml import Nvml
from drayman.plugins.files import write_atomically

KEEP: Final = "--keep-settings"
_MODE: Final = "compute mode"
_SLICES: Final = "compute mode, time slices"
_log: Final = logging.getLogger(__name__)


class Settings:
    """Of the GPUs of one machine. Methods raise PrepareError and OSError."""

    def __init__(self, nvml: Nvml, folder: Callable[[], Path | None], *, kept: bool) -> None:
        """`folder` is the driver's own, which outlives it; None where the kit does not run it."""
        self._nvml = nvml
        self._folder = folder
        self.kept = kept
        """Whether none is changed."""

    def leave_to_mps(self, gpu: Gpu) -> None:
        """MPS gets a GPU for itself. Where settings are kept, programs that do not go through it may use the GPU, too."""
        if not self.kept:
            self._write_down(gpu, _MODE)
            self._nvml.set_exclusive(gpu.uuid, exclusive=True)

    def slice(self, gpu: Gpu, config: TimeSlicingConfig) -> None:
        """Any program may use a GPU, each for a while."""
        if not self.kept:
            self._write_down(gpu, _SLICES if config.number else _MODE)
            self._nvml.set_exclusive(gpu.uuid, exclusive=False)
            programs.set_time_slice(gpu.uuid, config.number)
        elif config.number:
            raise PrepareError(
                f"sharing.timeSlicingConfig.interval: {config.interval}: the driver runs with {KEEP}, and changes no time slices"
            )

    def reset(self, gpu: Gpu) -> None:
        """Any process may use a GPU, and its slices have the default length, if it was changed."""
        note = self._note(gpu)
        if note is None or not note.exists():
            return
        self._nvml.set_exclusive(gpu.uuid, exclusive=False)
        if note.read_text() == _SLICES:
            if programs.is_installed(programs.SMI):
                programs.set_time_slice(gpu.uuid, 0)
            else:  # which may be why the claim could not be prepared
                _log.warning("the time slices of %s stay: there is no %s", gpu.name, programs.SMI)
        note.unlink()

    def _write_down(self, gpu: Gpu, what: str) -> None:
        note = self._note(gpu)
        if note is not None:
            note.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(note, what.encode())

    def _note(self, gpu: Gpu) -> Path | None:
        """Of this boot: a machine that starts has the settings that it starts with."""
        folder = self._folder()
        return None if folder is None else folder / "changed" / this_boot() / gpu.uuid
