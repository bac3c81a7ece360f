"""Names of pools and devices. A device is its driver, pool and name; slices and generations come and go around it."""

from __future__ import annotations

from typing import NamedTuple


class PoolId(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return "/".join(self)


class DeviceId(NamedTuple):
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)

    @property
    def pool_id(self) -> PoolId:
        return PoolId(self.driver, self.pool)
