"""What drivers write into the status of a claim about its devices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from drayman.api.codec import to_dict
from drayman.api.device_status import with_statuses
from drayman.api.resource import AllocatedDeviceStatus, ResourceClaim
from drayman.api.times import timestamp
from drayman.cluster import Client
from drayman.cluster.errors import ConflictError
from drayman.cluster.resources import RESOURCE_CLAIMS
from drayman.cluster.writes import Parts, PartsWrite
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import PreparedDevice

_ATTEMPTS: Final = 5
"""Scheduler, controllers and other drivers write the same status."""


def statuses_of(driver: str, devices: Sequence[PreparedDevice]) -> list[AllocatedDeviceStatus]:
    """What there is to say about devices; those about which nothing is said are left out."""
    return [
        AllocatedDeviceStatus(
            driver=driver,
            pool=each.device.pool,
            device=each.device.name,
            share_id=each.device.share_id,
            conditions=tuple(each.conditions),
            data=each.data,
            network_data=each.network,
        )
        for each in devices
        if each.conditions or each.data is not None or each.network is not None
    ]


async def write_statuses(
    client: Client, claim: ResourceClaim, statuses: Sequence[AllocatedDeviceStatus], manager: str
) -> None:
    """Write them, keeping what others have written. Raises PrepareError if the claim is another one by now, and ClusterError."""
    for attempt in range(1, _ATTEMPTS + 1):
        now = timestamp(datetime.now(UTC))
        devices = with_statuses(claim.status.devices, statuses, now)
        if devices == claim.status.devices:
            return
        parts: Parts = {("status", "devices"): [to_dict(device) for device in devices]}
        write = PartsWrite.of(RESOURCE_CLAIMS, claim, parts, field_manager=manager)
        try:
            await client.write_all([write])
            return
        except ConflictError:
            if attempt == _ATTEMPTS:
                raise
        uid = claim.metadata.uid
        claim = await client.get(RESOURCE_CLAIMS, claim.metadata.name, claim.metadata.namespace)
        if claim.metadata.uid != uid:
            raise PrepareError(
                f"claim {claim.metadata.namespace}/{claim.metadata.name} was made again"
            )
