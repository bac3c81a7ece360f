"""The part of a device that an expression reads, as a key for comparison and lookup."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, TypeAlias

from drayman.api.resource import Device, DeviceAttribute, DeviceCapacity
from drayman.cel.device_types import Features
from drayman.cel.device_values import device_problem, split_name
from drayman.cel.reads import Group, Reads

Key: TypeAlias = Callable[[str, Device], Hashable]
_Getter: TypeAlias = Callable[[str, Device], Hashable]
_DRIVER_ONLY: Final = Reads(driver=True)
_ToKey: TypeAlias = Callable[[Any], Hashable]
_Entries: TypeAlias = Mapping[str, DeviceAttribute] | Mapping[str, DeviceCapacity]


def key_of(reads: Reads, features: Features) -> Key:
    """A function that gives equal keys to devices on which an expression with these reads has the same result."""
    if reads == _DRIVER_ONLY:
        return _driver_key(features)
    getters: list[_Getter] = []
    if reads.driver:
        getters.append(lambda driver, device: driver)
    if reads.allow_multiple_allocations:
        getters.append(lambda driver, device: bool(device.allow_multiple_allocations))
    getters += _group_getters(reads.attributes, lambda device: device.attributes, lambda a: a)
    # Equal amounts that are written differently are distinguished: `isInteger` sees the difference.
    getters += _group_getters(
        reads.capacity, lambda device: device.capacity, lambda c: str(c.value)
    )
    parts = tuple(getters)

    def key(driver: str, device: Device) -> Hashable:
        problem = device_problem(device, features)
        if problem is not None:
            return problem
        return tuple([getter(driver, device) for getter in parts])

    return key


def _driver_key(features: Features) -> Key:
    """For the expression that most classes have."""

    def key(driver: str, device: Device) -> Hashable:
        problem = device_problem(device, features)
        return (driver,) if problem is None else problem

    return key


def _group_getters(
    group: Group, entries_of: Callable[[Device], _Entries], to_key: _ToKey
) -> list[_Getter]:
    if group.everything:
        return [_matching(entries_of, to_key, None)]
    getters = [_matching(entries_of, to_key, domain) for domain in sorted(group.domains)]
    getters += [_single(entries_of, to_key, *key) for key in sorted(group.keys)]
    return getters


def _matching(
    entries_of: Callable[[Device], _Entries],
    to_key: _ToKey,
    wanted: str | None,
) -> _Getter:
    """All entries, or all of one domain."""

    def get(driver: str, device: Device) -> Hashable:
        found = {}
        for name, entry in entries_of(device).items():
            domain, identifier = split_name(name, driver)
            if wanted is None or domain == wanted:
                found[domain, identifier] = to_key(entry)
        return frozenset(found.items())

    return get


def _single(
    entries_of: Callable[[Device], _Entries],
    to_key: _ToKey,
    domain: str,
    name: str,
) -> _Getter:
    qualified = f"{domain}/{name}"
    unqualified = "" if "/" in name else name

    def get(driver: str, device: Device) -> Hashable:
        entries = entries_of(device)
        entry = entries.get(qualified)
        is_here = driver == domain and unqualified in entries
        if is_here and (entry is None or _comes_last(entries, unqualified, qualified)):
            entry = entries[unqualified]
        return None if entry is None else to_key(entry)

    return get


def _comes_last(entries: _Entries, name: str, other: str) -> bool:
    """The later of two spellings of one name counts."""
    order = list(entries)
    return order.index(name) > order.index(other)
