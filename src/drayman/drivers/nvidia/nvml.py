"""GPUs and their errors as NVML has them: plain values in and out."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from ctypes import byref
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.nvidia import mig
from drayman.drivers.nvidia.nvlink import SWITCH
from drayman.drivers.nvidia.nvml_library import Library, text
from drayman.drivers.nvidia.partitions import MigDevice, Partitions

_log: Final = logging.getLogger(__name__)
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
_BRANDS: Final = {
    1: "Quadro",
    2: "Tesla",
    3: "NVS",
    4: "Grid",
    5: "GeForce",
    6: "Titan",
    7: "NvidiaVApps",
    8: "NvidiaVPC",
    9: "NvidiaVCS",
    10: "NvidiaVWS",
    11: "NvidiaCloudGaming",
    12: "QuadroRTX",
    13: "NvidiaRTX",
    14: "Nvidia",
    15: "GeForceRTX",
    16: "TitanRTX",
}
_ADDRESSING_MODES: Final = {0: "None", 1: "HMM", 2: "ATS"}
_MODE_DEFAULT: Final = 0
_MODE_EXCLUSIVE_PROCESS: Final = 3
_FABRIC_COMPLETED: Final = 3
_VGPU_GUEST: Final = 2


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What NVML says about a GPU."""

    minor: int
    uuid: str
    name: str
    brand: str
    architecture: str
    compute_capability: str
    memory_bytes: int | None
    """None for a GPU that has no memory of its own."""
    bus_id: str
    """As sysfs writes it."""
    addressing_mode: str | None
    mig_enabled: bool | None
    """None if it cannot be divided."""
    mig_profiles: tuple[mig.Profile, ...]
    mig_devices: tuple[MigDevice, ...]
    """The partitions that it has, if it is in MIG mode."""
    is_virtual: bool
    """Whether it is a virtual GPU, whose partitions the host has fixed."""
    links: Mapping[str, int] | None
    """How many of its NVLinks are active, by what is at their other end; None if that is not told."""
    clique: str | None
    """The NVLink clique that it is in; None if it is in none, or not yet."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The GPUs of a machine."""

    gpus: tuple[GpuFacts, ...]
    """Those that can be read, in NVML's order."""
    is_complete: bool = True
    """Whether that is all of them."""
    has_lost: bool = False
    """Whether one has fallen off the bus. NVML does not tell which."""


