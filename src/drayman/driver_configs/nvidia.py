"""What NVIDIA's drivers take: how a GPU is shared, how it is passed through, and which compute domain a channel belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Self

from msgspec import field
from msgspec.structs import replace

from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Int64, always
from drayman.driver_configs.decoding import Config

API_VERSION: Final = "resource.nvidia.com/v1beta1"
TIME_SLICING: Final = "TimeSlicing"
MPS: Final = "MPS"
STRATEGIES: Final = (TIME_SLICING, MPS)
INTERVALS: Final = ("Default", "Short", "Medium", "Long")
"""Of time slices; their positions are the numbers that the hardware is told."""
BACKEND_POLICIES: Final = ("LegacyOnly", "PreferIommuFD")
ALLOCATION_MODES: Final = ("Single", "All")
_PERCENT: Final = 100


class TimeSlicingConfig(ApiStruct):
    interval: str = INTERVALS[0]

    @property
    def number(self) -> int:
        """The interval as nvidia-smi takes it."""
        return INTERVALS.index(self.interval)


class MpsConfig(ApiStruct):
    """What the programs of a claim get of the GPUs that they use at the same time."""

    default_active_thread_percentage: Int64 | None = None
    default_pinned_device_memory_limit: Quantity | None = None
    default_per_device_pinned_memory_limit: dict[str, Quantity] = field(default_factory=dict)
    """By the UUID of a GPU, or its place among those of the claim."""
    multi_user: bool = False


class _Sharing(ApiStruct):
    strategy: str = TIME_SLICING
    mps_config: MpsConfig | None = None


class GpuSharing(_Sharing):
    time_slicing_config: TimeSlicingConfig | None = None


class MigDeviceSharing(_Sharing):
    """The slices of a partition cannot be set."""


def _sharing_problems(sharing: _Sharing) -> Iterator[str]:
    if sharing.strategy not in STRATEGIES:
        yield _none_of("sharing.strategy", sharing.strategy, STRATEGIES)
        return
    mps = sharing.mps_config
    if mps is None:
        return
    if sharing.strategy != MPS:
        yield f"sharing.mpsConfig: the strategy is {sharing.strategy}"
    percentage = mps.default_active_thread_percentage
    if percentage is not None and not 0 <= percentage <= _PERCENT:
        yield "sharing.mpsConfig.defaultActiveThreadPercentage: must be 0 to 100"
    if mps.default_pinned_device_memory_limit is not None:
        yield from _limit_problems(
            "defaultPinnedDeviceMemoryLimit", mps.default_pinned_device_memory_limit
        )
    for device, limit in mps.default_per_device_pinned_memory_limit.items():
        where = f"defaultPerDevicePinnedMemoryLimit[{device}]"
        if not (device.isdecimal() or device.startswith(("GPU-", "MIG-"))):
            yield f"sharing.mpsConfig.{where}: neither the UUID of a device nor a number"
        yield from _limit_problems(where, limit)


def _limit_problems(name: str, limit: Quantity) -> Iterator[str]:
    if limit < MEBIBYTE:
        yield f"sharing.mpsConfig.{name}: {limit} is less than 1Mi, the unit of the limits"


MEBIBYTE: Final = Quantity.parse("1Mi")
MPS_DIR: Final = "/var/run/drayman/mps"
"""Where the control daemons of MPS have their folders, unless the driver is told otherwise."""
MPS_PIPES: Final = "pipe"
"""Of a control daemon, in its folder: where programs find it."""
MPS_VARIABLE: Final = "CUDA_MPS_PIPE_DIRECTORY"
"""Tells programs where that is."""


def _none_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    return f"{name}: {value!r} is none of {', '.join(allowed)}"


class GpuConfig(Config):
    """How the programs that use a GPU share it. Without `sharing` nothing is set."""

    api_version: str = always(API_VERSION)
    kind: str = always("GpuConfig")
    sharing: GpuSharing | None = None

    def problems(self) -> Iterable[str]:
        if self.sharing is None:
            return
        yield from _sharing_problems(self.sharing)
        slicing = self.sharing.time_slicing_config
        if slicing is not None:
            if self.sharing.strategy == MPS:
                yield "sharing.timeSlicingConfig: the strategy is MPS"
            if slicing.interval not in INTERVALS:
                name = "sharing.timeSlicingConfig.interval"
                yield _none_of(name, slicing.interval, INTERVALS)

    def completed(self) -> Self:
        sharing = self.sharing
        if sharing is None:
            return self
        if sharing.strategy == MPS:
            sharing = replace(sharing, mps_config=sharing.mps_config or MpsConfig())
        else:
            slicing = sharing.time_slicing_config or TimeSlicingConfig()
            sharing = replace(sharing, time_slicing_config=slicing)
        return replace(self, sharing=sharing)


class MigDeviceConfig(Config):
    """The same for a partition."""

    api_version: str = always(API_VERSION)
    kind: str = always("MigDeviceConfig")
    sharing: MigDeviceSharing | None = None

    def problems(self) -> Iterable[str]:
        return () if self.sharing is None else _sharing_problems(self.sharing)

    def completed(self) -> Self:
        sharing = self.sharing
        if sharing is None or sharing.strategy != MPS:
            return self
        return replace(self, sharing=replace(sharing, mps_config=sharing.mps_config or MpsConfig()))


def mps_settings(config: Config | None) -> MpsConfig | None:
    """How MPS shares a device of this configuration, if that is how it is shared."""
    sharing = config.sharing if isinstance(config, GpuConfig | MigDeviceConfig) else None
    return sharing.mps_config if sharing is not None and sharing.strategy == MPS else None


class IommuConfig(ApiStruct):
    backend_policy: str = BACKEND_POLICIES[0]
    enable_api_device: bool = field(default=False, name="enableAPIDevice")


class VfioDeviceConfig(Config):
    """How a GPU is handed to a virtual machine."""

    api_version: str = always(API_VERSION)
    kind: str = always("VfioDeviceConfig")
    iommu: IommuConfig = IommuConfig()

    def problems(self) -> Iterable[str]:
        policy = self.iommu.backend_policy
        if policy not in BACKEND_POLICIES:
            yield _none_of("iommu.backendPolicy", policy, BACKEND_POLICIES)


class ComputeDomainChannelConfig(Config):
    """The domain whose channel a workload uses."""

    api_version: str = always(API_VERSION)
    kind: str = always("ComputeDomainChannelConfig")
    domain_id: str = field(default="", name="domainID")
    allocation_mode: str = ALLOCATION_MODES[0]

    def problems(self) -> Iterable[str]:
        if not self.domain_id:
            yield "domainID: required"
        if self.allocation_mode not in ALLOCATION_MODES:
            yield _none_of("allocationMode", self.allocation_mode, ALLOCATION_MODES)


class ComputeDomainDaemonConfig(Config):
    """The domain that a daemon serves."""

    api_version: str = always(API_VERSION)
    kind: str = always("ComputeDomainDaemonConfig")
    domain_id: str = field(default="", name="domainID")

    def problems(self) -> Iterable[str]:
        if not self.domain_id:
            yield "domainID: required"
