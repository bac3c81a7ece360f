"""What devices cost: their share of the price of their node.

The price of a node is paid with its leading devices: its accelerators if it has any, else its processors, its network cards, or whatever
there is. Each piece of hardware of that kind costs the same part of the price, and a partition or a share of one costs as much of that part
as it takes. Everything else on the node is included. So the costs of all devices of a node are its price, however they are divided among
holders, and no pair of GPU and network card is paid for twice.

Devices that several nodes reach belong to none, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final

from drayman.api.resource import AllocationResult, DeviceRequestAllocationResult
from drayman.inventory.device import DeviceRecord
from drayman.inventory.identity import DeviceId
from drayman.inventory.units import UnitId, portions, units
from drayman.inventory.view import NodeView
from drayman.topology import DeviceKind, kind

_LEADING: Final = (DeviceKind.GPU, DeviceKind.CPU, DeviceKind.NIC, DeviceKind.OTHER)
_NOTHING: Final = Fraction(0)
Parts = Mapping[DeviceId, tuple[DeviceRecord, Fraction]]
"""Devices, each with its part of the price of the node."""


class DeviceCosts:
    """Costs of the devices of a cluster, worked out for a node when they are first asked for."""

    def __init__(
        self, price_of: Callable[[str], int | None], view_of: Callable[[str], NodeView]
    ) -> None:
        """`price_of`: the price of a node by its name, in millionths for an hour; None if it is not known."""
        self._price_of = price_of
        self._view_of = view_of
        self._parts: dict[str, Parts] = {}

    def of(self, node: str, results: Iterable[DeviceRequestAllocationResult]) -> Fraction | None:
        """What devices of a node cost for an hour, in millionths; None if the node has no price."""
        price = self._price_of(node)
        if price is None:
            return None
        if node not in self._parts:
            self._parts[node] = parts_of(self._view_of(node), node)
        return price * sum((_part(self._parts[node], each) for each in results), _NOTHING)

    def of_allocations(self, node: str, found: Iterable[AllocationResult]) -> Fraction | None:
        """The same for what claims have there."""
        return self.of(node, (result for each in found for result in each.devices.results))


def parts_of(view: NodeView, node: str) -> Parts:
    """Which part of the price of a node each of its leading devices has. They are one together, if each unit is taken once."""
    own: dict[DeviceKind, dict[DeviceId, tuple[DeviceRecord, Fraction]]] = {}
    pieces: dict[DeviceKind, set[UnitId]] = {}
    for part in view.parts:
        hardware = part.hardware
        of_unit, portion = hardware.derived(units).of_device, hardware.derived(portions)
        for position, record in enumerate(hardware.records):
            if record.node_name == node:
                sort = kind(record.id.driver, record.device)
                own.setdefault(sort, {})[record.id] = record, portion[position]
                pieces.setdefault(sort, set()).add(of_unit[position])
    for sort in _LEADING:
        if sort in own:
            number = len(pieces[sort])
            return {id_: (record, part / number) for id_, (record, part) in own[sort].items()}
    return {}


def _part(parts: Parts, result: DeviceRequestAllocationResult) -> Fraction:
    found = parts.get(DeviceId.of(result))
    if found is None or result.admin_access:
        return _NOTHING
    record, part = found
    return part * _share(record, result)


def _share(record: DeviceRecord, result: DeviceRequestAllocationResult) -> Fraction:
    """How much of a device that several may use was allocated: the largest part of any of its capacities."""
    there = {capacity.name: capacity.value for capacity in record.capacities}
    shares = [
        Fraction(taken.amount) / Fraction(there[name])
        for name, taken in result.consumed_capacity.items()
        if there.get(name)
    ]
    return min(max(shares), Fraction(1)) if shares else Fraction(1)
