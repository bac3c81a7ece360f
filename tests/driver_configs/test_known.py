"""The configurations of the vendors' drivers: what they accept, and how each refuses what it does not."""

from __future__ import annotations

import pytest

from drayman.api.quantity import Quantity
from drayman.api.resource import (
    AllocationResult,
    Device,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimStatus,
)
from drayman.driver_configs.cpu import format_cpus, parse_cpus
from drayman.driver_configs.decoding import Config, ConfigError, decode
from drayman.driver_configs.known import (
    CONFIGS,
    accepted_configs,
    config_type,
    refusal_of_allocation,
)
from drayman.driver_configs.nvidia import GpuConfig, MpsConfig, TimeSlicingConfig, mps_settings

NVIDIA = {"apiVersion": "resource.nvidia.com/v1beta1"}
GPU = NVIDIA | {"kind": "GpuConfig"}
MIG = NVIDIA | {"kind": "MigDeviceConfig"}
CHANNEL = NVIDIA | {"kind": "ComputeDomainChannelConfig"}
MPS = {"strategy": "MPS"}


def mps(**values: object) -> dict[str, object]:
    return GPU | {"sharing": MPS | {"mpsConfig": values}}


ACCEPTED = {
    "a GPU as it is": ("gpu.nvidia.com", GPU),
    "slices": (
        "gpu.nvidia.com",
        GPU | {"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}},
    ),
    "MPS": (
        "gpu.nvidia.com",
        mps(
            defaultActiveThreadPercentage=50,
            defaultPinnedDeviceMemoryLimit="10Gi",
            defaultPerDevicePinnedMemoryLimit={"0": "8Gi"},
            multiUser=True,
        ),
    ),
    "MPS on a partition": ("gpu.nvidia.com", MIG | {"sharing": MPS | {"mpsConfig": {}}}),
    "passing through": (
        "gpu.nvidia.com",
        NVIDIA
        | {
            "kind": "VfioDeviceConfig",
            "iommu": {"backendPolicy": "PreferIommuFD", "enableAPIDevice": True},
        },
    ),
    "a channel": (
        "compute-domain.nvidia.com",
        CHANNEL | {"domainID": "d", "allocationMode": "All"},
    ),
    "a daemon": (
        "compute-domain.nvidia.com",
        NVIDIA | {"kind": "ComputeDomainDaemonConfig", "domainID": "d"},
    ),
    "AMD": ("gpu.amd.com", {"apiVersion": "gpu.resource.amd.com/v1alpha1", "kind": "GpuConfig"}),
    "an interface": (
        "dra.net",
        {
            "interface": {"name": "net1", "mtu": 9000, "addresses": ["10.0.0.1/24"]},
            "routes": [{"destination": "10.1.0.0/16", "gateway": "10.0.0.254"}],
            "ethtool": {"features": {"tcp-segmentation-offload": True}},
        },
    ),
    "nothing to an interface": ("dra.net", {}),
    "CPUs": ("dra.cpu", {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": "0-3,8"}}),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_drivers_document_is_accepted(name: str) -> None:
    """Each by one of the classes of its driver."""
    driver, said = ACCEPTED[name]
    assert isinstance(decode(said, CONFIGS[driver]), Config)


REFUSED = {
    "a strategy that there is not": (
        "gpu.nvidia.com",
        GPU | {"sharing": {"strategy": "MPSS"}},
        "sharing.strategy: 'MPSS' is none of TimeSlicing, MPS",
    ),
    "a limit that is no amount": (
        "gpu.nvidia.com",
        mps(defaultPinnedDeviceMemoryLimit="banana"),
        "sharing.mpsConfig.defaultPinnedDeviceMemoryLimit: ",
    ),
    "a limit below the unit": (
        "gpu.nvidia.com",
        mps(defaultPinnedDeviceMemoryLimit="1k"),
        "sharing.mpsConfig.defaultPinnedDeviceMemoryLimit: 1k is less than 1Mi",
    ),
    "a limit for nothing": (
        "gpu.nvidia.com",
        mps(defaultPerDevicePinnedMemoryLimit={"first": "1Gi"}),
        "defaultPerDevicePinnedMemoryLimit[first]: neither the UUID",
    ),
    "a percentage": (
        "gpu.nvidia.com",
        mps(defaultActiveThreadPercentage=101),
        "sharing.mpsConfig.defaultActiveThreadPercentage: must be 0 to 100",
    ),
    "an unknown field": (
        "gpu.nvidia.com",
        mps(pinnedMemory="1Gi"),
        "unknown field sharing.mpsConfig.pinnedMemory",
    ),
    "settings of the other strategy": (
        "gpu.nvidia.com",
        GPU | {"sharing": {"strategy": "MPS", "timeSlicingConfig": {}}},
        "sharing.timeSlicingConfig: the strategy is MPS",
    ),
    "slices with settings of MPS": (
        "gpu.nvidia.com",
        GPU | {"sharing": {"mpsConfig": {}}},
        "sharing.mpsConfig: the strategy is TimeSlicing",
    ),
    "an interval": (
        "gpu.nvidia.com",
        GPU | {"sharing": {"timeSlicingConfig": {"interval": "Ever"}}},
        "sharing.timeSlicingConfig.interval: 'Ever' is none of",
    ),
    "slices of a partition": (
        "gpu.nvidia.com",
        MIG | {"sharing": {"timeSlicingConfig": {}}},
        "unknown field sharing.timeSlicingConfig",
    ),
    "a backend": (
        "gpu.nvidia.com",
        NVIDIA | {"kind": "VfioDeviceConfig", "iommu": {"backendPolicy": "New"}},
        "iommu.backendPolicy: 'New' is none of LegacyOnly",
    ),
    "no domain": ("compute-domain.nvidia.com", CHANNEL, "domainID: required"),
    "a mode": (
        "compute-domain.nvidia.com",
        CHANNEL | {"domainID": "d", "allocationMode": "Most"},
        "allocationMode: 'Most' is none of Single, All",
    ),
    "another driver's": (
        "gpu.amd.com",
        GPU,
        "expected GpuConfig of gpu.resource.amd.com/v1alpha1, got GpuConfig of resource.nvidia.com/v1beta1",
    ),
    "a field for AMD": (
        "gpu.amd.com",
        {"apiVersion": "gpu.resource.amd.com/v1alpha1", "kind": "GpuConfig", "sharing": {}},
        "unknown field sharing",
    ),
    "an address without prefix": (
        "dra.net",
        {"interface": {"addresses": ["10.0.0.1"]}},
        "interface.addresses[0]: '10.0.0.1' lacks the length",
    ),
    "an address": ("dra.net", {"interface": {"addresses": ["ten/24"]}}, "interface.addresses[0]: "),
    "addresses twice": (
        "dra.net",
        {"interface": {"dhcp": True, "addresses": ["10.0.0.1/24"]}},
        "interface.dhcp: addresses are given",
    ),
    "a name that is too long": (
        "dra.net",
        {"interface": {"name": "a-name-of-sixteen"}},
        "interface.name: ",
    ),
    "a hardware address": (
        "dra.net",
        {"interface": {"hardwareAddr": "02:00"}},
        "interface.hardwareAddr: '02:00' is no",
    ),
    "a route to nowhere": (
        "dra.net",
        {"routes": [{"gateway": "10.0.0.1"}]},
        "routes[0].destination: ",
    ),
    "a kind": ("dra.net", {"kind": "NetworkConfig"}, "unknown field kind"),
    "no CPUs": ("dra.cpu", {"apiVersion": "v1alpha1"}, "cpuConfig.cpuset: required"),
    "CPUs that are none": (
        "dra.cpu",
        {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": "0-x"}},
        "cpuConfig.cpuset: '0-x' is neither",
    ),
    "a version": (
        "dra.cpu",
        {"apiVersion": "v2"},
        "expected no kind of v1alpha1, got no kind of v2",
    ),
    "a driver without any": ("cpu.example.com", {}, "the driver takes no configuration"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named_with_its_field(name: str) -> None:
    """In the words that the pod's event will have."""
    driver, said, problem = REFUSED[name]
    with pytest.raises(ConfigError) as caught:
        decode(said, CONFIGS[driver])
    assert problem in str(caught.value)


def test_a_strategy_without_settings_gets_the_usual_ones() -> None:
    """Slices of the default length, or MPS without limits; and a GPU about which nothing is said is left as it is."""
    types = CONFIGS["gpu.nvidia.com"]
    sliced, shared = (
        decode(GPU | {"sharing": {"strategy": each}}, types) for each in ("TimeSlicing", "MPS")
    )
    assert isinstance(sliced, GpuConfig)
    assert isinstance(shared, GpuConfig)
    assert sliced.sharing is not None
    assert sliced.sharing.time_slicing_config == TimeSlicingConfig(interval="Default")
    assert shared.sharing is not None
    assert shared.sharing.mps_config == MpsConfig()
    assert decode(GPU, types) == GpuConfig()
    limited = decode(mps(defaultPinnedDeviceMemoryLimit="8Gi"), types)
    assert isinstance(limited, GpuConfig)
    assert limited.sharing.mps_config.default_pinned_device_memory_limit == Quantity.parse("8Gi")


@pytest.mark.parametrize("text", ["", "0", "0-3", "0-3,8", "1,3,5-7", "0-8191"])
def test_lists_of_cpus_survive_reading_and_writing(text: str) -> None:
    """They are written as Linux writes them."""
    assert format_cpus(parse_cpus(text)) == text


def claim(said: object, *requests: str) -> ResourceClaim:
    """A claim with one device, and what it says to its driver."""
    result = DeviceRequestAllocationResult(
        request="r", driver="gpu.nvidia.com", pool="n", device="d"
    )
    config = DeviceAllocationConfiguration(
        source="FromClaim",
        requests=requests,
        opaque=OpaqueDeviceConfiguration(driver="gpu.nvidia.com", parameters=said),
    )
    devices = DeviceAllocationResult(results=(result,), config=(config,))
    status = ResourceClaimStatus(allocation=AllocationResult(devices=devices))
    return ResourceClaim(status=status)


def device(type_: str) -> Device:
    return Device(name="d", attributes={"type": DeviceAttribute(string=type_)})


def refusal(type_: str, said: object, *requests: str) -> str:
    """What the driver says to a claim with one device of a type."""
    return refusal_of_allocation("gpu.nvidia.com", claim(said, *requests), lambda _: device(type_))


def test_a_device_takes_the_configuration_of_its_type() -> None:
    """One that names the request of another type is refused; one for all requests is for other devices."""
    assert refusal("gpu", GPU, "r") == ""
    assert refusal("mig", GPU) == ""
    assert refusal("mig", GPU, "r") == (
        "request r: a GpuConfig is given, and the device takes MigDeviceConfig"
    )
    assert refusal("gpu", GPU | {"sharing": {"strategy": "MPSS"}}).startswith(
        "configuration of the claim: sharing.strategy: 'MPSS'"
    )


def test_a_device_has_the_configuration_that_its_driver_accepts() -> None:
    """None where the driver refuses it, or the device is not there any more."""
    (accepted,) = accepted_configs(claim(GPU | {"sharing": MPS}), lambda _: device("gpu"))
    assert accepted[0].device == "d"
    assert mps_settings(accepted[1]) == MpsConfig()
    refused = ((GPU | {"sharing": {"strategy": "MPSS"}},), (GPU, "r"))
    for said in refused:
        assert [c for _, c in accepted_configs(claim(*said), lambda _: device("mig"))] == [None]
    assert [c for _, c in accepted_configs(claim(GPU), lambda _: None)] == [None]


def test_every_type_of_device_has_a_configuration_of_its_driver() -> None:
    """The table by type names only classes that the driver takes."""
    for driver, types in CONFIGS.items():
        for type_ in ("gpu", "mig", "vfio", "channel", "daemon"):
            device = Device(name="d", attributes={"type": DeviceAttribute(string=type_)})
            found = config_type(driver, device)
            assert found is None or found in types
