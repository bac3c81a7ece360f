"""What containers get from the drivers of AMD, Intel, Google, Furiosa, DRANET and dra.cpu, on built machines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from drayman.api.quantity import Quantity
from drayman.driver_configs.decoding import decode
from drayman.driver_configs.known import CONFIGS
from drayman.drivers.cpu.driver import CpuDriver
from drayman.drivers.dranet.driver import NetworkDriver
from drayman.drivers.google.driver import TpuDriver, environment
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import KitError, PrepareError
from drayman.drivers.kit.model import Allocated, Claim, Consumer, Hardware, Prepared
from drayman.drivers.known import find_driver
from drayman.drivers.profiles import PROFILES
from drayman.testing import FakeMachine
from drayman.testing.trees import add_hardware


def machine_like(profile: str, folder: Path) -> FakeMachine:
    machine = FakeMachine(folder)
    add_hardware(machine, PROFILES[profile].unit(0)[0])
    return machine


def claim(driver: Driver, *names: str, uid: str = "u-1", said: Any = None, **more: Any) -> Claim:
    hardware = driver.discover()
    assert isinstance(hardware, Hardware)
    devices = {device.name: device for device in hardware.devices}
    config = None if said is None else decode(said, CONFIGS[driver.name])
    return Claim(
        namespace="default",
        name="c",
        uid=uid,
        devices=tuple(
            Allocated(request="r", pool="n", name=name, device=devices[name], config=config, **more)
            for name in names
        ),
    )


def prepared(driver: Driver, wanted: Claim) -> Prepared:
    found = driver.prepare(wanted)
    if isinstance(found, Prepared):
        return found
    assert isinstance(found, Iterable)
    return Prepared(devices=list(found))


NODES = {
    "AMD": ("gpu.amd.com", "mi300x", "gpu-2-129", ["/dev/kfd", "/dev/dri/card2", "/dev/dri/renderD129"]),
    "a partition": (
        "gpu.amd.com", "mi300x-cpx-nps4", "gpu-12-139", ["/dev/kfd", "/dev/dri/card12", "/dev/dri/renderD139"],
    ),
    "Intel": ("gpu.intel.com", "max-1550", "0000-2a-00-0-0x0bd5", ["/dev/dri/card1", "/dev/dri/renderD129"]),
    "Gaudi": (
        "gaudi.intel.com",
        "gaudi3",
        "0000-2a-00-0-0x1060",
        ["/dev/accel/accel1", "/dev/accel/accel_controlD1", "/dev/infiniband/uverbs1"],
    ),
    "Furiosa": ("npu.furiosa.ai", "rngd", "npu3", ["/dev/rngd/npu3bar0", "/dev/rngd/npu3mgmt", "/dev/rngd/npu3pe0"]),
    "RDMA": ("dra.net", "p4d", "pci-0000-20-1b-0", ["/dev/infiniband/uverbs1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_containers_get_the_device_files_of_their_device(name: str, tmp_path: Path) -> None:
    """And no other's. One that is missing is named, because a container would start without a device."""
    driver_name, profile, device, nodes = NODES[name]
    machine = machine_like(profile, tmp_path)
    driver = find_driver(driver_name)("n", root=machine.root)
    (found,) = prepared(driver, claim(driver, device)).devices
    assert [node.path for node in found.device_nodes] == nodes
    wanted = claim(driver, device)
    if driver_name != "npu.furiosa.ai":  # whose files have no fixed names
        machine.path(nodes[-1]).unlink()
        with pytest.raises(PrepareError, match=f"{nodes[-1]} is not there"):
            prepared(driver, wanted)


def test_gaudi_tells_programs_which_ones_they_have(tmp_path: Path) -> None:
    """By number and by module; one that is not operational is reported."""
    machine = machine_like("gaudi3", tmp_path)
    driver = find_driver("gaudi.intel.com")("n", root=machine.root)
    names = ["0000-19-00-0-0x1060", "0000-3b-00-0-0x1060"]
    env = prepared(driver, claim(driver, *names)).env
    assert env == {
        "HABANA_VISIBLE_DEVICES": "0,2",
        "HL_VISIBLE_DEVICES": "0,2",
        "HABANA_VISIBLE_MODULES": "0,2",
    }
    machine.file("sys/class/accel/accel2/device/status", "in reset")
    sick = [report.device for report in driver.health() if report.healthy is False]
    assert sick == [names[1]]


