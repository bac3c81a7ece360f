"""Attributes of devices as drivers may write them: a plain text, number or truth value is as good as one that names its type.

Texts often come from the machine. Python reads bytes that are not UTF-8 as halves of surrogate pairs, in names of files for instance, and
those cannot be written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from drayman.api.resource import Device, DeviceAttribute
from drayman.drivers.kit.errors import PublishError
from drayman.drivers.kit.model import Hardware

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def with_attributes(hardware: Hardware) -> Hardware:
    """Hardware whose attributes all name their types. Raises PublishError for a value that cannot be one."""
    groups = tuple(tuple(map(_typed, group)) for group in hardware.groups)
    return replace(hardware, groups=groups)


def _typed(device: Device) -> Device:
    values = {
        name: _attribute(device.name, name, value) for name, value in device.attributes.items()
    }
    if all(values[name] is given for name, given in device.attributes.items()):
        return device
    return replace(device, attributes=values)


def _attribute(device: str, name: str, value: object) -> DeviceAttribute:
    problem = _problem_of(value)
    if problem:
        raise PublishError(
            f"attribute {name} of device {device} {problem};"
            " it can be a text, a whole number, true or false, or what kit.version makes"
        )
    match value:
        case DeviceAttribute():
            return value
        case bool():
            return DeviceAttribute(bool_=value)
        case int():
            return DeviceAttribute(int_=value)
        case _:
            return DeviceAttribute(string=str(value))


def _problem_of(value: object) -> str:
    """Why a value cannot be an attribute, as the end of a sentence; empty if it can."""
    match value:
        case DeviceAttribute():
            return next(filter(None, map(_problem_of_text, _texts_of(value))), "")
        case int():
            return "" if _LEAST <= value <= _MOST else "is a number that does not fit into 64 bits"
        case _:
            return _problem_of_text(value)


def _texts_of(value: DeviceAttribute) -> Iterator[object]:
    yield from (text for text in (value.string, value.version) if text is not None)
    yield from value.strings or ()
    yield from value.versions or ()


def _problem_of_text(text: object) -> str:
    """What is wrong with something as a text; empty if nothing is."""
    if not isinstance(text, str):
        return f"is of the type {type(text).__name__}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"is {text!r}, which has bytes that are not UTF-8"
    return ""
