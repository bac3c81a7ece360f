"""NVML of a machine that is not there: what the driver calls of the module `pynvml`, answered from descriptions of GPUs.

It takes the same arguments and gives the same structures, so that everything above the library is the driver's own code.
"""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, pointer
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from drayman.drivers.describing import uuid
from drayman.drivers.nvidia import mig
from drayman.drivers.nvidia.devices import Gpu
from drayman.testing.nvml_values import (
    IN_USE,
    RESET_REQUIRED,
    FabricInfo,
    FunctionNotFoundError,
    GpuInstance,
    InstanceInfo,
    InsufficientError,
    InUseError,
    InvalidArgumentError,
    LostError,
    NoPermissionError,
    NotFoundError,
    NotSupportedError,
    NVMLError,
    Placement,
    ProfileInfo,
    TimeoutError,
)
from drayman.topology import product_nvlinks

_ARCHITECTURES: Final = {"Ampere": 7, "Hopper": 9, "Blackwell": 10}
_ADDRESSING: Final = {"None": 0, "HMM": 1, "ATS": 2}
_NVIDIA: Final = 14
NVLINK_TO_SWITCH: Final = 2


@dataclass(slots=True)
class _Made:
    """A partition, or half of one."""

    id: int
    profile: mig.Profile
    start: int
    compute: dict[int, int] = field(default_factory=dict)
    """The profile of each compute instance by its id."""


@dataclass(frozen=True, slots=True)
class FakeLink:
    """An NVLink that is active, and what is at its other end."""

    peer_type: int = NVLINK_TO_SWITCH
    peer_bus_id: str = ""


@dataclass(slots=True)
class FakeGpu:
    """A GPU and the state that it is in."""

    gpu: Gpu
    mig_enabled: bool = False
    needs_reset: bool = False
    """Whether switching MIG does not take effect at once."""
    compute_mode: int = 0
    mig_pending: bool = False
    """What MIG will be after a reset."""
    made: dict[int, _Made] = field(default_factory=dict)
    clique: tuple[bytes, int] | None = None
    links: tuple[FakeLink | None, ...] | None = None
    """Each of its NVLinks, None for one that is down. By default those of its product, all to switches."""
    busy: bool = False
    """Whether a program uses it, so that it can be neither divided nor put together."""
    is_virtual: bool = False
    """Whether it is a virtual GPU."""
    reports_errors: bool = True
    is_lost: bool = False
    """Whether it has fallen off the bus."""

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
    busId: str = ""
    id: int = 0
    profileId: int = 0
    sliceCount: int = 0
    device: Any = None
    eventData: int = 0


@dataclass(slots=True, eq=False)
class _EventSet:
    """GPUs whose errors somebody waits for."""

    gpus: list[FakeGpu] = field(default_factory=list)
    waits: bool = False


