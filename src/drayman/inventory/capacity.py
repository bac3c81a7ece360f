"""What a share of a device consumes: requests for capacity, rounded by the device's policies."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.resource import CapacityRequestPolicy
from drayman.inventory.device import Amount, CapacityRecord


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