class Nvml:
    """One machine's GPUs. Methods raise `NVMLError` of the library unless they say otherwise."""

    def __init__(self, library: Any) -> None:
        """`library` is the module `pynvml`, or what a test gives in its place."""
        self._library = Library(library)
        self._lib = library
        self.partitions = Partitions(self._library)

    @classmethod
    def load(cls) -> Nvml:
        """Raises KitError if the package, NVIDIA's driver or its library is not there."""
        return cls(Library.load().module)

    @property
    def error(self) -> type[Exception]:
        """What the library raises."""
        return self._library.error

    @cached_property
    def driver_version(self) -> str:
        """As a semantic version: without leading zeros, in three parts."""
        parts = [str(int(part)) for part in text(self._lib.nvmlSystemGetDriverVersion()).split(".")]
        return ".".join((*parts, "0", "0")[:3])

    @cached_property
    def cuda_version(self) -> str:
        number = self._lib.nvmlSystemGetCudaDriverVersion_v2()
        return f"{number // 1000}.{number % 1000 // 10}.0"

    # --- GPUs ----------------------------------------------------------------------------------

    def survey(self) -> Survey:
        """All GPUs. One that cannot be read is left out, with a line in the log, and costs the others nothing."""
        found: list[GpuFacts] = []
        errors: list[Exception] = []
        for index in range(self._lib.nvmlDeviceGetCount()):
            try:
                found.append(self._facts(self._lib.nvmlDeviceGetHandleByIndex(index)))
            except (self.error, PrepareError) as error:
                _log.warning("GPU %d of NVML cannot be read: %s", index, error)
                errors.append(error)
        has_lost = any(isinstance(each, self._lib.NVMLError_GpuIsLost) for each in errors)
        return Survey(tuple(found), not errors, has_lost)

    def is_there(self, uuid: str) -> bool:
        """Whether a GPU is on the machine, and has not fallen off the bus."""
        try:
            self._memory(self._library.handle(uuid))
        except (self._lib.NVMLError_GpuIsLost, self._lib.NVMLError_NotFound):
            return False
        return True

    def _facts(self, handle: Any) -> GpuFacts:
        lib = self._lib
        major, minor = lib.nvmlDeviceGetCudaComputeCapability(handle)
        mode = self.partitions.mode_of(handle)
        return GpuFacts(
            minor=lib.nvmlDeviceGetMinorNumber(handle),
            uuid=text(lib.nvmlDeviceGetUUID(handle)),
            name=text(lib.nvmlDeviceGetName(handle)),
            brand=_BRANDS.get(lib.nvmlDeviceGetBrand(handle), "Unknown"),
            architecture=_ARCHITECTURES.get(lib.nvmlDeviceGetArchitecture(handle), "Unknown"),
            compute_capability=f"{major}.{minor}.0",
            memory_bytes=self._memory(handle),
            bus_id=_sysfs_address(text(lib.nvmlDeviceGetPciInfo(handle).busId)),
            addressing_mode=self._addressing_mode(handle),
            mig_enabled=mode,
            mig_profiles=() if mode is None else tuple(self.partitions.profiles_of(handle)),
            mig_devices=tuple(self.partitions.devices_of(handle)) if mode else (),
            is_virtual=self._is_virtual(handle),
            links=self._links(handle),
            clique=self._clique(handle),
        )

    def _memory(self, handle: Any) -> int | None:
        try:
            return int(self._lib.nvmlDeviceGetMemoryInfo(handle).total)
        except self._lib.NVMLError_NotSupported:
            return None

    def _is_virtual(self, handle: Any) -> bool:
        try:
            return bool(self._lib.nvmlDeviceGetVirtualizationMode(handle) == _VGPU_GUEST)
        except self._library.unsupported:
            return False

    def _addressing_mode(self, handle: Any) -> str | None:
        try:
            return _ADDRESSING_MODES.get(self._lib.nvmlDeviceGetAddressingMode(handle))
        except self._library.unsupported:
            return None

    def set_exclusive(self, uuid: str, *, exclusive: bool) -> None:
        """Whether one process alone may use a GPU, as MPS wants it. Raises PrepareError."""
        mode = _MODE_EXCLUSIVE_PROCESS if exclusive else _MODE_DEFAULT
        try:
            self._lib.nvmlDeviceSetComputeMode(self._library.handle(uuid), mode)
        except self._lib.NVMLError as error:
            name = "EXCLUSIVE_PROCESS" if exclusive else "DEFAULT"
            raise PrepareError(f"GPU {uuid}: compute mode {name} cannot be set: {error}") from error

    def _clique(self, handle: Any) -> str | None:
        info = self._lib.c_nvmlGpuFabricInfoV_t()
        try:
            self._lib.nvmlDeviceGetGpuFabricInfoV(handle, byref(info))
        except self._library.unsupported:
            return None
        cluster = bytes(info.clusterUuid).hex()
        if info.state != _FABRIC_COMPLETED or not cluster.strip("0"):
            return None
        parts = (cluster[:8], cluster[8:12], cluster[12:16], cluster[16:20], cluster[20:])
        return f"{'-'.join(parts)}.{info.cliqueId}"

    def _links(self, handle: Any) -> Counter[str] | None:
        lib = self._lib
        found: Counter[str] = Counter()
        for link in range(lib.NVML_NVLINK_MAX_LINKS):
            try:
                if not lib.nvmlDeviceGetNvLinkState(handle, link):
                    continue
                kind = lib.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link)
                if kind == lib.NVML_NVLINK_DEVICE_TYPE_SWITCH:
                    found[SWITCH] += 1
                elif kind == lib.NVML_NVLINK_DEVICE_TYPE_GPU:
                    peer = lib.nvmlDeviceGetNvLinkRemotePciInfo(handle, link)
                    found[_sysfs_address(text(peer.busId))] += 1
                elif kind == lib.NVML_NVLINK_DEVICE_TYPE_UNKNOWN:
                    return None
            except self._library.unsupported:
                # The first link that a GPU does not have ends them.
                return found if link else None
        return found

    # --- Events --------------------------------------------------------------------------------

    def watch(self, uuids: list[str]) -> tuple[Any, list[str]]:
        """A set of the critical errors of GPUs, and the GPUs that do not report any."""
        lib, events, silent = self._lib, self._lib.nvmlEventSetCreate(), []
        for uuid in uuids:
            try:
                lib.nvmlDeviceRegisterEvents(
                    self._library.handle(uuid), lib.nvmlEventTypeXidCriticalError, events
                )
            except lib.NVMLError as error:
                _log.warning("GPU %s does not report errors: %s", uuid, error)
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
            return text(lib.nvmlDeviceGetUUID(event.device)), int(event.eventData)
        except lib.NVMLError:
            return "", int(event.eventData)

    def forget(self, events: Any) -> None:
        """Done with a set of events."""
        self._lib.nvmlEventSetFree(events)


class GpuLostError(Exception):
    """A GPU has fallen off the bus."""


def _sysfs_address(bus_id: str) -> str:
    """NVML writes the domain with eight digits and letters in upper case."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"
