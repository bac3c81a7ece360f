"""A CDI specification as values."""

from __future__ import annotations

from typing import Final

from msgspec import field

from drayman.api.struct import ApiStruct, Int64

STATIC_DIR: Final = "/etc/cdi"
DYNAMIC_DIR: Final = "/var/run/cdi"
"""Comes after the static one, and so wins."""


class DeviceNode(ApiStruct):
    """A device file in the container. Without type and numbers they are those of the host's file."""

    path: str = ""
    host_path: str = ""
    type_: str = field(name="type", default="")
    major: Int64 = 0
    minor: Int64 = 0
    file_mode: Int64 | None = None
    permissions: str = ""
    uid: Int64 | None = None
    gid: Int64 | None = None


class Mount(ApiStruct):
    host_path: str = ""
    container_path: str = ""
    options: tuple[str, ...] = ()
    type_: str = field(name="type", default="")


class Hook(ApiStruct):
    """A program of the host that the runtime runs at one moment in the life of a container."""

    hook_name: str = ""
    path: str = ""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: Int64 | None = None


class IntelRdt(ApiStruct):
    clos_id: str = field(name="closID", default="")
    l3_cache_schema: str = field(name="l3CacheSchema", default="")
    mem_bw_schema: str = field(name="memBwSchema", default="")
    schemata: tuple[str, ...] = ()
    enable_monitoring: bool = False


class NetDevice(ApiStruct):
    """A network interface of the host that moves into the container."""

    host_interface_name: str = ""
    name: str = ""


class ContainerEdits(ApiStruct):
    """What is added to a container."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    additional_gids: tuple[Int64, ...] = ()
    intel_rdt: IntelRdt | None = None
    net_devices: tuple[NetDevice, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self == _NO_EDITS


_NO_EDITS: Final = ContainerEdits()


class CdiDevice(ApiStruct):
    name: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    container_edits: ContainerEdits = ContainerEdits()


class Spec(ApiStruct):
    """One file: devices of one kind, and edits for every container that uses any of them."""

    cdi_version: str = ""
    kind: str = ""
    """`vendor/class`."""
    annotations: dict[str, str] = field(default_factory=dict)
    devices: tuple[CdiDevice, ...] = ()
    container_edits: ContainerEdits = ContainerEdits()

    @property
    def vendor(self) -> str:
        return self.kind.partition("/")[0]

    @property
    def class_(self) -> str:
        return self.kind.partition("/")[2]


def qualified(kind: str, device: str) -> str:
    """The id by which a container names a device."""
    return f"{kind}={device}"
