"""Settings of whole GPUs that claims ask for: how many processes may use one at once, and how long each keeps it.

Where GPUs are lent, whoever lends them wants them back as they were, and settings outlive the driver and the virtual machine that it runs
in. So all can be kept.
"""

from __future__ import annotations

import logging
from typing import Final

from drayman.driver_configs.nvidia import TimeSlicingConfig
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.nvidia import programs
from drayman.drivers.nvidia.devices import Gpu
from drayman.drivers.nvidia.nvml import Nvml

KEEP: Final = "--keep-settings"
_log: Final = logging.getLogger(__name__)


class Settings:
    """Of the GPUs of one machine. Methods raise PrepareError."""

    def __init__(self, nvml: Nvml, *, kept: bool) -> None:
        self._nvml = nvml
        self.kept = kept
        """Whether none is changed."""

    def leave_to_mps(self, gpu: Gpu) -> None:
        """MPS gets a GPU for itself. Where settings are kept, programs that do not go through it may use the GPU, too."""
        if not self.kept:
            self._nvml.set_exclusive(gpu.uuid, exclusive=True)

    def slice(self, gpu: Gpu, config: TimeSlicingConfig) -> None:
        """Any program may use a GPU, each for a while."""
        if not self.kept:
            self._nvml.set_exclusive(gpu.uuid, exclusive=False)
            programs.set_time_slice(gpu.uuid, config.number)
        elif config.number:
            raise PrepareError(
                f"sharing.timeSlicingConfig.interval: {config.interval}: the driver runs with {KEEP}, and changes no time slices"
            )

    def reset(self, gpu: Gpu, *, sliced: bool) -> None:
        """Undo both: any process may use a GPU, and its slices have the default length if they had another."""
        self._nvml.set_exclusive(gpu.uuid, exclusive=False)
        if not sliced:
            return
        if programs.is_installed(programs.SMI):
            programs.set_time_slice(gpu.uuid, 0)
        else:  # which may be why the claim could not be prepared
            _log.warning("the time slices of %s stay: there is no %s", gpu.name, programs.SMI)
