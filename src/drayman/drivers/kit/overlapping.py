"""Devices that share hardware, as a GPU and its partitions do, and so cannot all be prepared at once.

They say it by the counters that they consume. A scheduler keeps to those by what is allocated, and on the node that is not enough: what was
prepared for a claim stays so for a while after another one has got the same hardware under another name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from drayman.api.quantity import Quantity
from drayman.api.resource import CounterSet, Device
from drayman.drivers.kit.claims import DeviceKey

_Counter = tuple[str, str]
"""A counter set and a counter of it."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """A device for which too little is left."""

    device: str
    holders: tuple[str, ...]
    """The uids of the claims that have what it lacks; none if the claim's own devices exclude each other."""


def overlap(
    wanted: Mapping[DeviceKey, Device],
    held: Mapping[str, Mapping[DeviceKey, Device]],
    sets: Iterable[CounterSet],
) -> Overlap | None:
    """The first device wanted that does not fit beside the others and those that claims have, given by uid.

    A device consumes its counters once, however many claims share it. Counters that are not in a set any more limit nothing.
    """
    limits = {
        (each.name, name): counter.value for each in sets for name, counter in each.counters.items()
    }
    in_use = {key: device for devices in held.values() for key, device in devices.items()}
    used: defaultdict[_Counter, Quantity] = defaultdict(lambda: Quantity.ZERO)
    for device in in_use.values():
        _add(used, device)
    for key, device in wanted.items():
        if key in in_use:
            continue
        lacking = {
            counter
            for counter, amount in _consumption(device)
            if counter in limits and limits[counter] < used[counter] + amount
        }
        if lacking:
            return Overlap(device.name, tuple(_holders(held, lacking)))
        _add(used, device)
    return None


def _add(used: defaultdict[_Counter, Quantity], device: Device) -> None:
    for counter, amount in _consumption(device):
        used[counter] += amount


def _consumption(device: Device) -> Sequence[tuple[_Counter, Quantity]]:
    return [
        ((each.counter_set, name), counter.value)
        for each in device.consumes_counters
        for name, counter in each.counters.items()
        if counter.value != Quantity.ZERO
    ]


def _holders(
    held: Mapping[str, Mapping[DeviceKey, Device]], lacking: set[_Counter]
) -> Iterable[str]:
    for uid, devices in held.items():
        consumed = {counter for each in devices.values() for counter, _ in _consumption(each)}
        if consumed & lacking:
            yield uid
