"""The Container Device Interface 1.1.0: files in which a driver says what a container gets together with a device."""

from drayman.plugins.cdi.checking import problems_of
from drayman.plugins.cdi.files import file_name, read_spec, write_spec
from drayman.plugins.cdi.merging import Container, Devices, merged
from drayman.plugins.cdi.model import (
    CdiDevice,
    ContainerEdits,
    DeviceNode,
    Hook,
    IntelRdt,
    Mount,
    NetDevice,
    Spec,
    qualified,
)
from drayman.plugins.cdi.versions import LATEST, lowest_version

__all__ = [
    "LATEST",
    "CdiDevice",
    "Container",
    "ContainerEdits",
    "DeviceNode",
    "Devices",
    "Hook",
    "IntelRdt",
    "Mount",
    "NetDevice",
    "Spec",
    "file_name",
    "lowest_version",
    "merged",
    "problems_of",
    "qualified",
    "read_spec",
    "write_spec",
]
