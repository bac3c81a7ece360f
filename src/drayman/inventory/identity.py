"""Names of pools and devices. A device is its driver, pool and name; slices and generations come and go around it."""

from __future__ import annotations

from typing import NamedTuple

from drayman.api.resource import DeviceRequestAllocationResult


class PoolId(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return "/".join(self)


class DeviceId(NamedTuple):
    driver: str
    pool: str
    device: str

    @classmethod
    def of(cls, result: DeviceRequestAllocationResult) -> DeviceId:
        """The device that was allocated."""
        return cls(result.driver, result.pool, result.device)

    def __str__(self) -> str:
        return "/".join(self)

    @property
    def pool_id(self) -> PoolId:
        return PoolId(self.driver, self.pool)
