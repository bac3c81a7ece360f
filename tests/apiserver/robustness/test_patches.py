"""Patches of all four types that point nowhere, multiply, nest or misuse directives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robustness.hostile import (
    APPLY,
    CONFIG_MAP,
    IS_LONG,
    JSON_PATCH,
    MERGE_PATCH,
    POD,
    STRATEGIC,
    attack,
)

MANY = "9" * 5000
POINTERS = (
    "", "/", "a", "//", "~", "/metadata/labels/~2", f"/metadata/managedFields/{MANY}", "/data/k/x",
    "/metadata/managedFields/-1", "/metadata/managedFields/-", "/metadata/managedFields/\u0663",
    "/metadata", "/kind", "/metadata/name", "/metadata/uid", "/metadata/resourceVersion",
    "/metadata/creationTimestamp", "/metadata/ownerReferences", "/spec/containers", "/status", "/" * 5000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, 1, 1.5, -1, 2**63, "x", "\0", True, [], {}, [None], [{}], [[]], {"a": None}, {"": ""},
    {"$patch": "delete"}, {"$patch": "replace"}, {"$patch": "zz"}, {"$patch": 1}, [{"$patch": "replace"}],
    [{"$patch": "delete", "name": 1}], [{"name": None}], [{"name": "c"}, {"name": "c"}],
    {"$retainKeys": ["a", 1]}, {"$retainKeys": 1}, "0000-00-00T00:00:00Z", "9999-12-31T23:59:59+23:59",
)  # fmt: skip
FIELD_SETS: tuple[Any, ...] = (
    {f"i:{MANY}": {}}, {"i:x": {}}, {"k:{": {}}, {"k:[1]": {}}, {"k:" + '{"a":' * 5000: {}}, {"v:1e400": {}},
    {"v:" + "[" * 5000: {}}, {"v:" + "[" * 300 + "]" * 300: {}}, {"zz": {}}, {".": {"f:a": {}}}, {"f:a": 1}, [],
    {"f:spec": {"f:containers": {'k:{"zz":1}': {"f:image": {}}, "i:0": {}, 'v:"x"': {}}}},
)  # fmt: skip
FIELDS = (
    "metadata", "spec", "status", "data", "kind", "apiVersion", "$patch", "$retainKeys", "$setElementOrder/data",
    "$deleteFromPrimitiveList/x", "zz", "",
)  # fmt: skip
METADATA = (
    "labels", "annotations", "finalizers", "ownerReferences", "managedFields", "creationTimestamp",
    "deletionTimestamp", "generation", "name", "namespace", "uid", "resourceVersion", "generateName",
    "$deleteFromPrimitiveList/finalizers", "$setElementOrder/ownerReferences",
)  # fmt: skip
SPEC = (
    "containers", "volumes", "tolerations", "affinity", "resourceClaims", "schedulingGates", "nodeSelector",
    "ephemeralContainers", "overhead", "$setElementOrder/containers", "$retainKeys",
)  # fmt: skip
BOMBS: dict[str, list[dict[str, Any]]] = {
    "copies that double": [{"op": "copy", "from": "/metadata", "path": "/metadata/annotations"}]
    * 10_000,
    "moves that nest": [
        {"op": "move", "from": "/data", "path": "/zz"},
        {"op": "add", "path": "/data", "value": {}},
        {"op": "move", "from": "/zz", "path": "/data/x"},
    ]
    * 1_000,
    "a value moved into itself": [{"op": "move", "from": "/metadata", "path": "/metadata/labels"}],
    "ten thousand additions": [
        {"op": "add", "path": f"/data/x{number}", "value": "a"} for number in range(10_000)
    ],
    "one operation too many": [{"op": "test", "path": "/data", "value": {}}] * 10_001,
    "ten thousand insertions": [
        {"op": "add", "path": "/metadata/finalizers", "value": []},
        *[{"op": "add", "path": "/metadata/finalizers/0", "value": "a"}] * 9_999,
    ],
}


def merges(path: str, body: dict[str, Any]) -> list[tuple[Any, ...]]:
    """A change as each of the patches that look like the object."""
    kind, name = ("ConfigMap", "a") if path == CONFIG_MAP else ("Pod", "p")
    metadata = body.get("metadata", {})
    named = {"name": name, **metadata} if isinstance(metadata, dict) else metadata
    applied = {"apiVersion": "v1", "kind": kind, **body, "metadata": named}
    options = "dryRun=All&fieldManager=m"
    return [
        ("PATCH", path, body, MERGE_PATCH, options),
        ("PATCH", path, body, STRATEGIC, options),
        ("PATCH", path, applied, APPLY, f"{options}&force=true"),
    ]


def test_pointers_that_lead_nowhere_are_refused() -> None:
    """Each operation with each pointer and value gets an answer."""
    operations = [
        {"op": op, "path": path, "value": value, "from": POINTERS[number % len(POINTERS)]}
        for op in ("add", "remove", "replace", "copy", "move", "test", "zz", None)
        for path in POINTERS
        for number, value in enumerate(VALUES[:15])
    ]
    attack(("PATCH", POD, [o], JSON_PATCH, "dryRun=All") for o in operations)


@pytest.mark.parametrize("name", BOMBS)
def test_json_patches_cannot_explode(name: str) -> None:
    """What a patch may build is bounded."""
    attack([("PATCH", CONFIG_MAP, BOMBS[name], JSON_PATCH, "dryRun=All")])


@pytest.mark.parametrize("path", [CONFIG_MAP, POD], ids=["config map", "pod"])
def test_fields_of_the_wrong_type_are_refused(path: str) -> None:
    """Whatever stands in a field of the object or its metadata, there is an answer."""
    bodies = [{name: value} for name in FIELDS for value in VALUES]
    bodies += [{"metadata": {name: value}} for name in METADATA for value in VALUES]
    attack(request for body in bodies for request in merges(path, body))


def test_lists_of_a_pod_with_anything_inside_are_refused() -> None:
    """Merge keys of the wrong type, missing or twice, and directives in odd places get an answer."""
    bodies = [{"spec": {name: value}} for name in SPEC for value in VALUES]
    attack(request for body in bodies for request in merges(POD, body))


def test_field_sets_that_are_none_are_refused() -> None:
    """Managed fields that name no field, or a position no list has, do no harm."""
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    bodies = [{"metadata": {"managedFields": [{**entry, "fieldsV1": f}]}} for f in FIELD_SETS]
    attack(r for body in bodies for p in (CONFIG_MAP, POD) for r in merges(p, body))


NAMES = st.sampled_from([*FIELDS, *METADATA, *SPEC, "name", "$patch"])
TREES = st.recursive(
    st.sampled_from(VALUES) | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=1_000 if IS_LONG else 40)
@given(st.lists(st.dictionaries(NAMES, TREES, max_size=4), min_size=1, max_size=10))
def test_any_merge_is_answered(bodies: list[dict[str, Any]]) -> None:
    """Merge, strategic merge and apply take any object for a patch, and none breaks what is stored."""
    requests = [r for body in bodies for path in (CONFIG_MAP, POD) for r in merges(path, body)]
    stored = [(*r[:4], r[4].replace("dryRun=All&", "")) for r in requests if r[1] == CONFIG_MAP]
    attack([*requests, *stored])
