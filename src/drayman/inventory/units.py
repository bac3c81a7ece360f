"""Which devices are the same piece of hardware.

A driver that divides a GPU offers the whole and every possible partition as devices of their own; what keeps them apart is the counters
they draw from. So devices that draw from the same counter set, directly or through others, are one *unit*, and every device that draws
from none is a unit by itself. People count units: a node has eight GPUs, not two hundred and eight.

The device that takes all there is of a unit's counters is its *whole*. Not every unit has one: a GPU in MIG mode may be offered in parts
only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from drayman.inventory.counters import Consumption
from drayman.inventory.device import Amount
from drayman.inventory.hardware import NodeHardware


class UnitId(NamedTuple):
    """A unit, by the name of its whole; one without a whole by the name of its first counter set."""

    driver: str
    pool: str
    name: str
    is_counter_set: bool = False


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a hardware."""

    of_device: tuple[UnitId, ...]
    """The unit of the device at each position."""
    wholes: tuple[int, ...]
    """The positions of the devices that are offered in parts as well."""


def units(hardware: NodeHardware) -> Units:
    """The units that the devices of a node, or of many identical nodes, belong to."""
    found = [UnitId(*record.id) for record in hardware.records]
    wholes: list[int] = []
    for members in _components(hardware.consumption, len(hardware.counter_sets)):
        if len(members) == 1:
            continue
        whole = _whole(members, hardware)
        if whole is not None:
            wholes.append(whole)
            name = found[whole]
        else:
            first = hardware.counter_sets[hardware.consumption[members[0]][0][0]]
            name = UnitId(*first.pool, first.name, is_counter_set=True)
        for position in members:
            found[position] = name
    return Units(tuple(found), tuple(wholes))


def portions(hardware: NodeHardware) -> tuple[Fraction, ...]:
    """How much of its unit the device at each position is: of each counter set, the largest part that it takes of any counter."""
    found = [Fraction(1)] * len(hardware.records)
    for members in _components(hardware.consumption, len(hardware.counter_sets)):
        sets = {index for position in members for index, _ in hardware.consumption[position]}
        for position in members if len(members) > 1 else ():
            drawn = sum(
                _largest_part(amounts, hardware.counter_sets[index].limits)
                for index, amounts in hardware.consumption[position]
            )
            found[position] = min(Fraction(drawn, len(sets)), Fraction(1))
    return tuple(found)


def _largest_part(amounts: Sequence[Amount], limits: Sequence[Amount]) -> Fraction:
    parts = (Fraction(a) / Fraction(most) for a, most in zip(amounts, limits, strict=True) if most)
    return max(parts, default=Fraction(0))


def _components(consumption: Sequence[Consumption], sets: int) -> Iterator[Sequence[int]]:
    """The positions of devices that are joined by counter sets. Those that draw from none are left out."""
    parent = list(range(sets))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = index = parent[parent[index]]
        return index

    for consumed in consumption:
        for index, _ in consumed[1:]:
            parent[root(index)] = root(consumed[0][0])
    members: dict[int, list[int]] = {}
    for position, consumed in enumerate(consumption):
        if consumed:
            members.setdefault(root(consumed[0][0]), []).append(position)
    yield from members.values()


def _whole(members: Sequence[int], hardware: NodeHardware) -> int | None:
    """The member that takes all there is. Of several, such as a GPU and its largest partition, the one with the plainest name."""
    drawn = {index for position in members for index, _ in hardware.consumption[position]}
    everything = {index: hardware.counter_sets[index].limits for index in drawn}
    found = [p for p in members if dict(hardware.consumption[p]) == everything]
    return min(found, key=lambda p: _plainness(hardware.records[p].id.device), default=None)


def _plainness(name: str) -> tuple[int, str]:
    return len(name), name
