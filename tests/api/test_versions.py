"""Conversion between API versions loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api import versions
from drayman.api.errors import ConversionError

names = st.sampled_from(["a", "b", "gpu-0", "c-1"])
classes = st.sampled_from(["gpu.example.com", "nic"])
flags = st.fixed_dictionaries(
    {}, optional={"adminAccess": st.just(True), "count": st.integers(1, 3)}
)
selectors = st.lists(st.just({"cel": {"expression": "true"}}), max_size=2)
exactly = st.builds(
    lambda name, chosen, more: {"deviceClassName": name, "selectors": chosen, **more},
    classes,
    selectors,
    flags,
)
future = st.fixed_dictionaries({}, optional={"newField": st.integers(0, 3)})


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A request for exact devices, perhaps with a field of the future, or for the first of alternatives."""
    name = draw(names)
    if draw(st.booleans()):
        return {"name": name, "exactly": {**draw(exactly), **draw(future)}}
    alternatives = [{"name": draw(names), **draw(exactly)} for _ in range(draw(st.integers(1, 2)))]
    return {"name": name, "firstAvailable": alternatives}


@st.composite
def devices(draw: st.DrawFn) -> dict[str, Any]:
    """A device with some of its fields, perhaps with one of the future."""
    fields = {
        "attributes": {"model": {"string": "x"}},
        "capacity": {"memory": {"value": "1Gi"}},
        "nodeName": "node",
        "allNodes": True,
        "taints": [{"key": "k", "effect": "None"}],
    }
    chosen = draw(st.sets(st.sampled_from(sorted(fields))))
    return {"name": draw(names), **{name: fields[name] for name in chosen}, **draw(future)}


def claim_spec(requested: list[dict[str, Any]]) -> dict[str, Any]:
    return {"devices": {"requests": requested, "constraints": [{"matchAttribute": "a/b"}]}}


def named(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": spec,
        "newTop": [1],
    }


request_lists = st.lists(requests(), max_size=3)
node_choices = st.sampled_from(
    [{"nodeName": "n"}, {"allNodes": True}, {"perDeviceNodeSelection": True}]
)
objects = st.one_of(
    request_lists.map(lambda value: named("ResourceClaim", claim_spec(value))),
    request_lists.map(lambda value: named("ResourceClaimTemplate", {"spec": claim_spec(value)})),
    st.builds(
        lambda some, choice: named("ResourceSlice", {"devices": some, **choice}),
        st.lists(devices(), max_size=3),
        node_choices,
    ),
    st.just(named("DeviceClass", {"selectors": [], "newField": 1})),
)


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
@given(value=objects)
def test_there_and_back_is_identity(version: str, value: dict[str, Any]) -> None:
    """A v1 object converted to another version and back is the same object, unknown fields included."""
    there = versions.from_v1(value, version)
    assert there["apiVersion"] == f"resource.k8s.io/{version}"
    back = versions.to_v1(there)
    assert back.value == value
    assert back.ignored == ()


@given(value=objects)
def test_back_and_there_is_identity(value: dict[str, Any]) -> None:
    """A v1beta1 object as the API server writes it, converted to v1 and back, is the same object."""
    old = versions.from_v1(value, "v1beta1")
    assert versions.from_v1(versions.to_v1(old).value, "v1beta1") == old


@pytest.mark.parametrize("version", ["v1beta2", "v1alpha3"])
def test_taint_rules_differ_in_name_only(version: str) -> None:
    """A taint rule is the same in every version that has it."""
    rule = named("DeviceTaintRule", {"taint": {"key": "k"}, "newField": 1})
    there = versions.from_v1(rule, version)
    assert {**there, "apiVersion": rule["apiVersion"]} == rule
    assert versions.to_v1(there).value == rule


V1BETA1 = {
    "device without basic is bare": (
        "ResourceSlice",
        {"devices": [{"name": "d"}]},
        {"devices": [{"name": "d"}]},
        (),
    ),
    "fields beside basic do not come to life": (
        "ResourceSlice",
        {"devices": [{"name": "d", "allNodes": True, "basic": {"attributes": {}}}]},
        {"devices": [{"name": "d", "attributes": {}}]},
        ("spec.devices[0].allNodes",),
    ),
    "zero node selection is none": (
        "ResourceSlice",
        {"nodeName": "", "allNodes": False},
        {},
        (),
    ),
    "exact fields move": (
        "ResourceClaim",
        {"devices": {"requests": [{"name": "r", "deviceClassName": "c", "count": 2}]}},
        {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": 2}}]}},
        (),
    ),
    "zeros make no exact request": (
        "ResourceClaim",
        {
            "devices": {
                "requests": [{"name": "r", "deviceClassName": "", "count": 0, "adminAccess": None}]
            }
        },
        {"devices": {"requests": [{"name": "r"}]}},
        (),
    ),
    "false makes an exact request": (
        "ResourceClaim",
        {"devices": {"requests": [{"name": "r", "adminAccess": False}]}},
        {"devices": {"requests": [{"name": "r", "exactly": {"adminAccess": False}}]}},
        (),
    ),
    "exactly does not exist": (
        "ResourceClaim",
        {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        {"devices": {"requests": [{"name": "r"}]}},
        ("spec.devices.requests[0].exactly",),
    ),
    "wrong types are left alone": (
        "ResourceClaim",
        {"devices": {"requests": [5, None]}},
        {"devices": {"requests": [5, None]}},
        (),
    ),
}


@pytest.mark.parametrize(("kind", "old", "new", "ignored"), V1BETA1.values(), ids=V1BETA1)
def test_v1beta1_to_v1(
    kind: str, old: dict[str, Any], new: dict[str, Any], ignored: tuple[str, ...]
) -> None:
    """v1beta1 has other shapes, and ignores fields that only v1 has in that place."""
    converted = versions.to_v1({"apiVersion": "resource.k8s.io/v1beta1", "kind": kind, "spec": old})
    assert converted.value["spec"] == new
    assert converted.ignored == ignored


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("resource.k8s.io/v1alpha3", "ResourceClaim"),
        ("resource.k8s.io/v1beta1", "DeviceTaintRule"),
        ("resource.k8s.io/v2", "ResourceSlice"),
        ("v1", "ResourceSlice"),
        ("resource.k8s.io/v1", "Pod"),
        (None, "ResourceSlice"),
        ("resource.k8s.io/v1", None),
    ],
)
def test_no_such_kind(api_version: Any, kind: Any) -> None:
    """A kind or a version that does not exist is an error."""
    with pytest.raises(ConversionError):
        versions.to_v1({"apiVersion": api_version, "kind": kind})


@pytest.mark.parametrize(
    ("kind", "path", "source"),
    [
        ("ResourceSlice", "spec.devices[3].attributes[a]", "spec.devices[3].basic.attributes[a]"),
        ("ResourceSlice", "spec.devices[3].name", "spec.devices[3].name"),
        ("ResourceSlice", "spec.devices[3]", "spec.devices[3]"),
        (
            "ResourceClaim",
            "spec.devices.requests[0].exactly.count",
            "spec.devices.requests[0].count",
        ),
        (
            "ResourceClaimTemplate",
            "spec.spec.devices.requests[0].exactly.count",
            "spec.spec.devices.requests[0].count",
        ),
    ],
)
def test_fields_are_found_in_the_source(kind: str, path: str, source: str) -> None:
    """A field of the v1 form has a place in the v1beta1 document it came from."""
    assert versions.source_path(kind, "v1beta1", path) == source
    assert versions.source_path(kind, "v1", path) == path
