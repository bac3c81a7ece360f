"""Configuration of devices: decoded strictly, with defaults, and by precedence."""

from __future__ import annotations

import pytest

from drayman.api.resource import DeviceAllocationConfiguration, OpaqueDeviceConfiguration
from drayman.driver_configs.decoding import Config, ConfigError, DecodedConfigs, decode
from drayman.driver_configs.example import (
    GpuConfig,
    GpuSharing,
    SpacePartitioningConfig,
    TimeSlicingConfig,
)

HEAD = {"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig"}
GPU = "gpu.example.com"


class Plain(Config):
    """A configuration without apiVersion and kind, as that of dra.net."""

    mtu: int = 1500


GOOD = {
    "nothing said": ({}, GpuSharing(time_slicing_config=TimeSlicingConfig())),
    "time slicing": (
        {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
        GpuSharing(time_slicing_config=TimeSlicingConfig(interval="Long")),
    ),
    "time slicing by default interval": (
        {"strategy": "TimeSlicing"},
        GpuSharing(time_slicing_config=TimeSlicingConfig(interval="Default")),
    ),
    "partitions": (
        {"strategy": "SpacePartitioning", "spacePartitioningConfig": {"partitionCount": 10}},
        GpuSharing(
            strategy="SpacePartitioning",
            space_partitioning_config=SpacePartitioningConfig(partition_count=10),
        ),
    ),
    "one partition by default": (
        {"strategy": "SpacePartitioning"},
        GpuSharing(
            strategy="SpacePartitioning", space_partitioning_config=SpacePartitioningConfig()
        ),
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_left_out_has_its_default(name: str) -> None:
    """Of a field, of a part, and of all of it."""
    said, wanted = GOOD[name]
    assert decode(HEAD | ({"sharing": said} if said else {}), [GpuConfig]) == GpuConfig(
        sharing=wanted
    )


WRONG = {
    "no object": ("text", [GpuConfig], "the parameters are no object"),
    "no kind": ({}, [GpuConfig], "expected GpuConfig of gpu.resource.example.com/v1alpha1, got no kind of no apiVersion"),
    "another kind": (HEAD | {"kind": "MigConfig"}, [GpuConfig], "got MigConfig of gpu.resource"),
    "no configuration at all": (HEAD, [], "the driver takes no configuration"),
    "unknown field": (HEAD | {"sharign": {}}, [GpuConfig], "unknown field sharign"),
    "unknown fields below": (
        HEAD | {"a": 1, "sharing": {"timeSlicingConfig": {"intervall": "Long"}}},
        [GpuConfig],
        "unknown fields a, sharing.timeSlicingConfig.intervall",
    ),
    "wrong type": (
        HEAD | {"sharing": {"strategy": "SpacePartitioning", "spacePartitioningConfig": {"partitionCount": "ten"}}},
        [GpuConfig],
        "sharing.spacePartitioningConfig.partitionCount: expected integer",
    ),
    "strategy": (HEAD | {"sharing": {"strategy": "MPSS"}}, [GpuConfig], "sharing.strategy: 'MPSS' is none of TimeSlicing"),
    "interval": (
        HEAD | {"sharing": {"timeSlicingConfig": {"interval": "Ever"}}},
        [GpuConfig],
        "sharing.timeSlicingConfig.interval: 'Ever' is none of Default, Short, Medium, Long",
    ),
    "settings of another strategy": (
        HEAD | {"sharing": {"strategy": "SpacePartitioning", "timeSlicingConfig": {}}},
        [GpuConfig],
        "sharing.timeSlicingConfig: the strategy is SpacePartitioning",
    ),
    "no partition": (
        HEAD | {"sharing": {"strategy": "SpacePartitioning", "spacePartitioningConfig": {"partitionCount": 0}}},
        [GpuConfig],
        "partitionCount: must be at least 1",
    ),
    "kind where there is none": ({"kind": "X"}, [Plain], "unknown field kind"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    """With the field, in the words of the driver where it is a rule of its own."""
    said, types, problem = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        decode(said, types)
    assert problem in str(caught.value)


def test_a_configuration_without_a_kind_is_the_only_one_of_its_driver() -> None:
    """Nothing tells it apart, and nothing has to."""
    assert decode({"mtu": 9000}, [Plain]) == Plain(mtu=9000)


def entry(
    interval: str, *requests: str, source: str = "FromClaim", driver: str = GPU
) -> DeviceAllocationConfiguration:
    parameters = HEAD | {"sharing": {"timeSlicingConfig": {"interval": interval}}}
    return DeviceAllocationConfiguration(
        source=source,
        requests=requests,
        opaque=OpaqueDeviceConfiguration(driver=driver, parameters=parameters),
    )


PRECEDENCE = {
    "nothing": ([], "a", "Default"),
    "of the class": ([entry("Short", source="FromClass")], "a", "Short"),
    "the claim before the class": ([entry("Long"), entry("Short", source="FromClass")], "a", "Long"),
    "a later one before an earlier one": ([entry("Short"), entry("Long")], "a", "Long"),
    "for another request": ([entry("Long", "b")], "a", "Default"),
    "for this request": ([entry("Long", "b", "a")], "a", "Long"),
    "for a request with alternatives": ([entry("Long", "a")], "a/big", "Long"),
    "for one alternative": ([entry("Long", "a/small"), entry("Short", "a/big")], "a/big", "Short"),
    "of another driver": ([entry("Long", driver="net.example.com")], "a", "Default"),
}  # fmt: skip


@pytest.mark.parametrize("name", PRECEDENCE)
def test_the_most_specific_configuration_counts(name: str) -> None:
    """Default, then class, then claim; later entries win."""
    entries, request, interval = PRECEDENCE[name]
    found = DecodedConfigs(GPU, [GpuConfig], entries).for_device(request, GpuConfig)
    assert found.sharing.time_slicing_config.interval == interval


def test_a_wrong_entry_is_refused_though_another_one_overrides_it() -> None:
    """With where it comes from: the owner of a claim cannot mend a class."""
    entries = [entry("Ever", "a", source="FromClass"), entry("Long")]
    with pytest.raises(ConfigError, match=r"^configuration of the class for a: sharing\."):
        DecodedConfigs(GPU, [GpuConfig], entries)


class Other(Config):
    """A second class of the same driver."""

    api_version: str = HEAD["apiVersion"]
    kind: str = "Other"


def test_a_configuration_of_another_class_is_for_other_devices() -> None:
    """One for all requests passes over devices that take another; one for a request that is such a device is a mistake."""
    configs = DecodedConfigs(GPU, [GpuConfig, Other], [entry("Long")])
    assert configs.for_device("a", Other) == Other()
    with pytest.raises(
        ConfigError, match="request a: a GpuConfig is given, and the device takes Other"
    ):
        DecodedConfigs(GPU, [GpuConfig, Other], [entry("Long", "a")]).for_device("a", Other)
