"""The same problem with fewer pools: of indistinguishable pools, only as many as the claims could use.

A fabric may have thousands of pools that every node sees, nearly all of them alike. An allocation of n devices uses at most n pools,
and wherever it uses a later one of pools that are alike, an earlier one that it leaves alone would do as well and comes first in search
order. So neither the first allocation nor the best one is lost if only the first n of each sort of pool are looked at.

Pools are alike if their devices, taken in order, pass the same selectors, are tainted, counted and placed alike, are alike in the
attributes that are compared, and are used alike. What only depends on the hardware is worked out once for each kind of question.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from drayman.allocator.problem.alignment import layout_of
from drayman.allocator.problem.tables import Alternative, Tables
from drayman.bounded import Bounded
from drayman.inventory.attributes import AttributeIndex
from drayman.inventory.bitsets import bitset, positions
from drayman.inventory.hardware import NodeHardware

_MOST_KEPT: Final = 64  # kinds of questions for which the sorts of pools are kept


def reduced(tables: Tables) -> Tables:
    """A smaller problem with the same answer, or the problem itself where there is none."""
    hardware = tables.view.hardware
    if not hardware.has_many_pools or tables.error_capable or _asks_for_all(tables):
        return tables
    if tables.question.stated.has_held:
        return tables  # pools that are alike differ by how close they are to what is held
    pools = _enough_of_each(tables, hardware.derived(_PoolSorts).of(tables))
    ranges = hardware.pool_devices
    devices = 0
    for number in positions(pools):
        devices |= ((1 << len(ranges[number])) - 1) << ranges[number].start
    requests = tuple(
        replace(
            request,
            alternatives=tuple(
                [replace(a, candidates=a.candidates & devices) for a in request.alternatives]
            ),
        )
        for request in tables.requests
    )
    smaller = replace(tables, requests=requests)
    return replace(smaller, match_values=_values_in_reach(smaller))


def _asks_for_all(tables: Tables) -> bool:
    return any(a.sequence is not None for request in tables.requests for a in request.alternatives)


def _enough_of_each(tables: Tables, sorts: Iterable[int]) -> int:
    """The first pools of each sort, as used now, as many as there are devices to place."""
    slots, chosen = tables.slots, 0
    alike = tables.view.usage.pools_alike
    for sort in sorts:
        for used in alike:
            pools = sort & used
            for _ in range(slots):
                if not pools:
                    break
                low = pools & -pools
                chosen |= low
                pools ^= low
    return chosen


def _values_in_reach(tables: Tables) -> tuple[int, ...]:
    """By match constraint, the values of the devices that are left."""
    reach = [0] * len(tables.matches)
    for request in tables.requests:
        for alternative in request.alternatives:
            for index in alternative.matches:
                reach[index] |= alternative.candidates
    found = []
    for constraint, devices in zip(tables.matches, reach, strict=True):
        values = 0
        for position in positions(devices):
            values |= constraint.attribute.of_device[position]
        found.append(values)
    return tuple(found)


class _PoolSorts:
    """Which pools of a hardware are alike, leaving aside how they are used."""

    def __init__(self, hardware: NodeHardware) -> None:
        self._hardware = hardware
        self._built_alike = self._shapes()
        self._labels: dict[str, list[Hashable]] = {}
        self._known: Bounded[Hashable, tuple[int, ...]] = Bounded(_MOST_KEPT)

    def of(self, tables: Tables) -> tuple[int, ...]:
        """The sorts, as sets of pools."""
        asked = [a for request in tables.requests for a in request.alternatives]
        compared = {c.name: c.attribute for c in (*tables.matches, *tables.distincts)}
        tolerated = tuple([tables.view.tolerated(a.spec.tolerations) for a in asked])
        key = (tuple([a.selectors for a in asked]), tolerated, tuple(compared))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._sort(asked, tolerated, compared.items())
        return found

    def _sort(
        self,
        asked: Sequence[Alternative],
        tolerated: Sequence[int],
        compared: Iterable[tuple[str, AttributeIndex]],
    ) -> tuple[int, ...]:
        sets = list(tolerated)
        for alternative in asked:
            sets += self._hardware.select(alternative.selectors)
        columns = [self._labels_of(name, attribute) for name, attribute in compared]
        members: dict[Hashable, list[int]] = {}
        for number, devices in enumerate(self._hardware.pool_devices):
            everything = (1 << len(devices)) - 1
            key = (
                self._built_alike[number],
                tuple([found >> devices.start & everything for found in sets]),
                tuple([column[number] for column in columns]),
            )
            members.setdefault(key, []).append(number)
        return tuple(bitset(pools, len(self._hardware.pools)) for pools in members.values())

    def _labels_of(self, name: str, attribute: AttributeIndex) -> list[Hashable]:
        found = self._labels.get(name)
        if found is None:
            values = [tuple(positions(mask)) for mask in attribute.of_device]
            found = self._labels[name] = self._canonical(values, attribute.holders)
        return found

    def _canonical(self, labels: Sequence[Iterable[int]], holders: Sequence[int]) -> list[Hashable]:
        """Per pool, the labels of its devices; those that no other pool has are numbered within the pool."""
        found: list[Hashable] = []
        for devices in self._hardware.pool_devices:
            outside = ~(((1 << len(devices)) - 1) << devices.start)
            own: dict[int, int] = {}
            found.append(
                tuple(
                    tuple(
                        sorted(
                            label if holders[label] & outside else ~own.setdefault(label, len(own))
                            for label in labels[position]
                        )
                    )
                    for position in devices
                )
            )
        return found

    def _shapes(self) -> list[Hashable]:
        """Per pool, what its devices are, apart from attributes."""
        hardware = self._hardware
        layout = hardware.derived(layout_of)
        roots = self._canonical(*_by_label([place.root for place in layout.places]))
        numa = self._canonical(*_by_label([place.numa for place in layout.places]))
        sockets = self._canonical(*_by_label([place.socket for place in layout.places]))
        fabrics = self._canonical(*_by_label([place.fabric for place in layout.places]))
        sets = (hardware.shareable, hardware.binding, hardware.selects_node, hardware.consumers)
        known: dict[Hashable, int] = {}
        found: list[Hashable] = []
        for number, devices in enumerate(hardware.pool_devices):
            everything = (1 << len(devices)) - 1
            counters = hardware.pool_counters[number]
            shape = (
                len(devices),
                tuple([members >> devices.start & everything for members in sets]),
                tuple([hardware.counter_sets[i].limits for i in counters]),
                tuple([self._consumed(p, counters.start) for p in devices]),
                tuple([hardware.capacity_kind[p] for p in devices]),
                tuple([layout.places[p].kind for p in devices]),
                roots[number],
                numa[number],
                sockets[number],
                fabrics[number],
            )
            found.append(known.setdefault(shape, len(known)))
        return found

    def _consumed(self, position: int, first: int) -> Hashable:
        """What a device consumes, counter sets numbered within its pool."""
        return tuple([(i - first, used) for i, used in self._hardware.consumption[position]])


def _by_label(of_device: Sequence[int]) -> tuple[list[tuple[int, ...]], list[int]]:
    """The labels of each device as numbers from zero, and the devices with each; -1 is no label."""
    numbers: dict[int, int] = {}
    members: list[list[int]] = []
    for position, label in enumerate(of_device):
        if label >= 0:
            number = numbers.setdefault(label, len(numbers))
            if number == len(members):
                members.append([])
            members[number].append(position)
    labels: list[tuple[int, ...]] = [() if label < 0 else (numbers[label],) for label in of_device]
    return labels, [bitset(devices, len(of_device)) for devices in members]
