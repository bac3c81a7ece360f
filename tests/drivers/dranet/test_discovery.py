"""Which interfaces of a built machine `dra.net` offers, and what it says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from drayman.api import validation
from drayman.api.resource import Device
from drayman.cel.device import check_selector
from drayman.drivers.dranet.driver import NetworkDriver
from drayman.drivers.dranet.netlink import Details
from drayman.drivers.profiles.hardware import pool_slices
from drayman.testing import FakeMachine
from drivers.built import machine_like
from drivers.dranet.moving import add_interface

CARD = {"vendor": "0x15b3", "device": "0x1021", "class_": "0x020000"}


def found(machine: FakeMachine, **details: Details) -> dict[str, Device]:
    """The devices, which an API server accepts."""
    hardware = NetworkDriver("n", root=machine.root, details=lambda: details).discover()
    for each in pool_slices("n", "dra.net", hardware.groups):
        assert list(validation.validate(each, check_selector)) == []
    return {each.name: each for each in hardware.devices}


def said(device: Device, name: str) -> object:
    value = device.attributes.get(f"dra.net/{name}")
    return value and next(
        each for each in (value.string, value.int_, value.bool_) if each is not None
    )


def test_a_dummy_interface_is_published_by_its_name(tmp_path: Path) -> None:
    """One whose name is no label has another; those of the node's own network are left out."""
    machine = machine_like("p4d", tmp_path)
    for name in ("dummy0", "docker0", "Up_1"):
        add_interface(machine, name)
    devices = found(machine)
    assert [name for name in devices if not name.startswith("pci-")] == ["net-kvyf6mi", "dummy0"]
    assert said(devices["dummy0"], "virtual") is True


TEXTS = {
    "more than an attribute holds": ("x" * 65, "x" * 64),
    "more bytes than letters": ("ü" * 40, "ü" * 32),
    "no text at all": (b"\xff\xfe", "\ufffd\ufffd"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_somebody_has_written_keeps_nothing_from_being_published(
    name: str, tmp_path: Path
) -> None:
    """An alias is cut to what an attribute holds."""
    text, published = TEXTS[name]
    machine = machine_like("p4d", tmp_path)
    machine.file("sys/class/net/enp16s27/ifalias", text)
    devices = found(machine)
    assert len(devices) == 4
    assert said(devices["pci-0000-10-1b-0"], "alias") == published


UPLINKS = {
    "an interface": {},
    "a bond": {"eth0": ["enp16s27", "enp32s27"]},
    "a VLAN on a bond": {"eth0": ["bond0"], "bond0": ["enp16s27", "enp32s27"]},
    "a bridge": {"eth0": ["enp16s27", "dummy0"]},
}


@pytest.mark.parametrize("name", UPLINKS)
def test_nothing_that_the_uplink_is_made_of_is_offered(name: str, tmp_path: Path) -> None:
    """The default route goes by eth0; without its members the node would be cut off."""
    machine = machine_like("p4d", tmp_path)
    for extra in ("bond0", "dummy0"):
        add_interface(machine, extra)
    everything = {said(each, "ifName") for each in found(machine).values()}
    below = UPLINKS[name]
    for upper, members in below.items():
        for member in members:
            machine.link(f"sys/class/net/{upper}/lower_{member}", f"sys/class/net/{member}")
    left_out = {member for members in below.values() for member in members}
    assert {said(each, "ifName") for each in found(machine).values()} == everything - left_out


def test_representors_of_functions_are_not_offered(tmp_path: Path) -> None:
    """A card that switches between its functions shows them all as interfaces of the one that is its way out."""
    machine = FakeMachine(tmp_path)
    home = machine.pci("0000:08:00.0", **CARD)
    for name, port in {"a0": "pf0vf0", "a1": "c1pf0sf88", "eth1": "p0", "z0": "pf0hpf"}.items():
        add_interface(machine, name, home, phys_port_name=port)
    devices = found(machine)
    assert [said(each, "ifName") for each in devices.values()] == ["eth1"]


def test_of_two_ports_of_one_device_the_first_is_offered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The other one is logged. If the first is the node's uplink, the other is offered."""
    caplog.set_level("INFO")
    machine = FakeMachine(tmp_path)
    home = machine.pci("0000:08:00.0", **CARD)
    add_interface(machine, "aa1", home, dev_port="1")
    add_interface(machine, "zz0", home, dev_port="0")
    assert [said(each, "ifName") for each in found(machine).values()] == ["zz0"]
    assert "aa1 is not offered: zz0 is on the same device" in caplog.text
    machine.file("proc/net/route", "Iface\tDestination\tGateway\nzz0\t00000000\t0100A8C0")
    assert [said(each, "ifName") for each in found(machine).values()] == ["aa1"]


def test_an_interface_of_virtio_is_that_of_its_pci_device(tmp_path: Path) -> None:
    """It has a device of its own between the two."""
    machine = FakeMachine(tmp_path)
    home = machine.pci("0000:00:03.0", vendor="0x1af4", device="0x1000", class_="0x020000")
    add_interface(machine, "eth1", f"{home}/virtio2")
    (device,) = found(machine).values()
    assert device.name == "pci-0000-00-03-0"
    assert said(device, "virtual") is False


FUNCTIONS = {
    "none, and none can be": ({"sriov_totalvfs": "0"}, False, None),
    "not told": ({}, False, None),
    "none yet": ({"sriov_totalvfs": "16", "sriov_numvfs": "0"}, True, 0),
    "four of sixteen": ({"sriov_totalvfs": "16", "sriov_numvfs": "4"}, True, 4),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_virtual_functions_are_counted_as_they_are(name: str, tmp_path: Path) -> None:
    """And not as they might be; where there can be none, nothing is said of their number."""
    files, sriov, number = FUNCTIONS[name]
    machine = FakeMachine(tmp_path)
    home = machine.pci("0000:08:00.0", files=files, **CARD)
    add_interface(machine, "eth1", home)
    (device,) = found(machine).values()
    assert (said(device, "sriov"), said(device, "sriovVfs")) == (sriov, number)


def test_the_board_of_a_card_is_named_by_its_number(tmp_path: Path) -> None:
    """As DRANET does it."""
    machine = FakeMachine(tmp_path)
    home = machine.pci("0000:08:00.0", files={"subsystem_device": "0x0051"}, **CARD)
    add_interface(machine, "eth1", home)
    (device,) = found(machine).values()
    assert said(device, "pciSubsystem") == "0051"


def test_what_netlink_tells_is_published_beside_what_sysfs_does(tmp_path: Path) -> None:
    """Addresses, as many as fit and always the same ones; the kind of a virtual interface; whether programs are attached."""
    machine = machine_like("p4d", tmp_path)
    add_interface(machine, "dummy0")
    many = tuple(f"10.0.{number}.100/24" for number in range(9, 0, -1))
    details = {
        "dummy0": Details(kind="dummy", ebpf=True),
        "enp16s27": Details(ipv4=many, ipv6=("fd00::1/64",)),
    }
    devices = found(machine, **details)
    assert said(devices["dummy0"], "type") == "dummy"
    assert said(devices["dummy0"], "ebpf") is True
    assert said(devices["dummy0"], "ipv4") is None
    card = devices["pci-0000-10-1b-0"]
    assert said(card, "ipv4") == ",".join(sorted(many)[:4])
    assert (said(card, "ipv6"), said(card, "type")) == ("fd00::1/64", "device")
    assert said(card, "ebpf") is False
    assert said(devices["pci-0000-20-1b-0"], "ebpf") is None
