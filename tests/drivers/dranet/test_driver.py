"""What happens to the interfaces that `dra.net` gives to pods: they are set up, moved, and put back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from drayman.drivers.dranet.driver import NetworkDriver
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import Claim, Consumer
from drayman.plugins.model import Failed
from drivers.built import claim, machine_like, prepared
from drivers.dranet.moving import KnownLinks, add_interface
from drivers.kit.probing import NODE, world

FIRST, SECOND = "pci-0000-10-1b-0", "pci-0000-20-1b-0"
SAID = {
    "interface": {
        "name": "net1",
        "mtu": 8000,
        "hardwareAddr": "02:AA:00:00:00:01",
        "addresses": ["10.0.0.1/24"],
    }
}


def test_an_interface_is_set_up_and_moved(tmp_path: Path) -> None:
    """The runtime moves it under the name that is wanted; the claim says what it is then."""
    links = KnownLinks(machine_like("p4d", tmp_path))
    driver = links.driver()
    (device,) = prepared(driver, claim(driver, FIRST, said=SAID)).devices
    assert [(each.host_interface_name, each.name) for each in device.net_devices] == [
        ("enp16s27", "net1")
    ]
    assert device.network is not None
    assert (device.network.interface_name, device.network.ips) == ("net1", ("10.0.0.1/24",))
    assert device.network.hardware_address == "02:AA:00:00:00:01"
    assert links.seen()["enp16s27"] == ("8000", "02:AA:00:00:00:01")
    assert links.addresses == {("enp16s27", "10.0.0.1/24")}


def given_to_a_pod(links: KnownLinks) -> tuple[Claim, Path]:
    """A claim that has the first interface with all settings, and where the files of that are."""
    driver = links.driver()
    wanted = claim(driver, FIRST, said=SAID)
    driver.prepare(wanted)
    return wanted, links.take_away("enp16s27")


RETURNS = {
    "under its own name, from a runtime that tidies up": ("enp16s27", "02:aa:00:00:00:01"),
    "under the name of the pod": ("net1", "02:aa:00:00:00:01"),
    "under the name that the kernel gave it": ("dev7", "02:aa:00:00:00:01"),
    "with a hardware address that the pod has set": ("net1", "02:bb:00:00:00:01"),
}


@pytest.mark.parametrize("name", RETURNS)
def test_an_interface_is_put_back_as_it_was(name: str, tmp_path: Path) -> None:
    """Whatever it is called when it comes back, and by a driver that knows no more than what was discovered."""
    called, address = RETURNS[name]
    links = KnownLinks(machine_like("p4d", tmp_path))
    before = links.seen()
    wanted, home = given_to_a_pod(links)
    (home / "address").write_text(f"{address}\n")
    links.bring_back(home, called)
    links.driver().unprepare(wanted)
    assert links.seen() == before
    assert links.up == {"enp16s27"}
    links.driver().unprepare(wanted)
    assert links.seen() == before


def test_an_interface_that_is_on_its_way_is_waited_for(tmp_path: Path) -> None:
    """The node may ask before the kernel has taken down the network of the pod."""
    links = KnownLinks(machine_like("p4d", tmp_path))
    before = links.seen()
    wanted, home = given_to_a_pod(links)
    patient = NetworkDriver(
        "n",
        root=links.machine.root,
        links=lambda: links,
        pause=lambda _seconds: links.bring_back(home, "net1"),
    )
    patient.unprepare(wanted)
    assert links.seen() == before


def test_what_was_not_asked_for_is_not_written(tmp_path: Path) -> None:
    """A pod that wants an address leaves MTU and hardware address alone, then and later."""
    links = KnownLinks(machine_like("p4d", tmp_path))
    driver = links.driver()
    wanted = claim(driver, FIRST, said={"interface": {"addresses": ["10.0.0.1/24"]}})
    driver.prepare(wanted)
    links.path("enp16s27").joinpath("mtu").write_text("1400\n")  # by whoever looks after the node
    driver.unprepare(wanted)
    assert links.seen()["enp16s27"][0] == "1400"
    assert links.addresses == set()


ABSENT = {
    "a virtual interface, which ended with its pod": "dummy0",
    "an interface that is still away": FIRST,
}


@pytest.mark.parametrize("name", ABSENT)
def test_an_interface_that_is_not_there_is_undone(name: str, tmp_path: Path) -> None:
    """Its claim can be given back, and nothing else is touched: not even what has the name that it had in the pod."""
    machine = machine_like("p4d", tmp_path)
    add_interface(machine, "dummy0", address="02:00:00:00:00:09")
    add_interface(machine, "net1")
    links = KnownLinks(machine)
    driver = links.driver()
    wanted = claim(driver, ABSENT[name], said=SAID)
    driver.prepare(wanted)
    links.take_away(wanted.devices[0].device.attributes["dra.net/ifName"].string or "")
    before = links.seen()
    driver.unprepare(wanted)
    assert links.seen() == before


def test_a_virtual_interface_is_found_by_the_name_of_the_pod(tmp_path: Path) -> None:
    """If it has the hardware address that it had, or was given."""
    machine = machine_like("p4d", tmp_path)
    add_interface(machine, "dummy0", address="02:00:00:00:00:09")
    links = KnownLinks(machine)
    before = links.seen()
    driver = links.driver()
    wanted = claim(driver, "dummy0", said={"interface": {"name": "net1", "mtu": 9000}})
    driver.prepare(wanted)
    links.bring_back(links.take_away("dummy0"), "net1")
    driver.unprepare(wanted)
    assert links.seen() == before


def test_a_name_that_is_taken_does_not_keep_the_claim(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The interface is put back under the name that it has now, which is logged."""
    links = KnownLinks(machine_like("p4d", tmp_path))
    mtu, address = links.seen()["enp16s27"]
    wanted, home = given_to_a_pod(links)
    links.bring_back(home, "net1")
    add_interface(links.machine, "enp16s27", "sys/devices/virtual/other")
    links.driver().unprepare(wanted)
    assert links.seen()["net1"] == (mtu, address)
    assert "interface enp16s27 stays net1: the name is taken" in caplog.text


