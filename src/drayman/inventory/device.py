"""A device as the search sees it: one object per published device, with its quantities turned into numbers once.

And what a share of it consumes: requests for capacity, rounded by the device's policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from drayman.api.core import NodeSelector
from drayman.api.resource import (
    CapacityRequestPolicy,
    Device,
    DeviceCapacity,
    ResourceSlice,
    ResourceSliceSpec,
)
from drayman.inventory.identity import DeviceId

Amount: TypeAlias = int | Fraction
"""An exact quantity. A Fraction only where it is not whole, because integers are many times faster."""


class CapacityRecord:
    """One capacity of a device: how much there is and how requests for it are rounded."""

    __slots__ = ("name", "policy", "value")

    def __init__(self, name: str, value: Amount, policy: CapacityRequestPolicy | None) -> None:
        self.name = name
        self.value = value
        self.policy = policy


class DeviceRecord:
    """A published device. Equal inputs give equal records; nothing here depends on who holds it."""

    __slots__ = ("capacities", "counters", "device", "id", "shareable", "slice")

    capacities: tuple[CapacityRecord, ...]

    def __init__(
        self,
        slice_: ResourceSlice,
        device: Device,
        *,
        sharing: bool,
        before: DeviceRecord | None = None,
    ) -> None:
        """What it has in common with the record made `before` is shared by both."""
        spec = slice_.spec
        # There are as many of these as devices: the constructor of named tuples takes twice as long.
        self.id = tuple.__new__(DeviceId, (spec.driver, spec.pool.name, device.name))
        self.slice = slice_
        self.device = device
        self.shareable = sharing and bool(device.allow_multiple_allocations)
        capacity = device.capacity
        if before is not None and _same_entries(capacity, before.device.capacity):
            self.capacities = before.capacities
        else:
            self.capacities = tuple(
                [
                    CapacityRecord(name, each.value.amount, each.request_policy)
                    for name, each in capacity.items()
                ]
            )
        self.counters: tuple[tuple[str, dict[str, Amount]], ...] = ()
        if device.consumes_counters:
            self.counters = tuple(
                (
                    used.counter_set,
                    {name: counter.value.amount for name, counter in used.counters.items()},
                )
                for used in device.consumes_counters
            )

    @property
    def node_name(self) -> str | None:
        """The node the device sits on, if it is bound to one by name."""
        return self._place.node_name or None

    @property
    def all_nodes(self) -> bool:
        return bool(self._place.all_nodes)

    @property
    def node_selector(self) -> NodeSelector | None:
        return self._place.node_selector

    @property
    def _place(self) -> Device | ResourceSliceSpec:
        spec = self.slice.spec
        return self.device if spec.per_device_node_selection else spec

    def __repr__(self) -> str:
        return f"DeviceRecord({self.id})"


def _same_entries(one: dict[str, DeviceCapacity], other: dict[str, DeviceCapacity]) -> bool:
    """Equal, and in the same order."""
    return one == other and (len(one) < 2 or list(one) == list(other))


def consumption(
    capacities: tuple[CapacityRecord, ...], requests: Mapping[str, Amount]
) -> tuple[Amount, ...] | None:
    """How much of each capacity one allocation takes; None if the device cannot serve such a request at all.

    A request for a capacity that the device does not have, or that its policy does not allow, makes it unusable.
    """
    if requests and not requests.keys() <= {capacity.name for capacity in capacities}:
        return None
    amounts = []
    for capacity in capacities:
        amount = _consumed(capacity, requests.get(capacity.name))
        if _breaks_policy(amount, capacity.policy):
            return None
        amounts.append(amount)
    return tuple(amounts)


def _consumed(capacity: CapacityRecord, requested: Amount | None) -> Amount:
    policy = capacity.policy
    if requested is None:
        return policy.default.amount if policy and policy.default else capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        low = policy.valid_range.min.amount
        if requested < low:
            return low
        step = policy.valid_range.step
        if step is None or not step.amount:
            return requested
        # Exact even where the bounds are fractions; 1.36 rounds them to whole numbers first, later versions do not.
        return low + -((low - requested) // step.amount) * step.amount
    return next((v.amount for v in policy.valid_values if v.amount >= requested), requested)


def _breaks_policy(amount: Amount, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and policy.default.amount == amount):
        return False
    if policy.valid_range is not None:
        valid = policy.valid_range
        if valid.max is not None and amount > valid.max.amount:
            return True
        if valid.step is None or not valid.step.amount:
            return False
        low = valid.min.amount if valid.min is not None else 0
        return (amount - low) % valid.step.amount != 0
    return bool(policy.valid_values) and all(v.amount != amount for v in policy.valid_values)
