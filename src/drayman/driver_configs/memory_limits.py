"""Limits on the memory of devices that several programs share, added up.

With MPS each program gets up to `defaultPinnedDeviceMemoryLimit` of a GPU, and neither Kubernetes nor CUDA compares the sum with the memory
that the GPU has: programs fail when it runs out. Drivers refuse to prepare a claim whose programs, together with those of other claims for
the same device, may use more. A claim that permits it has the annotation `drayman.dev/allow-memory-overcommit: "true"`.

Each container that uses a device counts as one program, of each pod for which the claim is reserved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from drayman.api.quantity import Format, Quantity
from drayman.api.resource import (
    Device,
    DeviceClaim,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from drayman.driver_configs.decoding import Config, ConfigError, decode
from drayman.driver_configs.known import CONFIGS, FindDevice, accepted_configs
from drayman.driver_configs.nvidia import mps_settings

ALLOW_OVERCOMMIT: Final = "drayman.dev/allow-memory-overcommit"
"""The annotation of a claim that permits limits beyond the memory of its devices. Templates give it to their claims."""
MEMORY: Final = "memory"
"""The capacity that limits are compared with."""

Programs = Callable[[ResourceClaim, str], int]
"""How many programs use the devices of a request of a claim at the same time."""
DeviceKey = tuple[str, str, str]
"""Driver, pool and name."""


class MemoryLimit(Struct, frozen=True):
    """What the programs of one claim may use of one device."""

    claim: str
    """Namespace and name."""
    device: DeviceKey
    amount: Quantity
    """Of each program."""
    programs: int
    available: Quantity | None
    """What the claim has of the device's memory, or the device if the claim has no share; None if that is not known."""
    is_share: bool

    @property
    def total(self) -> Quantity:
        return Quantity(self.amount.amount * self.programs, Format.BINARY_SI)

    def __str__(self) -> str:
        count = "1 program" if self.programs == 1 else f"{self.programs} programs"
        return f"{count} of claim {self.claim} with {self.amount}"


class Overcommit(Struct, frozen=True):
    """Limits that together exceed the memory of a device, or of a claim's share of it."""

    limits: tuple[MemoryLimit, ...]
    available: Quantity

    @property
    def total(self) -> Quantity:
        return Quantity(sum(each.total.amount for each in self.limits), Format.BINARY_SI)

    def __str__(self) -> str:
        """As in `the memory limits on device d/p/gpu-0 add up to 120Gi of 40Gi: 12 programs of claim ml/a with 10Gi`."""
        first = self.limits[0]
        what = "the share of device" if first.is_share else "device"
        parts = ", ".join(map(str, self.limits))
        return (
            f"the memory limits on {what} {'/'.join(first.device)} add up to {self.total}"
            f" of {self.available}: {parts}"
        )


def permits_overcommit(annotations: Mapping[str, str]) -> bool:
    """Whether a claim with these annotations permits limits beyond the memory of its devices."""
    return annotations.get(ALLOW_OVERCOMMIT) == "true"


def limited_results(
    claim: ResourceClaim, find: FindDevice
) -> Iterator[tuple[DeviceRequestAllocationResult, Config | None, Quantity | None]]:
    """The devices of an allocated claim, with their configurations and what each program may use of their memory; None without a limit."""
    positions: Counter[str] = Counter()
    for result, config in accepted_configs(claim, find):
        limit = _limit_on(config, find(result), positions[result.driver])
        positions[result.driver] += 1
        yield result, config, None if result.admin_access else limit


def _limit_on(config: Config | None, device: Device | None, position: int) -> Quantity | None:
    """What a configuration lets each program use of a device; None without a limit.

    `position` is that of the device among those of its claim and driver, by which a limit for one device may name it.
    """
    mps = mps_settings(config)
    if mps is None:
        return None
    named = device.attributes.get("uuid") if device is not None else None
    for key in (named.string or "" if named is not None else "", str(position)):
        if key in mps.default_per_device_pinned_memory_limit:
            return mps.default_per_device_pinned_memory_limit[key]
    return mps.default_pinned_device_memory_limit


def limits_of(claim: ResourceClaim, find: FindDevice, programs: Programs) -> Iterator[MemoryLimit]:
    """The limits that an allocated claim sets, one for each device or share that has one."""
    for result, _, amount in limited_results(claim, find):
        if amount is None:
            continue
        share = result.consumed_capacity.get(MEMORY)
        yield MemoryLimit(
            f"{claim.metadata.namespace}/{claim.metadata.name}",
            _key(result),
            amount,
            programs(claim, result.request),
            share if share is not None else _memory_of(find(result)),
            share is not None,
        )


def overcommits(
    claim: ResourceClaim,
    others: Iterable[ResourceClaim],
    find: FindDevice,
    programs: Programs,
) -> Iterator[Overcommit]:
    """The devices of an allocated claim on which limits add up to more than there is. None if the claim permits it."""
    if permits_overcommit(claim.metadata.annotations):
        return
    own = list(limits_of(claim, find, programs))
    if not own:
        return  # nearly always
    devices = {limit.device for limit in own}
    beside = [
        limit
        for other in others
        if other.metadata.uid != claim.metadata.uid
        and any(_key(result) in devices for result in other.status.results)
        for limit in limits_of(other, find, programs)
    ]
    for limit in own:
        together: tuple[MemoryLimit, ...] = (limit,)
        if not limit.is_share:
            together += tuple(
                each for each in beside if each.device == limit.device and not each.is_share
            )
        found = None if limit.available is None else Overcommit(together, limit.available)
        if found is not None and found.total > found.available:
            yield found


def refusal_of_limits(
    driver: str,
    claim: ResourceClaim,
    others: Iterable[ResourceClaim],
    find: FindDevice,
    programs: Programs,
) -> str:
    """Why a driver does not prepare an allocated claim whose limits do not fit; empty if they do."""
    for found in overcommits(claim, others, find, programs):
        if found.limits[0].device[0] == driver:
            return f'{found}; annotate the claim with {ALLOW_OVERCOMMIT}: "true" to permit it'
    return ""


def limits_beyond_shares(
    devices: DeviceClaim,
) -> Iterator[tuple[int, str, Quantity, Quantity]]:
    """Limits in a claim that exceed the share of memory that a request asks for: position of the configuration, request, limit, share."""
    for index, entry in enumerate(devices.config):
        opaque = entry.opaque
        if opaque is None or opaque.parameters is None or opaque.driver not in CONFIGS:
            continue
        try:
            mps = mps_settings(decode(opaque.parameters, CONFIGS[opaque.driver]))
        except ConfigError:
            continue  # which `refused_in_claim` reports
        limit = None if mps is None else mps.default_pinned_device_memory_limit
        for request in devices.requests if limit is not None else ():
            for name, asked in request.alternatives():
                share = asked.capacity.requests.get(MEMORY) if asked.capacity is not None else None
                if (
                    share is not None
                    and limit is not None
                    and limit > share
                    and (not entry.requests or {name, request.name} & set(entry.requests))
                ):
                    yield index, name, limit, share


def reserved_pods(claim: ResourceClaim, _request: str) -> int:
    """One program for each pod that a claim is reserved for, where their containers are not known."""
    return max(1, len(claim.status.reserved_for))


def _key(result: DeviceRequestAllocationResult) -> DeviceKey:
    return result.driver, result.pool, result.device


def _memory_of(device: Device | None) -> Quantity | None:
    found = None if device is None else device.capacity.get(MEMORY)
    return None if found is None else found.value
