"""Where PCI devices sit, read from trees that look like sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from drayman.drivers.describing import Slot, place
from drayman.drivers.pci import pci_device, pci_devices, slot_at
from drayman.testing import FakeMachine

GPU = {"vendor": "0x10de", "device": "0x2335", "class_": "0x030200"}
PLACES = {
    "behind a bridge of its root": (
        {"address": "0000:1b:00.0", "root": "pci0000:15", "numa": 0},
        Slot("0000:1b:00.0", "pci0000:15", 0),
    ),
    "on the bus of the root": (
        {"address": "0000:00:06.0", "numa": 1},
        Slot("0000:00:06.0", "pci0000:00", 1),
    ),
    "in a virtual machine, without a NUMA node": (
        {"address": "0000:00:06.0"},
        Slot("0000:00:06.0", "pci0000:00", None),
    ),
    "in another domain": (
        {"address": "0008:06:00.0", "numa": 0},
        Slot("0008:06:00.0", "pci0008:00", 0),
    ),
    "in a domain of five digits below another root": (
        {"address": "0009:01:00.0", "root": "pci10009:00", "numa": 2},
        Slot("0009:01:00.0", "pci10009:00", 2),
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_device_sits_where_its_link_leads(name: str, tmp_path: Path) -> None:
    """The root is the first part of the path below /sys/devices; no NUMA node is no attribute."""
    given, slot = PLACES[name]
    FakeMachine(tmp_path).pci(**given, **GPU)
    (found,) = pci_devices(tmp_path)
    assert found.slot == slot
    assert ("resource.kubernetes.io/numaNode" in place(slot)) == (slot.numa is not None)


def test_devices_are_found_by_address_with_what_sysfs_says(tmp_path: Path) -> None:
    """In the order of their addresses; an address in capitals is the same."""
    machine = FakeMachine(tmp_path)
    machine.pci("0000:9d:00.0", driver="nvidia", files={"serial": "123"}, **GPU)
    machine.pci("0000:1b:00.0", **GPU)
    assert [each.address for each in pci_devices(tmp_path)] == ["0000:1b:00.0", "0000:9d:00.0"]
    found = pci_device(tmp_path, "0000:9D:00.0")
    assert found is not None
    assert (found.vendor, found.device, found.class_) == ("0x10de", "0x2335", "0x030200")
    assert (found.driver, found.text("serial"), found.text("none")) == ("nvidia", "123", None)
    assert pci_device(tmp_path, "0000:00:00.0") is None
    assert list(pci_devices(tmp_path / "empty")) == []


def test_virtual_functions_and_groups_are_followed(tmp_path: Path) -> None:
    """By the links of the kernel."""
    machine = FakeMachine(tmp_path)
    parent = machine.pci("0000:1b:00.0", **GPU)
    child = machine.pci("0000:1b:00.1", **GPU)
    machine.link(f"{child}/physfn", parent)
    machine.path("sys/kernel/iommu_groups/7").mkdir(parents=True)
    machine.link(f"{child}/iommu_group", "sys/kernel/iommu_groups/7")
    physical, virtual = pci_devices(tmp_path)
    assert (physical.parent_function, physical.iommu_group) == (None, None)
    assert (virtual.parent_function, virtual.iommu_group) == ("0000:1b:00.0", "7")


def test_a_class_device_sits_where_its_device_does(tmp_path: Path) -> None:
    """Such as a network interface, by its link `device`."""
    machine = FakeMachine(tmp_path)
    folder = machine.pci("0000:18:00.0", root="pci0000:15", numa=0, **GPU)
    link = machine.link("sys/class/net/ibp24s0/device", folder)
    assert slot_at(link) == Slot("0000:18:00.0", "pci0000:15", 0)
