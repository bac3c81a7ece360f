"""Where a device is and what sort it is, from what its driver publishes."""

from __future__ import annotations

import pytest

from drayman.api.resource import Device, DeviceAttribute
from drayman.topology import DeviceKind, Locality, kind, locality


def text(value: str) -> DeviceAttribute:
    return DeviceAttribute(string=value)


def number(value: int) -> DeviceAttribute:
    return DeviceAttribute(int_=value)


STANDARD = {
    "resource.kubernetes.io/pcieRoot": text("pci0000:15"),
    "resource.kubernetes.io/pciBusID": text("0000:1b:00.0"),
    "resource.kubernetes.io/numaNode": number(1),
}

CASES = {
    "standard names": ("any.example.com", STANDARD, Locality("pci0000:15", 1, "0000:1b:00.0")),
    "nothing published": ("any.example.com", {}, Locality()),
    "DRANET's own names": (
        "dra.net",
        {"dra.net/numaNode": number(0), "dra.net/pciAddress": text("0000:0c:00.0")},
        Locality(None, 0, "0000:0c:00.0"),
    ),
    "AMD's full GPU": (
        "gpu.amd.com",
        {"pciAddr": text("0000:05:00.0"), "resource.kubernetes.io/pcieRoot": text("pci0000:00")},
        Locality("pci0000:00", None, "0000:05:00.0"),
    ),
    "AMD's partition is where its parent is": (
        "gpu.amd.com",
        {"parentPciAddr": text("0000:05:00.0")},
        Locality(None, None, "0000:05:00.0"),
    ),
    "Intel's deprecated names": (
        "gpu.intel.com",
        {"pciRoot": text("pci0000:03"), "pciAddress": text("0000:04:00.0")},
        Locality("pci0000:03", None, "0000:04:00.0"),
    ),
    "the CPU driver's names": ("dra.cpu", {"numaNodeID": number(3)}, Locality(None, 3, None)),
    "another driver's informal NUMA name": (
        "any.example.com",
        {"dra.net/numaNode": number(2)},
        Locality(None, 2, None),
    ),
    "the standard name wins over an informal one": (
        "dra.net",
        {"resource.kubernetes.io/numaNode": number(1), "dra.net/numaNode": number(0)},
        Locality(None, 1, None),
    ),
    "a list of NUMA nodes has the physical one first": (
        "any.example.com",
        {"resource.kubernetes.io/numaNode": DeviceAttribute(ints=(2, 3))},
        Locality(None, 2, None),
    ),
    "a list of several roots is no single place": (
        "dra.cpu",
        {"resource.kubernetes.io/pcieRoot": DeviceAttribute(strings=("pci0000:00", "pci0000:15"))},
        Locality(),
    ),
    "a list of one root is that root": (
        "any.example.com",
        {"resource.kubernetes.io/pcieRoot": DeviceAttribute(strings=("pci0000:15",))},
        Locality("pci0000:15", None, None),
    ),
    "the kernel's -1 means unknown": (
        "any.example.com",
        {"resource.kubernetes.io/numaNode": number(-1)},
        Locality(),
    ),
    "a value of another type says nothing": (
        "any.example.com",
        {"resource.kubernetes.io/pcieRoot": number(3), "numaNode": text("0")},
        Locality(),
    ),
    "a bus id that is none is left out": (
        "any.example.com",
        {"resource.kubernetes.io/pciBusID": text("slot 4")},
        Locality(),
    ),
    "a bus id is compared in lower case": (
        "any.example.com",
        {"resource.kubernetes.io/pciBusID": text("0000:AB:00.0")},
        Locality(None, None, "0000:ab:00.0"),
    ),
    "an SXM GPU has NVLink to its peers": (
        "gpu.nvidia.com",
        {"type": text("gpu"), "productName": text("NVIDIA H100 80GB HBM3")},
        Locality(nvlinks=18, fabric="NVIDIA H100 80GB HBM3"),
    ),
    "a stated NVLink group wins over what the product implies": (
        "gpu.nvidia.com",
        {
            "type": text("gpu"),
            "productName": text("NVIDIA H100 80GB HBM3"),
            "nvlinkDomain": text("left"),
        },
        Locality(nvlinks=18, fabric="left"),
    ),
    "an NVLink group may be a number, under a name that any driver can use": (
        "gpu.example.com",
        {"drayman.dev/nvlinkGroup": number(1)},
        Locality(fabric="1"),
    ),
    "Instinct GPUs of one board are joined by XGMI": (
        "gpu.amd.com",
        {"type": text("amdgpu"), "productName": text("AMD_Instinct_MI300X_OAM")},
        Locality(fabric="AMD_Instinct_MI300X_OAM"),
    ),
    "the CPU driver names the socket": (
        "dra.cpu",
        {"socketID": number(1), "numaNodeID": number(3)},
        Locality(numa=3, socket=1),
    ),
    "a partition of it has not": (
        "gpu.nvidia.com",
        {"type": text("mig"), "productName": text("NVIDIA H100 80GB HBM3")},
        Locality(),
    ),
    "nor has the PCIe card": (
        "gpu.nvidia.com",
        {"type": text("gpu"), "productName": text("NVIDIA H100 PCIe")},
        Locality(),
    ),
}


@pytest.mark.parametrize(("driver", "attributes", "want"), CASES.values(), ids=CASES)
def test_locality_reads_what_drivers_publish(
    driver: str, attributes: dict[str, DeviceAttribute], want: Locality
) -> None:
    """Each fact is found under the standard name or the driver's own, and is None where neither is there."""
    assert locality(driver, Device(name="d", attributes=attributes)) == want


KINDS = {
    "a GPU": ("gpu.nvidia.com", "gpu", DeviceKind.GPU),
    "a MIG partition": ("gpu.nvidia.com", "mig", DeviceKind.GPU),
    "an AMD partition": ("gpu.amd.com", "amdgpu-partition", DeviceKind.GPU),
    "an NVLink channel": ("compute-domain.nvidia.com", "channel", DeviceKind.OTHER),
    "a TPU": ("tpu.google.com", None, DeviceKind.GPU),
    "a network interface": ("dra.net", "device", DeviceKind.NIC),
    "CPUs": ("dra.cpu", None, DeviceKind.CPU),
    "an unknown driver with a telling name": ("gpu.example.com", None, DeviceKind.GPU),
    "a telling word inside a label": ("fast-nic.example.com", None, DeviceKind.NIC),
    "a top-level domain tells nothing": ("storage.example.net", None, DeviceKind.OTHER),
    "an unknown driver with a telling type": ("devices.example.com", "nic", DeviceKind.NIC),
    "an unknown driver": ("devices.example.com", None, DeviceKind.OTHER),
    "a crypto accelerator is none of them": ("qat.intel.com", "gpu", DeviceKind.OTHER),
}


@pytest.mark.parametrize(("driver", "type_", "want"), KINDS.values(), ids=KINDS)
def test_kind_is_told_by_the_driver(driver: str, type_: str | None, want: DeviceKind) -> None:
    """The driver's name says what sort of device it is; the `type` attribute helps where it does not."""
    attributes = {} if type_ is None else {"type": text(type_)}
    assert kind(driver, Device(name="d", attributes=attributes)) is want


def test_places_can_be_keys() -> None:
    """Equal places are equal keys, so devices can be grouped by them."""
    places = {locality("x", Device(name=name, attributes=STANDARD)) for name in ("a", "b")}
    assert len(places) == 1
