"""How the devices of a pool are divided into slices, for simulated hardware and for real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from drayman.api.resource import CounterSet, Device
from drayman.api.validation.resource_slice import (
    MAX_ADVANCED_DEVICES,
    MAX_COUNTER_SETS,
    MAX_DEVICES,
    is_advanced,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SliceContent:
    """What one slice holds: devices, or counters that devices of the same pool consume."""

    devices: tuple[Device, ...] | None = None
    counters: tuple[CounterSet, ...] | None = None


def contents_of(
    groups: Sequence[Sequence[Device]], counters: Sequence[CounterSet] = ()
) -> list[SliceContent]:
    """The slices of a pool: first those with the counters, then one for each group of devices, as many as it takes."""
    contents = [SliceContent(counters=part) for part in _parts(counters, MAX_COUNTER_SETS)]
    for group in groups:
        most = MAX_ADVANCED_DEVICES if any(map(is_advanced, group)) else MAX_DEVICES
        contents += [SliceContent(devices=part) for part in _parts(group, most)]
    return contents


def _parts(items: Sequence[T], most: int) -> list[tuple[T, ...]]:
    return [tuple(items[at : at + most]) for at in range(0, len(items), most)]
