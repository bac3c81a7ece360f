"""`tpu.google.com`: the chips of a host, and the variables that tell programs how they are connected.

Chips up to v4 have device files of their own (`/dev/accel<n>`); later ones are used through VFIO and named by their IOMMU groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Final

import click

from drayman.drivers.device_files import existing_nodes
from drayman.drivers.google import devices
from drayman.drivers.google.devices import Host
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import KitError, PrepareError
from drayman.drivers.kit.model import Claim, Hardware, Health, Prepared, PreparedDevice
from drayman.drivers.pci import PciDevice, pci_devices
from drayman.drivers.sysfs import accel_numbers

_VENDOR: Final = "0x1ae0"
_GENERATIONS: Final = {"0x005e": "v4", "0x0062": "v5p", "0x0063": "v5litepod", "0x006f": "v6e"}
_ACCELERATORS: Final = {
    "v4": "tpu-v4-podslice",
    "v5p": "tpu-v5p-slice",
    "v5litepod": "tpu-v5-lite-podslice",
    "v6e": "tpu-v6e-slice",
}
_FLAT: Final = {1: "1x1", 4: "2x2", 8: "2x4"}
"""Of generations whose chips are connected in two dimensions."""
_ONE_CORE: Final = ("v5litepod", "v6e")


class TpuDriver(Driver):
    """Chips of one host."""

    name = devices.DRIVER
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(
            ["--accelerator"], default="", help="The kind of slice. Default: by the chips."
        ),
        click.Option(
            ["--topology"], default="", help="How the chips are arranged. Default: by their number."
        ),
    )

    def __init__(
        self, node: str, accelerator: str = "", topology: str = "", *, root: Path = Path("/")
    ) -> None:
        """`root` is replaced by tests."""
        super().__init__(node)
        self._accelerator = accelerator
        self._topology = topology
        self._root = root
        self._known: tuple[str, ...] = ()
        """Chips that have been seen. How they are arranged, and the place of each, does not change when one is gone."""

    def recover(self, claims: Sequence[Claim]) -> None:
        self._know(each.name for claim in claims for each in claim.devices)

    def discover(self) -> Hardware:
        chips = self._chips()
        self._know(chips)
        if not chips:
            return Hardware()
        host = self._host(next(iter(chips.values())), len(self._known))
        return Hardware.of(
            devices.chip(self.node, host, index, name)
            for index, name in enumerate(self._known)
            if name in chips
        )

    def _know(self, names: Iterable[str]) -> None:
        self._known = tuple(sorted({*self._known, *names}, key=lambda each: (len(each), each)))

    def _chips(self) -> dict[str, PciDevice]:
        """By the names of their device files, those that have one. Raises OSError."""
        found = [
            pci
            for pci in pci_devices(self._root)
            if pci.vendor == _VENDOR and pci.device in _GENERATIONS
        ]
        numbers = accel_numbers(self._root)
        named = {}
        for pci in found:
            if pci.address in numbers:
                named[f"accel{numbers[pci.address]}"] = pci
            elif pci.iommu_group is not None:
                named[pci.iommu_group] = pci
        return {name: pci for name, pci in named.items() if (self._root / _node(name)).exists()}

    def _host(self, one: PciDevice, count: int) -> Host:
        """What so many chips like one have in common. Raises KitError if it cannot be told how they are arranged."""
        generation = _GENERATIONS[one.device]
        flat = generation in _ONE_CORE
        topology = self._topology or (
            _FLAT.get(count, "") if flat else "2x2x1" if count == 4 else ""
        )
        if not topology:
            raise KitError(f"{count} chips {generation}: say how they are arranged with --topology")
        return Host(generation, self._accelerator or _ACCELERATORS[generation], count, topology)

    def prepare(self, claim: Claim) -> Prepared:
        held = {each.name for each in claim.devices}
        missing = sorted({*self._known, *self._chips()} - held)
        if missing:
            raise PrepareError(
                f"the chips of a host are used together: the claim lacks {', '.join(missing)}"
            )
        first = claim.devices[0].device.attributes
        common = [] if any(name.startswith("accel") for name in held) else ["dev/vfio/vfio"]
        return Prepared(
            devices=[
                PreparedDevice(
                    device=each, device_nodes=existing_nodes(self._root, _node(each.name))
                )
                for each in claim.devices
            ],
            device_nodes=existing_nodes(self._root, *common),
            env=environment(
                first["tpuGen"].string or "", first["topology"].string or "", len(held)
            ),
        )

    def health(self) -> Iterable[Health]:
        """A chip whose device file is gone is not published any more, and reported to the node."""
        for name in self._known:
            there = (self._root / _node(name)).exists()
            yield Health(device=name, healthy=there, message="" if there else "the chip is gone")


def _node(name: str) -> str:
    return f"dev/{name}" if name.startswith("accel") else f"dev/vfio/{name}"


def environment(generation: str, topology: str, chips: int) -> dict[str, str]:
    """What programs on a single host are told."""
    cores = chips if generation in _ONE_CORE else 2 * chips
    sides = [*topology.split("x"), "1"][:3]
    told = {
        "TOPOLOGY": topology,
        "ACCELERATOR_TYPE": f"{generation}-{cores}",
        "CHIPS_PER_HOST_BOUNDS": ",".join(sides),
        "HOST_BOUNDS": "1,1,1",
        "TOPOLOGY_WRAP": "false,false,false",
        "TOPOLOGY_ALT": "false",
        "WORKER_ID": "0",
        "WORKER_HOSTNAMES": "localhost",
    }
    prefixed = {f"TPU_{name}": value for name, value in told.items()}
    return {"TPU_SKIP_MDS_QUERY": "true", **prefixed, **told}
