"""What a device looks like to an expression: its static type, and how large its parts can get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from drayman.cel import types
from drayman.cel.costs import SizeEstimate
from drayman.cel.libraries.quantity import QUANTITY
from drayman.cel.types import ANY, BOOL, DYN, STRING, Type

DEVICE: Final = types.object_type("kubernetes.DRADevice")

MAX_DOMAIN, MAX_ID, MAX_DRIVER = 63, 32, 63
MAX_VALUE = 64
MAX_ENTRIES = 32  # attributes and capacities of a device together


class Features(Struct, frozen=True):
    """The feature gates that change what expressions can say."""

    consumable_capacity: bool = True  # DRAConsumableCapacity: device.allowMultipleAllocations
    list_attributes: bool = (
        True  # DRAListTypeAttributes: attributes with lists of values, includes()
    )


class _Sized(Struct, frozen=True):
    """A part of the input: its largest size and what can be reached from it."""

    max_size: int
    fields: Mapping[str, _Sized] = field(default_factory=dict)
    key: _Sized | None = None
    element: _Sized | None = None
    selects_elements: bool = False  # whether `.name` is equivalent to `["name"]`


_VALUE = _Sized(MAX_VALUE)
_ATTRIBUTES = _Sized(MAX_ENTRIES, key=_Sized(MAX_ID), element=_VALUE, selects_elements=True)
_CAPACITIES = _Sized(MAX_ENTRIES, key=_Sized(MAX_ID), element=_Sized(0))
_INPUT = _Sized(
    0,
    {
        "driver": _Sized(MAX_DRIVER),
        "allowMultipleAllocations": _Sized(1),
        "attributes": _Sized(MAX_ENTRIES, key=_Sized(MAX_DOMAIN), element=_ATTRIBUTES),
        "capacity": _Sized(MAX_ENTRIES, key=_Sized(MAX_DOMAIN), element=_CAPACITIES),
    },
)


def input_size(path: tuple[str, ...]) -> SizeEstimate | None:
    """The size of what a path from the device leads to, as `estimate.InputSizes`."""
    if not path or path[0] != "device":
        return None
    part: _Sized | None = _INPUT
    for step in path[1:]:
        if part is None:
            return None
        match step:
            case "@items" | "@values":
                part = part.element
            case "@keys":
                part = part.key
            case _ if step in part.fields:
                part = part.fields[step]
            case _:
                part = part.element if part.selects_elements else None
    return SizeEstimate(0, part.max_size) if part is not None else None


def device_fields(features: Features, *, stored: bool) -> Mapping[str, Type]:
    """The fields of a device. Stored expressions may use features that gates forbid in new ones."""
    value = DYN if features.list_attributes else ANY
    fields = {
        "driver": STRING,
        "attributes": types.map_of(STRING, types.map_of(STRING, value)),
        "capacity": types.map_of(STRING, types.map_of(STRING, QUANTITY)),
    }
    if stored or features.consumable_capacity:
        fields["allowMultipleAllocations"] = BOOL
    return fields
