"""Resources that device plugins advertise, and the devices that DRA drivers have for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from drayman.migrate.vendors import (
    AMD,
    FURIOSA,
    GAUDI,
    INTEL,
    NVIDIA,
    NVIDIA_MIG,
    QAT,
    TPU,
    attribute,
    quoted,
)


@dataclass(frozen=True, slots=True)
class PluginDevice:
    """What one unit of a resource stands for: a device of a class."""

    driver: str
    class_name: str
    request: str
    """A name for a request for it."""
    selector: str = ""


_WHOLE: Final = {
    "nvidia.com/gpu": PluginDevice(NVIDIA, NVIDIA, "gpu"),
    "amd.com/gpu": PluginDevice(AMD, AMD, "gpu"),
    "gpu.intel.com/i915": PluginDevice(INTEL, INTEL, "gpu"),
    "gpu.intel.com/xe": PluginDevice(INTEL, INTEL, "gpu"),
    "habana.ai/gaudi": PluginDevice(GAUDI, GAUDI, "gaudi"),
    "google.com/tpu": PluginDevice(TPU, TPU, "tpu"),
    "furiosa.ai/rngd": PluginDevice(FURIOSA, FURIOSA, "npu"),
    "qat.intel.com/generic": PluginDevice(QAT, QAT, "qat"),
}
_MIG: Final = re.compile(r"nvidia\.com/mig-(\d+g\.\d+gb)((?:\.(?:me|gfx|all))*)")
_AMD_PARTITION: Final = re.compile(r"amd\.com/((?:spx|dpx|tpx|qpx|cpx)_nps\d)")

_SHARED: Final = (
    "stands for a share of a device; pods share one when they name the same ResourceClaim, and the"
    " driver's configuration in it says how (TimeSlicing, MPS)"
)
_MONITORING: Final = "all devices for monitoring are asked for with adminAccess, in a namespace that is labelled for it"
_NETWORK: Final = (
    "network devices are given by the driver dra.net, whose classes each cluster makes for itself"
)
_UNKNOWN: Final = "no DRA driver is known for it here"
_REFUSED: Final = (
    (re.compile(r"nvidia\.com/(?:gpu|mig-[\w.]+)\.shared"), _SHARED),
    (re.compile(r"gpu\.intel\.com/(?:i915|xe)_monitoring"), _MONITORING),
    (re.compile(r"gpu\.intel\.com/.+"), _UNKNOWN),
    (re.compile(r"vpc\.amazonaws\.com/efa|rdma/.+|nvidia\.com/(?:hostdev|roce|ib).*"), _NETWORK),
    (
        re.compile(r"qat\.intel\.com/.+"),
        "choose devices of qat.intel.com by their attribute services",
    ),
    (re.compile(r"(?:nvidia|amd|aws\.amazon|habana)\.(?:com|ai)/.+"), _UNKNOWN),
)


def device_for(resource: str) -> PluginDevice | None:
    """The device that a resource stands for; None if it is not known to stand for one."""
    if found := _WHOLE.get(resource):
        return found
    if match := _MIG.fullmatch(resource):
        # The plugin writes the + of a profile with extensions as a dot, as names may not contain a +.
        profile = match[1] + match[2].replace(".", "+", 1)
        name = re.sub(r"[.+]", "-", f"mig-{profile}")
        selector = f"{attribute(NVIDIA, 'profile')} == {quoted(profile)}"
        return PluginDevice(NVIDIA, NVIDIA_MIG, name, selector)
    if match := _AMD_PARTITION.fullmatch(resource):
        selector = f"{attribute(AMD, 'partitionProfile')} == {quoted(match[1])}"
        return PluginDevice(AMD, AMD, match[1].replace("_", "-"), selector)
    return None


def refusal_of(resource: str) -> str:
    """Why a resource that is known to be one of a device plugin cannot become a request; empty for any other."""
    return next((why for pattern, why in _REFUSED if pattern.fullmatch(resource)), "")


def is_of_plugin(resource: str) -> bool:
    """Whether a resource is one that is known here."""
    return device_for(resource) is not None or bool(refusal_of(resource))
