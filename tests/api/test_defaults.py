"""Defaulting: what the API server fills in."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api import codec
from drayman.api.defaults import with_defaults
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.struct import ApiStruct

NOW = "2024-05-01T00:00:00Z"


def request(**fields: Any) -> dict[str, Any]:
    return {"spec": {"devices": {"requests": [{"name": "r", **fields}]}}}


CASES: dict[str, tuple[type[ApiStruct], dict[str, Any], dict[str, Any]]] = {
    "mode and count": (
        ResourceClaim,
        request(exactly={"deviceClassName": "c"}),
        request(exactly={"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}),
    ),
    "mode All has no count": (
        ResourceClaim,
        request(exactly={"deviceClassName": "c", "allocationMode": "All"}),
        request(exactly={"deviceClassName": "c", "allocationMode": "All"}),
    ),
    "a count stays": (
        ResourceClaim,
        request(exactly={"count": -2}),
        request(exactly={"allocationMode": "ExactCount", "count": -2}),
    ),
    "alternatives": (
        ResourceClaim,
        request(firstAvailable=[{"name": "a"}, {"name": "b", "count": 2}]),
        request(
            firstAvailable=[
                {"name": "a", "allocationMode": "ExactCount", "count": 1},
                {"name": "b", "allocationMode": "ExactCount", "count": 2},
            ]
        ),
    ),
    "tolerations": (
        ResourceClaim,
        request(
            exactly={"allocationMode": "All", "tolerations": [{"key": "k"}, {"operator": "Exists"}]}
        ),
        request(
            exactly={
                "allocationMode": "All",
                "tolerations": [{"key": "k", "operator": "Equal"}, {"operator": "Exists"}],
            }
        ),
    ),
    "templates": (
        ResourceClaimTemplate,
        {"spec": request(exactly={})},
        {"spec": request(exactly={"allocationMode": "ExactCount", "count": 1})},
    ),
    "taints of devices": (
        ResourceSlice,
        {
            "spec": {
                "devices": [
                    {"taints": [{"key": "a"}, {"key": "b", "timeAdded": "2020-01-01T00:00:00Z"}]}
                ]
            }
        },
        {
            "spec": {
                "devices": [
                    {
                        "taints": [
                            {"key": "a", "timeAdded": NOW},
                            {"key": "b", "timeAdded": "2020-01-01T00:00:00Z"},
                        ]
                    }
                ]
            }
        },
    ),
    "multiplier": (
        ResourceSlice,
        {"spec": {"devices": [{"nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "x"}}}]}},
        {
            "spec": {
                "devices": [
                    {
                        "nodeAllocatableResourceMappings": {
                            "cpu": {"capacityKey": "x", "allocationMultiplier": "1"}
                        }
                    }
                ]
            }
        },
    ),
    "taint rule": (
        DeviceTaintRule,
        {"spec": {"taint": {"key": "a"}}},
        {"spec": {"taint": {"key": "a", "timeAdded": NOW}}},
    ),
    "nothing for classes": (DeviceClass, {"spec": {"selectors": []}}, {"spec": {}}),
}


@pytest.mark.parametrize(("kind", "before", "after"), CASES.values(), ids=CASES)
def test_defaults(kind: type[ApiStruct], before: dict[str, Any], after: dict[str, Any]) -> None:
    """An object gets the values the API server would give it, and no others; doing it again changes nothing."""
    value = with_defaults(codec.convert(kind, before), now=NOW)
    assert codec.to_dict(value)["spec"] == after["spec"]
    assert with_defaults(value, now="2030-01-01T00:00:00Z") == value


def test_v1beta1_leaves_a_request_without_class_alone() -> None:
    """Such a request may be one of alternatives there, so it gets neither mode nor count."""
    claim = codec.convert(ResourceClaim, request(exactly={"tolerations": [{"key": "k"}]}))
    exactly = with_defaults(claim, now=NOW, version="v1beta1").spec.devices.requests[0].exactly
    assert exactly is not None
    assert (exactly.allocation_mode, exactly.count) == ("", 0)
    assert exactly.tolerations[0].operator == "Equal"
