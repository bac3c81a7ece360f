"""Dividing GPUs: partitions are made for claims and destroyed after them, and a GPU that is to be used as a whole is put together.

What was half done is found by its place, not by what was remembered: the name of a partition says where it is. One thing is done at a time
on a machine, also by two instances of the driver while it is updated: what one finds must hold until it has acted on it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.locks import ThreadLock
from drayman.drivers.nvidia import mig
from drayman.drivers.nvidia.devices import Gpu
from drayman.drivers.nvidia.health import Monitor
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.nvidia.partitions import Instance, MigDevice

_log: Final = logging.getLogger(__name__)


class Divider:
    """Divides the GPUs of one machine. Methods raise PrepareError, and the library's error."""

    def __init__(self, nvml: Nvml, monitor: Monitor, folder: Callable[[], Path | None]) -> None:
        """`folder` is the driver's own, which its instances share; None where the kit does not run it."""
        self._nvml = nvml
        self._partitions = nvml.partitions
        self._monitor = monitor
        self._folder = folder
        self._lock = ThreadLock()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        folder = self._folder()
        with self._lock.hold(None if folder is None else folder / "dividing"):
            yield

    def find(self, gpu: Gpu, name: str) -> MigDevice | None:
        """A partition, if there is one of that name."""
        for found in self._partitions.devices(gpu.uuid) if self._partitions.mode(gpu.uuid) else ():
            if partition_name(gpu, found.instance) == name:
                if not found.is_whole:
                    raise PrepareError(f"partition {name} is divided once more")
                return found
        return None

    def make(self, gpu: Gpu, name: str) -> MigDevice:
        """A partition, at the place that its name says."""
        profile, start = _placement(gpu, name)
        with self._turn():
            found = self.find(gpu, name)
            if found is not None:
                _log.warning("partition %s is there already, and is used as it is", name)
                return found
            if not self._partitions.mode(gpu.uuid):
                self._switch(gpu, enabled=True)
            return self._partitions.create(gpu.uuid, profile, start)

    def destroy(self, gpu: Gpu, name: str) -> None:
        """Undo `make`, or half of it. MIG is switched off after the last partition."""
        with self._turn():
            if not self._partitions.mode(gpu.uuid):
                return
            for instance in self._partitions.instances(gpu.uuid):
                if partition_name(gpu, instance) == name:
                    self._destroy_own(gpu, name, instance)
            if gpu.model.divides_when_idle and not self._partitions.instances(gpu.uuid):
                self._leave_whole(gpu)

    def _destroy_own(self, gpu: Gpu, name: str, instance: Instance) -> None:
        parts = [d for d in self._partitions.devices(gpu.uuid) if d.instance.id == instance.id]
        if all(each.is_whole for each in parts):
            self._partitions.destroy(gpu.uuid, instance)
        else:
            _log.warning("%s stays: somebody has divided it once more", name)

    def destroy_unknown(self, gpus: Iterable[Gpu], known: Collection[str]) -> None:
        """Destroy partitions that are not known by name. Those that cannot be destroyed stay, with a line in the log."""
        with self._turn():
            for gpu in gpus:
                try:
                    self._destroy_but(gpu, known)
                except self._nvml.error as error:
                    _log.warning("the partitions of %s stay: %s", gpu.name, error)

    def _destroy_but(self, gpu: Gpu, known: Collection[str]) -> None:
        for instance in (
            self._partitions.instances(gpu.uuid) if self._partitions.mode(gpu.uuid) else ()
        ):
            name = partition_name(gpu, instance)
            if name in known:
                continue
            _log.warning("destroying partition %s, which no claim has", name)
            try:
                self._partitions.destroy(gpu.uuid, instance)
            except PrepareError as error:
                _log.warning("partition %s stays: %s", name, error)

    def put_together(self, gpu: Gpu) -> None:
        """A GPU in MIG mode cannot be used as a whole."""
        with self._turn():
            if not self._partitions.mode(gpu.uuid):
                return
            left = self._partitions.instances(gpu.uuid)
            if left:
                names = ", ".join(partition_name(gpu, each) for each in left)
                raise PrepareError(
                    f"{gpu.name} is divided: {names}; --destroy-unknown-mig destroys partitions that no claim has"
                )
            self._switch(gpu, enabled=False)

    def _leave_whole(self, gpu: Gpu) -> None:
        """Whoever else uses the machine finds a GPU that is whole. The next claim for the whole one tries again."""
        try:
            self._switch(gpu, enabled=False)
        except PrepareError as error:
            _log.warning("%s stays in MIG mode: %s", gpu.name, error)

    def _switch(self, gpu: Gpu, *, enabled: bool) -> None:
        """NVML refuses while anybody uses the GPU, and whoever follows its errors does."""
        with self._monitor.suspended():
            self._partitions.set_mode(gpu.uuid, enabled=enabled)


def _placement(gpu: Gpu, name: str) -> tuple[mig.Profile, int]:
    """The profile of a partition and where it starts, by its name."""
    for profile in gpu.model.mig_profiles:
        for start in profile.starts:
            if profile.device_name(gpu.name, start) == name:
                return profile, start
    raise PrepareError(f"{gpu.name} has no partition {name}")


def partition_name(gpu: Gpu, instance: Instance) -> str:
    """What a partition that there is would be published as."""
    for profile in gpu.model.mig_profiles:
        if profile.id == instance.profile_id:
            return profile.device_name(gpu.name, instance.start)
    return f"{gpu.name}, instance {instance.id}"