def test_the_chips_of_a_host_are_used_together(tmp_path: Path) -> None:
    """A claim for some of them is refused with those that it lacks."""
    driver = TpuDriver("n", root=machine_like("tpu-v5e", tmp_path).root)
    found = prepared(driver, claim(driver, "0", "1", "2", "3"))
    assert [each.device_nodes[0].path for each in found.devices] == [
        f"/dev/vfio/{n}" for n in range(4)
    ]
    assert [node.path for node in found.device_nodes] == ["/dev/vfio/vfio"]
    assert found.env["TPU_ACCELERATOR_TYPE"] == found.env["ACCELERATOR_TYPE"] == "v5litepod-4"
    assert found.env["TPU_CHIPS_PER_HOST_BOUNDS"] == "2,2,1"
    assert environment("v5p", "2x2x1", 4)["TPU_ACCELERATOR_TYPE"] == "v5p-8"
    with pytest.raises(PrepareError, match="the claim lacks 2, 3"):
        prepared(driver, claim(driver, "0", "1"))


def test_a_chip_that_is_gone_is_not_published_and_reported(tmp_path: Path) -> None:
    """Where it cannot be told how the others are arranged, the driver says so."""
    machine = machine_like("tpu-v5e", tmp_path)
    driver = TpuDriver("n", topology="2x2", root=machine.root)
    driver.discover()
    machine.path("dev/vfio/2").unlink()
    assert [device.name for device in driver.discover().devices] == ["0", "1", "3"]
    assert {report.device: report.healthy for report in driver.health()} == {
        "0": True,
        "1": True,
        "2": False,
        "3": True,
    }
    with pytest.raises(
        KitError, match="3 chips v5litepod: say how they are arranged with --topology"
    ):
        TpuDriver("n", root=machine.root).discover()


class KnownLinks:
    """Interfaces of a machine, as netlink would have them."""

    def __init__(self) -> None:
        self.state: dict[str, tuple[int, str]] = {}
        self.addresses: set[tuple[str, str]] = set()

    def read(self, name: str) -> tuple[int, str]:
        return self.state.setdefault(name, (1500, "02:00:00:00:00:01"))

    def change(self, name: str, mtu: int, mac: str, add: list[str], remove: list[str]) -> None:
        self.state[name] = (mtu, mac)
        self.addresses |= {(name, each) for each in add}
        self.addresses -= {(name, each) for each in remove}


def test_an_interface_is_set_up_moved_and_put_back(tmp_path: Path) -> None:
    """The runtime moves it under the name that is wanted; while it is away, it is still published."""
    machine, links = machine_like("p4d", tmp_path), KnownLinks()
    driver = NetworkDriver("n", root=machine.root, links=lambda: links)
    said = {"interface": {"name": "net1", "mtu": 9000, "addresses": ["10.0.0.1/24"]}}
    wanted = claim(driver, "pci-0000-10-1b-0", said=said)
    found = prepared(driver, wanted)
    (device,) = found.devices
    assert [(each.host_interface_name, each.name) for each in device.net_devices] == [
        ("enp16s27", "net1")
    ]
    assert device.network is not None
    assert (device.network.interface_name, device.network.ips) == ("net1", ("10.0.0.1/24",))
    assert links.state == {"enp16s27": (9000, "02:00:00:00:00:01")}
    before = driver.discover()
    machine.path("sys/class/net/enp16s27").unlink()
    assert {each.name for each in driver.discover().devices} == {
        each.name for each in before.devices
    }
    driver.unprepare(replace(wanted, state=found.state))
    assert links.state == {"enp16s27": (1500, "02:00:00:00:00:01")}
    assert links.addresses == set()
    assert len(driver.discover().devices) == len(before.devices)  # still a port with RDMA


NOT_CARRIED_OUT = {
    "routes": {"routes": [{"destination": "10.0.0.0/8"}]},
    "interface.forwarding": {"interface": {"forwarding": True}},
    "interface.dhcp": {"interface": {"dhcp": True}},
}


