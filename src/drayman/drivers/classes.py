"""The DeviceClasses that come with the installation of each driver: of simulated hardware, and of drivers that run on a node."""

from __future__ import annotations

from typing import Final

from drayman.api.resource import DeviceClass
from drayman.drivers.describing import device_class

_COMPUTE_DOMAIN: Final = (
    "device.driver == 'compute-domain.nvidia.com'"
    " && device.attributes['compute-domain.nvidia.com'].type == "
)
_CHANNEL: Final = (
    f"{_COMPUTE_DOMAIN}'channel' && device.attributes['compute-domain.nvidia.com'].id == 0"
)
_OF_DRANET: Final = "device.driver == 'dra.net'"


def _nvidia(name: str, type_: str, extended_resource: str | None = None) -> DeviceClass:
    expression = (
        "device.driver == 'gpu.nvidia.com'"
        f" && device.attributes['gpu.nvidia.com'].type == '{type_}'"
    )
    return device_class(name, expression, extended_resource)


_CLASSES: Final = {
    "gpu.nvidia.com": (
        _nvidia("gpu.nvidia.com", "gpu", extended_resource="nvidia.com/gpu"),
        _nvidia("mig.nvidia.com", "mig"),
        _nvidia("vfio.gpu.nvidia.com", "vfio"),
    ),
    "compute-domain.nvidia.com": (
        device_class("compute-domain-daemon.nvidia.com", f"{_COMPUTE_DOMAIN}'daemon'"),
        device_class("compute-domain-default-channel.nvidia.com", _CHANNEL),
        # What the channel was called before there were compute domains; the driver's quick start still asks for it.
        device_class("imex.nvidia.com", _CHANNEL),
    ),
    "gpu.intel.com": (
        device_class("gpu.intel.com"),
        device_class("gpu-vfio.intel.com", "device.driver == 'gpu.intel.com'"),
    ),
    # DRANET comes without classes; these are the ones that its users write.
    "dra.net": (
        device_class("dranet", _OF_DRANET),
        device_class("rdma", f"{_OF_DRANET} && device.attributes['dra.net'].rdma == true"),
    ),
    "gpu.example.com": (device_class("gpu.example.com", extended_resource="example.com/gpu"),),
}
EFA: Final = device_class(
    "efa",
    f"{_OF_DRANET} && device.attributes['dra.net'].pciDevice == 'Elastic Fabric Adapter (EFA)'",
)
"""Not for DRANET everywhere: only Amazon's machines have such interfaces."""


def classes_of(*drivers: str) -> tuple[DeviceClass, ...]:
    """The classes of drivers. One that is not known here has a class of its own name, for all its devices."""
    return tuple(
        each for driver in drivers for each in _CLASSES.get(driver) or (device_class(driver),)
    )