class FakeNvml:
    """The functions of the module by their own names. Handles of GPUs are the GPUs; of partitions, (GPU, instance, compute instance)."""

    NVMLError = NVMLError
    NVMLError_NotSupported = NotSupportedError
    NVMLError_FunctionNotFound = FunctionNotFoundError
    NVMLError_InvalidArgument = InvalidArgumentError
    NVMLError_NotFound = NotFoundError
    NVMLError_Timeout = TimeoutError
    NVMLError_GpuIsLost = LostError
    NVML_SUCCESS = 0
    NVML_ERROR_RESET_REQUIRED = RESET_REQUIRED
    NVML_INIT_FLAG_NO_GPUS = 1
    NVML_GPU_INSTANCE_PROFILE_COUNT = 18
    NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 9
    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED = 0
    NVML_NVLINK_MAX_LINKS = 36
    NVML_NVLINK_DEVICE_TYPE_GPU = 0
    NVML_NVLINK_DEVICE_TYPE_SWITCH = NVLINK_TO_SWITCH
    NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 255
    nvmlEventTypeXidCriticalError = 8
    c_nvmlGpuInstancePlacement_t = Placement
    c_nvmlGpuInstance_t = POINTER(GpuInstance)
    c_nvmlGpuFabricInfoV_t = FabricInfo

    def __init__(self, gpus: Iterable[Gpu | FakeGpu] = (), driver: str = "580.126.09") -> None:
        self.gpus = [each if isinstance(each, FakeGpu) else FakeGpu(each) for each in gpus]
        self.driver = driver
        self.calls: list[tuple[str, Any]] = []
        """What was changed, in order."""
        self._ids = count(1)
        self._events: queue.Queue[tuple[FakeGpu | None, int]] = queue.Queue()
        self.may_change = True
        """Whether the caller has the rights to set anything."""
        self.event_sets: list[_EventSet] = []
        self.freed_in_use = False
        """Whether a set was freed while somebody waited in it, which ends a program that uses the real library."""

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
        return _require_there(self.gpus[index])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu:
        """Like the library, it also fails for a lost GPU that it comes upon before the one that is meant."""
        for each in self.gpus:
            if _require_there(each).gpu.uuid == uuid:
                return each
        raise NotFoundError

    # --- A GPU ---------------------------------------------------------------------------------

    def nvmlDeviceGetMinorNumber(self, handle: FakeGpu) -> int:
        return handle.gpu.minor

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        if isinstance(handle, FakeGpu):
            return handle.gpu.uuid
        if handle is None:
            raise NotFoundError
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
        if handle.gpu.model.memory_bytes is None:
            raise NotSupportedError
        return _Values(total=handle.gpu.model.memory_bytes)

    def nvmlDeviceGetVirtualizationMode(self, handle: FakeGpu) -> int:
        return 2 if handle.is_virtual else 0

    def nvmlDeviceGetPciInfo(self, handle: FakeGpu) -> _Values:
        return _Values(busId=f"0000{handle.gpu.slot.bus_id.upper()}")

    def nvmlDeviceGetAddressingMode(self, device: FakeGpu) -> int:
        mode = device.gpu.model.addressing_mode
        if mode is None:
            raise NotSupportedError
        return _ADDRESSING[mode]

    def nvmlDeviceSetComputeMode(self, handle: FakeGpu, mode: int) -> None:
        with self._change("compute mode", (handle.gpu.name, mode)):
            handle.compute_mode = mode

    def nvmlDeviceGetGpuFabricInfoV(self, device: FakeGpu, gpuFabricInfo: Any) -> None:
        if device.clique is None:
            raise NotSupportedError
        info = gpuFabricInfo._obj
        info.clusterUuid[:] = device.clique[0]
        info.cliqueId, info.state = device.clique[1], 3

    @staticmethod
    def _links(device: FakeGpu) -> tuple[FakeLink | None, ...]:
        if device.links is not None:
            return device.links
        return (FakeLink(),) * (product_nvlinks(device.gpu.model.product) or 0)

    def nvmlDeviceGetNvLinkState(self, device: FakeGpu, link: int) -> int:
        if link >= len(self._links(device)):
            raise InvalidArgumentError if link else NotSupportedError
        return int(self._links(device)[link] is not None)

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: FakeGpu, link: int) -> int:
        return self._link(handle, link).peer_type

    def nvmlDeviceGetNvLinkRemotePciInfo(self, device: FakeGpu, link: int) -> _Values:
        return _Values(busId=f"0000{self._link(device, link).peer_bus_id.upper()}")

    def _link(self, device: FakeGpu, link: int) -> FakeLink:
        found = self._links(device)[link]
        if found is None:
            raise NotSupportedError
        return found

    # --- Partitions ----------------------------------------------------------------------------

    def nvmlDeviceGetMigMode(self, device: FakeGpu) -> list[int]:
        if not device.gpu.model.mig_profiles:
            raise NotSupportedError
        return [int(device.mig_enabled), int(device.mig_pending)]

    def nvmlDeviceSetMigMode(self, device: FakeGpu, mode: int) -> int:
        """A success also where it takes effect only after a reset, or when nobody uses the GPU any more."""
        with self._change("mig mode", (device.gpu.name, mode)):
            device.mig_pending = bool(mode)
            if device.mig_pending == device.mig_enabled:
                return 0
            if device.needs_reset:
                return RESET_REQUIRED
            if device.busy or device.made or any(device in each.gpus for each in self.event_sets):
                return IN_USE
            device.mig_enabled = device.mig_pending
        return 0

    def nvmlDeviceGetGpuInstanceProfileInfo(
        self, device: FakeGpu, profile: int, version: int = 2
    ) -> ProfileInfo:
        known = device.gpu.model.mig_profiles
        if profile >= len(known):
            raise NotSupportedError
        found = known[profile]
        amounts = found.amounts
        return ProfileInfo(
            version=0x02000098,
            id=found.id,
            sliceCount=int(found.name.partition("g")[0]),
            instanceCount=len(found.starts),
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
        _require_mig(device)
        found = [each.id for each in device.made.values() if each.profile.id == profileId]
        for index, instance in enumerate(found):
            gpuInstancesRef[index] = _handle(instance)
        countRef._obj.value = len(found)

    def nvmlGpuInstanceGetInfo(self, gpuInstance: Any) -> InstanceInfo:
        _, made = self._made(gpuInstance)
        place = Placement(made.start, made.profile.size)
        return InstanceInfo(None, made.id, made.profile.id, place)

    def nvmlDeviceGetGpuInstanceById(self, device: FakeGpu, gpuInstanceId: int) -> Any:
        _require_mig(device)
        if gpuInstanceId not in device.made:
            raise NotFoundError
        return _handle(gpuInstanceId)

    def nvmlDeviceCreateGpuInstanceWithPlacement(
        self,
        device: FakeGpu,
        profileId: int,
        placement: Any,
    ) -> Any:
        _require_mig(device)
        where = placement._obj
        profile = self._profile(device, profileId)
        wanted = set(range(where.start, where.start + profile.size))
        if device.slices() & wanted:
            raise InsufficientError
        with self._change("create", (device.gpu.name, profile.name, where.start)):
            made = _Made(next(self._ids), profile, where.start)
            device.made[made.id] = made
        return _handle(made.id)

    def nvmlGpuInstanceGetComputeInstanceProfileInfo(
        self,
        device: Any,
        profile: int,
        engProfile: int,
        version: int = 2,
    ) -> _Values:
        _, made = self._made(device)
        slices = int(made.profile.name.partition("g")[0])
        sizes = {0: 1, 1: 2, 2: 3, 3: 4, 4: 7, 7: 1}
        if profile not in sizes or sizes[profile] > slices:
            raise NotSupportedError
        return _Values(id=profile, sliceCount=sizes[profile])

    def nvmlGpuInstanceCreateComputeInstance(self, gpuInstance: Any, profileId: int) -> Any:
        _, made = self._made(gpuInstance)
        number = len(made.compute)
        with self._change("compute", (made.profile.name, profileId)):
            made.compute[number] = profileId
        return made, number

    def nvmlComputeInstanceGetInfo_v2(self, computeInstance: Any) -> _Values:
        made, number = computeInstance
        return _Values(id=number, profileId=made.compute[number])

    def nvmlGpuInstanceGetComputeInstanceById(
        self,
        gpuInstance: Any,
        computeInstanceId: int,
    ) -> Any:
        _, made = self._made(gpuInstance)
        if computeInstanceId not in made.compute:
            raise NotFoundError
        return made, computeInstanceId

    def nvmlComputeInstanceDestroy(self, computeInstance: Any) -> None:
        made, number = computeInstance
        del made.compute[number]

    def nvmlGpuInstanceDestroy(self, gpuInstance: Any) -> None:
        gpu, made = self._made(gpuInstance)
        if gpu.busy or made.compute:
            raise InUseError
        with self._change("destroy", (gpu.gpu.name, made.profile.name, made.start)):
            del gpu.made[made.id]

    def nvmlDeviceGetMaxMigDeviceCount(self, device: FakeGpu) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: FakeGpu, index: int) -> Any:
        _require_mig(device)
        found = [(device, made, number) for made in device.made.values() for number in made.compute]
        if index >= len(found):
            raise NotFoundError
        return found[index]

    def nvmlDeviceGetGpuInstanceId(self, device: Any) -> int:
        return int(device[1].id)

    def nvmlDeviceGetComputeInstanceId(self, device: Any) -> int:
        return int(device[2])

    # --- Events --------------------------------------------------------------------------------

    def nvmlEventSetCreate(self) -> _EventSet:
        made = _EventSet()
        self.event_sets.append(made)
        return made

    def nvmlEventSetFree(self, eventSet: _EventSet) -> None:
        self.freed_in_use = self.freed_in_use or eventSet.waits
        self.event_sets.remove(eventSet)

    def nvmlDeviceRegisterEvents(
        self, handle: FakeGpu, eventTypes: int, eventSet: _EventSet
    ) -> None:
        if not handle.reports_errors:
            raise NVMLError(999)
        eventSet.gpus.append(handle)

    def nvmlEventSetWait_v2(self, eventSet: _EventSet, timeoutms: int) -> _Values:
        for each in eventSet.gpus:
            _require_there(each)
        eventSet.waits = True
        try:
            gpu, xid = self._events.get(timeout=timeoutms / 1000)
        except queue.Empty:
            raise TimeoutError from None
        finally:
            eventSet.waits = False
        return _Values(device=gpu, eventData=xid)

    # --- Inside --------------------------------------------------------------------------------

    @contextmanager
    def _change(self, what: str, how: Any) -> Iterator[None]:
        if not self.may_change:
            raise NoPermissionError
        yield
        self.calls.append((what, how))

    @staticmethod
    def _profile(device: FakeGpu, number: int) -> mig.Profile:
        return next(each for each in device.gpu.model.mig_profiles if each.id == number)

    def _made(self, instance: Any) -> tuple[FakeGpu, _Made]:
        number = instance.contents.number
        for gpu in self.gpus:
            if number in gpu.made:
                return gpu, gpu.made[number]
        raise NotFoundError


def _handle(number: int) -> Any:
    return pointer(GpuInstance(number))


def _require_there(gpu: FakeGpu) -> FakeGpu:
    if gpu.is_lost:
        raise LostError
    return gpu


def _require_mig(device: FakeGpu) -> None:
    if not device.mig_enabled:
        raise NotSupportedError
