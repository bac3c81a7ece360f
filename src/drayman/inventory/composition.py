"""Two hardwares as one: the devices of both in search order, and what is held of them put together from what is held of each.

A node sees its own devices and, often, a great many that other nodes see as well. The two parts are kept apart, so that the latter are
kept once for all nodes. Few questions concern both parts; for those they are put together here. Pools never reach from one part into the
other, and neither do counters, so nothing has to be worked out again: sets move to other positions, pool by pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from drayman.inventory.bitsets import positions
from drayman.inventory.device import Amount
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.usage import CapacityGroup, Usage


class _Run(NamedTuple):
    """Neighbours in a part that are neighbours in the whole, too."""

    source: int
    length: int
    target: int

    @property
    def targets(self) -> range:
        return range(self.target, self.target + self.length)


class _Moves:
    """Where the devices of a part, its pools and its counter sets are in the whole."""

    def __init__(self, part: NodeHardware, whole: NodeHardware) -> None:
        numbers = [whole.pool_number[pool.id] for pool in part.pools]
        self.pools = _runs(range(number, number + 1) for number in numbers)
        self.counter_sets = _runs(whole.pool_counters[number] for number in numbers)
        self._devices = _runs(whole.pool_devices[number] for number in numbers)
        self.position = [position for run in self._devices for position in run.targets]
        self.counter_set = [index for run in self.counter_sets for index in run.targets]
        self.kind = [
            whole.capacity_kind[self.position[next(iter(positions(devices)))]]
            for devices in part.of_capacity_kind
        ]

    def devices(self, members: int) -> int:
        return _moved(members, self._devices)


class Composition:
    """Parts that have no pool in common, as one hardware."""

    def __init__(self, parts: Sequence[NodeHardware], whole: NodeHardware) -> None:
        self._whole = whole
        self._moves = [_Moves(part, whole) for part in parts]

    def usage(self, parts: Sequence[Usage]) -> Usage:
        """What is held of the whole, if this is held of the parts."""
        moves = list(zip(self._moves, parts, strict=True))
        return Usage(
            self._whole,
            in_use=_union(move.devices(part.in_use) for move, part in moves),
            shared=_union(move.devices(part.shared) for move, part in moves),
            left={
                move.position[position]: left
                for move, part in moves
                for position, left in part.left.items()
            },
            capacity_groups=self._capacity_groups(parts),
            counters=self._counters(parts),
            counter_blocked=_union(move.devices(part.counter_blocked) for move, part in moves),
            exceeded=frozenset(
                move.counter_set[index] for move, part in moves for index in part.exceeded
            ),
            pools_alike=self._pools_alike(parts) if self._whole.has_many_pools else (),
        )

    def _capacity_groups(self, parts: Sequence[Usage]) -> tuple[CapacityGroup, ...]:
        found: dict[tuple[int, tuple[Amount, ...]], int] = {}
        for move, part in zip(self._moves, parts, strict=True):
            for kind, left, devices in part.capacity_groups:
                key = (move.kind[kind], left)
                found[key] = found.get(key, 0) | move.devices(devices)
        return tuple([(kind, left, devices) for (kind, left), devices in found.items()])

    def _counters(self, parts: Sequence[Usage]) -> tuple[tuple[Amount, ...], ...]:
        found: list[tuple[Amount, ...]] = [()] * len(self._whole.counter_sets)
        for move, part in zip(self._moves, parts, strict=True):
            for source, length, target in move.counter_sets:
                found[target : target + length] = part.counters[source : source + length]
        return tuple(found)

    def _pools_alike(self, parts: Sequence[Usage]) -> tuple[int, ...]:
        found: list[int] = []
        for move, part in zip(self._moves, parts, strict=True):
            # Few pools are not grouped by their use: then each is only like itself.
            alike = part.pools_alike or [1 << i for i in range(len(part.hardware.pools))]
            found += [_moved(pools, move.pools) for pools in alike]
        return tuple(found)


def _runs(ranges: Iterable[range]) -> list[_Run]:
    """Ranges of the whole, in the order of the part, as few runs."""
    found: list[_Run] = []
    source = 0
    for each in ranges:
        if found and found[-1].target + found[-1].length == each.start:
            last = found.pop()
            found.append(_Run(last.source, last.length + len(each), last.target))
        elif each:
            found.append(_Run(source, len(each), each.start))
        source += len(each)
    return found


def _moved(members: int, runs: Iterable[_Run]) -> int:
    found = 0
    if members:
        for source, length, target in runs:
            found |= (members >> source & ((1 << length) - 1)) << target
    return found


def _union(sets: Iterable[int]) -> int:
    union = 0
    for members in sets:
        union |= members
    return union
