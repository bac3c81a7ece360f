"""How much a device is worth in a mapping that measures: by a counter that it consumes, or by what a request takes of a capacity.

Amounts are looked up by group of devices that are alike, so that thousands of them cost what a few do. The first source that applies to a
device measures it (`Rules.first_source`); Kueue adds up what all sources of a mapping say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from drayman.inventory.bitsets import bitset
from drayman.inventory.device import Amount, CapacityRecord, DeviceRecord, consumption
from drayman.inventory.hardware import NodeHardware
from drayman.quota.amounts import MOST
from drayman.quota.charging.fleet import Fleet, drivers_of
from drayman.quota.charging.mappings import CapacitySource, Source

Levels = tuple[tuple[int, int], ...]
"""Amounts and the devices that are worth them, the largest first."""


class Measured(Struct, frozen=True):
    """What some devices are worth."""

    devices: int
    """Those that a source is for."""
    having: int
    """Of these, those that have what is measured."""
    levels: Levels
    """Of these, those that a request can be served from."""

    @property
    def dearest(self) -> int:
        """The most that a device may turn out to cost. There must be one."""
        return self.levels[0][0]

    def worth(self, devices: int) -> int:
        """What all of these devices together cost."""
        return sum(amount * (members & devices).bit_count() for amount, members in self.levels)


def measure(
    sources: Sequence[Source],
    fleet: Fleet,
    matching: int,
    requests: Mapping[str, Amount],
    *,
    whole: bool,
) -> Measured:
    """What the devices of a set are worth to a request for capacities, by the first source that is for them.

    Selectors of sources have been checked to compile; a device on which one fails is not measured by it. With `whole`, a device can
    only serve a request if it has every capacity asked for.
    """
    left, having = matching, 0
    levels: dict[int, int] = {}
    for source in sources:
        mine, _ = fleet.selected(source.expressions, left & fleet.of_driver(source.driver))
        left &= ~mine
        if isinstance(source, CapacitySource):
            found, amounts = _capacities(fleet.hardware, source, requests, whole=whole)
            having |= mine & found
        else:
            amounts = fleet.hardware.derived(_counters).get(source.name, {})
            for members in amounts.values():
                having |= mine & members
        for amount, members in amounts.items():
            if mine & members:
                levels[amount] = levels.get(amount, 0) | mine & members
    return Measured(matching & ~left, having, tuple(sorted(levels.items(), reverse=True)))


def counter_of(record: DeviceRecord, name: str) -> int | None:
    """What a device consumes of a counter; of several counter sets that have it, the most. None if it does not name it."""
    amounts = [used[name] for _, used in record.counters if name in used]
    return max(map(counted, amounts)) if amounts else None


def counted(amount: Amount) -> int:
    """An amount as quota counts it: whole, rounded up, never negative, and no more than an int64 holds."""
    return max(0, min(MOST, -(-amount // 1)))


def short_name(name: str, driver: str) -> str:
    """The name of a capacity within its driver's own domain, where the domain may be written or left out."""
    return name.removeprefix(f"{driver}/")


def serving(fleet: Fleet, requests: Mapping[str, Amount]) -> int:
    """The devices that have every capacity asked for, and enough of it."""
    found = 0
    hardware = fleet.hardware
    for driver, devices in hardware.derived(drivers_of).items():
        for kind, members in zip(hardware.capacity_kinds, hardware.of_capacity_kind, strict=True):
            if devices & members and _consumed(kind, driver, requests, whole=True) is not None:
                found |= devices & members
    return found


def _counters(hardware: NodeHardware) -> dict[str, dict[int, int]]:
    """By counter, the amounts that devices consume of it, and the devices that consume so much."""
    found: dict[str, dict[int, list[int]]] = {}
    for position, record in enumerate(hardware.records):
        for name in {name for _, used in record.counters for name in used}:
            amount = counter_of(record, name)
            if amount is not None:
                found.setdefault(name, {}).setdefault(amount, []).append(position)
    size = len(hardware.records)
    return {
        name: {amount: bitset(members, size) for amount, members in levels.items()}
        for name, levels in found.items()
    }


def _capacities(
    hardware: NodeHardware, source: CapacitySource, requests: Mapping[str, Amount], *, whole: bool
) -> tuple[int, dict[int, int]]:
    """The devices of a driver that have a capacity, and what a request takes of it from those that can serve it."""
    having, levels = 0, dict[int, int]()
    of_driver = hardware.derived(drivers_of).get(source.driver, 0)
    name = short_name(source.name, source.driver)
    for kind, members in zip(hardware.capacity_kinds, hardware.of_capacity_kind, strict=True):
        here = members & of_driver
        own = [c for c in kind if short_name(c.name, source.driver) == name]
        if not here or not own:
            continue
        having |= here
        looked_at = kind if whole else (own[0],)
        taken = _consumed(looked_at, source.driver, requests, whole=whole)
        if taken is not None:
            amount = counted(taken[looked_at.index(own[0])])
            levels[amount] = levels.get(amount, 0) | here
    return having, levels


def _consumed(
    kind: tuple[CapacityRecord, ...], driver: str, requests: Mapping[str, Amount], *, whole: bool
) -> tuple[Amount, ...] | None:
    """What a request takes of each of these capacities; None if a device with them cannot serve it."""
    kind = tuple(map(_without_stray_step, kind))
    names = {short_name(capacity.name, driver): capacity.name for capacity in kind}
    asked = {short_name(name, driver): amount for name, amount in requests.items()}
    if whole and not asked.keys() <= names.keys():
        return None
    taken = consumption(kind, {names[name]: asked[name] for name in names.keys() & asked.keys()})
    if taken is None or any(t > c.value for t, c in zip(taken, kind, strict=True)):
        return None
    return taken


def _without_stray_step(capacity: CapacityRecord) -> CapacityRecord:
    """Steps count from the minimum of a range. The API does not accept one without; to Kueue such a step means nothing."""
    policy = capacity.policy
    valid = policy.valid_range if policy else None
    if policy is None or valid is None or valid.min is not None or valid.step is None:
        return capacity
    plain = replace(policy, valid_range=replace(valid, step=None))
    return CapacityRecord(capacity.name, capacity.value, plain)
