"""NVML as the driver uses it: plain values in and out.

The library is the module `pynvml` of the package `nvidia-ml-py`, or what a test gives in its place. It is imported when a driver starts,
because nothing else needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ctypes import byref, c_uint
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Final

from drayman.drivers.kit.errors import KitError, PrepareError
from drayman.drivers.nvidia import mig

_ARCHITECTURES: Final = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
AMPERE: Final = "Ampere"
_BRANDS: Final = {2: "Tesla", 5: "GeForce", 6: "Titan", 12: "QuadroRTX", 13: "NvidiaRTX", 14: "Nvidia", 15: "GeForceRTX"}  # fmt: skip
_ADDRESSING_MODES: Final = {0: "None", 1: "HMM", 2: "ATS"}
_PROFILE_NAME: Final = re.compile(r"[0-9]+g\.[0-9]+gb(\+me)?")
"""Other profiles (graphics, without or with all media engines) are variants that counters do not tell apart."""
_MODE_DEFAULT: Final = 0
_MODE_EXCLUSIVE_PROCESS: Final = 3
_FABRIC_COMPLETED: Final = 3


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What NVML says about a GPU."""

    minor: int
    uuid: str
    name: str
    brand: str
    architecture: str
    compute_capability: str
    memory_bytes: int
    bus_id: str
    """As sysfs writes it."""
    addressing_mode: str | None
    mig_enabled: bool | None
    """None if it cannot be divided."""
    mig_profiles: tuple[mig.Profile, ...]


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