@pytest.mark.parametrize("name", NOT_CARRIED_OUT)
def test_what_is_not_carried_out_is_refused(name: str, tmp_path: Path) -> None:
    """Rather than passed over."""
    driver = NetworkDriver("n", root=machine_like("p4d", tmp_path).root, links=KnownLinks)
    with pytest.raises(PrepareError, match=f"^{name}: this driver does not carry it out$"):
        driver.prepare(claim(driver, "pci-0000-10-1b-0", said=NOT_CARRIED_OUT[name]))


def test_an_interface_is_in_one_pod(tmp_path: Path) -> None:
    """It cannot be in the networks of two."""
    driver = NetworkDriver("n", root=machine_like("p4d", tmp_path).root, links=KnownLinks)
    pods = tuple(Consumer("pods", name, name) for name in "ab")
    with pytest.raises(PrepareError, match="is used by several pods"):
        driver.prepare(replace(claim(driver, "pci-0000-10-1b-0"), consumers=pods))


def test_a_dummy_interface_is_published_by_its_name(tmp_path: Path) -> None:
    """One whose name is no label has another; those of the node's own network are left out."""
    machine = machine_like("p4d", tmp_path)
    for name in ("dummy0", "docker0", "Up_1"):
        machine.files(
            f"sys/devices/virtual/net/{name}", {"mtu": "1500", "type": "1", "operstate": "unknown"}
        )
        machine.link(f"sys/class/net/{name}", f"sys/devices/virtual/net/{name}")
    found = {each.name: each for each in NetworkDriver("n", root=machine.root).discover().devices}
    assert [name for name in found if not name.startswith("pci-")] == ["net-kvyf6mi", "dummy0"]
    assert found["dummy0"].attributes["dra.net/virtual"].bool_ is True


def cpus(number: int) -> dict[str, Quantity]:
    return {"dra.cpu/cpu": Quantity.parse(str(number))}


def test_claims_have_cpus_to_themselves(tmp_path: Path) -> None:
    """Of the NUMA node that they asked for, also after a restart, and until they are unprepared."""
    root = machine_like("cpu", tmp_path).root
    driver = CpuDriver("n", root=root)
    first = claim(driver, "cpudevnuma000", uid="a-1", consumed=cpus(4))
    found = prepared(driver, first)
    assert found.env == {"DRA_CPUSET_a_1": "0-3"}
    again = CpuDriver("n", root=root)
    again.recover([replace(first, state=found.state)])
    second = claim(again, "cpudevnuma000", uid="b", consumed=cpus(2))
    assert prepared(again, second).env == {"DRA_CPUSET_b": "4-5"}
    other = claim(again, "cpudevnuma001", uid="c", consumed=cpus(1))
    assert prepared(again, other).env == {"DRA_CPUSET_c": "64"}
    again.unprepare(first)
    named = {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": "2-3"}}
    third = claim(again, "cpudevnuma000", uid="d", said=named, consumed=cpus(2))
    assert prepared(again, third).env == {"DRA_CPUSET_d": "2-3"}


CPUS = {
    "taken": ("0", 1, "cpuConfig.cpuset: 0 is in use, or not of cpudevnuma000"),
    "of the other NUMA node": ("70", 1, "cpuConfig.cpuset: 70 is in use, or not of cpudevnuma000"),
    "more than the claim has": ("4-6", 2, "cpuConfig.cpuset: it names 3 CPUs, and the claim has 2"),
    "more than there are": ("", 63, "cpudevnuma000 has 62 CPUs left, and the claim 63"),
}


@pytest.mark.parametrize("name", CPUS)
def test_cpus_that_cannot_be_had_are_named(name: str, tmp_path: Path) -> None:
    """The message has the field of the claim that is wrong."""
    named, amount, problem = CPUS[name]
    driver = CpuDriver("n", root=machine_like("cpu", tmp_path).root)
    prepared(driver, claim(driver, "cpudevnuma000", uid="a", consumed=cpus(2)))
    said = {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": named}} if named else None
    with pytest.raises(PrepareError, match=problem):
        prepared(driver, claim(driver, "cpudevnuma000", uid="b", said=said, consumed=cpus(amount)))
