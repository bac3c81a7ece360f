"""The rules for request policies, each with a slice that breaks it."""

from __future__ import annotations

import pytest

from api.objects import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    REQUIRED,
    SLICE,
    Change,
    Expected,
    Json,
    changed,
    decoded,
    found,
    fussy,
)
from drayman.api import validation

DEVICE = "spec.devices[0]"
POLICY = "spec.devices[1].capacity[mem].requestPolicy"
AT_POLICY = "spec/devices/1/capacity/mem/requestPolicy"

CASES: dict[str, tuple[Json, Change, Expected]] = {
    "policy of an exclusive device": (
        SLICE,
        {"spec/devices/0/capacity/mem/requestPolicy": {}},
        {(f"{DEVICE}.capacity[mem].requestPolicy", FORBIDDEN)},
    ),
    "policy": (SLICE, {AT_POLICY: {"default": "20"}}, set()),
    "values": (SLICE, {AT_POLICY: {"default": "2", "validValues": ["1", "2", "10"]}}, set()),
    "values and range": (
        SLICE,
        {AT_POLICY: {"validValues": ["1"], "validRange": {}}},
        {(POLICY, FORBIDDEN)},
    ),
    "values without default": (
        SLICE,
        {AT_POLICY: {"validValues": ["1"]}},
        {(f"{POLICY}.default", REQUIRED)},
    ),
    "values out of order": (
        SLICE,
        {AT_POLICY: {"default": "1", "validValues": ["2", "1"]}},
        {(f"{POLICY}.validValues[1]", INVALID)},
    ),
    "values equal when rounded": (
        SLICE,
        {AT_POLICY: {"default": "2", "validValues": ["1500m", "2"]}},
        {(f"{POLICY}.validValues[1]", DUPLICATE)},
    ),
    "values over capacity": (
        SLICE,
        {AT_POLICY: {"default": "1", "validValues": ["1", "11"]}},
        {(f"{POLICY}.validValues[1]", INVALID)},
    ),
    "default not among values": (
        SLICE,
        {AT_POLICY: {"default": "3", "validValues": ["1", "2"]}},
        {(f"{POLICY}.validValues", INVALID)},
    ),
    "range": (
        SLICE,
        {AT_POLICY: {"default": "3", "validRange": {"min": "1", "max": "9", "step": "2"}}},
        set(),
    ),
    "range without minimum": (
        SLICE,
        {AT_POLICY: {"default": "3", "validRange": {"max": "9"}}},
        {(f"{POLICY}.validRange.min", REQUIRED)},
    ),
    "range without default": (
        SLICE,
        {AT_POLICY: {"validRange": {"min": "1"}}},
        {(f"{POLICY}.default", REQUIRED)},
    ),
    "range over capacity": (
        SLICE,
        {AT_POLICY: {"default": "3", "validRange": {"min": "1", "max": "11"}}},
        {(f"{POLICY}.validRange.max", INVALID)},
    ),
    "default below minimum": (
        SLICE,
        {AT_POLICY: {"default": "0", "validRange": {"min": "1"}}},
        {(f"{POLICY}.validRange.min", INVALID)},
    ),
    "default off the steps": (
        SLICE,
        {AT_POLICY: {"default": "4", "validRange": {"min": "1", "step": "2"}}},
        {(f"{POLICY}.validRange.step", INVALID)},
    ),
    "no step at all": (
        SLICE,
        {AT_POLICY: {"default": "4", "validRange": {"min": "1", "step": "0"}}},
        {(f"{POLICY}.validRange.step", INVALID)},
    ),
}


@pytest.mark.parametrize(("base", "change", "expected"), CASES.values(), ids=CASES)
def test_creation(base: Json, change: Change, expected: Expected) -> None:
    """A policy is refused where values, range, default and capacity do not go together."""
    assert found(validation.validate(decoded(changed(base, change)), fussy)) == expected
