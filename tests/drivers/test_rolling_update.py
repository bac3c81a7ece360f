"""Two instances of a driver side by side, as while it is updated: both know what claims have, whichever of them prepared it."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from drayman.api.resource import ResourceClaim
from drayman.drivers.cpu.driver import CpuDriver
from drayman.drivers.kit.plugin import Plugin
from drayman.plugins.model import ClaimRef, Ready
from drivers.built import machine_like
from drivers.dranet.moving import KnownLinks
from drivers.kit.probing import NODE, World, world


async def shares(w: World, name: str, count: int, *devices: str) -> ResourceClaim:
    """A claim for so many CPUs of each device."""
    results = {
        f"r{at}": {
            "device": device,
            "shareID": str(uuid4()),
            "consumedCapacity": {"dra.cpu/cpu": str(count)},
        }
        for at, device in enumerate(devices)
    }
    return await w.cluster.allocate(name, CpuDriver.name, NODE, results)


async def cpus(w: World, plugin: Plugin, claim: ResourceClaim) -> str:
    """Those that a container of the claim gets from one of the instances."""
    answer = (await plugin.prepare([ref(claim)]))[claim.metadata.uid]
    assert isinstance(answer, Ready), answer
    return w.kubelet.container(answer).env[f"DRA_CPUSET_{claim.metadata.uid}"]


def ref(claim: ResourceClaim) -> ClaimRef:
    return ClaimRef(claim.metadata.namespace, claim.metadata.name, claim.metadata.uid)


async def test_cpus_are_neither_given_twice_nor_kept(tmp_path: Path) -> None:
    """What the old instance gave, the new one does not give again; what it took back, the old one may give."""
    machine = machine_like("cpu", tmp_path)
    async with (
        world() as w,
        w.plugin(CpuDriver(NODE, root=machine.root), instance="old") as old,
        w.plugin(CpuDriver(NODE, root=machine.root), instance="new") as new,
    ):
        first = await shares(w, "first", 2, "cpudevnuma000", "cpudevnuma000")
        assert await cpus(w, old, first) == "0-3"
        second = await shares(w, "second", 2, "cpudevnuma000")
        assert await cpus(w, new, second) == "4-5"
        assert await new.unprepare([ref(first)]) == {first.metadata.uid: None}
        third = await shares(w, "third", 6, "cpudevnuma000")
        assert await cpus(w, old, third) == "0-3,6-7"
        assert await cpus(w, new, second) == "4-5"


async def test_an_interface_that_a_pod_has_is_published_by_both(tmp_path: Path) -> None:
    """Whichever instance has given it away, and as it was before; back on the node, it is published as it is."""
    links = KnownLinks(machine_like("a3-mega", tmp_path))
    async with (
        world() as w,
        w.plugin(links.driver(NODE), instance="old") as old,
        w.plugin(links.driver(NODE), instance="new") as new,
    ):
        config = {"interface": {"name": "net1", "mtu": 1400}}
        entry = {"source": "FromClaim", "opaque": {"driver": "dra.net", "parameters": config}}
        wanted = await w.cluster.allocate(
            "c", "dra.net", NODE, {"r": "pci-0000-06-00-0"}, config=[entry]
        )
        before = old.devices()
        assert isinstance((await old.prepare([ref(wanted)]))[wanted.metadata.uid], Ready)
        home = links.take_away("eth1")
        for plugin in (old, new):
            assert await plugin.discover()
            assert plugin.devices() == before
        links.bring_back(home, "net1")
        assert await new.unprepare([ref(wanted)]) == {wanted.metadata.uid: None}
        links.path("eth1").joinpath("operstate").write_text("down")
        for plugin in (old, new):
            assert await plugin.discover()
            device = plugin.devices()[NODE, "pci-0000-06-00-0"]
            assert device.attributes["dra.net/state"].string == "down"
            assert device.attributes["dra.net/mtu"].int_ == 8244
