"""Defaulting: what the API server fills in."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from drayman.api import codec, versions
from drayman.api.catalog import KINDS
from drayman.api.defaults import with_defaults
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.struct import ApiStruct

RECORDS = Path(__file__).parents[3] / "shared" / "conformance" / "api" / "defaults.jsonl"
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


def recorded() -> list[dict[str, Any]]:
    """Records about resource.k8s.io kinds that exist here: an object written once and read in every version."""
    if not RECORDS.exists():
        return []
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    return [r for r in records if r["name"].split("/")[0] in versions.VERSIONS]


def meaning(value: Any) -> Any:
    """JSON without what means nothing: nulls, empty values and zeros that Go writes, and the zone of a time."""
    if isinstance(value, dict):
        kept = {key: meaning(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, "", 0, {}, [])}
    if isinstance(value, list):
        return [meaning(item) for item in value]
    if value == NOW:
        return "<time>"
    return normal_time(value) if isinstance(value, str) and value.startswith("2024-") else value


def normal_time(text: str) -> str:
    time = datetime.fromisoformat(text).astimezone(UTC).replace(microsecond=0)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.skipif(
    not RECORDS.exists(), reason="the recorded answers are not beside this checkout"
)
@pytest.mark.parametrize("record", recorded(), ids=lambda record: record["name"])
def test_reads_as_from_the_api_server(record: dict[str, Any]) -> None:
    """What is written in one version reads in every other as the API server shows it."""
    stored: Any = None
    for step in record["steps"]:
        _, _, _, version, *rest = step["path"].split("/")
        plural = rest[2] if rest[0] == "namespaces" else rest[0]
        kind = next(kind for kind in KINDS if kind.plural == plural)
        if step["method"] in ("POST", "PUT"):
            converted = versions.to_v1(step["body"])
            new: Any = with_defaults(
                codec.convert(kind.type, converted.value), now=NOW, version=version
            )
            if rest[-1] == "status":
                new = replace(stored, status=new.status)
            elif "status" in kind.type.__struct_fields__:
                new = replace(new, status=stored.status if stored else type(new.status)())
            stored = new
        shown = versions.from_v1(codec.to_dict(stored), version)
        wanted = step["expect"]["body"]
        assert meaning({k: shown.get(k) for k in ("spec", "status")}) == meaning(
            {k: wanted.get(k) for k in ("spec", "status")}
        )
