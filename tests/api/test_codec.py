"""JSON to objects and back: tolerance, errors, speed path and slow path alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drayman.api import codec
from drayman.api.core import Namespace, Node, Pod
from drayman.api.errors import DecodeError
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.resource import (
    Counter,
    DeviceClass,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.struct import ApiStruct

KINDS = [
    DeviceClass,
    ResourceSlice,
    ResourceClaim,
    ResourceClaimTemplate,
    DeviceTaintRule,
    Node,
    Namespace,
    Pod,
]


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_objects_say_what_they_are(kind: type[ApiStruct]) -> None:
    """apiVersion and kind are written although they are defaults, and nothing else of an empty object is."""
    assert codec.to_dict(kind()) == {
        "apiVersion": kind().api_version,  # type: ignore[attr-defined]
        "kind": kind.__name__,
    }


def test_a_decoded_object_is_written_as_it_was() -> None:
    """Names are camelCase on the wire, quantities keep their text, lists their order."""
    value = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s", "labels": {"a": "b"}},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "allNodes": True,
            "devices": [
                {
                    "name": "d",
                    "attributes": {
                        "model": {"string": "x"},
                        "n": {"int": 3},
                        "tags": {"strings": ["b", "a"]},
                    },
                    "capacity": {"memory": {"value": "80Gi"}, "none": {"value": "0"}},
                    "taints": [{"key": "k", "effect": "None", "timeAdded": "2024-05-01T00:00:00Z"}],
                }
            ],
        },
    }
    decoded = codec.decode(ResourceSlice, encoded(value))
    assert codec.to_dict(decoded) == value
    assert json.loads(codec.encode(decoded)) == value
    assert codec.convert(ResourceSlice, value) == decoded


def test_null_means_absent() -> None:
    """A null field is as if it were not there; a null item is the zero of its type."""
    value = {
        "metadata": {"name": None, "labels": {"a": None}, "ownerReferences": [None]},
        "spec": {
            "devices": [{"name": "d", "capacity": {"m": {"value": None}}, "taints": None}],
            "nodeName": None,
        },
    }
    decoded = codec.decode(ResourceSlice, encoded(value))
    assert decoded.metadata.name == ""
    assert decoded.metadata.labels == {"a": ""}
    assert len(decoded.metadata.owner_references) == 1
    assert decoded.spec.node_name is None
    assert decoded.spec.devices is not None
    assert decoded.spec.devices[0].capacity["m"].value == Quantity.ZERO


@pytest.mark.parametrize(
    ("value", "amount"), [(1, "1"), (1.5, "1500m"), (" 1Ki ", "1Ki"), (1e3, "1k"), (-2, "-2")]
)
def test_quantities_are_numbers_too(value: float | str, amount: str) -> None:
    """A quantity may be written as a number and with spaces around, as Kubernetes accepts it."""
    assert codec.decode(Counter, encoded({"value": value})).value == Quantity.parse(amount)


ERRORS: dict[str, tuple[type[ApiStruct], Any, str]] = {
    "text": (
        ResourceSlice,
        {"spec": {"devices": [{}, {"name": 5}]}},
        "spec.devices[1].name: expected string, got integer",
    ),
    "map value": (
        ResourceSlice,
        {"metadata": {"labels": {"a.b/c": True}}},
        "metadata.labels[a.b/c]: expected string, got boolean",
    ),
    "number": (
        DeviceToleration,
        {"tolerationSeconds": "1"},
        "tolerationSeconds: expected integer, got string",
    ),
    "fraction": (
        DeviceToleration,
        {"tolerationSeconds": 1.5},
        "tolerationSeconds: expected integer, got number",
    ),
    "boolean for a number": (
        DeviceToleration,
        {"tolerationSeconds": True},
        "expected integer, got boolean",
    ),
    "too large": (
        DeviceToleration,
        {"tolerationSeconds": 2**63},
        "tolerationSeconds: expected an integer from",
    ),
    "list": (ResourceSlice, {"spec": {"devices": {}}}, "spec.devices: expected array, got object"),
    "object": (ResourceSlice, {"spec": []}, "spec: expected object, got array"),
    "whole": (ResourceSlice, [], "expected object, got array"),
    "time": (
        DeviceTaint,
        {"timeAdded": "yesterday"},
        "timeAdded: expected an RFC 3339 time, got 'yesterday'",
    ),
    "quantity": (Counter, {"value": "1i"}, "value: unable to parse quantity's suffix"),
    "absurd quantity": (Counter, {"value": "1e400"}, "value: quantities are limited to"),
    "quantity of a boolean": (Counter, {"value": True}, "value: expected quantity, got boolean"),
}


@pytest.mark.parametrize(("kind", "value", "message"), ERRORS.values(), ids=ERRORS)
def test_errors_name_the_field(kind: type[ApiStruct], value: Any, message: str) -> None:
    """A value of the wrong type is an error that says where it is, what was expected and what came."""
    for attempt in (lambda: codec.decode(kind, encoded(value)), lambda: codec.convert(kind, value)):
        with pytest.raises(DecodeError) as caught:
            attempt()
        assert message in str(caught.value)


BROKEN = {
    "cut off": b'{"spec":',
    "not UTF-8": b'{"metadata":{"name":"\xff"}}',
    "deep": b'{"x":' + b"[" * 100_000,
    "empty": b"",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_broken_text_is_an_error(data: bytes) -> None:
    """Text that is no JSON is refused with an error of ours, however deep it is nested."""
    with pytest.raises(DecodeError):
        codec.decode(ResourceSlice, data)


def test_lists() -> None:
    """A list gives its items and its version; an error in an item says which one."""
    items = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b", "labels": None}}]
    decoded = codec.decode_list(
        Node, encoded({"metadata": {"resourceVersion": "7"}, "items": items})
    )
    assert [node.metadata.name for node in decoded.items] == ["a", "b"]
    assert decoded.metadata.resource_version == "7"
    assert codec.decode_list(Node, b'{"items":null}').items == ()
    with pytest.raises(DecodeError, match=r"^items\[1\]\.metadata\.name: "):
        codec.decode_list(Node, encoded({"items": [{}, {"metadata": {"name": 1}}]}))


def test_objects_can_be_shared() -> None:
    """Objects are frozen, and their fields have to be named."""
    metadata = ObjectMeta(name="a")
    with pytest.raises(AttributeError):
        metadata.name = "b"  # type: ignore[misc]
    with pytest.raises(TypeError):
        ObjectMeta("a")  # type: ignore[misc]
