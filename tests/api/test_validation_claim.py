"""The rules for claims and templates, each with an object that breaks it."""

from __future__ import annotations

import pytest

from api.objects import (
    CLAIM,
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TEMPLATE,
    TOO_LONG,
    TOO_MANY,
    Change,
    Expected,
    Json,
    changed,
    decoded,
    found,
    fussy,
)
from drayman.api import validation

EXACT = "spec.devices.requests[0].exactly"
AT_EXACT = "spec/devices/requests/0/exactly"

CASES: dict[str, tuple[Json, Change, Expected]] = {
    "claim": (CLAIM, {}, set()),
    "33 requests": (
        CLAIM,
        {
            "spec/devices/requests": [{}] * 33,
            "spec/devices/constraints": ...,
            "spec/devices/config": ...,
        },
        {("spec.devices.requests", TOO_MANY)},
    ),
    "request without kind": (
        CLAIM,
        {"spec/devices/requests/0": {"name": "gpu"}},
        {("spec.devices.requests[0]", REQUIRED)},
    ),
    "request of both kinds": (
        CLAIM,
        {"spec/devices/requests/0/firstAvailable": [{"name": "x"}]},
        {("spec.devices.requests[0]", INVALID)},
    ),
    "request twice": (
        CLAIM,
        {"spec/devices/requests/1/name": "gpu"},
        {
            ("spec.devices.requests[1]", DUPLICATE),
            ("spec.devices.constraints[0].requests[1]", INVALID),
        },
    ),
    "no class": (
        CLAIM,
        {f"{AT_EXACT}/deviceClassName": ""},
        {(f"{EXACT}.deviceClassName", REQUIRED)},
    ),
    "unknown mode": (
        CLAIM,
        {f"{AT_EXACT}/allocationMode": "Some"},
        {(f"{EXACT}.allocationMode", NOT_SUPPORTED)},
    ),
    "negative count": (CLAIM, {f"{AT_EXACT}/count": -1}, {(f"{EXACT}.count", INVALID)}),
    "all of two": (
        CLAIM,
        {f"{AT_EXACT}/allocationMode": "All", f"{AT_EXACT}/count": 2},
        {(f"{EXACT}.count", INVALID)},
    ),
    "nine alternatives": (
        CLAIM,
        {"spec/devices/requests/1/firstAvailable": [{"name": "big"}] * 9},
        {("spec.devices.requests[1].firstAvailable", TOO_MANY)},
    ),
    "17 tolerations are accepted": (
        CLAIM,
        {f"{AT_EXACT}/tolerations": [{"operator": "Exists"}] * 17},
        set(),
    ),
    "toleration": (
        CLAIM,
        {f"{AT_EXACT}/tolerations": [{"key": "a b", "operator": "Like", "effect": "x"}]},
        {
            (f"{EXACT}.tolerations[0].key", INVALID),
            (f"{EXACT}.tolerations[0].operator", NOT_SUPPORTED),
            (f"{EXACT}.tolerations[0].effect", NOT_SUPPORTED),
        },
    ),
    "value with Exists": (
        CLAIM,
        {f"{AT_EXACT}/tolerations": [{"operator": "Exists", "value": "v"}]},
        {(f"{EXACT}.tolerations[0].value", INVALID)},
    ),
    "capacities are not looked at": (
        CLAIM,
        {f"{AT_EXACT}/capacity": {"requests": {"!": "1"}}},
        set(),
    ),
    "constraint without attribute": (
        CLAIM,
        {"spec/devices/constraints": [{}]},
        {("spec.devices.constraints[0]", REQUIRED)},
    ),
    "unqualified attribute": (
        CLAIM,
        {"spec/devices/constraints": [{"distinctAttribute": "numa"}]},
        {("spec.devices.constraints[0].distinctAttribute", INVALID)},
    ),
    "both attributes are accepted": (
        CLAIM,
        {"spec/devices/constraints/0/distinctAttribute": "!"},
        set(),
    ),
    "unknown reference": (
        CLAIM,
        {"spec/devices/constraints/0/requests": ["gpu/x", "any/big/y", "any"]},
        {
            ("spec.devices.constraints[0].requests[0]", INVALID),
            ("spec.devices.constraints[0].requests[1]", INVALID),
        },
    ),
    "reference twice": (
        CLAIM,
        {"spec/devices/config/0/requests": ["gpu", "gpu"]},
        {("spec.devices.config[0].requests[1]", DUPLICATE)},
    ),
    "no parameters": (
        CLAIM,
        {"spec/devices/config/0/opaque/parameters": None},
        {("spec.devices.config[0].opaque.parameters", REQUIRED)},
    ),
    "parameters no object": (
        CLAIM,
        {"spec/devices/config/0/opaque/parameters": [1]},
        {("spec.devices.config[0].opaque.parameters", INVALID)},
    ),
    "large parameters": (
        CLAIM,
        {"spec/devices/config/0/opaque/parameters": {"a": "x" * 10240}},
        {("spec.devices.config[0].opaque.parameters", TOO_LONG)},
    ),
    "status does not count": (CLAIM, {"status": {"reservedFor": [{}]}}, set()),
    "template": (TEMPLATE, {}, set()),
    "template with a name inside": (
        TEMPLATE,
        {"spec/metadata/name": "x", "spec/metadata/uid": "u"},
        {("spec.metadata.name", FORBIDDEN), ("spec.metadata.uID", FORBIDDEN)},
    ),
    "template's request": (
        TEMPLATE,
        {"spec/spec/devices/requests/0/name": "A", "spec/spec/devices/constraints": ...},
        {("spec.spec.devices.requests[0].name", INVALID)},
    ),
}


@pytest.mark.parametrize(("base", "change", "expected"), CASES.values(), ids=CASES)
def test_creation(base: Json, change: Change, expected: Expected) -> None:
    """A claim or template about to be created is refused for exactly the fields that break a rule."""
    assert found(validation.validate(decoded(changed(base, change)), fussy)) == expected
