"""The devices that are published now, found by their name."""

from __future__ import annotations

from drayman.api.resource import Device, DeviceRequestAllocationResult, ResourceSlice
from drayman.cluster.informer import Notice
from drayman.inventory.pool import newest_slices

_Pool = tuple[str, str]
"""Driver and name."""


class PublishedDevices:
    """Follows slices. Devices of older generations of a pool no longer count."""

    def __init__(self) -> None:
        self._pools: dict[_Pool, dict[str, ResourceSlice]] = {}

    def handle(self, notice: Notice[ResourceSlice]) -> None:
        value = notice.object
        key = (value.spec.driver, value.spec.pool.name)
        pool = self._pools.setdefault(key, {})
        if notice.type == "DELETED":
            pool.pop(value.metadata.name, None)
            if not pool:
                del self._pools[key]
        else:
            pool[value.metadata.name] = value

    def find(self, result: DeviceRequestAllocationResult) -> Device | None:
        """The device that was allocated; None if it no longer exists."""
        pool = self._pools.get((result.driver, result.pool), {})
        for newest in newest_slices(pool.values()).values():
            for item in newest:
                for device in item.spec.devices or ():
                    if device.name == result.device:
                        return device
        return None
