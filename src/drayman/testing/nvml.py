"""NVML of a machine that is not there: what the driver calls of the module `pynvml`, answered from descriptions of GPUs.

It takes the same arguments and gives the same structures, so that everything above the library is the driver's own code.
"""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ctypes import Structure, c_char, c_size_t, c_uint, c_uint8, c_ulonglong
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from drayman.drivers.describing import uuid
from drayman.drivers.nvidia import mig
from drayman.drivers.nvidia.devices import Gpu

_ARCHITECTURES: Final = {"Ampere": 7, "Hopper": 9, "Blackwell": 10}
_ADDRESSING: Final = {"None": 0, "HMM": 1, "ATS": 2}
_NVIDIA: Final = 14


class NVMLError(Exception):
    """What goes wrong."""


class _NotSupported(NVMLError):
    def __str__(self) -> str:
        return "Not Supported"


class _NotFound(NVMLError):
    def __str__(self) -> str:
        return "Not Found"


class _Busy(NVMLError):
    def __str__(self) -> str:
        return "In use by another client"


class _Insufficient(NVMLError):
    def __str__(self) -> str:
        return "Insufficient Resources"


class _Timeout(NVMLError):
    pass


class _Lost(NVMLError):
    pass


class _Placement(Structure):
    _fields_ = (("start", c_uint), ("size", c_uint))


class _InstanceInfo(Structure):
    _fields_ = (("id", c_uint), ("profileId", c_uint), ("placement", _Placement))


class _ProfileInfo(Structure):
    _fields_ = (
        ("id", c_uint),
        ("sliceCount", c_uint),
        ("multiprocessorCount", c_uint),
        ("copyEngineCount", c_uint),
        ("decoderCount", c_uint),
        ("encoderCount", c_uint),
        ("jpegCount", c_uint),
        ("ofaCount", c_uint),
        ("memorySizeMB", c_ulonglong),
        ("name", c_char * 96),
    )


class _FabricInfo(Structure):
    _fields_ = (("clusterUuid", c_uint8 * 16), ("cliqueId", c_uint), ("state", c_uint))


@dataclass(slots=True)
class _Made:
    """A partition, or half of one."""

    id: int
    profile: mig.Profile
    start: int
    compute: list[int] = field(default_factory=list)


@dataclass(slots=True)
class FakeGpu:
    """A GPU and the state that it is in."""

    gpu: Gpu
    mig_enabled: bool = False
    needs_reset: bool = False
    """Whether switching MIG does not take effect at once."""
    compute_mode: int = 0
    made: dict[int, _Made] = field(default_factory=dict)
    clique: tuple[bytes, int] | None = None
    busy: bool = False
    """Whether a program uses it, so that it can be neither divided nor put together."""

    def slices(self) -> set[int]:
        """The memory slices that are taken."""
        return {
            slice_
            for each in self.made.values()
            for slice_ in range(each.start, each.start + each.profile.size)
        }


@dataclass(frozen=True, slots=True)
class _Values:
    """A structure that is only read."""

    total: int = 0
    busId: bytes = b""
    id: int = 0
    sliceCount: int = 0
    device: Any = None
    eventData: int = 0


