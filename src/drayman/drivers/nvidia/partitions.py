"""Partitions of GPUs (MIG) as NVML has them: plain values in and out."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from ctypes import byref, c_uint
from dataclasses import dataclass
from typing import Any, Final

from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.nvidia import mig
from drayman.drivers.nvidia.nvml_library import Library, text

_log: Final = logging.getLogger(__name__)
_PROFILE_NAME: Final = re.compile(r"[0-9]+g\.[0-9]+gb([+-][a-z.]+)?")
"""With what it has beside compute: `+me` and `+gfx`, or `-me` for what it lacks."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A GPU instance that there is: a partition, or the first half of making one."""

    id: int
    profile_id: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A partition that programs can use."""

    uuid: str
    instance: Instance
    compute_id: int
    is_whole: bool
    """Whether it has all of its GPU instance, and does not share it with another."""


class Partitions:
    """Those of one machine's GPUs. Methods raise `NVMLError` of the library unless they say otherwise."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lib = library.module

    def mode(self, uuid: str) -> bool | None:
        """Whether a GPU is in MIG mode; None if it cannot be."""
        return self.mode_of(self._library.handle(uuid))

    def mode_of(self, handle: Any) -> bool | None:
        """The same for a GPU by its handle."""
        try:
            current, _ = self._lib.nvmlDeviceGetMigMode(handle)
        except self._library.unsupported:
            return None
        return bool(current)

    def set_mode(self, uuid: str, *, enabled: bool) -> None:
        """Raises PrepareError if it does not change at once; it is not left to change later then."""
        lib, handle = self._lib, self._library.handle(uuid)
        what = f"GPU {uuid}: MIG cannot be switched {'on' if enabled else 'off'}"
        try:
            status = lib.nvmlDeviceSetMigMode(handle, int(enabled))
        except lib.NVMLError as error:
            raise PrepareError(f"{what}: {error}; is something using the GPU?") from error
        # What could not be done at once is done at the next reset, and is called a success.
        if status == lib.NVML_SUCCESS and self.mode(uuid) is enabled:
            return
        try:
            lib.nvmlDeviceSetMigMode(handle, int(not enabled))
        except lib.NVMLError as error:
            _log.warning("GPU %s changes its MIG mode at the next reset: %s", uuid, error)
        if status in (lib.NVML_SUCCESS, lib.NVML_ERROR_RESET_REQUIRED):
            raise PrepareError(f"{what}: it must be reset for that")
        raise PrepareError(f"{what}: {lib.NVMLError(status)}; is something using the GPU?")

    def profiles_of(self, handle: Any) -> Iterator[mig.Profile]:
        """The kinds of partitions that a GPU can be divided into."""
        for number in range(self._lib.NVML_GPU_INSTANCE_PROFILE_COUNT):
            try:
                info = self._lib.nvmlDeviceGetGpuInstanceProfileInfo(handle, number, version=2)
            except self._library.unsupported:
                continue
            name = text(info.name).removeprefix("MIG ")
            if not _PROFILE_NAME.fullmatch(name):
                _log.warning("NVML has a profile %r, which is not offered", name)
                continue
            starts, size = self._placements(handle, info)
            if not starts:
                continue
            yield mig.Profile(
                name=name,
                id=info.id,
                amounts=mig.Amounts(
                    memory_mebibytes=info.memorySizeMB,
                    multiprocessors=info.multiprocessorCount,
                    copy_engines=info.copyEngineCount,
                    decoders=info.decoderCount,
                    jpeg_engines=info.jpegCount,
                    ofa_engines=info.ofaCount,
                    encoders=info.encoderCount,
                ),
                starts=starts,
                size=size,
            )

    def _placements(self, handle: Any, info: Any) -> tuple[tuple[int, ...], int]:
        lib, count = self._lib, c_uint()
        lib.nvmlDeviceGetGpuInstancePossiblePlacements(handle, info.id, None, byref(count))
        found = (lib.c_nvmlGpuInstancePlacement_t * count.value)()
        lib.nvmlDeviceGetGpuInstancePossiblePlacements(handle, info.id, found, byref(count))
        placements = [(each.start, each.size) for each in found[: count.value]]
        return tuple(sorted(start for start, _ in placements)), max(
            (s for _, s in placements), default=0
        )

    def instances(self, uuid: str) -> list[Instance]:
        """The GPU instances that a GPU has, also those without a compute instance."""
        return [self._instance(each) for each in self._instance_handles(self._library.handle(uuid))]

    def _instance_handles(self, handle: Any) -> list[Any]:
        lib, found = self._lib, []
        for profile in self.profiles_of(handle):
            room = len(profile.starts)
            handles, count = (lib.c_nvmlGpuInstance_t * room)(), c_uint(room)
            lib.nvmlDeviceGetGpuInstances(handle, profile.id, handles, byref(count))
            found += list(handles[: count.value])
        return found

    def _instance(self, handle: Any) -> Instance:
        info = self._lib.nvmlGpuInstanceGetInfo(handle)
        return Instance(info.id, info.profileId, info.placement.start, info.placement.size)

    def devices(self, uuid: str) -> list[MigDevice]:
        """The partitions of a GPU that programs can use."""
        return self.devices_of(self._library.handle(uuid))

    def devices_of(self, gpu: Any) -> list[MigDevice]:
        """The same for a GPU by its handle."""
        lib, found = self._lib, []
        for index in range(lib.nvmlDeviceGetMaxMigDeviceCount(gpu)):
            try:
                found.append(self._device(gpu, lib.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)))
            except (lib.NVMLError_NotFound, lib.NVMLError_InvalidArgument):
                continue  # there is none at that place, or none any more
        return found

    def _device(self, gpu: Any, handle: Any) -> MigDevice:
        lib = self._lib
        parent = lib.nvmlDeviceGetGpuInstanceById(gpu, lib.nvmlDeviceGetGpuInstanceId(handle))
        compute = lib.nvmlDeviceGetComputeInstanceId(handle)
        of = lib.nvmlGpuInstanceGetComputeInstanceById(parent, compute)
        profile = lib.nvmlComputeInstanceGetInfo_v2(of).profileId
        return MigDevice(
            uuid=text(lib.nvmlDeviceGetUUID(handle)),
            instance=self._instance(parent),
            compute_id=compute,
            is_whole=profile == self._compute_profile(parent),
        )

    def create(self, uuid: str, profile: mig.Profile, start: int) -> MigDevice:
        """Make a partition at a place. Raises PrepareError; nothing is left of one that cannot be completed."""
        lib, gpu = self._lib, self._library.handle(uuid)
        what = f"GPU {uuid}: partition {profile.name} at memory slice {start}"
        placement = lib.c_nvmlGpuInstancePlacement_t(start, profile.size)
        try:
            made = lib.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile.id, byref(placement))
        except lib.NVMLError as error:
            raise PrepareError(f"{what} cannot be made: {error}") from error
        try:
            return self._completed(uuid, made)
        except (lib.NVMLError, PrepareError) as error:
            problem = f"{what} cannot be completed: {error}"
            try:
                self._destroy(self._library.handle(uuid), made)
            except lib.NVMLError as second:
                problem += f"; and what there is of it stays: {second}"
            raise PrepareError(problem) from error

    def _completed(self, uuid: str, made: Any) -> MigDevice:
        """A GPU instance as a partition that programs can use. Raises PrepareError."""
        lib = self._lib
        compute = lib.nvmlGpuInstanceCreateComputeInstance(made, self._compute_profile(made))
        compute_id, instance = lib.nvmlComputeInstanceGetInfo_v2(compute).id, self._instance(made)
        for each in self.devices(uuid):
            if each.instance.id == instance.id and each.compute_id == compute_id:
                return each
        raise PrepareError("NVML does not list it")

    def _compute_profile(self, instance: Any) -> int:
        """The compute instance that has all of a GPU instance: the largest that it takes. Raises PrepareError."""
        lib, found = self._lib, []
        for number in range(lib.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
            try:
                info = lib.nvmlGpuInstanceGetComputeInstanceProfileInfo(
                    instance, number, lib.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, version=2
                )
            except self._library.unsupported:
                continue
            # Of two with as many slices the one with the lower number is the plain one.
            found.append((info.sliceCount, -number, int(info.id)))
        if not found:
            raise PrepareError("NVML has no compute instance for it")
        return max(found)[2]

    def destroy(self, uuid: str, instance: Instance) -> None:
        """Undo it; one that is gone is not an error. Raises PrepareError if something uses it."""
        lib = self._lib
        try:
            handle = lib.nvmlDeviceGetGpuInstanceById(self._library.handle(uuid), instance.id)
        except lib.NVMLError_NotFound:
            return
        try:
            self._destroy(self._library.handle(uuid), handle)
        except lib.NVMLError as error:
            raise PrepareError(
                f"GPU {uuid}: the partition at memory slice {instance.start} cannot be destroyed: {error}"
            ) from error

    def _destroy(self, gpu: Any, handle: Any) -> None:
        """A GPU instance with the compute instances that it has."""
        lib, number = self._lib, self._instance(handle).id
        for device in self.devices_of(gpu):
            if device.instance.id == number:
                compute = lib.nvmlGpuInstanceGetComputeInstanceById(handle, device.compute_id)
                lib.nvmlComputeInstanceDestroy(compute)
        lib.nvmlGpuInstanceDestroy(handle)
