"""Defaulting: the values the API server fills in when an object is written.

The same object means the same thing before and after, so consumers may rely on every default being there. Times are handed in;
this module has no clock.
"""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from drayman.api.quantity import Quantity
from drayman.api.resource import (
    AllocationResult,
    Device,
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ExactDeviceRequest,
    NodeAllocatableResourceMapping,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.struct import ApiStruct

T = TypeVar("T", bound=ApiStruct)
_Request = TypeVar("_Request", ExactDeviceRequest, DeviceSubRequest)

EXACT_COUNT: Final = "ExactCount"
ONE: Final = Quantity(1)


def with_defaults(value: T, *, now: str, version: str = "v1") -> T:
    """The object as the API server would store it.

    `now` is an RFC 3339 time in whole seconds. `version` is the API version the object was written in: v1beta1 has a rule
    of its own for requests without a class.
    """
    defaulted: ApiStruct = value
    match value:
        case ResourceSlice():
            defaulted = _slice(value, now)
        case ResourceClaim():
            defaulted = _claim(value, version)
        case ResourceClaimTemplate():
            devices = _device_claim(value.spec.spec.devices, version)
            claim_spec = replace(value.spec.spec, devices=devices)
            defaulted = replace(value, spec=replace(value.spec, spec=claim_spec))
        case DeviceTaintRule():
            spec = replace(value.spec, taint=_taint(value.spec.taint, now))
            defaulted = replace(value, spec=spec)
    return defaulted  # type: ignore[return-value]


def _slice(value: ResourceSlice, now: str) -> ResourceSlice:
    devices = value.spec.devices
    if not devices or not any(d.taints or d.node_allocatable_resource_mappings for d in devices):
        return value
    defaulted = tuple(_device(device, now) for device in devices)
    return replace(value, spec=replace(value.spec, devices=defaulted))


def _device(device: Device, now: str) -> Device:
    return replace(
        device,
        taints=tuple(_taint(taint, now) for taint in device.taints),
        node_allocatable_resource_mappings={
            name: _mapping(mapping)
            for name, mapping in device.node_allocatable_resource_mappings.items()
        },
    )


def _taint(taint: DeviceTaint, now: str) -> DeviceTaint:
    return taint if taint.time_added is not None else replace(taint, time_added=now)


def _mapping(mapping: NodeAllocatableResourceMapping) -> NodeAllocatableResourceMapping:
    if mapping.allocation_multiplier is not None:
        return mapping
    return replace(mapping, allocation_multiplier=ONE)


def _claim(claim: ResourceClaim, version: str) -> ResourceClaim:
    spec = replace(claim.spec, devices=_device_claim(claim.spec.devices, version))
    status = claim.status
    if status.allocation is not None:
        status = replace(status, allocation=_allocation(status.allocation))
    return replace(claim, spec=spec, status=status)


def _allocation(allocation: AllocationResult) -> AllocationResult:
    results = tuple(
        replace(result, tolerations=_tolerations(result.tolerations))
        for result in allocation.devices.results
    )
    return replace(allocation, devices=replace(allocation.devices, results=results))


def _device_claim(claim: DeviceClaim, version: str) -> DeviceClaim:
    return replace(
        claim, requests=tuple(_device_request(request, version) for request in claim.requests)
    )


def _device_request(request: DeviceRequest, version: str) -> DeviceRequest:
    exactly = request.exactly
    if exactly is not None:
        # In v1beta1 a request without a class may be one of alternatives, so it gets no mode and no count.
        if version == "v1beta1" and not exactly.device_class_name:
            exactly = replace(exactly, tolerations=_tolerations(exactly.tolerations))
        else:
            exactly = _counted(exactly)
    return replace(
        request,
        exactly=exactly,
        first_available=tuple(_counted(alternative) for alternative in request.first_available),
    )


def _counted(request: _Request) -> _Request:
    mode = request.allocation_mode or EXACT_COUNT
    count = 1 if mode == EXACT_COUNT and request.count == 0 else request.count
    return replace(
        request, allocation_mode=mode, count=count, tolerations=_tolerations(request.tolerations)
    )


def _tolerations(tolerations: tuple[DeviceToleration, ...]) -> tuple[DeviceToleration, ...]:
    return tuple(
        toleration if toleration.operator else replace(toleration, operator="Equal")
        for toleration in tolerations
    )