class FakeNvml:
    """The functions of the module by their own names. Handles of GPUs are the GPUs; of partitions, (GPU, instance, compute instance)."""

    NVMLError = NVMLError
    NVMLError_NotSupported = _NotSupported
    NVMLError_FunctionNotFound = _NotSupported
    NVMLError_InvalidArgument = _NotSupported
    NVMLError_NotFound = _NotFound
    NVMLError_Timeout = _Timeout
    NVMLError_GpuIsLost = _Lost
    NVML_INIT_FLAG_NO_GPUS = 1
    NVML_GPU_INSTANCE_PROFILE_COUNT = 18
    NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 9
    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED = 0
    nvmlEventTypeXidCriticalError = 8
    c_nvmlGpuInstancePlacement_t = _Placement
    c_nvmlGpuInstance_t = c_size_t
    c_nvmlGpuFabricInfoV_t = _FabricInfo

    def __init__(self, gpus: Iterable[Gpu | FakeGpu] = (), driver: str = "580.126.09") -> None:
        self.gpus = [each if isinstance(each, FakeGpu) else FakeGpu(each) for each in gpus]
        self.driver = driver
        self.calls: list[tuple[str, Any]] = []
        """What was changed, in order."""
        self._ids = count(1)
        self._events: queue.Queue[tuple[FakeGpu | None, int]] = queue.Queue()
        self.may_change = True
        """Whether the caller has the rights to set anything."""

    def report_xid(self, gpu: FakeGpu | None, xid: int) -> None:
        """An error for whoever waits; of an unknown GPU, if none is given."""
        self._events.put((gpu, xid))

    # --- The system ----------------------------------------------------------------------------

    def nvmlInitWithFlags(self, flags: int) -> None:
        pass

    def nvmlSystemGetDriverVersion(self) -> str:
        return self.driver

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu:
        return next(each for each in self.gpus if each.gpu.uuid == uuid)

    # --- A GPU ---------------------------------------------------------------------------------

    def nvmlDeviceGetMinorNumber(self, handle: FakeGpu) -> int:
        return handle.gpu.minor

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        if isinstance(handle, FakeGpu):
            return handle.gpu.uuid
        if handle is None:
            raise _NotFound
        gpu, instance, compute = handle
        return f"MIG-{uuid(gpu.gpu.uuid, instance.id, compute)}"

    def nvmlDeviceGetName(self, handle: FakeGpu) -> str:
        return handle.gpu.model.product

    def nvmlDeviceGetBrand(self, handle: FakeGpu) -> int:
        return _NVIDIA

    def nvmlDeviceGetArchitecture(self, device: FakeGpu) -> int:
        return _ARCHITECTURES[device.gpu.model.architecture]

    def nvmlDeviceGetCudaComputeCapability(self, handle: FakeGpu) -> tuple[int, int]:
        major, minor, _ = handle.gpu.model.compute_capability.split(".")
        return int(major), int(minor)

    def nvmlDeviceGetMemoryInfo(self, handle: FakeGpu, version: Any = None) -> _Values:
        return _Values(total=handle.gpu.model.memory_bytes)

    def nvmlDeviceGetPciInfo(self, handle: FakeGpu) -> _Values:
        return _Values(busId=f"0000{handle.gpu.slot.bus_id.upper()}".encode())

    def nvmlDeviceGetAddressingMode(self, device: FakeGpu) -> int:
        mode = device.gpu.model.addressing_mode
        if mode is None:
            raise _NotSupported
        return _ADDRESSING[mode]

    def nvmlDeviceSetComputeMode(self, handle: FakeGpu, mode: int) -> None:
        with self._change("compute mode", (handle.gpu.name, mode)):
            handle.compute_mode = mode

    def nvmlDeviceGetGpuFabricInfoV(self, device: FakeGpu, gpuFabricInfo: Any) -> None:
        if device.clique is None:
            raise _NotSupported
        info = gpuFabricInfo._obj
        info.clusterUuid[:] = device.clique[0]
        info.cliqueId, info.state = device.clique[1], 3

    # --- Partitions ----------------------------------------------------------------------------

    def nvmlDeviceGetMigMode(self, device: FakeGpu) -> list[int]:
        if not device.gpu.model.mig_profiles:
            raise _NotSupported
        return [int(device.mig_enabled), int(device.mig_enabled)]

    def nvmlDeviceSetMigMode(self, device: FakeGpu, mode: int) -> int:
        if device.busy or device.made:
            raise _Busy
        with self._change("mig mode", (device.gpu.name, mode)):
            if device.needs_reset:
                return 1
            device.mig_enabled = bool(mode)
        return 0

    def nvmlDeviceGetGpuInstanceProfileInfo(
        self, device: FakeGpu, profile: int, version: int = 2
    ) -> _ProfileInfo:
        known = device.gpu.model.mig_profiles
        if profile >= len(known):
            raise _NotSupported
        found = known[profile]
        amounts = found.amounts
        return _ProfileInfo(
            id=found.id,
            sliceCount=int(found.name.partition("g")[0]),
            multiprocessorCount=amounts.multiprocessors,
            copyEngineCount=amounts.copy_engines,
            decoderCount=amounts.decoders,
            encoderCount=amounts.encoders,
            jpegCount=amounts.jpeg_engines,
            ofaCount=amounts.ofa_engines,
            memorySizeMB=amounts.memory_mebibytes,
            name=f"MIG {found.name}".encode(),
        )

    def nvmlDeviceGetGpuInstancePossiblePlacements(
        self,
        device: FakeGpu,
        profileId: int,
        placementsRef: Any,
        countRef: Any,
    ) -> None:
        profile = self._profile(device, profileId)
        for index, start in enumerate(profile.starts if placementsRef is not None else ()):
            placementsRef[index].start, placementsRef[index].size = start, profile.size
        countRef._obj.value = len(profile.starts)

    def nvmlDeviceGetGpuInstances(
        self,
        device: FakeGpu,
        profileId: int,
        gpuInstancesRef: Any,
        countRef: Any,
    ) -> None:
        found = [each.id for each in device.made.values() if each.profile.id == profileId]
        for index, instance in enumerate(found):
            gpuInstancesRef[index] = instance
        countRef._obj.value = len(found)

    def nvmlGpuInstanceGetInfo(self, gpuInstance: int) -> _InstanceInfo:
        _, made = self._made(gpuInstance)
        return _InstanceInfo(made.id, made.profile.id, _Placement(made.start, made.profile.size))

    def nvmlDeviceGetGpuInstanceById(self, device: FakeGpu, gpuInstanceId: int) -> int:
        if gpuInstanceId not in device.made:
            raise _NotFound
        return gpuInstanceId

    def nvmlDeviceCreateGpuInstanceWithPlacement(
        self,
        device: FakeGpu,
        profileId: int,
        placement: Any,
    ) -> int:
        where = placement._obj
        profile = self._profile(device, profileId)
        wanted = set(range(where.start, where.start + profile.size))
        if not device.mig_enabled or device.slices() & wanted:
            raise _Insufficient
        with self._change("create", (device.gpu.name, profile.name, where.start)):
            made = _Made(next(self._ids), profile, where.start)
            device.made[made.id] = made
        return made.id

    def nvmlGpuInstanceGetComputeInstanceProfileInfo(
        self,
        device: int,
        profile: int,
        engProfile: int,
        version: int = 2,
    ) -> _Values:
        _, made = self._made(device)
        slices = int(made.profile.name.partition("g")[0])
        sizes = {0: 1, 1: 2, 2: 3, 3: 4, 4: 7, 7: 1}
        if profile not in sizes or sizes[profile] > slices:
            raise _NotSupported
        return _Values(id=profile, sliceCount=sizes[profile])

    def nvmlGpuInstanceCreateComputeInstance(self, gpuInstance: int, profileId: int) -> Any:
        _, made = self._made(gpuInstance)
        with self._change("compute", (made.profile.name, profileId)):
            made.compute.append(0)
        return made, 0

    def nvmlComputeInstanceGetInfo_v2(self, computeInstance: Any) -> _Values:
        return _Values(id=computeInstance[1])

    def nvmlGpuInstanceGetComputeInstanceById(
        self,
        gpuInstance: int,
        computeInstanceId: int,
    ) -> Any:
        return self._made(gpuInstance)[1], computeInstanceId

    def nvmlComputeInstanceDestroy(self, computeInstance: Any) -> None:
        made, number = computeInstance
        made.compute.remove(number)

    def nvmlGpuInstanceDestroy(self, gpuInstance: int) -> None:
        gpu, made = self._made(gpuInstance)
        if gpu.busy or made.compute:
            raise _Busy
        with self._change("destroy", (gpu.gpu.name, made.profile.name, made.start)):
            del gpu.made[made.id]

    def nvmlDeviceGetMaxMigDeviceCount(self, device: FakeGpu) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: FakeGpu, index: int) -> Any:
        found = [(device, made, number) for made in device.made.values() for number in made.compute]
        if index >= len(found):
            raise _NotFound
        return found[index]

    def nvmlDeviceGetGpuInstanceId(self, device: Any) -> int:
        return int(device[1].id)

    def nvmlDeviceGetComputeInstanceId(self, device: Any) -> int:
        return int(device[2])

    # --- Events --------------------------------------------------------------------------------

    def nvmlEventSetCreate(self) -> object:
        return object()

    def nvmlEventSetFree(self, eventSet: object) -> None:
        pass

    def nvmlDeviceRegisterEvents(self, handle: FakeGpu, eventTypes: int, eventSet: object) -> None:
        pass

    def nvmlEventSetWait_v2(self, eventSet: object, timeoutms: int) -> _Values:
        try:
            gpu, xid = self._events.get(timeout=timeoutms / 1000)
        except queue.Empty:
            raise _Timeout from None
        return _Values(device=gpu, eventData=xid)

    # --- Inside --------------------------------------------------------------------------------

    @contextmanager
    def _change(self, what: str, how: Any) -> Iterator[None]:
        if not self.may_change:
            raise NVMLError("Insufficient Permissions")
        yield
        self.calls.append((what, how))

    @staticmethod
    def _profile(device: FakeGpu, number: int) -> mig.Profile:
        return next(each for each in device.gpu.model.mig_profiles if each.id == number)

    def _made(self, instance: int) -> tuple[FakeGpu, _Made]:
        for gpu in self.gpus:
            if instance in gpu.made:
                return gpu, gpu.made[instance]
        raise _NotFound
