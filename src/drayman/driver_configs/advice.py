"""Warnings about manifests for people who check files: what drivers will refuse of an object, which the API server accepts."""

from __future__ import annotations

from collections.abc import Iterator

from drayman.api.resource import DeviceClaim, DeviceClass, ResourceClaim, ResourceClaimTemplate
from drayman.api.struct import ApiStruct
from drayman.driver_configs.known import (
    IN_CLAIM,
    IN_TEMPLATE,
    refused_in_claim,
    refused_in_class,
)
from drayman.driver_configs.memory_limits import limits_beyond_shares, permits_overcommit


def advice_about(value: ApiStruct) -> Iterator[tuple[str, str]]:
    """Paths and messages about what drivers refuse of an object."""
    match value:
        case ResourceClaim():
            annotations = value.metadata.annotations
            yield from _about_claim(value.spec.devices, IN_CLAIM, annotations)
        case ResourceClaimTemplate():
            annotations = value.spec.metadata.annotations
            yield from _about_claim(value.spec.spec.devices, IN_TEMPLATE, annotations)
        case DeviceClass():
            for refused in refused_in_class(value):
                yield refused.path, f"driver {refused.driver} refuses it: {refused.problem}"


def _about_claim(
    devices: DeviceClaim, path: str, annotations: dict[str, str]
) -> Iterator[tuple[str, str]]:
    for refused in refused_in_claim(devices, path):
        yield refused.path, f"driver {refused.driver} refuses it: {refused.problem}"
    if not permits_overcommit(annotations):
        for index, request, limit, share in limits_beyond_shares(devices):
            text = f"each program may use {limit} of memory, and request {request} asks for a share of {share}"
            yield f"{path}.config[{index}].opaque.parameters", text
