"""What a driver is given and gives back: claims, devices, edits, health."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, field

from drayman.api.meta import Condition
from drayman.api.quantity import Quantity
from drayman.api.resource import CounterSet, Device, NetworkDeviceData
from drayman.api.struct import Json
from drayman.driver_configs.decoding import Config
from drayman.plugins.cdi import ContainerEdits, DeviceNode, Hook, Mount, NetDevice
from drayman.plugins.model import ClaimRef

NO_SCHEDULE: Final = "NoSchedule"


class Hardware(Struct, frozen=True, kw_only=True):
    """What a driver has discovered. Groups are kept apart in slices, as the partitions of one GPU are."""

    groups: tuple[tuple[Device, ...], ...] = ()
    counters: tuple[CounterSet, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    """Of the node, such as the fabric that it is in. They are set, and never removed: others may set them, too."""

    @classmethod
    def of(cls, devices: Iterable[Device]) -> Hardware:
        """Devices that need no groups."""
        found = tuple(devices)
        return cls(groups=(found,) if found else ())

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(device for group in self.groups for device in group)


class Consumer(Struct, frozen=True):
    """Whom a claim is reserved for: a pod, or a group of pods."""

    resource: str
    name: str
    uid: str


DeviceKey = tuple[str, str, str | None]
"""The pool, the name and the share of a device, which no other of the same claim and driver has."""


class Allocated(Struct, frozen=True, kw_only=True):
    """A device of the driver that a claim has."""

    request: str
    """As results name it: `request`, or `request/subrequest`."""
    pool: str
    name: str
    device: Device
    """As the driver has discovered it."""
    config: Config | None = None
    share_id: str | None = None
    consumed: dict[str, Quantity] = field(default_factory=dict)
    """How much of its capacities, where the device is shared by capacity."""
    admin_access: bool = False
    """Only to look at: others may be using it."""

    @property
    def main_request(self) -> str:
        return self.request.partition("/")[0]

    @property
    def key(self) -> DeviceKey:
        return self.pool, self.name, self.share_id


class Claim(Struct, frozen=True, kw_only=True):
    """A claim with the devices that it has from this driver."""

    namespace: str
    name: str
    uid: str
    devices: tuple[Allocated, ...]
    consumers: tuple[Consumer, ...] = ()
    state: Json = None
    """What `prepare` had to remember; None while nothing is prepared, or only half."""
    others: tuple[Claim, ...] = ()
    """The other claims that are prepared, or half prepared, if the driver `sees_others`."""

    @property
    def ref(self) -> ClaimRef:
        return ClaimRef(self.namespace, self.name, self.uid)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PreparedDevice(Struct, frozen=True, kw_only=True):
    """What containers get with a device, and what the claim's status says about it."""

    device: Allocated
    env: dict[str, str] = field(default_factory=dict)
    device_nodes: Sequence[DeviceNode] = ()
    mounts: Sequence[Mount] = ()
    hooks: Sequence[Hook] = ()
    additional_gids: Sequence[int] = ()
    net_devices: Sequence[NetDevice] = ()
    cdi_ids: Sequence[str] = ()
    """Of CDI files that are there already, which the driver does not write for each claim."""
    conditions: Sequence[Condition] = ()
    data: Json = None
    network: NetworkDeviceData | None = None

    @property
    def edits(self) -> ContainerEdits:
        return ContainerEdits(
            env=environment(self.env),
            device_nodes=tuple(self.device_nodes),
            mounts=tuple(self.mounts),
            hooks=tuple(self.hooks),
            additional_gids=tuple(self.additional_gids),
            net_devices=tuple(self.net_devices),
        )


class Prepared(Struct, frozen=True, kw_only=True):
    """The result of preparing a claim. A device that is not mentioned needs no edits."""

    devices: Sequence[PreparedDevice] = ()
    env: dict[str, str] = field(default_factory=dict)
    """For every container that uses any of the devices."""
    mounts: Sequence[Mount] = ()
    device_nodes: Sequence[DeviceNode] = ()
    hooks: Sequence[Hook] = ()
    state: Json = None
    """JSON that `unprepare` finds in the claim, also after a restart."""

    @property
    def edits(self) -> ContainerEdits:
        """What all containers get."""
        return ContainerEdits(
            env=environment(self.env),
            mounts=tuple(self.mounts),
            device_nodes=tuple(self.device_nodes),
            hooks=tuple(self.hooks),
        )


def environment(variables: dict[str, str]) -> tuple[str, ...]:
    """Variables as CDI has them."""
    return tuple(f"{name}={value}" for name, value in variables.items())


class Health(Struct, frozen=True, kw_only=True):
    """How a device is. One that is not healthy is tainted until it is again."""

    device: str
    healthy: bool | None
    """None if it cannot be told, which taints nothing unless a key is given."""
    message: str = ""
    taint_key: str = ""
    """By default `<driver>/unhealthy`."""
    taint_value: str = ""
    effect: str = NO_SCHEDULE
    """NoSchedule, NoExecute, or None for a taint that only informs."""
