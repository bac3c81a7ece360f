"""What claims cost that have their devices: the exact charge, in place of what was reserved when they could still become anything.

At admission a request costs what its dearest alternative, or the dearest device that matches, would. Once devices are allocated the
difference can be given back. It is never taken without asking: if an allocation costs more than was reserved, because devices or mappings
have changed since, that is said and nothing else. Nor is anything given back then, or where a class has lost its mapping: what was reserved
under one name would be free, while the devices are in use under another, or under none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from drayman.api.resource import DeviceRequestAllocationResult, RequestSpec, ResourceClaim
from drayman.inventory.device import DeviceRecord
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import DeviceId
from drayman.placement.state import ClusterState
from drayman.quota.amounts import Amounts, plus
from drayman.quota.charging.mappings import (
    CounterSource,
    DeviceClassMapping,
    DeviceClassMappings,
    Source,
)
from drayman.quota.charging.measuring import counted, counter_of, short_name


class TrueUp(Struct, frozen=True):
    """What devices cost now that they are known, compared with what was reserved for them."""

    actual: Amounts
    released: Amounts
    """What can be given back; nothing if they cost more of something else."""
    excess: Amounts
    """What they cost more than was reserved. It needs to be admitted before it may be charged."""


def true_up(reserved: Amounts, actual: Amounts) -> TrueUp:
    """Compare. Resources that nothing was reserved for count as excess."""
    names = sorted(reserved.keys() | actual.keys())
    difference = {name: reserved.get(name, 0) - actual.get(name, 0) for name in names}
    excess = {name: -amount for name, amount in difference.items() if amount < 0}
    released = {name: amount for name, amount in difference.items() if amount > 0}
    return TrueUp(actual, {} if excess else released, excess)


def allocated_amounts(
    claims: Iterable[ResourceClaim],
    state: ClusterState,
    mappings: DeviceClassMappings,
    resources: Mapping[str, str] | None = None,
) -> Amounts | None:
    """What the devices of claims cost. None if that cannot be said: one is not published any more, nothing measures it, or its class has
    no mapping any more.

    `resources` are the extended resources that claims were made for, by class: devices of classes without a mapping are charged under
    these names.
    """
    hardware = state.inventory.everywhere
    total: Amounts = {}
    for claim in claims:
        specs = dict(
            named for request in claim.spec.devices.requests for named in request.alternatives()
        )
        for result in claim.status.results:
            spec = specs.get(result.request)
            if result.admin_access or spec is None:
                continue
            amounts = _of_result(result, spec, hardware, mappings, resources or {})
            if amounts is None:
                return None
            total = plus(total, amounts)
    return total


def _of_result(
    result: DeviceRequestAllocationResult,
    spec: RequestSpec,
    hardware: NodeHardware,
    mappings: DeviceClassMappings,
    resources: Mapping[str, str],
) -> Amounts | None:
    entries = mappings.of_class(spec.device_class_name)
    if not entries:
        name = resources.get(spec.device_class_name)
        return None if name is None else {name: 1}
    amounts: dict[str, int] = {}
    for entry in entries:
        amount = _worth(result, entry, hardware) if entry.sources else 1
        if amount is None:
            return None
        amounts[entry.name] = amount
    return amounts


def _worth(
    result: DeviceRequestAllocationResult, entry: DeviceClassMapping, hardware: NodeHardware
) -> int | None:
    position = hardware.position.get(DeviceId.of(result))
    if position is None:
        return None
    record = hardware.records[position]
    for source in entry.measures:
        if source.driver == record.id.driver and all(
            hardware.accepts(expression, record) for expression in source.expressions
        ):
            return _measured(source, record, result)
    return None


def _measured(
    source: Source, record: DeviceRecord, result: DeviceRequestAllocationResult
) -> int | None:
    if isinstance(source, CounterSource):
        return counter_of(record, source.name)
    driver, name = source.driver, short_name(source.name, source.driver)
    for given, quantity in result.consumed_capacity.items():
        if short_name(given, driver) == name:
            return counted(quantity.amount)
    # A device that is not shared is held as a whole, and its result does not say how much that is.
    whole = (c.value for c in record.capacities if short_name(c.name, driver) == name)
    return next((counted(value) for value in whole), None)
