"""What the parameter objects of v1alpha2's drivers ask for, as requests and configuration of v1.

Drivers had their own kinds for this. NVIDIA's and Intel's are known here; those of resource.k8s.io, which a driver or a
user could write instead, are in `named_resources`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from drayman.api.struct import Json
from drayman.migrate.gpu_selectors import Complain, selector_expression
from drayman.migrate.shapes import Object, child, text, without
from drayman.migrate.vendors import (
    INTEL,
    NVIDIA,
    NVIDIA_MIG,
    RENAMED_DRIVERS,
    attribute,
    capacity,
    of_type,
    quoted,
)

NVIDIA_GROUP: Final = "gpu.resource.nvidia.com"
INTEL_GROUP: Final = "gpu.resource.intel.com"
_CONFIG_VERSION: Final = "resource.nvidia.com/v1beta1"
_MPS_FIELDS: Final = (
    "defaultActiveThreadPercentage",
    "defaultPinnedDeviceMemoryLimit",
    "defaultPerDevicePinnedMemoryLimit",
)


@dataclass(slots=True)
class Asked:
    """What a claim asks for."""

    requests: list[Object] = field(default_factory=list)
    config: list[Object] = field(default_factory=list)

    def spec(self) -> Object:
        """The `devices` of a claim."""
        devices: Object = {"requests": [*self.requests]}
        return {**devices, "config": [*self.config]} if self.config else devices


def exact_request(
    name: str, class_name: str, *, count: int = 1, selectors: tuple[str, ...] = ()
) -> Object:
    """A request for a number of devices of a class."""
    exactly: Object = {"deviceClassName": class_name}
    if chosen := [each for each in selectors if each]:
        exactly["selectors"] = [{"cel": {"expression": each}} for each in chosen]
    if count != 1:
        exactly |= {"allocationMode": "ExactCount", "count": count}
    return {"name": name, "exactly": exactly}


Reader = Callable[[Object, str, str, Complain], Asked | None]
"""Takes the parameters, the name of the claim's class, the path of the parameters and a callback for what is lost."""


def reader_of(group: str, kind: str) -> Reader | None:
    """The reader for a kind of parameters."""
    return _READERS.get((group, kind))


def _gpus(spec: Object, class_name: str, path: str, complain: Complain) -> Asked | None:
    _complain_of_rest(spec, ("count", "selector", "sharing"), path, complain)
    count = spec.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        complain(f"{path}.count", f"{count} is not a number of devices")
        return None
    selector = selector_expression(child(spec, "selector"), f"{path}.selector", complain)
    chosen, *more = _class_for(class_name, NVIDIA, "gpu")
    request = exact_request("gpu", chosen, count=count, selectors=(*more, selector))
    return Asked([request], _sharing(spec, "gpu", "GpuConfig", path, complain))


def _partition(spec: Object, class_name: str, path: str, complain: Complain) -> Asked | None:
    _complain_of_rest(spec, ("profile", "sharing", "gpuClaimName"), path, complain)
    profile = text(spec, "profile")
    if not profile:
        complain(f"{path}.profile", "is not given, and a partition has no size without it")
        return None
    if text(spec, "gpuClaimName"):
        complain(
            f"{path}.gpuClaimName",
            "a claim cannot name another; to have partitions of one GPU, ask for them in one claim"
            " with matchAttribute gpu.nvidia.com/parentUUID",
        )
    chosen, *more = _class_for(class_name, NVIDIA_MIG, "mig")
    selector = f"{attribute(NVIDIA, 'profile')} == {quoted(profile)}"
    request = exact_request("mig", chosen, selectors=(*more, selector))
    return Asked([request], _sharing(spec, "mig", "MigDeviceConfig", path, complain))


def _compute_instance(_spec: Object, _class: str, path: str, complain: Complain) -> Asked | None:
    complain(path, "the driver no longer hands out compute instances within a partition")
    return None


def _intel_gpus(spec: Object, class_name: str, path: str, complain: Complain) -> Asked | None:
    _complain_of_rest(spec, ("count", "memory", "type", "shareable"), path, complain)
    count = spec.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        complain(f"{path}.count", f"{count} is not a number of devices")
        return None
    selectors = []
    if memory := spec.get("memory"):
        bound = quoted(f"{memory}Mi")
        selectors.append(f"{capacity(INTEL, 'memory')}.compareTo(quantity({bound})) >= 0")
    if type_ := text(spec, "type"):
        selectors.append(of_type(INTEL, type_))
    return Asked([exact_request("gpu", class_name, count=count, selectors=(*selectors,))])


_READERS: Final[dict[tuple[str, str], Reader]] = {
    (NVIDIA_GROUP, "GpuClaimParameters"): _gpus,
    (NVIDIA_GROUP, "MigDeviceClaimParameters"): _partition,
    (NVIDIA_GROUP, "ComputeInstanceParameters"): _compute_instance,
    (NVIDIA_GROUP, "ComputeInstanceClaimParameters"): _compute_instance,
    (INTEL_GROUP, "GpuClaimParameters"): _intel_gpus,
}


def _class_for(class_name: str, shipped: str, type_: str) -> tuple[str, ...]:
    """The class for a type of device, and a selector where the class does not choose the type by itself."""
    if not class_name or RENAMED_DRIVERS.get(class_name, class_name) in (NVIDIA, shipped):
        return (shipped,)
    return class_name, of_type(NVIDIA, type_)


def _sharing(spec: Object, request: str, kind: str, path: str, complain: Complain) -> list[Object]:
    """How processes share the devices, in the driver's current terms."""
    given = child(spec, "sharing")
    if not given:
        return []
    sharing: Object = {"strategy": given.get("strategy", "TimeSlicing")}
    slicing = child(given, "timeSlicingConfig")
    if (interval := slicing.get("interval", slicing.get("timeSlice"))) is not None:
        sharing["timeSlicingConfig"] = {"interval": interval}
    if "mpsConfig" in given:
        sharing["mpsConfig"] = _mps(
            child(given, "mpsConfig"), f"{path}.sharing.mpsConfig", complain
        )
    known = ("strategy", "timeSlicingConfig", "mpsConfig")
    _complain_of_rest(given, known, f"{path}.sharing", complain)
    parameters: Json = {"apiVersion": _CONFIG_VERSION, "kind": kind, "sharing": sharing}
    return [{"requests": [request], "opaque": {"driver": NVIDIA, "parameters": parameters}}]


def _mps(config: Object, path: str, complain: Complain) -> Object:
    _complain_of_rest(config, _MPS_FIELDS, path, complain)
    return without(config, *(name for name in config if name not in _MPS_FIELDS))


def _complain_of_rest(value: Object, known: tuple[str, ...], path: str, complain: Complain) -> None:
    for name in value:
        if name not in known:
            complain(f"{path}.{name}", "has no counterpart in the current driver")
