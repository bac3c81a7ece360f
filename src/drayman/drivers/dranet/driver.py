"""`dra.net`: interfaces for pods.

An interface that a pod has is not on the node any more; what is known of it is published until it is back. Which ones claims have, and how
they were before, is in the records of the claims and nowhere else, so that a driver that was killed, or another instance of it, undoes
what there is to undo.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import ClassVar, Final

from drayman.api.resource import Device, NetworkDeviceData
from drayman.driver_configs.decoding import Config
from drayman.driver_configs.known import CONFIGS
from drayman.driver_configs.network import NetworkConfig, interface_of
from drayman.drivers.device_files import existing_nodes
from drayman.drivers.dranet import devices
from drayman.drivers.dranet.discovery import discover, find
from drayman.drivers.dranet.links import Change, Links, NetlinkLinks, require_applicable
from drayman.drivers.dranet.netlink import Details, changes, read_details
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import Allocated, Claim, Hardware, Prepared, PreparedDevice
from drayman.drivers.pci import pci_device
from drayman.drivers.sysfs import verbs_of
from drayman.plugins.cdi import DeviceNode, NetDevice

_log: Final = logging.getLogger(__name__)
_CONNECTION_MANAGER: Final = "dev/infiniband/rdma_cm"
_MACHINE: Final = Path("/")
_RETURN_S: Final = 5.0
"""The kernel brings interfaces back some time after the last process of a pod has ended."""
_POLL_S: Final = 0.1


class NetworkDriver(Driver):
    """Interfaces of one machine."""

    name = devices.DRIVER
    configs: ClassVar[tuple[type[Config], ...]] = CONFIGS[devices.DRIVER]

    def __init__(
        self,
        node: str,
        *,
        root: Path = _MACHINE,
        links: Callable[[], Links] = NetlinkLinks,
        details: Callable[[], Mapping[str, Details]] | None = None,
        return_s: float = _RETURN_S,
        pause: Callable[[float], None] = sleep,
    ) -> None:
        """`return_s` is how long an interface may take to be back. Everything but `node` is replaced by tests."""
        super().__init__(node)
        self._root = root
        self._links = links
        self._details = details or (read_details if root == _MACHINE else dict)
        self._return_s = return_s
        self._pause = pause

    async def follow(self) -> None:
        if self._root == _MACHINE:
            async for _ in changes():
                self.changed()

    def discover(self) -> Hardware:
        held = self._held()
        found = {each.name: each for each in self._found()}
        # Asked before and after: a claim that comes or goes meanwhile takes its interface away, or brings it back.
        return Hardware.of((found | held | self._held()).values())

    def _found(self) -> list[Device]:
        return [devices.device(each) for each in discover(self._root, self._details())]

    def _held(self) -> dict[str, Device]:
        """Devices that claims have, as they were before."""
        return {
            each.name: each.device
            for claim in self.prepared_claims()
            for each in claim.devices
            if not each.admin_access
        }

    def prepare(self, claim: Claim) -> Prepared:
        """Who may only look at a device gets its device files, and leaves the interface where and how it is."""
        moved = [each for each in claim.devices if not each.admin_access]
        if moved and len(claim.consumers) > 1:
            raise PrepareError(f"claim {claim} is used by several pods; an interface is in one")
        for each in moved:
            require_applicable(_config(each))
        for each in moved:
            self._set_up(each)
        names = {each.name for each in moved}
        looked_at = [each for each in claim.devices if each.name not in names]
        return Prepared(
            devices=[
                *(self._moved(each) for each in moved),
                *(
                    PreparedDevice(device=each, device_nodes=self._rdma_nodes(each))
                    for each in looked_at
                ),
            ]
        )

    def _set_up(self, device: Allocated) -> None:
        interface, wanted = interface_of(device.device), _config(device).interface
        change = Change(mtu=wanted.mtu, mac=wanted.hardware_addr, add=wanted.addresses)
        # A new name is the runtime's to give, and this driver's to take back.
        if interface and (change != Change() or wanted.name not in ("", interface)):
            self._links().change(interface, change)

    def unprepare(self, claim: Claim) -> None:
        """The runtime, or the end of the pod's network, has brought the interfaces back; they are as they were before."""
        until = monotonic() + self._return_s
        for each in claim.devices:
            if not each.admin_access and interface_of(each.device):
                self._put_back(each, until)

    def _put_back(self, device: Allocated, until: float) -> None:
        before, wanted = interface_of(device.device), _config(device).interface
        name = self._returned(device, until)
        if name is None:  # as virtual ones, which end with the network of their pod
            _log.info("interface %s is not on the node; there is nothing to put back", before)
            return
        if name != before and (self._root / "sys/class/net" / before).exists():
            _log.warning("interface %s stays %s: the name is taken", before, name)
            before = name
        mtu = device.device.attributes.get(f"{devices.DRIVER}/mtu")
        change = Change(
            name=None if name == before else before,
            mtu=mtu.int_ if mtu is not None and wanted.mtu is not None else None,
            mac=(_text(device, "mac") or None) if wanted.hardware_addr is not None else None,
            remove=wanted.addresses,
            up=_text(device, "state") == "up",
        )
        try:
            links = self._links()
        except PrepareError as error:
            if change != Change(up=change.up):
                raise
            _log.warning("interface %s is left down: %s", name, error)
            return
        links.change(name, change)

    def _returned(self, device: Allocated, until: float) -> str | None:
        """What the interface of a device is called on the node now; None if it is not there, and does not come in time."""
        address, wanted = _text(device, "pciAddress"), _config(device).interface
        names = [interface_of(device.device), wanted.name or interface_of(device.device)]
        known = {_text(device, "mac"), (wanted.hardware_addr or _text(device, "mac")).lower()}
        while True:
            name = find(self._root, address, names, known)
            may_come = address and pci_device(self._root, address) is not None
            if name is not None or not may_come or monotonic() >= until:
                return name
            self._pause(_POLL_S)

    def _moved(self, device: Allocated) -> PreparedDevice:
        """What a container gets that has a device to itself."""
        interface, wanted = interface_of(device.device), _config(device).interface
        if not interface:
            return PreparedDevice(device=device, device_nodes=self._rdma_nodes(device))
        name = wanted.name or interface
        return PreparedDevice(
            device=device,
            device_nodes=self._rdma_nodes(device),
            net_devices=[NetDevice(host_interface_name=interface, name=name)],
            network=NetworkDeviceData(
                interface_name=name,
                ips=wanted.addresses,
                hardware_address=wanted.hardware_addr or _text(device, "mac"),
            ),
        )

    def _rdma_nodes(self, device: Allocated) -> list[DeviceNode]:
        """The device files by which programs use RDMA."""
        address = _text(device, "pciAddress")
        verbs = verbs_of(self._root, address) if address else []
        if not verbs:
            return []
        more = [_CONNECTION_MANAGER] if (self._root / _CONNECTION_MANAGER).exists() else []
        return existing_nodes(self._root, *verbs, *more)


def _text(device: Allocated, name: str) -> str:
    """An attribute of a device; empty if it has none."""
    found = device.device.attributes.get(f"{devices.DRIVER}/{name}")
    return "" if found is None else found.string or ""


def _config(device: Allocated) -> NetworkConfig:
    return device.config if isinstance(device.config, NetworkConfig) else NetworkConfig()
