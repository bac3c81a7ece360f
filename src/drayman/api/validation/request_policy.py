"""Request policies: which amounts of a consumable capacity may be asked for.

Steps are counted in whole units, as upstream counts them: quantities are rounded up first.
"""

from __future__ import annotations

from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.resource import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from drayman.api.validation.containers import Errors, check_set
from drayman.api.validation.field_errors import forbidden, invalid, required

MAX_VALID_VALUES: Final = 10


def check_shared_capacity(capacity: DeviceCapacity, path: str) -> Errors:
    """A capacity of a device that several claims may share."""
    policy = capacity.request_policy
    if policy is None:
        return
    path = f"{path}.requestPolicy"
    if policy.valid_values and policy.valid_range is not None:
        yield forbidden(
            path,
            'exactly one policy can be specified, cannot specify "validValues" and "validRange"'
            " at the same time",
        )
    elif policy.valid_values:
        yield from _values(policy, capacity.value, path)
    elif policy.valid_range is not None:
        yield from _range(policy, policy.valid_range, capacity.value, path)


def check_exclusive_capacity(capacity: DeviceCapacity, path: str) -> Errors:
    """A capacity of a device that one claim gets whole."""
    if capacity.request_policy is not None:
        yield forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true")


def _values(policy: CapacityRequestPolicy, capacity: Quantity, path: str) -> Errors:
    if policy.default is None:
        yield required(f"{path}.default", "required when validValues is defined")
        return
    path = f"{path}.validValues"
    values = policy.valid_values
    for index in range(1, len(values)):
        if values[index - 1] > values[index]:
            detail = "values must be sorted in ascending order"
            yield invalid(f"{path}[{index}]", values[index], detail)

    def check(value: Quantity, path: str) -> Errors:
        if value > capacity:
            yield invalid(path, value, f"option is larger than capacity value: {capacity}")

    def whole(value: Quantity) -> str:
        return str(value.rounded_up())

    yield from check_set(values, MAX_VALID_VALUES, check, whole, path)
    if len(values) > MAX_VALID_VALUES or policy.default not in values:
        detail = "default value is not valid according to the requestPolicy"
        yield invalid(path, policy.default, detail)


def _range(
    policy: CapacityRequestPolicy, valid: CapacityRequestPolicyRange, capacity: Quantity, path: str
) -> Errors:
    if policy.default is None:
        yield required(f"{path}.default", "required when validRange is defined")
        return
    path = f"{path}.validRange"
    if valid.min is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    yield from _bounds(policy.default, valid.min, valid.max, capacity, path)
    if valid.step is not None:
        first = valid.min + valid.step
        if first > capacity:
            detail = f"one step {first} is larger than capacity value: {capacity}"
            yield invalid(f"{path}.step", valid.step, detail)
        values = [policy.default] if valid.max is None else [policy.default, valid.max]
        yield from _steps(values, valid.min, valid.step, f"{path}.step")


def _bounds(
    default: Quantity, minimum: Quantity, maximum: Quantity | None, capacity: Quantity, path: str
) -> Errors:
    if minimum > capacity:
        yield invalid(f"{path}.min", minimum, f"min is larger than capacity value: {capacity}")
    if default < minimum:
        yield invalid(f"{path}.min", default, f"default is less than min: {minimum}")
    if maximum is None:
        return
    if minimum > maximum:
        yield invalid(f"{path}.max", minimum, f"min is larger than max: {maximum}")
    if maximum > capacity:
        yield invalid(f"{path}.max", maximum, f"max is larger than capacity value: {capacity}")
    if default > maximum:
        yield invalid(f"{path}.max", default, f"default is more than max: {maximum}")


def _steps(values: list[Quantity], minimum: Quantity, step: Quantity, path: str) -> Errors:
    size = step.rounded_up()
    if size == 0:
        yield invalid(path, step, "must not be zero")
        return
    for value in values:
        if (value.rounded_up() - minimum.rounded_up()) % size:
            detail = f"value is not a multiple of a given step ({step}) from ({minimum})"
            yield invalid(path, value, detail)
