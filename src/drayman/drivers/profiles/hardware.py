"""What a profile makes: nodes with the slices of their drivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drayman.api.core import Node
from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    CounterSet,
    Device,
    DeviceClass,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drayman.api.struct import Json
from drayman.drivers.splitting import contents_of


@dataclass(frozen=True, slots=True)
class HardwareNode:
    """A simulated node, what its drivers publish, and the classes and kinds that come with them."""

    node: Node
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]
    definitions: tuple[dict[str, Json], ...] = ()
    """CustomResourceDefinitions that the drivers install."""


def pool_slices(
    node_name: str,
    driver: str,
    devices: Sequence[tuple[Device, ...]],
    counters: tuple[CounterSet, ...] = (),
) -> tuple[ResourceSlice, ...]:
    """The slices of a driver's pool on a node, one per group of devices, after one with the counters if there are any.

    What is too large for a slice is split. Names end in the index because the allocator walks the slices of a pool by name: the
    order is a preference.
    """
    contents = contents_of(devices, counters)
    pool = ResourcePool(name=node_name, generation=1, resource_slice_count=len(contents))
    return tuple(
        ResourceSlice(
            metadata=ObjectMeta(name=f"{node_name}-{driver}-{index:02}"),
            spec=ResourceSliceSpec(
                driver=driver,
                pool=pool,
                node_name=node_name,
                devices=content.devices,
                shared_counters=content.counters,
            ),
        )
        for index, content in enumerate(contents)
    )
