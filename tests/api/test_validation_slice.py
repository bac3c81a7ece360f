"""The rules for slices and their devices, each with a slice that breaks it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.objects import (
    DUPLICATE,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    REQUIRED,
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
    many,
)
from drayman.api import validation

DEVICE = "spec.devices[0]"
POLICY = "spec.devices[1].capacity[mem].requestPolicy"
AT_POLICY = "spec/devices/1/capacity/mem/requestPolicy"
TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}

CASES: dict[str, tuple[Json, Change, Expected]] = {
    "slice": (SLICE, {}, set()),
    "no driver": (SLICE, {"spec/driver": ""}, {("spec.driver", REQUIRED)}),
    "upper case driver": (SLICE, {"spec/driver": "GPU.example.com"}, set()),
    "long driver": (SLICE, {"spec/driver": "d" * 64}, {("spec.driver", TOO_LONG)}),
    "bad driver": (SLICE, {"spec/driver": "a_b"}, {("spec.driver", INVALID)}),
    "no pool": (
        SLICE,
        {"spec/pool": {}},
        {("spec.pool.name", REQUIRED), ("spec.pool.resourceSliceCount", INVALID)},
    ),
    "bad pool": (SLICE, {"spec/pool/name": "a//b"}, {("spec.pool.name", INVALID)}),
    "long pool": (
        SLICE,
        {"spec/pool/name": "a" * 254},
        {("spec.pool.name", TOO_LONG), ("spec.pool.name", INVALID)},
    ),
    "negative generation": (
        SLICE,
        {"spec/pool/generation": -1},
        {("spec.pool.generation", INVALID)},
    ),
    "no nodes": (SLICE, {"spec/nodeName": ...}, {("spec", REQUIRED)}),
    "two kinds of nodes": (SLICE, {"spec/allNodes": True}, {("spec", INVALID)}),
    "not all nodes": (SLICE, {"spec/allNodes": False}, {("spec.allNodes", INVALID)}),
    "empty node": (SLICE, {"spec/nodeName": ""}, {("spec", REQUIRED), ("spec.nodeName", INVALID)}),
    "selected nodes": (
        SLICE,
        {"spec/nodeName": ..., "spec/nodeSelector": {"nodeSelectorTerms": [TERM]}},
        set(),
    ),
    "two terms": (
        SLICE,
        {"spec/nodeName": ..., "spec/nodeSelector": {"nodeSelectorTerms": [TERM, TERM]}},
        {("spec.nodeSelector.nodeSelectorTerms", INVALID)},
    ),
    "bad term": (
        SLICE,
        {
            "spec/nodeName": ...,
            "spec/nodeSelector": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "", "operator": "Near"}]}]
            },
        },
        {
            ("spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].key", INVALID),
            ("spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator", INVALID),
        },
    ),
    "counters and devices": (SLICE, {"spec/sharedCounters": []}, {("spec", INVALID)}),
    "128 devices": (SLICE, {"spec/devices": many({}, 128)}, set()),
    "129 devices": (SLICE, {"spec/devices": many({}, 129)}, {("spec.devices", TOO_MANY)}),
    "65 tainted devices": (
        SLICE,
        {"spec/devices": many({"taints": [{"key": "k", "effect": "None"}]}, 65)},
        {("spec.devices", TOO_MANY)},
    ),
    "65 devices with lists": (
        SLICE,
        {"spec/devices": many({"attributes": {"a": {"ints": [1]}}}, 65)},
        {("spec.devices", TOO_MANY)},
    ),
    "device twice": (SLICE, {"spec/devices/1/name": "gpu-0"}, {("spec.devices[1]", DUPLICATE)}),
    "counter set": (
        SLICE,
        {
            "spec/devices": ...,
            "spec/sharedCounters": [
                {"name": "a", "counters": {"m": {"value": "1"}}},
                {"name": "a"},
            ],
        },
        {("spec.sharedCounters[1]", DUPLICATE), ("spec.sharedCounters[1].counters", REQUIRED)},
    ),
    "33 attributes and capacities": (
        SLICE,
        {"spec/devices/0/attributes": {f"a{i}": {"int": i} for i in range(32)}},
        {(DEVICE, INVALID)},
    ),
    "49 values": (
        SLICE,
        {"spec/devices/0/attributes": {"a": {"ints": list(range(49))}}},
        {(DEVICE, INVALID)},
    ),
    "attribute name": (
        SLICE,
        {"spec/devices/0/attributes/a-b": {"int": 1}},
        {(f"{DEVICE}.attributes", INVALID)},
    ),
    "long attribute name": (
        SLICE,
        {"spec/devices/0/attributes": {"a" * 33: {"int": 1}}},
        {(f"{DEVICE}.attributes", TOO_LONG)},
    ),
    "empty domain": (
        SLICE,
        {"spec/devices/0/attributes": {"/a": {"int": 1}}},
        {(f"{DEVICE}.attributes", INVALID)},
    ),
    "two slashes are not looked at": (
        SLICE,
        {"spec/devices/0/attributes": {"a/b/!": {"int": 1}}},
        set(),
    ),
    "no value": (
        SLICE,
        {"spec/devices/0/attributes/model": {}},
        {(f"{DEVICE}.attributes[model]", INVALID)},
    ),
    "two values": (
        SLICE,
        {"spec/devices/0/attributes/model": {"int": 1, "bool": False}},
        {(f"{DEVICE}.attributes[model]", INVALID)},
    ),
    "long text": (
        SLICE,
        {"spec/devices/0/attributes/model/string": "ä" * 33},
        {(f"{DEVICE}.attributes[model].string", TOO_LONG)},
    ),
    "bad versions": (
        SLICE,
        {"spec/devices/0/attributes/model": {"versions": ["1.0.0", "1"]}},
        {(f"{DEVICE}.attributes[model].versions[1]", INVALID)},
    ),
    "empty list": (
        SLICE,
        {"spec/devices/0/attributes/model": {"bools": []}},
        {(f"{DEVICE}.attributes[model].bools", INVALID)},
    ),
    "three counter consumptions": (
        SLICE,
        {"spec/devices/0/consumesCounters": [{}] * 3},
        {(f"{DEVICE}.consumesCounters", TOO_MANY)},
    ),
    "counter consumption": (
        SLICE,
        {"spec/devices/0/consumesCounters": [{"counters": {"A": {}}}]},
        {
            (f"{DEVICE}.consumesCounters[0].counterSet", REQUIRED),
            (f"{DEVICE}.consumesCounters[0].counters", INVALID),
        },
    ),
    "own node": (SLICE, {"spec/devices/0/nodeName": "n"}, {(DEVICE, INVALID)}),
    "own nodes missing": (
        SLICE,
        {
            "spec/nodeName": ...,
            "spec/perDeviceNodeSelection": True,
            "spec/devices/0/allNodes": True,
        },
        {("spec.devices[1]", REQUIRED)},
    ),
    "17 taints": (SLICE, {"spec/devices/0/taints": [{}] * 17}, {(f"{DEVICE}.taints", TOO_MANY)}),
    "empty taint": (
        SLICE,
        {"spec/devices/0/taints": [{}]},
        {(f"{DEVICE}.taints[0].key", INVALID), (f"{DEVICE}.taints[0].effect", REQUIRED)},
    ),
    "unknown effect": (
        SLICE,
        {"spec/devices/0/taints": [{"key": "k", "effect": "Evict"}]},
        {(f"{DEVICE}.taints[0].effect", NOT_SUPPORTED)},
    ),
    "binding conditions alone": (
        SLICE,
        {"spec/devices/0/bindingConditions": ["a", "a"]},
        {
            (f"{DEVICE}.bindingConditions[1]", DUPLICATE),
            (f"{DEVICE}.bindingFailureConditions", INVALID),
        },
    ),
    "binding conditions overlap": (
        SLICE,
        {
            "spec/devices/0/bindingConditions": ["a"],
            "spec/devices/0/bindingFailureConditions": ["b", "a"],
        },
        {(f"{DEVICE}.bindingFailureConditions[1]", INVALID)},
    ),
    "mapping": (
        SLICE,
        {
            "spec/devices/0/nodeAllocatableResourceMappings": {
                "example.com/x": {"capacityKey": "none", "allocationMultiplier": "0"}
            }
        },
        {
            (f"{DEVICE}.nodeAllocatableResourceMappings[example.com/x]", INVALID),
            (f"{DEVICE}.nodeAllocatableResourceMappings[example.com/x].capacityKey", NOT_FOUND),
            (
                f"{DEVICE}.nodeAllocatableResourceMappings[example.com/x].allocationMultiplier",
                INVALID,
            ),
        },
    ),
}


@pytest.mark.parametrize(("base", "change", "expected"), CASES.values(), ids=CASES)
def test_creation(base: Json, change: Change, expected: Expected) -> None:
    """A slice about to be created is refused for exactly the fields that break a rule."""
    assert found(validation.validate(decoded(changed(base, change)), fussy)) == expected


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "A_", "a/b", "All"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["name", "a", "b/c", "cel", "opaque", "exactly"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
paths = st.sampled_from(
    [path for _, change, _ in CASES.values() for path in change if path[-1] not in "012"]
)


@given(path=paths, value=junk)
def test_anything_is_decoded_or_refused(path: str, value: Json) -> None:
    """Whatever stands in a field, the answer is a list of errors or an error of decoding, never a crash."""
    try:
        candidate = decoded(changed(SLICE, {path: value}))
    except ValueError:
        return
    for error in validation.validate(candidate, fussy):
        assert error.path.startswith(("spec", "metadata"))
        assert str(error)
