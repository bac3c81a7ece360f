"""What drivers write into the status of a claim: that each device is ready, and how network interfaces are set up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

from drayman.api.codec import to_dict
from drayman.api.device_status import with_statuses
from drayman.api.meta import Condition
from drayman.api.resource import (
    AllocatedDeviceStatus,
    Device,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
)
from drayman.cluster.resources import RESOURCE_CLAIMS
from drayman.cluster.writes import Parts, PartsWrite
from drayman.inventory import DeviceId
from drayman.node.reporting import MANAGER

FindDevice = Callable[[DeviceRequestAllocationResult], Device | None]


def ready_devices(
    claim: ResourceClaim, find: FindDevice, now: str
) -> tuple[AllocatedDeviceStatus, ...]:
    """The status of a claim's devices once they are prepared."""
    return _with_conditions(
        claim,
        [
            (result, ("Ready",), _network_data(result, find(result)))
            for result in claim.status.results
        ],
        now,
    )


def bound_devices(
    claim: ResourceClaim, *, fails: bool, now: str
) -> tuple[AllocatedDeviceStatus, ...]:
    """The status with which devices that must be made ready before binding report success or failure."""
    wanted = []
    for result in claim.status.results:
        types = result.binding_failure_conditions if fails else result.binding_conditions
        if types:
            wanted.append((result, types, None))
    return _with_conditions(claim, wanted, now)


def awaits_binding(claim: ResourceClaim) -> bool:
    """Whether a device of a claim has yet to report that it can be bound."""
    true = {
        (status.driver, status.pool, status.device, condition.type_)
        for status in claim.status.devices
        for condition in status.conditions
        if condition.status == "True"
    }
    return any(
        (result.driver, result.pool, result.device, type_) not in true
        for result in claim.status.results
        for type_ in result.binding_conditions
    )


def devices_write(
    claim: ResourceClaim, devices: Sequence[AllocatedDeviceStatus]
) -> PartsWrite[ResourceClaim]:
    """Replaces the devices of a claim's status, if the claim is still as it is known here."""
    parts: Parts = {("status", "devices"): [to_dict(device) for device in devices]}
    return PartsWrite.of(RESOURCE_CLAIMS, claim, parts, field_manager=MANAGER)


def _with_conditions(
    claim: ResourceClaim,
    wanted: Sequence[
        tuple[DeviceRequestAllocationResult, tuple[str, ...], NetworkDeviceData | None]
    ],
    now: str,
) -> tuple[AllocatedDeviceStatus, ...]:
    """The devices of a claim with more conditions that are true. What is already known of them is kept."""
    reported = [
        AllocatedDeviceStatus(
            driver=result.driver,
            pool=result.pool,
            device=result.device,
            share_id=result.share_id,
            conditions=tuple(_ready(type_) for type_ in types),
            network_data=network,
        )
        for result, types, network in wanted
    ]
    return with_statuses(claim.status.devices, reported, now)


def _ready(type_: str) -> Condition:
    return Condition(type_=type_, status="True", reason="Ready", message="the device is ready")


def _network_data(
    result: DeviceRequestAllocationResult, device: Device | None
) -> NetworkDeviceData | None:
    """What a driver of network interfaces says about one: recognised by the name of the interface."""
    if device is None or "dra.net/ifName" not in device.attributes:
        return None
    number = crc32(str(DeviceId.of(result)).encode())
    address = f"10.{224 + number % 16}.{number >> 8 & 255}.{1 + (number >> 16) % 254}/24"
    return NetworkDeviceData(
        interface_name=device.attributes["dra.net/ifName"].string or "",
        ips=(address,),
        hardware_address=mac.string or "" if (mac := device.attributes.get("dra.net/mac")) else "",
    )
