"""Attributes of devices as drivers may write them: a plain text, number or truth value is as good as one that names its type."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from drayman.api.resource import Device, DeviceAttribute
from drayman.drivers.kit.errors import PublishError
from drayman.drivers.kit.model import Hardware

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def with_attributes(hardware: Hardware) -> Hardware:
    """Hardware whose attributes all name their types. Raises PublishError for a value that cannot be one."""
    if all(_is_typed(device) for device in hardware.devices):
        return hardware
    groups = tuple(tuple(map(_typed, group)) for group in hardware.groups)
    return replace(hardware, groups=groups)


def _is_typed(device: Device) -> bool:
    return all(isinstance(value, DeviceAttribute) for value in device.attributes.values())


def _typed(device: Device) -> Device:
    if _is_typed(device):
        return device
    values = {
        name: _attribute(device.name, name, value) for name, value in device.attributes.items()
    }
    return replace(device, attributes=values)


def _attribute(device: str, name: str, value: object) -> DeviceAttribute:
    match value:
        case DeviceAttribute():
            return value
        case bool():
            return DeviceAttribute(bool_=value)
        case int() if _LEAST <= value <= _MOST:
            return DeviceAttribute(int_=value)
        case str():
            return DeviceAttribute(string=value)
        case int():
            problem = "is a number that does not fit into 64 bits"
        case _:
            problem = f"is of the type {type(value).__name__}"
    raise PublishError(
        f"attribute {name} of device {device} {problem};"
        " it can be a text, a whole number, true or false, or what kit.version makes"
    )
