"""From a ResourceClaim to the claim that a driver sees: its own devices, each with its configuration."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.resource import Device, DeviceRequestAllocationResult, ResourceClaim
from drayman.driver_configs.decoding import DecodedConfigs, unreadable_fields
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import KitError, PrepareError
from drayman.drivers.kit.model import Allocated, Claim, Consumer
from drayman.plugins.model import ClaimRef

DeviceKey = tuple[str, str]
"""Pool and name."""


def require_readable(driver: Driver) -> None:
    """Raises KitError for a configuration class that none could be read into: each claim with parameters would fail."""
    for type_ in driver.configs:
        problems = list(unreadable_fields(type_))
        if problems:
            raise KitError(
                f"driver {driver.name}: no configuration can be read into {type_.__name__}: {'; '.join(problems)};"
                " a field can be a str, int or bool, another ApiStruct, a tuple[..., ...] or dict[str, ...] of those,"
                " or drayman.api.struct.Json"
            )


def own_results(claim: ResourceClaim, driver: str) -> list[DeviceRequestAllocationResult]:
    """The devices that a claim has from a driver."""
    return [result for result in claim.status.results if result.driver == driver]


def require_usable(claim: ResourceClaim, ref: ClaimRef, driver: str) -> None:
    """Raises PrepareError unless it is the claim that was meant, and has devices of the driver."""
    if claim.metadata.uid != ref.uid:
        raise PrepareError(
            f"claim {ref} was deleted and made again: its uid is {claim.metadata.uid}, not {ref.uid}"
        )
    if claim.status.allocation is None:
        raise PrepareError(f"claim {ref} is not allocated")
    if not own_results(claim, driver):
        raise PrepareError(f"claim {ref} has no device of {driver}")


def claim_of(
    claim: ResourceClaim, driver: Driver, devices: Mapping[DeviceKey, Device], state: object = None
) -> Claim:
    """Raises PrepareError if the driver has no such device, ConfigError for a configuration that it does not accept."""
    allocation = claim.status.allocation
    assert allocation is not None, "only claims that are allocated are prepared"
    configs = DecodedConfigs(driver.name, driver.configs, allocation.devices.config)
    found = []
    for result in own_results(claim, driver.name):
        device = devices.get((result.pool, result.device))
        if device is None:
            raise PrepareError(
                f"device {result.device} of pool {result.pool} is not on node {driver.node}"
            )
        found.append(
            Allocated(
                request=result.request,
                pool=result.pool,
                name=result.device,
                device=device,
                config=configs.for_device(result.request, driver.config_type(device)),
                share_id=result.share_id,
                consumed=result.consumed_capacity,
                admin_access=bool(result.admin_access),
            )
        )
    return Claim(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        devices=tuple(found),
        consumers=tuple(
            Consumer(each.resource, each.name, each.uid) for each in claim.status.reserved_for
        ),
        state=state,
    )
