"""Claims whose devices are meant to be shared: what the configuration for NVIDIA's driver says about time-slicing and MPS.

Such a configuration does not make a device smaller. The claim holds the whole of it, and all who use the claim have a share: with MPS the
percentage that is configured, otherwise equal ones. So a claim of one pod costs the device, and a claim that several workloads use costs
each of them its share (`quota/claims`). Where a driver divides devices itself, by counters or capacities, that is what is charged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from drayman.api.resource import (
    DeviceClaim,
    DeviceClass,
    OpaqueDeviceConfiguration,
    RequestSpec,
    ResourceClaimSpec,
)
from drayman.api.struct import Json
from drayman.quota.claims.prices import Share

_DRIVER: Final = "gpu.nvidia.com"
_GROUP: Final = "resource.nvidia.com/"
_KINDS: Final = ("GpuConfig", "MigDeviceConfig")
_TIME_SLICING: Final = "TimeSlicing"
_MPS: Final = "MPS"


def share_of(spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass]) -> Share | None:
    """How the devices of a claim are shared; None if any of them is not. Of several ways, the one with the largest parts."""
    found: list[Share] = []
    for request in spec.devices.requests:
        for name, each in request.alternatives():
            share = _of_request(request.name, name, each, spec.devices, classes)
            if share is None:
                return None
            found.append(share)
    return max(found, key=lambda share: share.part or 0, default=None)


def _of_request(
    main: str, name: str, spec: RequestSpec, claim: DeviceClaim, classes: Mapping[str, DeviceClass]
) -> Share | None:
    """Configuration of the class comes first and that of the claim after it; the last one that is about sharing decides."""
    device_class = classes.get(spec.device_class_name)
    given = [config.opaque for config in device_class.spec.config] if device_class else []
    given += [
        config.opaque
        for config in claim.config
        if not config.requests or main in config.requests or name in config.requests
    ]
    shares = list(_shares(given))
    return shares[-1] if shares else None


def _shares(given: Iterable[OpaqueDeviceConfiguration | None]) -> Iterator[Share | None]:
    """What each configuration of the driver says; None for one that shares nothing."""
    for opaque in given:
        if opaque is None or opaque.driver != _DRIVER or not isinstance(opaque.parameters, dict):
            continue
        version, kind = opaque.parameters.get("apiVersion"), opaque.parameters.get("kind")
        if kind in _KINDS and str(version).startswith(_GROUP):
            yield _share(opaque.parameters.get("sharing"))


def _share(sharing: Json) -> Share | None:
    if not isinstance(sharing, dict):
        return None
    strategy = sharing.get("strategy")
    if strategy == _TIME_SLICING:
        return Share(_TIME_SLICING)
    if strategy != _MPS:
        return None
    config = sharing.get("mpsConfig")
    percentage = config.get("defaultActiveThreadPercentage") if isinstance(config, dict) else None
    if isinstance(percentage, int) and 0 < percentage < 100:
        return Share(_MPS, Fraction(percentage, 100))
    return Share(_MPS)