class Nvml:
    """One machine's GPUs. Methods raise `NVMLError` of the library unless they say otherwise."""

    def __init__(self, library: Any) -> None:
        self._lib = library

    @classmethod
    def load(cls) -> Nvml:
        """Raises KitError if the package, NVIDIA's driver or its library is not there."""
        try:
            library = import_module("pynvml")
        except ModuleNotFoundError:
            raise KitError(
                "gpu.nvidia.com needs the package nvidia-ml-py: pip install 'drayman[nvidia]'"
            ) from None
        found = cls(library)
        found.start()
        return found

    def start(self) -> None:
        """Raises KitError."""
        try:
            self._lib.nvmlInitWithFlags(self._lib.NVML_INIT_FLAG_NO_GPUS)
        except self._lib.NVMLError as error:
            raise KitError(f"NVML cannot be used: {error}; is NVIDIA's driver loaded?") from error

    @property
    def error(self) -> type[Exception]:
        """What the library raises."""
        found: type[Exception] = self._lib.NVMLError
        return found

    @property
    def _unsupported(self) -> tuple[type[Exception], ...]:
        """What it raises where a GPU or a driver does not have something."""
        return (
            self._lib.NVMLError_NotSupported,
            self._lib.NVMLError_FunctionNotFound,
            self._lib.NVMLError_InvalidArgument,
        )

    @cached_property
    def driver_version(self) -> str:
        """As a semantic version: without leading zeros, in three parts."""
        parts = [
            str(int(part)) for part in _text(self._lib.nvmlSystemGetDriverVersion()).split(".")
        ]
        return ".".join((*parts, "0", "0")[:3])

    @cached_property
    def cuda_version(self) -> str:
        number = self._lib.nvmlSystemGetCudaDriverVersion_v2()
        return f"{number // 1000}.{number % 1000 // 10}.0"

    # --- GPUs ----------------------------------------------------------------------------------

    def gpus(self) -> Iterator[GpuFacts]:
        """All of them, in NVML's order."""
        for index in range(self._lib.nvmlDeviceGetCount()):
            yield self._facts(self._lib.nvmlDeviceGetHandleByIndex(index))

    def _facts(self, handle: Any) -> GpuFacts:
        lib = self._lib
        major, minor = lib.nvmlDeviceGetCudaComputeCapability(handle)
        mode = self._mig_mode(handle)
        return GpuFacts(
            minor=lib.nvmlDeviceGetMinorNumber(handle),
            uuid=_text(lib.nvmlDeviceGetUUID(handle)),
            name=_text(lib.nvmlDeviceGetName(handle)),
            brand=_BRANDS.get(lib.nvmlDeviceGetBrand(handle), "Unknown"),
            architecture=_ARCHITECTURES.get(lib.nvmlDeviceGetArchitecture(handle), "Unknown"),
            compute_capability=f"{major}.{minor}.0",
            memory_bytes=lib.nvmlDeviceGetMemoryInfo(handle).total,
            bus_id=_sysfs_address(_text(lib.nvmlDeviceGetPciInfo(handle).busId)),
            addressing_mode=self._addressing_mode(handle),
            mig_enabled=mode,
            mig_profiles=() if mode is None else tuple(self._profiles(handle)),
        )

    def _addressing_mode(self, handle: Any) -> str | None:
        try:
            return _ADDRESSING_MODES.get(self._lib.nvmlDeviceGetAddressingMode(handle))
        except self._unsupported:
            return None

    def _handle(self, uuid: str) -> Any:
        return self._lib.nvmlDeviceGetHandleByUUID(uuid)

    def set_exclusive(self, uuid: str, *, exclusive: bool) -> None:
        """Whether one process alone may use a GPU, as MPS wants it. Raises PrepareError."""
        mode = _MODE_EXCLUSIVE_PROCESS if exclusive else _MODE_DEFAULT
        try:
            self._lib.nvmlDeviceSetComputeMode(self._handle(uuid), mode)
        except self._lib.NVMLError as error:
            name = "EXCLUSIVE_PROCESS" if exclusive else "DEFAULT"
            raise PrepareError(f"GPU {uuid}: compute mode {name} cannot be set: {error}") from error

    def clique(self, uuid: str) -> str | None:
        """The NVLink clique that a GPU is in; None if it is in none, or not yet."""
        info = self._lib.c_nvmlGpuFabricInfoV_t()
        try:
            self._lib.nvmlDeviceGetGpuFabricInfoV(self._handle(uuid), byref(info))
        except self._unsupported:
            return None
        cluster = bytes(info.clusterUuid).hex()
        if info.state != _FABRIC_COMPLETED or not cluster.strip("0"):
            return None
        parts = (cluster[:8], cluster[8:12], cluster[12:16], cluster[16:20], cluster[20:])
        return f"{'-'.join(parts)}.{info.cliqueId}"

    # --- Partitions ----------------------------------------------------------------------------

    def mig_mode(self, uuid: str) -> bool | None:
        """Whether a GPU is in MIG mode; None if it cannot be."""
        return self._mig_mode(self._handle(uuid))

    def _mig_mode(self, handle: Any) -> bool | None:
        try:
            current, _ = self._lib.nvmlDeviceGetMigMode(handle)
        except self._unsupported:
            return None
        return bool(current)

    def set_mig_mode(self, uuid: str, *, enabled: bool) -> None:
        """Raises PrepareError if it does not change at once."""
        word = "on" if enabled else "off"
        try:
            status = self._lib.nvmlDeviceSetMigMode(self._handle(uuid), int(enabled))
        except self._lib.NVMLError as error:
            raise PrepareError(
                f"GPU {uuid}: MIG cannot be switched {word}: {error}; is something using the GPU?"
            ) from error
        if status or self.mig_mode(uuid) is not enabled:
            raise PrepareError(f"GPU {uuid}: it must be reset before MIG is {word}")

    def _profiles(self, handle: Any) -> Iterator[mig.Profile]:
        for number in range(self._lib.NVML_GPU_INSTANCE_PROFILE_COUNT):
            try:
                info = self._lib.nvmlDeviceGetGpuInstanceProfileInfo(handle, number, version=2)
            except self._unsupported:
                continue
            name = _text(info.name).removeprefix("MIG ")
            if not _PROFILE_NAME.fullmatch(name):
                continue
            starts, size = self._placements(handle, info)
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
        return tuple(sorted(start for start, _ in placements)), placements[0][1]

    def instances(self, uuid: str) -> list[Instance]:
        """The GPU instances that a GPU has, also those without a compute instance."""
        return [self._instance(each) for each in self._instance_handles(self._handle(uuid))]

    def _instance_handles(self, handle: Any) -> list[Any]:
        lib, found = self._lib, []
        for profile in self._profiles(handle):
            room = len(profile.starts)
            handles, count = (lib.c_nvmlGpuInstance_t * room)(), c_uint(room)
            lib.nvmlDeviceGetGpuInstances(handle, profile.id, handles, byref(count))
            found += list(handles[: count.value])
        return found

    def _instance(self, handle: Any) -> Instance:
        info = self._lib.nvmlGpuInstanceGetInfo(handle)
        return Instance(info.id, info.profileId, info.placement.start, info.placement.size)

    def mig_devices(self, uuid: str) -> list[MigDevice]:
        """The partitions of a GPU that programs can use."""
        lib, gpu = self._lib, self._handle(uuid)
        known = {each.id: each for each in self.instances(uuid)}
        found = []
        for index in range(lib.nvmlDeviceGetMaxMigDeviceCount(gpu)):
            try:
                handle = lib.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
            except lib.NVMLError_NotFound:
                continue
            instance = known.get(lib.nvmlDeviceGetGpuInstanceId(handle))
            if instance is not None:
                compute = lib.nvmlDeviceGetComputeInstanceId(handle)
                found.append(MigDevice(_text(lib.nvmlDeviceGetUUID(handle)), instance, compute))
        return found

    def create_partition(self, uuid: str, profile: mig.Profile, start: int) -> MigDevice:
        """Make a partition at a place. Raises PrepareError; nothing is left of one that cannot be completed."""
        lib, gpu = self._lib, self._handle(uuid)
        what = f"GPU {uuid}: partition {profile.name} at memory slice {start}"
        placement = lib.c_nvmlGpuInstancePlacement_t(start, profile.size)
        try:
            made = lib.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile.id, byref(placement))
        except lib.NVMLError as error:
            raise PrepareError(f"{what} cannot be made: {error}") from error
        try:
            compute = lib.nvmlGpuInstanceCreateComputeInstance(made, self._compute_profile(made))
            compute_id = lib.nvmlComputeInstanceGetInfo_v2(compute).id
        except lib.NVMLError as error:
            lib.nvmlGpuInstanceDestroy(made)
            raise PrepareError(f"{what} has no compute instance: {error}") from error
        instance = self._instance(made)
        for each in self.mig_devices(uuid):
            if each.instance.id == instance.id and each.compute_id == compute_id:
                return each
        self.destroy_partition(uuid, instance)
        raise PrepareError(f"{what} was made, and NVML does not list it")

    def _compute_profile(self, instance: Any) -> int:
        """The compute instance that has all of a GPU instance: the largest that it takes."""
        lib, found = self._lib, []
        for number in range(lib.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
            try:
                info = lib.nvmlGpuInstanceGetComputeInstanceProfileInfo(
                    instance, number, lib.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, version=2
                )
            except self._unsupported:
                continue
            # Of two with as many slices the one with the lower number is the plain one.
            found.append((info.sliceCount, -number, int(info.id)))
        return max(found)[2]

    def destroy_partition(self, uuid: str, instance: Instance) -> None:
        """Undo it; one that is gone is not an error. Raises PrepareError if something uses it."""
        lib = self._lib
        try:
            handle = lib.nvmlDeviceGetGpuInstanceById(self._handle(uuid), instance.id)
        except lib.NVMLError_NotFound:
            return
        try:
            for device in self.mig_devices(uuid):
                if device.instance.id == instance.id:
                    compute = lib.nvmlGpuInstanceGetComputeInstanceById(handle, device.compute_id)
                    lib.nvmlComputeInstanceDestroy(compute)
            lib.nvmlGpuInstanceDestroy(handle)
        except lib.NVMLError as error:
            raise PrepareError(
                f"GPU {uuid}: the partition at memory slice {instance.start} cannot be destroyed: {error}"
            ) from error

    # --- Events --------------------------------------------------------------------------------

    def watch(self, uuids: list[str]) -> tuple[Any, list[str]]:
        """A set of the critical errors of GPUs, and the GPUs that do not report any."""
        lib, events, silent = self._lib, self._lib.nvmlEventSetCreate(), []
        for uuid in uuids:
            try:
                lib.nvmlDeviceRegisterEvents(
                    self._handle(uuid), lib.nvmlEventTypeXidCriticalError, events
                )
            except self._unsupported:
                silent.append(uuid)
        return events, silent

    def wait(self, events: Any, timeout_s: float) -> tuple[str, int] | None:
        """The next error, with the GPU that has it, or an empty one if that is not known; None if there is none in time.

        Raises GpuLostError.
        """
        lib = self._lib
        try:
            event = lib.nvmlEventSetWait_v2(events, int(timeout_s * 1000))
        except lib.NVMLError_Timeout:
            return None
        except lib.NVMLError_GpuIsLost as error:
            raise GpuLostError(str(error)) from error
        try:
            return _text(lib.nvmlDeviceGetUUID(event.device)), int(event.eventData)
        except lib.NVMLError:
            return "", int(event.eventData)

    def forget(self, events: Any) -> None:
        """Done with a set of events."""
        self._lib.nvmlEventSetFree(events)


class GpuLostError(Exception):
    """A GPU has fallen off the bus."""


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _sysfs_address(bus_id: str) -> str:
    """NVML writes the domain with eight digits and letters in upper case."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"
