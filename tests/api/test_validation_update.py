"""What may change in an object that exists."""

from __future__ import annotations

import pytest

from api.objects import (
    CLAIM,
    CLASS,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    RULE,
    SLICE,
    TEMPLATE,
    Change,
    Expected,
    Json,
    changed,
    decoded,
    found,
    fussy,
)
from drayman.api import validation

CASES: dict[str, tuple[Json, Change, Change, Expected]] = {
    "class": (CLASS, {}, {"spec/selectors": []}, set()),
    "stored expressions": (CLASS, {"spec/selectors/0/cel/expression": "bad"}, {}, set()),
    "stored expressions in a new order": (
        CLASS,
        {"spec/selectors": [{"cel": {"expression": "bad"}}, {"cel": {"expression": "true"}}]},
        {"spec/selectors": [{"cel": {"expression": "true"}}, {"cel": {"expression": "bad"}}]},
        {("spec.selectors[1].cel.expression", INVALID)},
    ),
    "stored large parameters": (
        CLASS,
        {"spec/config": [{"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}}]},
        {},
        set(),
    ),
    "slice": (SLICE, {}, {"spec/pool/generation": 2, "spec/devices": []}, set()),
    "slice's identity": (
        SLICE,
        {},
        {"spec/driver": "other", "spec/pool/name": "b", "spec/nodeName": "node-2"},
        {("spec.driver", INVALID), ("spec.pool.name", INVALID), ("spec.nodeName", INVALID)},
    ),
    "stored taints": (SLICE, {"spec/devices/0/taints": [{"key": "k", "effect": "New"}]}, {}, set()),
    "claim": (CLAIM, {}, {"metadata/labels": {"a": "b"}}, set()),
    "claim's spec": (CLAIM, {}, {"spec/devices/constraints": []}, {("spec", INVALID)}),
    "template's spec": (TEMPLATE, {}, {"spec/metadata/labels": {}}, {("spec", INVALID)}),
    "stored template is checked again": (
        TEMPLATE,
        {"spec/spec/devices/requests/0/exactly/count": -1},
        {},
        {("spec.spec.devices.requests[0].exactly.count", INVALID)},
    ),
    "rule's stored effect": (RULE, {"spec/taint/effect": "New"}, {"spec/taint/key": "b"}, set()),
    "rule's new effect": (
        RULE,
        {},
        {"spec/taint/effect": "New"},
        {("spec.taint.effect", NOT_SUPPORTED)},
    ),
    "name": (RULE, {}, {"metadata/name": "other"}, {("metadata.name", INVALID)}),
    "deletion by update": (
        CLAIM,
        {},
        {"metadata/deletionTimestamp": "2024-01-01T00:00:00Z"},
        {("metadata.deletionTimestamp", INVALID)},
    ),
    "time to go by update": (
        CLAIM,
        {},
        {"metadata/deletionGracePeriodSeconds": 5},
        {("metadata.deletionGracePeriodSeconds", INVALID)},
    ),
    "finalizer of what is deleted": (
        CLAIM,
        {"metadata/deletionTimestamp": "2024-01-01T00:00:00Z"},
        {"metadata/finalizers": ["a/b"]},
        {("metadata.finalizers", FORBIDDEN)},
    ),
}


@pytest.mark.parametrize(("base", "before", "change", "expected"), CASES.values(), ids=CASES)
def test_update(base: Json, before: Change, change: Change, expected: Expected) -> None:
    """An update is refused for what may not change, and for new values that break a rule."""
    old = changed(base, before)
    new = changed(old, change)
    assert found(validation.validate_update(decoded(new), decoded(old), fussy)) == expected
