"""Unknown fields travel with their objects."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.api.carrying import Carried, unknown_fields
from drayman.api.resource import ResourceSlice

SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s", "managedFields": [{"manager": "m"}]},
    "spec": {
        "driver": "gpu.example.com",
        "newInSpec": 1,
        "devices": [
            {
                "name": f"gpu-{index}",
                "newInDevice": {"index": index},
                "attributes": {"a": {"int": index, "newInAttribute": True}},
                "taints": [{"key": "a", "newInTaint": 1}, {"key": "b", "newInTaint": 2}],
            }
            for index in range(3)
        ],
    },
}


def test_unknown_fields_survive() -> None:
    """An object that is decoded and encoded is the same, fields of the future included."""
    carried = Carried.convert(ResourceSlice, SLICE)
    assert carried.to_dict() == SLICE
    assert json.loads(carried.encode()) == SLICE


def test_items_keep_theirs_by_name() -> None:
    """When devices are removed, reordered and added, each keeps the unknown fields it came with."""
    carried = Carried.convert(ResourceSlice, SLICE)
    devices = carried.object.spec.devices
    assert devices is not None
    changed = (replace(devices[0], name="new"), devices[2], devices[1])
    spec = replace(carried.object.spec, devices=changed)
    result = carried.replace(replace(carried.object, spec=spec)).to_dict()["spec"]["devices"]
    assert [device["name"] for device in result] == ["new", "gpu-2", "gpu-1"]
    assert [device.get("newInDevice") for device in result] == [None, {"index": 2}, {"index": 1}]


def test_items_without_a_name_keep_theirs_by_position() -> None:
    """Taints have no key of their own, so what remains at a position keeps what was there."""
    carried = Carried.convert(ResourceSlice, SLICE)
    devices = carried.object.spec.devices
    assert devices is not None
    shorter = replace(devices[0], taints=devices[0].taints[:1])
    spec = replace(carried.object.spec, devices=(shorter,))
    (device,) = carried.replace(replace(carried.object, spec=spec)).to_dict()["spec"]["devices"]
    assert device["taints"] == [{"key": "a", "newInTaint": 1}]


def test_same_names_are_told_apart_by_order() -> None:
    """Invalid input with one name twice is no reason to lose anything."""
    value = copy.deepcopy(SLICE)
    value["spec"]["devices"][1]["name"] = "gpu-0"
    assert Carried.convert(ResourceSlice, value).to_dict() == value


def test_unknown_fields_are_named() -> None:
    """The paths of unknown fields are those a user sees in the file."""
    found = list(unknown_fields(ResourceSlice, SLICE))
    assert found[:3] == ["metadata.managedFields", "spec.newInSpec", "spec.devices[0].newInDevice"]
    assert "spec.devices[2].attributes[a].newInAttribute" in found


names = st.sampled_from(["x", "y", "name", "kind"])
junk = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
extra = st.dictionaries(st.sampled_from(["newA", "newB"]), junk, max_size=2)


@st.composite
def slices(draw: st.DrawFn) -> dict[str, Any]:
    """Slices with unknown fields at every level."""
    devices = [
        {
            "name": name,
            "attributes": {
                key: {"int": 1, **draw(extra)} for key in draw(st.sets(names, max_size=2))
            },
            "consumesCounters": [
                {"counterSet": key, **draw(extra)} for key in draw(st.lists(names, max_size=2))
            ],
            **draw(extra),
        }
        for name in draw(st.lists(names, max_size=3))
    ]
    pool = {"name": "p", **draw(extra)}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "spec": {"driver": "d", "pool": pool, "devices": devices, **draw(extra)},
        **draw(extra),
    }


def without_empty(value: Any) -> Any:
    """JSON without the empty lists and maps of known fields, which mean nothing and are not written."""
    if isinstance(value, dict):
        return {
            key: without_empty(item)
            for key, item in value.items()
            if key.startswith("new") or item not in ({}, [])
        }
    return [without_empty(item) for item in value] if isinstance(value, list) else value


@given(slices())
def test_nothing_is_lost(value: dict[str, Any]) -> None:
    """Decoding and encoding keeps every field of any object, wherever it stands."""
    assert without_empty(Carried.convert(ResourceSlice, value).to_dict()) == without_empty(value)