NOT_CARRIED_OUT = {
    "routes": {"routes": [{"destination": "10.0.0.0/8"}]},
    "interface.forwarding": {"interface": {"forwarding": True}},
    "interface.dhcp": {"interface": {"dhcp": True}},
}


@pytest.mark.parametrize("name", NOT_CARRIED_OUT)
def test_what_is_not_carried_out_is_refused(name: str, tmp_path: Path) -> None:
    """Rather than passed over, and before any interface of the claim is touched."""
    links = KnownLinks(machine_like("p4d", tmp_path))
    before = links.seen()
    driver = links.driver()
    good = claim(driver, FIRST, said=SAID).devices
    bad = claim(driver, SECOND, said=NOT_CARRIED_OUT[name])
    with pytest.raises(PrepareError, match=f"^{name}: this driver does not carry it out$"):
        driver.prepare(replace(bad, devices=(*good, *bad.devices)))
    assert links.seen() == before


async def test_what_was_half_done_is_undone(tmp_path: Path) -> None:
    """If the second interface of a claim fails, the first is as it was before, and so is the second."""
    links = KnownLinks(machine_like("p4d", tmp_path), broken={"enp32s27"})
    before = links.seen()
    async with world() as w, w.plugin(links.driver(NODE)):
        config = [{"source": "FromClaim", "opaque": {"driver": "dra.net", "parameters": SAID}}]
        wanted = await w.cluster.allocate(
            "c", "dra.net", NODE, {"a": FIRST, "b": SECOND}, config=config
        )
        answer = await w.kubelet.prepare("dra.net", wanted)
        assert answer == Failed("interface enp32s27: it is broken")
        assert links.seen()["enp16s27"] == before["enp16s27"]
        links.broken.clear()
        assert await w.kubelet.unprepare("dra.net", wanted) is None
    assert links.seen() == before
    assert links.addresses == set()


def test_who_looks_at_an_interface_leaves_it_where_it_is(tmp_path: Path) -> None:
    """With admin access a container gets the device files. Several pods may, and nothing is set or put back."""
    links = KnownLinks(machine_like("p4d", tmp_path))
    before = links.seen()
    driver = links.driver()
    pods = tuple(Consumer("pods", name, name) for name in "ab")
    wanted = claim(driver, FIRST, said={**SAID, "routes": [{"destination": "10.0.0.0/8"}]})
    looking = replace(wanted.devices[0], admin_access=True)
    wanted = replace(wanted, devices=(looking,), consumers=pods)
    (device,) = prepared(driver, wanted).devices
    assert [node.path for node in device.device_nodes] == ["/dev/infiniband/uverbs0"]
    assert not device.net_devices
    assert device.network is None
    assert links.seen() == before
    driver.prepared_claims = lambda: [wanted]
    links.path("enp16s27").joinpath("mtu").write_text("1400\n")
    mtus = {each.name: each.attributes["dra.net/mtu"].int_ for each in driver.discover().devices}
    assert mtus[FIRST] == 1400
    driver.unprepare(wanted)
    assert links.seen()["enp16s27"] == ("1400", before["enp16s27"][1])


def test_a_claim_that_has_and_looks_at_an_interface_has_it(tmp_path: Path) -> None:
    """It is moved once."""
    driver = KnownLinks(machine_like("p4d", tmp_path)).driver()
    wanted = claim(driver, FIRST)
    looking = replace(wanted.devices[0], request="look", admin_access=True)
    (device,) = prepared(driver, replace(wanted, devices=(*wanted.devices, looking))).devices
    assert device.device == wanted.devices[0]
    assert device.net_devices


def test_an_interface_is_in_one_pod(tmp_path: Path) -> None:
    """It cannot be in the networks of two."""
    driver = KnownLinks(machine_like("p4d", tmp_path)).driver()
    pods = tuple(Consumer("pods", name, name) for name in "ab")
    with pytest.raises(PrepareError, match="is used by several pods"):
        driver.prepare(replace(claim(driver, FIRST), consumers=pods))
