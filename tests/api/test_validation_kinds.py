"""The rules for metadata, classes, taint rules and pods, each with an object that breaks it."""

from __future__ import annotations

import pytest

from api.objects import (
    CLAIM,
    CLASS,
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    POD,
    REQUIRED,
    RULE,
    SLICE,
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

CASES: dict[str, tuple[Json, Change, Expected]] = {
    "no name": (CLASS, {"metadata": {}}, {("metadata.name", REQUIRED)}),
    "bad name": (SLICE, {"metadata/name": "A_"}, {("metadata.name", INVALID)}),
    "generated name": (SLICE, {"metadata": {"generateName": "slice-"}}, set()),
    "bad generated name": (
        SLICE,
        {"metadata": {"generateName": "_x-"}},
        {("metadata.generateName", INVALID), ("metadata.name", INVALID)},
    ),
    "namespace of a cluster object": (
        CLASS,
        {"metadata/namespace": "x"},
        {("metadata.namespace", FORBIDDEN)},
    ),
    "bad namespace": (CLAIM, {"metadata/namespace": "a.b"}, {("metadata.namespace", INVALID)}),
    "bad label": (CLAIM, {"metadata/labels": {"a b": "c d"}}, {("metadata.labels", INVALID)}),
    "bad annotation": (
        CLAIM,
        {"metadata/annotations": {"a b": ""}},
        {("metadata.annotations", INVALID)},
    ),
    "long annotations": (
        CLAIM,
        {"metadata/annotations": {"a": "x" * 2**18}},
        {("metadata.annotations", TOO_LONG)},
    ),
    "bare finalizer": (
        CLAIM,
        {"metadata/finalizers": ["x"]},
        {("metadata.finalizers[0]", INVALID)},
    ),
    "two ways to delete": (
        CLAIM,
        {"metadata/finalizers": ["orphan", "foregroundDeletion"]},
        {("metadata.finalizers", INVALID)},
    ),
    "empty owner": (
        CLAIM,
        {"metadata/ownerReferences": [{}]},
        {
            (f"metadata.ownerReferences.{name}", INVALID)
            for name in ("apiVersion", "kind", "name", "uid")
        },
    ),
    "class": (CLASS, {}, set()),
    "selector without cel": (
        CLASS,
        {"spec/selectors": [{}]},
        {("spec.selectors[0].cel", REQUIRED)},
    ),
    "expression": (
        CLASS,
        {"spec/selectors/0/cel/expression": "bad"},
        {("spec.selectors[0].cel.expression", INVALID)},
    ),
    "long expression": (
        CLASS,
        {"spec/selectors/0/cel/expression": "bad" * 4000},
        {("spec.selectors[0].cel.expression", TOO_LONG)},
    ),
    "33 selectors": (CLASS, {"spec/selectors": [{}] * 33}, {("spec.selectors", TOO_MANY)}),
    "33 configs": (CLASS, {"spec/config": [{}] * 33}, {("spec.config", TOO_MANY)}),
    "empty config": (CLASS, {"spec/config": [{}]}, {("spec.config[0].opaque", REQUIRED)}),
    "native extended resource": (
        CLASS,
        {"spec/extendedResourceName": "kubernetes.io/gpu"},
        {("spec.extendedResourceName", INVALID)},
    ),
    "plain extended resource": (
        CLASS,
        {"spec/extendedResourceName": "gpu"},
        {("spec.extendedResourceName", INVALID)},
    ),
    "rule": (RULE, {}, set()),
    "rule for everything": (RULE, {"spec/deviceSelector": ...}, set()),
    "rule's selector": (
        RULE,
        {"spec/deviceSelector": {"driver": "", "pool": "", "device": ""}},
        {
            ("spec.deviceSelector.driver", REQUIRED),
            ("spec.deviceSelector.pool", REQUIRED),
            ("spec.deviceSelector.device", INVALID),
        },
    ),
    "rule's taint": (RULE, {"spec/taint/value": "a b"}, {("spec.taint.value", INVALID)}),
    "pod": (POD, {}, set()),
    "claim without source": (
        POD,
        {"spec/resourceClaims": [{"name": "gpu"}]},
        {("spec.resourceClaims[0]", INVALID)},
    ),
    "claim with two sources": (
        POD,
        {"spec/resourceClaims/0/resourceClaimTemplateName": "t"},
        {("spec.resourceClaims[0]", INVALID)},
    ),
    "claim name": (
        POD,
        {"spec/resourceClaims/0/resourceClaimName": "A"},
        {("spec.resourceClaims[0].resourceClaimName", INVALID)},
    ),
    "unknown claim": (
        POD,
        {"spec/containers/0/resources/claims": [{"name": "nic"}]},
        {("spec.containers[0].resources.claims[0]", NOT_FOUND)},
    ),
    "claim and its request": (
        POD,
        {"spec/containers/0/resources/claims": [{"name": "gpu", "request": "a"}, {"name": "gpu"}]},
        {("spec.containers[0].resources.claims[1]", DUPLICATE)},
    ),
    "two requests of a claim": (
        POD,
        {
            "spec/containers/0/resources/claims": [
                {"name": "gpu", "request": "a"},
                {"name": "gpu", "request": "b"},
            ]
        },
        set(),
    ),
}


@pytest.mark.parametrize(("base", "change", "expected"), CASES.values(), ids=CASES)
def test_creation(base: Json, change: Change, expected: Expected) -> None:
    """An object about to be created is refused for exactly the fields that break a rule."""
    assert found(validation.validate(decoded(changed(base, change)), fussy)) == expected
