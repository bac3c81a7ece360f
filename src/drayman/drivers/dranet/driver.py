"""`dra.net`: interfaces for pods.

An interface that a pod has is not on the node any more; what is known of it is published until it is back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final

from drayman.api.resource import Device, NetworkDeviceData
from drayman.api.struct import Json
from drayman.driver_configs.decoding import Config
from drayman.driver_configs.known import CONFIGS
from drayman.driver_configs.network import NetworkConfig
from drayman.drivers.dranet import devices
from drayman.drivers.dranet.discovery import discover
from drayman.drivers.dranet.links import Links, NetlinkLinks, require_applicable
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import Allocated, Claim, Hardware, Prepared, PreparedDevice
from drayman.drivers.preparing import existing_nodes
from drayman.drivers.sysfs import address_of, entries
from drayman.plugins.cdi import DeviceNode, NetDevice

_CONNECTION_MANAGER: Final = "dev/infiniband/rdma_cm"


class NetworkDriver(Driver):
    """Interfaces of one machine."""

    name = devices.DRIVER
    configs: ClassVar[tuple[type[Config], ...]] = CONFIGS[devices.DRIVER]

    def __init__(
        self,
        node: str,
        *,
        root: Path = Path("/"),
        links: Callable[[], Links] = NetlinkLinks,
    ) -> None:
        """`root` and `links` are replaced by tests."""
        super().__init__(node)
        self._root = root
        self._links = links
        self._held: dict[str, Device] = {}
        """Devices that claims have."""

    def recover(self, claims: Sequence[Claim]) -> None:
        self._held = {each.name: each.device for claim in claims for each in claim.devices}

    def discover(self) -> Hardware:
        found = {each.name: each for each in map(devices.device, discover(self._root))}
        return Hardware.of((found | self._held).values())

    def prepare(self, claim: Claim) -> Prepared:
        if len(claim.consumers) > 1:
            raise PrepareError(f"claim {claim} is used by several pods; an interface is in one")
        prepared, state = [], {}
        for each in claim.devices:
            config = each.config if isinstance(each.config, NetworkConfig) else NetworkConfig()
            require_applicable(config)
            interface = _interface_of(each)
            if interface:
                state[each.name] = self._set_up(interface, config)
            prepared.append(self._prepared(each, interface, config))
        self._held |= {each.name: each.device for each in claim.devices}
        return Prepared(devices=prepared, state=state)

    def unprepare(self, claim: Claim) -> None:
        """The runtime has brought the interfaces back; they are as they were before."""
        before = claim.state if isinstance(claim.state, dict) else {}
        for each in claim.devices:
            said = before.get(each.name)
            if said:
                added = list(said["addresses"])
                self._links().change(_interface_of(each), said["mtu"], said["mac"], [], added)
            self._held.pop(each.name, None)

    def _set_up(self, interface: str, config: NetworkConfig) -> dict[str, Json] | None:
        """Sets what is wanted; how it was before, if anything was set."""
        wanted = config.interface
        if wanted.mtu is None and wanted.hardware_addr is None and not wanted.addresses:
            return None
        links = self._links()
        mtu, mac = links.read(interface)
        links.change(
            interface, wanted.mtu or mtu, wanted.hardware_addr or mac, list(wanted.addresses), []
        )
        return {"mtu": mtu, "mac": mac, "addresses": list(wanted.addresses)}

    def _prepared(self, device: Allocated, interface: str, config: NetworkConfig) -> PreparedDevice:
        wanted = config.interface
        if not interface:
            return PreparedDevice(device=device, device_nodes=self._rdma_nodes(device))
        name = wanted.name or interface
        mac = device.device.attributes.get(f"{devices.DRIVER}/mac")
        return PreparedDevice(
            device=device,
            device_nodes=self._rdma_nodes(device),
            net_devices=[NetDevice(host_interface_name=interface, name=name)],
            network=NetworkDeviceData(
                interface_name=name,
                ips=wanted.addresses,
                hardware_address=wanted.hardware_addr or (mac.string or "" if mac else ""),
            ),
        )

    def _rdma_nodes(self, device: Allocated) -> list[DeviceNode]:
        """The device files by which programs use RDMA."""
        address = device.device.attributes.get(f"{devices.DRIVER}/pciAddress")
        if address is None:
            return []
        verbs = [
            f"dev/infiniband/{path.name}"
            for path in entries(self._root / "sys/class/infiniband_verbs", "uverbs")
            if address_of(path) == address.string
        ]
        if not verbs:
            return []
        more = [_CONNECTION_MANAGER] if (self._root / _CONNECTION_MANAGER).exists() else []
        return existing_nodes(self._root, *verbs, *more)


def _interface_of(device: Allocated) -> str:
    found = device.device.attributes.get(f"{devices.DRIVER}/ifName")
    return "" if found is None else found.string or ""
