"""The drivers that come with Drayman, by name, and how to find one of somebody else's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from drayman.api.near_names import did_you_mean

if TYPE_CHECKING:
    from drayman.drivers.kit.driver import Driver


class Known(Struct, frozen=True):
    """A driver that comes along."""

    place: str
    """`module:class`."""
    devices: str
    """What it offers, in a few words."""
    examples: tuple[str, ...] = ()
    """Options of its own that its help shows in use."""


_EXAMPLE: Final = "drayman.drivers.example.drivers"
_INTEL: Final = "drayman.drivers.intel.drivers"
DRIVERS: Final = {
    "gpu.example.com": Known(
        f"{_EXAMPLE}:ExampleGpuDriver", "GPUs that are made up, to try things on any machine"
    ),
    "net.example.com": Known(f"{_EXAMPLE}:ExampleNetDriver", "network cards that are made up"),
    "cpu.example.com": Known(
        f"{_EXAMPLE}:ExampleCpuDriver", "CPUs of the machine, as one NUMA node"
    ),
    "gpu.nvidia.com": Known(
        "drayman.drivers.nvidia.driver:NvidiaGpuDriver",
        "GPUs of NVIDIA, whole, shared and in MIG partitions",
        ("--dynamic-mig", "--keep-settings"),
    ),
    "gpu.amd.com": Known(
        "drayman.drivers.amd.driver:AmdGpuDriver", "GPUs of AMD and their partitions"
    ),
    "gpu.intel.com": Known(f"{_INTEL}:IntelGpuDriver", "GPUs of Intel"),
    "gaudi.intel.com": Known(f"{_INTEL}:GaudiDriver", "Gaudi accelerators of Intel"),
    "tpu.google.com": Known(
        "drayman.drivers.google.driver:TpuDriver", "TPU chips of a single host"
    ),
    "npu.furiosa.ai": Known(
        "drayman.drivers.furiosa.driver:FuriosaDriver", "RNGD cards of Furiosa"
    ),
    "dra.net": Known(
        "drayman.drivers.dranet.driver:NetworkDriver", "network interfaces, with RDMA"
    ),
    "dra.cpu": Known("drayman.drivers.cpu.driver:CpuDriver", "CPUs that a claim has to itself"),
}
"""By name, those for any machine first."""


class UnknownDriverError(Exception):
    """There is no such driver. The message is one line that names it and says what there is."""


def find_driver(name: str) -> type[Driver]:
    """A driver by its own name, or by `module:class`. Raises UnknownDriverError."""
    place = DRIVERS[name].place if name in DRIVERS else name
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
