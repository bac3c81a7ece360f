"""Machines like those of the hardware profiles: the files that a kernel would show of what a profile says it publishes.

What a driver publishes for such a machine is what the profile has, or one of the two is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drayman.api.resource import Device, ResourceSlice
from drayman.drivers.describing import Slot
from drayman.drivers.nvidia.devices import DRIVER as NVIDIA
from drayman.drivers.nvidia.devices import Gpu
from drayman.drivers.profiles.hardware import HardwareNode
from drayman.drivers.profiles.nvidia_products import MODELS
from drayman.testing.hardware import FakeMachine

_STANDARD = "resource.kubernetes.io"


def devices_of(node: HardwareNode, driver: str) -> list[Device]:
    """What a simulated node publishes for a driver."""
    return [device for each in node.slices if each.spec.driver == driver for device in _in(each)]


def _in(slice_: ResourceSlice) -> Iterable[Device]:
    return slice_.spec.devices or ()


def text(device: Device, name: str) -> str:
    """A string attribute of a device."""
    found = device.attributes[name]
    return found.string or found.version or ""


def slot_of(device: Device, bus_id: str = "") -> Slot:
    """Where a device sits, by its standard attributes."""
    root = device.attributes.get(f"{_STANDARD}/pcieRoot")
    numa = device.attributes.get(f"{_STANDARD}/numaNode")
    return Slot(
        bus_id or text(device, f"{_STANDARD}/pciBusID"),
        None if root is None else root.string,
        None if numa is None else numa.int_,
    )


def nvidia_gpus(node: HardwareNode) -> list[Gpu]:
    """The GPUs of a simulated node, whole or in parts."""
    found: dict[str, Gpu] = {}
    models = {model.product: model for model in MODELS}
    for device in devices_of(node, NVIDIA):
        name = device.name.partition("-mig-")[0]
        uuid = text(device, "uuid" if "uuid" in device.attributes else "parentUUID")
        model = models[text(device, "productName")]
        gpu = Gpu(model, int(name.rpartition("-")[2]), uuid, slot_of(device))
        found.setdefault(name, gpu)
    return list(found.values())


def add_nvidia_gpus(machine: FakeMachine, gpus: Iterable[Gpu]) -> None:
    """GPUs with NVIDIA's driver: PCI devices and device files."""
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"):
        machine.file(f"dev/{name}")
    for gpu in gpus:
        slot = gpu.slot
        folder = machine.pci(
            slot.bus_id,
            vendor="0x10de",
            device=gpu.model.pci_id,
            class_="0x030200",
            root=slot.pcie_root or "",
            numa=-1 if slot.numa is None else slot.numa,
            driver="nvidia",
        )
        machine.file(f"dev/nvidia{gpu.minor}")
        for node in _graphics(gpu.minor):
            machine.path(f"{folder}/drm/{node}").mkdir(parents=True)
            machine.file(f"dev/dri/{node}")


def _graphics(number: int) -> Iterator[str]:
    yield f"card{number}"
    yield f"renderD{128 + number}"


def add_capabilities(machine: FakeMachine, minor: int, instance: int, compute: int = 0) -> None:
    """The files by which NVIDIA's driver gives access to a partition."""
    home = f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{instance}"
    for number, path in ((10 * instance, home), (10 * instance + 1, f"{home}/ci{compute}")):
        machine.file(f"{path}/access", f"DeviceFileMinor: {number}\nDeviceFileMode: 292")
        machine.file(f"dev/nvidia-caps/nvidia-cap{number}")
