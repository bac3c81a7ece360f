"""Devices that take up resources of the node, such as the memory beside a set of CPUs: what an allocation adds to a pod's requests.

A device may say that using it also uses some amount of a resource that the node itself provides. The pod must then fit with both, and its
status says how much each claim takes. Here as elsewhere, a device is identified by driver, pool and name; Kubernetes 1.36 leaves out the
driver and so may charge for another device of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drayman.api.quantity import Quantity
from drayman.api.resource import AllocationResult, NodeAllocatableResourceMapping, ResourceSlice
from drayman.inventory.device import Amount
from drayman.inventory.identity import DeviceId
from drayman.inventory.undo import UndoLog
from drayman.placement.fit.requests import in_units

_Mappings = dict[str, NodeAllocatableResourceMapping]


class MappedDevices:
    """Which devices take up which resources."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self._by_slice: dict[str, dict[DeviceId, _Mappings]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_slice)

    def set_slice(self, slice_: ResourceSlice) -> None:
        self.remove_slice(slice_)
        spec = slice_.spec
        found = {
            DeviceId(
                spec.driver, spec.pool.name, device.name
            ): device.node_allocatable_resource_mappings
            for device in spec.devices or ()
            if device.node_allocatable_resource_mappings
        }
        if found:
            self._log.put(self._by_slice, slice_.metadata.name, found)

    def remove_slice(self, slice_: ResourceSlice) -> None:
        self._log.pop(self._by_slice, slice_.metadata.name)

    def taken_by(self, allocation: AllocationResult) -> dict[str, Amount]:
        """What the devices of an allocation take of the node."""
        total: dict[str, Amount] = {}
        for result in allocation.devices.results:
            for name, mapping in self._mappings(DeviceId.of(result)).items():
                amount = _amount(mapping, result.consumed_capacity)
                if amount is not None:
                    total[name] = total.get(name, 0) + amount
        return total

    def requests_of(self, allocations: Iterable[AllocationResult]) -> dict[str, int]:
        """What the devices of a pod take of its node, in the units of its requests."""
        total: dict[str, Amount] = {}
        for allocation in allocations if self._by_slice else ():
            for name, amount in self.taken_by(allocation).items():
                total[name] = total.get(name, 0) + amount
        return {name: in_units(name, amount) for name, amount in total.items()}

    def _mappings(self, device: DeviceId) -> _Mappings:
        for devices in self._by_slice.values():
            found = devices.get(device)
            if found is not None:
                return found
        return {}


def _amount(
    mapping: NodeAllocatableResourceMapping, consumed: Mapping[str, Quantity]
) -> Amount | None:
    multiplier = (
        1 if mapping.allocation_multiplier is None else mapping.allocation_multiplier.amount
    )
    if mapping.capacity_key is None:
        return multiplier
    quantity = consumed.get(mapping.capacity_key)
    return None if quantity is None else quantity.amount * multiplier
