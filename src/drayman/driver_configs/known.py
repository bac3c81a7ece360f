"""Which configurations each known driver takes, and what is wrong with those of a claim, a class or an allocation.

A driver that is not in the table is somebody else's: nothing is said about what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Final

from drayman.api.resource import (
    Device,
    DeviceAllocationConfiguration,
    DeviceClaim,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
    ResourceClaim,
)
from drayman.api.struct import ApiStruct
from drayman.driver_configs import amd, cpu, example, network, nvidia
from drayman.driver_configs.decoding import Config, ConfigError, DecodedConfigs, decode

Types = tuple[type[Config], ...]

CONFIGS: Final = MappingProxyType[str, Types](
    {
        "gpu.nvidia.com": (nvidia.GpuConfig, nvidia.MigDeviceConfig, nvidia.VfioDeviceConfig),
        "compute-domain.nvidia.com": (
            nvidia.ComputeDomainChannelConfig,
            nvidia.ComputeDomainDaemonConfig,
        ),
        "gpu.amd.com": (amd.GpuConfig,),
        "dra.net": (network.NetworkConfig,),
        "dra.cpu": (cpu.CpuConfig,),
        "gpu.example.com": (example.GpuConfig,),
        "net.example.com": (),
        "cpu.example.com": (),
    }
)
_BY_TYPE: Final = MappingProxyType[tuple[str, str], type[Config]](
    {
        ("gpu.nvidia.com", "gpu"): nvidia.GpuConfig,
        ("gpu.nvidia.com", "mig"): nvidia.MigDeviceConfig,
        ("gpu.nvidia.com", "vfio"): nvidia.VfioDeviceConfig,
        ("compute-domain.nvidia.com", "channel"): nvidia.ComputeDomainChannelConfig,
        ("compute-domain.nvidia.com", "daemon"): nvidia.ComputeDomainDaemonConfig,
    }
)
"""Of drivers with several classes: by the attribute `type` of the device."""

IN_CLAIM: Final = "spec.devices"
IN_TEMPLATE: Final = "spec.spec.devices"
"""Where the devices that are asked for are written."""

FindDevice = Callable[[DeviceRequestAllocationResult], Device | None]


def config_type(driver: str, device: Device) -> type[Config] | None:
    """The class of the configuration that a device of a known driver takes."""
    types = CONFIGS[driver]
    if len(types) <= 1:
        return types[0] if types else None
    said = device.attributes.get("type")
    return None if said is None else _BY_TYPE.get((driver, said.string or ""))


class RefusedConfig(ApiStruct):
    """A configuration that its driver refuses when it prepares the devices."""

    path: str
    driver: str
    problem: str

    def __str__(self) -> str:
        return f"driver {self.driver} refuses {self.path}: {self.problem}"


def refused_in(
    entries: Iterable[tuple[str, OpaqueDeviceConfiguration | None]],
) -> Iterator[RefusedConfig]:
    """What drivers refuse of configurations, given with their paths."""
    for path, opaque in entries:
        # A snapshot that may be shown to others has no parameters, and nothing can be said about them.
        if opaque is None or opaque.parameters is None or opaque.driver not in CONFIGS:
            continue
        try:
            decode(opaque.parameters, CONFIGS[opaque.driver])
        except ConfigError as error:
            yield RefusedConfig(
                path=f"{path}.opaque.parameters", driver=opaque.driver, problem=str(error)
            )


def refused_in_claim(devices: DeviceClaim, path: str = IN_CLAIM) -> Iterator[RefusedConfig]:
    """What drivers refuse of what a claim says itself."""
    return refused_in(
        (f"{path}.config[{index}]", config.opaque) for index, config in enumerate(devices.config)
    )


def refused_in_class(device_class: DeviceClass) -> Iterator[RefusedConfig]:
    """What drivers refuse of what a class says."""
    configs: Sequence[DeviceClassConfiguration] = device_class.spec.config
    return refused_in((f"spec.config[{index}]", each.opaque) for index, each in enumerate(configs))


def accepted_configs(
    claim: ResourceClaim, find: FindDevice
) -> Iterator[tuple[DeviceRequestAllocationResult, Config | None]]:
    """The devices of a claim, each with its configuration; None where its driver has none, is not known or refuses it."""
    told: dict[str, DecodedConfigs | None] = {}
    for result in claim.status.results:
        if result.driver not in told:
            told[result.driver] = _decoded(result.driver, claim)
        configs, device = told[result.driver], find(result)
        if configs is None or device is None:
            yield result, None
            continue
        try:
            yield result, configs.for_device(result.request, config_type(result.driver, device))
        except ConfigError:
            yield result, None


def _decoded(driver: str, claim: ResourceClaim) -> DecodedConfigs | None:
    if driver not in CONFIGS:
        return None
    try:
        return DecodedConfigs(driver, CONFIGS[driver], _entries(claim))
    except ConfigError:
        return None


def _entries(claim: ResourceClaim) -> tuple[DeviceAllocationConfiguration, ...]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.config


def refusal_of_allocation(driver: str, claim: ResourceClaim, find: FindDevice) -> str:
    """Why a driver does not prepare an allocated claim; empty if it does not object."""
    if driver not in CONFIGS:
        return ""
    try:
        configs = DecodedConfigs(driver, CONFIGS[driver], _entries(claim))
        for result in claim.status.results:
            device = find(result) if result.driver == driver else None
            if device is not None:
                configs.for_device(result.request, config_type(driver, device))
    except ConfigError as error:
        return str(error)
    return ""
