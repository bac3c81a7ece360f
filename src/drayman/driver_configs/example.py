"""The configuration of the example driver's GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from msgspec.structs import replace

from drayman.api.struct import ApiStruct, Int64, always
from drayman.driver_configs.decoding import Config

API_VERSION: Final = "gpu.resource.example.com/v1alpha1"
TIME_SLICING: Final = "TimeSlicing"
SPACE_PARTITIONING: Final = "SpacePartitioning"
INTERVALS: Final = ("Default", "Short", "Medium", "Long")


class TimeSlicingConfig(ApiStruct):
    interval: str = INTERVALS[0]


class SpacePartitioningConfig(ApiStruct):
    partition_count: Int64 = 1


class GpuSharing(ApiStruct):
    strategy: str = TIME_SLICING
    time_slicing_config: TimeSlicingConfig | None = None
    space_partitioning_config: SpacePartitioningConfig | None = None


class GpuConfig(Config):
    """How the containers of a claim share a GPU."""

    api_version: str = always(API_VERSION)
    kind: str = always("GpuConfig")
    sharing: GpuSharing | None = None

    def problems(self) -> Iterable[str]:
        sharing = self.sharing
        if sharing is None:
            return
        strategies = (TIME_SLICING, SPACE_PARTITIONING)
        if sharing.strategy not in strategies:
            yield f"sharing.strategy: {sharing.strategy!r} is none of {', '.join(strategies)}"
            return
        slicing, parts = sharing.time_slicing_config, sharing.space_partitioning_config
        if slicing is not None:
            if sharing.strategy != TIME_SLICING:
                yield f"sharing.timeSlicingConfig: the strategy is {sharing.strategy}"
            if slicing.interval not in INTERVALS:
                yield (
                    f"sharing.timeSlicingConfig.interval: {slicing.interval!r} is none of {', '.join(INTERVALS)}"
                )
        if parts is not None:
            if sharing.strategy != SPACE_PARTITIONING:
                yield f"sharing.spacePartitioningConfig: the strategy is {sharing.strategy}"
            if parts.partition_count < 1:
                yield "sharing.spacePartitioningConfig.partitionCount: must be at least 1"

    def completed(self) -> Self:
        sharing = self.sharing or GpuSharing()
        if sharing.strategy == TIME_SLICING:
            slicing = sharing.time_slicing_config or TimeSlicingConfig()
            sharing = replace(sharing, time_slicing_config=slicing)
        else:
            parts = sharing.space_partitioning_config or SpacePartitioningConfig()
            sharing = replace(sharing, space_partitioning_config=parts)
        return replace(self, sharing=sharing)
