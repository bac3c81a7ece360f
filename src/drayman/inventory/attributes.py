"""Attribute values of a node's devices as bitsets, for constraints.

Values are sets: a scalar is a set of one, a list attribute the set of its items. Values of different types are different.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from drayman.api.resource import DeviceAttribute
from drayman.bounded import Bounded
from drayman.inventory.device import DeviceRecord

_MOST_KEPT: Final = 4_096  # sets of values whose devices are kept

Value: TypeAlias = tuple[str, int | bool | str]


def lookup(record: DeviceRecord, name: str) -> DeviceAttribute | None:
    """The attribute with this full name; inside the driver's own domain the domain may be left out."""
    found = record.device.attributes.get(name)
    if found is None:
        domain, _, identifier = name.partition("/")
        if domain == record.id.driver:
            found = record.device.attributes.get(identifier)
    return found


def values_of(attribute: DeviceAttribute | None, *, lists: bool) -> tuple[Value, ...]:
    """The values of an attribute with their types; none if it is absent, or a list where lists are off."""
    if attribute is None:
        return ()
    if attribute.string is not None:
        return (("string", attribute.string),)
    if attribute.int_ is not None:
        return (("int", attribute.int_),)
    if attribute.bool_ is not None:
        return (("bool", attribute.bool_),)
    if attribute.version is not None:
        return (("version", attribute.version),)
    if not lists:
        return ()
    listed: tuple[tuple[str, Sequence[int | bool | str] | None], ...] = (
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("string", attribute.strings),
        ("version", attribute.versions),
    )
    return tuple(dict.fromkeys((kind, item) for kind, items in listed for item in items or ()))


class AttributeIndex:
    """One attribute over the devices of a node. Bit i of a device set is the i-th device in search order."""

    __slots__ = (
        "_allowed",
        "all_values",
        "conflicts",
        "holders",
        "of_device",
        "present",
        "scalar",
        "values",
    )

    def __init__(self, records: Sequence[DeviceRecord], name: str, *, lists: bool) -> None:
        ids: dict[Value, int] = {}
        holders: list[int] = []
        self.of_device: list[int] = []  # per device, the set of its value ids
        self.present = 0
        for position, record in enumerate(records):
            mask = 0
            for value in values_of(lookup(record, name), lists=lists):
                value_id = ids.setdefault(value, len(ids))
                if value_id == len(holders):
                    holders.append(0)
                holders[value_id] |= 1 << position
                mask |= 1 << value_id
            if mask:
                self.present |= 1 << position
            self.of_device.append(mask)
        self.values: tuple[Value, ...] = tuple(ids)
        self.holders = holders  # per value id, the devices that have it
        self.all_values = (1 << len(holders)) - 1
        self.scalar = all(mask.bit_count() <= 1 for mask in self.of_device)
        self._allowed: Bounded[int, int] = Bounded(_MOST_KEPT)
        # Per device, the devices that share a value with it.
        self.conflicts = [self.allowed(mask) for mask in self.of_device]

    def allowed(self, values: int) -> int:
        """The devices that have one of the values."""
        found = self._allowed.get(values)
        if found is None:
            found = 0
            rest = values
            while rest:
                low = rest & -rest
                found |= self.holders[low.bit_length() - 1]
                rest ^= low
            self._allowed[values] = found
        return found
