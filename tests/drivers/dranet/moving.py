"""Interfaces of a built machine that are changed, go to a pod and come back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from drayman.drivers.dranet.driver import NetworkDriver
from drayman.drivers.dranet.links import Change
from drayman.drivers.kit.errors import PrepareError
from drayman.testing import FakeMachine


@dataclass(slots=True)
class KnownLinks:
    """What the machine shows in sysfs, changed as netlink would change it."""

    machine: FakeMachine
    addresses: set[tuple[str, str]] = field(default_factory=set)
    up: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    """Interfaces on which only the MTU can be set."""

    def change(self, name: str, change: Change) -> None:
        link = self.path(name)
        if not link.exists():
            raise PrepareError(f"there is no interface {name} on the node")
        if change.mtu is not None:
            (link / "mtu").write_text(f"{change.mtu}\n")
        if name in self.broken:
            raise PrepareError(f"interface {name}: it is broken")
        if change.mac is not None:
            (link / "address").write_text(f"{change.mac}\n")
        if change.name is not None:
            assert not self.path(change.name).exists()
            link.rename(self.path(change.name))
            name = change.name
        if change.up:
            self.up.add(name)
        self.addresses |= {(name, each) for each in change.add}
        self.addresses -= {(name, each) for each in change.remove}

    def path(self, name: str) -> Path:
        return self.machine.path(f"sys/class/net/{name}")

    def seen(self) -> dict[str, tuple[str, str]]:
        """MTU and hardware address of what is on the node, by interface."""
        found = sorted(self.machine.path("sys/class/net").iterdir())
        return {
            link.name: ((link / "mtu").read_text().strip(), (link / "address").read_text().strip())
            for link in found
            if (link / "address").exists()
        }

    def take_away(self, name: str) -> Path:
        """Move an interface to the network of a pod; returns where its files are."""
        home = self.path(name).resolve()
        self.path(name).unlink()
        return home

    def bring_back(self, home: Path, name: str) -> None:
        """What the kernel does at the end of the pod's network. It forgets the addresses, and nothing else."""
        self.machine.link(
            f"sys/class/net/{name}", str(home.relative_to(self.machine.root.resolve()))
        )
        self.addresses.clear()

    def driver(self, node: str = "n") -> NetworkDriver:
        """One that waits for no interface."""
        return NetworkDriver(node, root=self.machine.root, links=lambda: self, return_s=0)


def add_interface(
    machine: FakeMachine, name: str, home: str = "sys/devices/virtual", **files: str
) -> None:
    """A virtual interface, or one of the device at `home`."""
    about = {"mtu": "1500", "type": "1", "operstate": "unknown", "address": "02:00:00:00:00:01"}
    machine.files(f"{home}/net/{name}", about | files)
    machine.link(f"sys/class/net/{name}", f"{home}/net/{name}")
    if not home.endswith("virtual"):
        machine.link(f"{home}/net/{name}/device", home)
