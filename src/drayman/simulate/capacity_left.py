"""How much of a shared device is taken, in the units in which its driver publishes it."""

from __future__ import annotations

from dataclasses import dataclass

from drayman.api.quantity import Quantity
from drayman.placement.occupancy import DeviceStanding


@dataclass(frozen=True, slots=True)
class CapacityUse:
    """One capacity of a device: how much there is and how much of it is free."""

    name: str
    total: Quantity
    left: Quantity

    @property
    def taken(self) -> Quantity:
        return Quantity(self.total.amount - self.left.amount, self.total.format)


def capacity_use(standing: DeviceStanding) -> tuple[CapacityUse, ...]:
    """The capacities of a device that can be shared; empty for one that goes to one holder as a whole."""
    if not standing.remaining:
        return ()
    published = standing.record.device.capacity
    return tuple(
        CapacityUse(
            name.rpartition("/")[2],
            published[name].value,
            Quantity(left, published[name].value.format),
        )
        for name, left in zip(published, standing.remaining, strict=True)
    )
