"""The status of a ResourceClaim: allocation, reservations and what drivers report about devices."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Final

import msgspec
from msgspec.structs import replace

from drayman.api import formats
from drayman.api.core import NodeSelector
from drayman.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from drayman.api.validation.containers import Errors, check_list, check_set
from drayman.api.validation.device import check_binding_conditions
from drayman.api.validation.field_errors import (
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from drayman.api.validation.metadata import IMMUTABLE, check_conditions, check_metadata_update
from drayman.api.validation.names import (
    dns_label,
    driver_name,
    interface_address,
    opaque_object,
    pool_name,
    share_id,
)
from drayman.api.validation.node_selectors import check_node_selector
from drayman.api.validation.requests import RequestNames
from drayman.api.validation.selectors import MAX_CONFIGS, check_opaque

MAX_RESULTS: Final = 32
MAX_ALLOCATION_CONFIGS: Final = 2 * MAX_CONFIGS
"""The configuration of a class and of a claim."""
MAX_RESERVATIONS: Final = 256
MAX_DEVICE_CONDITIONS: Final = 8
MAX_ADDRESSES: Final = 16
INTERFACE_NAME_LENGTH: Final = 256
HARDWARE_ADDRESS_LENGTH: Final = 128
CONFIG_SOURCES: Final = ("FromClaim", "FromClass")

_UNLIMITED: Final = math.inf
_SELECTORS_KEPT: Final = 1024


class DeviceKey(msgspec.Struct, frozen=True):
    """Which device, or share of one, something is about. Messages show it with the names upstream has for these."""

    driver: str = msgspec.field(name="Driver")
    pool: str = msgspec.field(name="Pool")
    device: str = msgspec.field(name="Device")
    share_id: str = msgspec.field(name="ShareID")


def validate(new: ResourceClaim, old: ResourceClaim) -> list[FieldError]:
    """The errors of an update of the status. An allocation may be set and removed but never changed."""
    return [
        *check_metadata_update(new.metadata, old.metadata),
        *check_status(
            new.status,
            old.status,
            RequestNames.of(new.spec.devices),
            deleting=new.metadata.deletion_timestamp is not None,
        ),
    ]


def check_status(
    new: ResourceClaimStatus, old: ResourceClaimStatus, names: RequestNames, *, deleting: bool
) -> Errors:
    yield from check_set(
        new.reserved_for,
        MAX_RESERVATIONS,
        _reservation,
        lambda consumer: consumer.uid,
        "status.reservedFor",
    )
    if new.devices:
        yield from _device_statuses(new)
    if new.reserved_for and new.allocation is None:
        yield forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif deleting and set(new.reserved_for) - set(old.reserved_for):
        detail = (
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp`"
            " are set"
        )
        yield forbidden("status.reservedFor", detail)
    if new.allocation is None:
        return
    if old.allocation is None:
        yield from _allocation(new.allocation, names, "status.allocation")
    elif new.allocation != old.allocation:
        yield invalid("status.allocation", new.allocation, IMMUTABLE)


def _reservation(consumer: ResourceClaimConsumerReference, path: str) -> Errors:
    for name in ("resource", "name", "uid"):
        if not getattr(consumer, name):
            yield required(f"{path}.{name}")


def _allocation(allocation: AllocationResult, names: RequestNames, path: str) -> Errors:
    results, config = allocation.devices.results, allocation.devices.config
    where = f"{path}.devices"
    yield from check_list(results, MAX_RESULTS, partial(_result, names), f"{where}.results")
    check_config = partial(_config, names)
    yield from check_list(config, MAX_ALLOCATION_CONFIGS, check_config, f"{where}.config")
    if allocation.node_selector is not None:
        yield from _selector_errors(allocation.node_selector, f"{path}.nodeSelector")


@lru_cache(maxsize=_SELECTORS_KEPT)
def _selector_errors(selector: NodeSelector, path: str) -> tuple[FieldError, ...]:
    """Remembered: most allocations are of devices of one node, so there are about as many selectors as nodes."""
    return tuple(check_node_selector(selector, path))


def _result(names: RequestNames, result: DeviceRequestAllocationResult, path: str) -> Errors:
    """One allocated device. Its tolerations and consumed capacity are the scheduler's copies and not checked."""
    yield from names.check(result.request, f"{path}.request")
    yield from driver_name(result.driver, f"{path}.driver")
    yield from pool_name(result.pool, f"{path}.pool")
    yield from dns_label(result.device, f"{path}.device")
    yield from check_binding_conditions(
        result.binding_conditions, result.binding_failure_conditions, path
    )
    if result.share_id is not None:
        yield from share_id(result.share_id, f"{path}.shareID")


def _config(names: RequestNames, config: DeviceAllocationConfiguration, path: str) -> Errors:
    if not config.source:
        yield required(f"{path}.source")
    elif config.source not in CONFIG_SOURCES:
        yield not_supported(f"{path}.source", config.source, CONFIG_SOURCES)
    yield from names.check_all(config.requests, f"{path}.requests")
    yield from check_opaque(config.opaque, f"{path}.opaque")


def _device_statuses(status: ResourceClaimStatus) -> Errors:
    allocated: set[DeviceKey] = set()
    if status.allocation is not None:
        allocated.update(map(_key, status.allocation.devices.results))

    def check(device: AllocatedDeviceStatus, path: str) -> Errors:
        yield from _device_status(device, path)
        if _key(device) not in allocated:
            yield invalid(path, _key(device), "must be an allocated device in the claim")

    yield from check_set(status.devices, _UNLIMITED, check, _key, "status.devices")


def _key(device: AllocatedDeviceStatus | DeviceRequestAllocationResult) -> DeviceKey:
    return DeviceKey(device.driver, device.pool, device.device, device.share_id or "")


def _device_status(device: AllocatedDeviceStatus, path: str) -> Errors:
    yield from driver_name(device.driver, f"{path}.driver")
    yield from pool_name(device.pool, f"{path}.pool")
    yield from dns_label(device.device, f"{path}.device")
    if device.share_id is not None:
        yield from share_id(device.share_id, f"{path}.shareID")
    if len(device.conditions) > MAX_DEVICE_CONDITIONS:
        yield too_many(f"{path}.conditions", len(device.conditions), MAX_DEVICE_CONDITIONS)
    yield from check_conditions(device.conditions, f"{path}.conditions")
    if device.data is not None:
        yield from opaque_object(device.data, f"{path}.data", stored=False)
    if device.network_data is not None:
        yield from _network(device.network_data, f"{path}.networkData")


def _network(data: NetworkDeviceData, path: str) -> Errors:
    if formats.byte_length(data.interface_name) > INTERFACE_NAME_LENGTH:
        yield too_long(f"{path}.interfaceName", INTERFACE_NAME_LENGTH)
    if formats.byte_length(data.hardware_address) > HARDWARE_ADDRESS_LENGTH:
        yield too_long(f"{path}.hardwareAddress", HARDWARE_ADDRESS_LENGTH)
    yield from check_set(data.ips, MAX_ADDRESSES, interface_address, str, f"{path}.ips")


def without_stale_device_status(new: ResourceClaim, old: ResourceClaim) -> ResourceClaim:
    """The claim without what drivers reported about devices that this update takes away, as the API server drops it."""
    gone = set(map(_key, old.status.results)) - set(map(_key, new.status.results))
    if not gone:
        return new
    devices = tuple(device for device in new.status.devices if _key(device) not in gone)
    return replace(new, status=replace(new.status, devices=devices))
