"""Which optional parts of DRA are on. Everything is on unless it is switched off."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """Feature gates that change what the allocator does. Names of the gates are in `from_gates`."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    consumable_capacity: bool = True
    binding_conditions: bool = True
    list_attributes: bool = True

    @classmethod
    def from_gates(cls, gates: Collection[str]) -> Features:
        """The features of a cluster on which exactly these Kubernetes feature gates are on."""
        return cls(
            admin_access="DRAAdminAccess" in gates,
            prioritized_list="DRAPrioritizedList" in gates,
            partitionable_devices="DRAPartitionableDevices" in gates,
            device_taints="DRADeviceTaints" in gates,
            consumable_capacity="DRAConsumableCapacity" in gates,
            # The scheduler waits for conditions in the device status, so the two gates only work together.
            binding_conditions={"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"}
            <= set(gates),
            list_attributes="DRAListTypeAttributes" in gates,
        )
