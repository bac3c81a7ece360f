"""`gpu.intel.com` and `gaudi.intel.com`: device files for containers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from drayman.drivers.device_files import existing_nodes
from drayman.drivers.intel import devices
from drayman.drivers.intel.discovery import discover_gaudis, discover_gpus
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import Claim, Hardware, Health, Prepared, PreparedDevice
from drayman.drivers.pci import pci_device
from drayman.drivers.sysfs import accel_numbers, entries, read_text, verbs_of


def _address(name: str) -> str:
    """The PCI address in the name of a device: `0000-04-00-0-0xe211`."""
    domain, bus, slot, function, _ = name.split("-")
    return f"{domain}:{bus}:{slot}.{function}"


class IntelGpuDriver(Driver):
    """GPUs of one machine. Functions that are bound to vfio are not served."""

    name = devices.GPU

    def __init__(self, node: str, *, root: Path = Path("/")) -> None:
        """`root` is replaced by tests."""
        super().__init__(node)
        self._root = root

    def discover(self) -> Hardware:
        return Hardware.of(map(devices.gpu, discover_gpus(self._root)))

    def prepare(self, claim: Claim) -> Iterable[PreparedDevice]:
        for each in claim.devices:
            pci = pci_device(self._root, _address(each.name))
            names = [] if pci is None else [path.name for path in entries(pci.path / "drm")]
            if not names:
                raise PrepareError(f"device {each.name} has no device files")
            nodes = existing_nodes(self._root, *(f"dev/dri/{name}" for name in names))
            yield PreparedDevice(device=each, device_nodes=nodes)


class GaudiDriver(Driver):
    """Gaudi accelerators of one machine."""

    name = devices.GAUDI

    def __init__(self, node: str, *, root: Path = Path("/")) -> None:
        """`root` is replaced by tests."""
        super().__init__(node)
        self._root = root

    def discover(self) -> Hardware:
        return Hardware.of(map(devices.gaudi, discover_gaudis(self._root)))

    def prepare(self, claim: Claim) -> Prepared:
        accels = accel_numbers(self._root)
        prepared, numbers, modules = [], [], []
        for each in claim.devices:
            address = _address(each.name)
            if address not in accels:
                raise PrepareError(f"device {each.name} is not on node {self.node} any more")
            number = accels[address]
            own = (f"dev/accel/accel{number}", f"dev/accel/accel_controlD{number}")
            nodes = existing_nodes(self._root, *own, *verbs_of(self._root, address))
            prepared.append(PreparedDevice(device=each, device_nodes=nodes))
            numbers.append(str(number))
            home = self._root / f"sys/class/accel/accel{number}/device"
            modules.append(read_text(home / "module_id") or str(number))
        visible = ",".join(numbers)
        return Prepared(
            devices=prepared,
            env={
                "HABANA_VISIBLE_DEVICES": visible,
                "HL_VISIBLE_DEVICES": visible,
                "HABANA_VISIBLE_MODULES": ",".join(modules),
            },
        )

    def health(self) -> Iterable[Health]:
        for found in discover_gaudis(self._root):
            yield Health(
                device=devices.gaudi(found).name, healthy=found.healthy, effect="NoExecute"
            )
