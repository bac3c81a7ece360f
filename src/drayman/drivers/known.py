"""The drivers that come with Drayman, by name, and how to find one of somebody else's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from drayman.api.near_names import did_you_mean

if TYPE_CHECKING:
    from drayman.drivers.kit.driver import Driver

DRIVERS: Final = {
    "gpu.example.com": "drayman.drivers.example.drivers:ExampleGpuDriver",
    "net.example.com": "drayman.drivers.example.drivers:ExampleNetDriver",
    "cpu.example.com": "drayman.drivers.example.drivers:ExampleCpuDriver",
    "gpu.nvidia.com": "drayman.drivers.nvidia.driver:NvidiaGpuDriver",
    "gpu.amd.com": "drayman.drivers.amd.driver:AmdGpuDriver",
    "gpu.intel.com": "drayman.drivers.intel.drivers:IntelGpuDriver",
    "gaudi.intel.com": "drayman.drivers.intel.drivers:GaudiDriver",
    "tpu.google.com": "drayman.drivers.google.driver:TpuDriver",
    "npu.furiosa.ai": "drayman.drivers.furiosa.driver:FuriosaDriver",
    "dra.net": "drayman.drivers.dranet.driver:NetworkDriver",
    "dra.cpu": "drayman.drivers.cpu.driver:CpuDriver",
}
"""Where each is: `module:class`."""


class UnknownDriverError(Exception):
    """There is no such driver. The message is one line that names it and says what there is."""


def find_driver(name: str) -> type[Driver]:
    """A driver by its own name, or by `module:class`. Raises UnknownDriverError."""
    place = DRIVERS.get(name, name)
    module, _, class_ = place.partition(":")
    if not class_:
        near = did_you_mean(name, DRIVERS)
        known = near or f"; there are {', '.join(DRIVERS)}, and others as module:class"
        raise UnknownDriverError(f"there is no driver {name!r}{known}")
    from drayman.drivers.kit.driver import Driver

    try:
        found = getattr(import_module(module), class_)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise UnknownDriverError(f"driver {name}: there is no module {module!r}") from None
    except AttributeError:
        raise UnknownDriverError(f"driver {name}: {module} has no {class_!r}") from None
    if not (isinstance(found, type) and issubclass(found, Driver)):
        raise UnknownDriverError(f"driver {name}: {class_} is no Driver")
    return found
