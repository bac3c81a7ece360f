"""What is applied must be of its type: the refusals, in the words clients know."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.schema import schema_for
from drayman.apiserver.patching.builtin_shapes import shape_of, zero_of
from drayman.apiserver.patching.checking import misfits, misfits_text
from drayman.apiserver.patching.custom_shapes import custom_resource_shape
from drayman.apiserver.patching.tracing import fields_of


def pod_spec(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


FITTING: dict[str, dict[str, Any]] = {
    "nothing": pod_spec(),
    "null anywhere": pod_spec(containers=None, priority=None, nodeSelector=None, nodeName=None),
    "a number or a text": pod_spec(
        containers=[{"name": "a", "livenessProbe": {"httpGet": {"port": "x"}}}]
    ),
    "ports that differ in protocol": pod_spec(
        containers=[
            {
                "name": "a",
                "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}],
            }
        ]
    ),
    "a container without a name, which is an empty name": pod_spec(containers=[{"image": "i"}]),
}

MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "an undeclared field": (pod_spec(x=1), ".spec.x: field not declared in schema"),
    "a text for a number": (
        pod_spec(priority="1"),
        ".spec.priority: expected numeric (int or float), got string",
    ),
    "a truth for a number": (
        pod_spec(priority=True),
        ".spec.priority: expected numeric (int or float), got bool",
    ),
    "a number for a text": (
        pod_spec(nodeName=5),
        ".spec.nodeName: expected string, got &value.valueUnstructured{Value:5}",
    ),
    "a text for a truth": (
        pod_spec(hostNetwork="true"),
        ".spec.hostNetwork: expected boolean, got &{true}",
    ),
    "a list for a map": (
        pod_spec(nodeSelector=["a", 1]),
        ".spec.nodeSelector: expected map, got &{[a 1]}",
    ),
    "a map for a list": (
        pod_spec(containers={"b": 1, "a": {}}),
        ".spec.containers: expected list, got &{map[a:map[] b:1]}",
    ),
    "a map in a map of texts": (
        pod_spec(nodeSelector={"a": {"b": "c"}}),
        ".spec.nodeSelector.a: expected string, got "
        '&value.valueUnstructured{Value:map[string]interface {}{"b":"c"}}',
    ),
    "two of one name": (
        pod_spec(containers=[{"name": "a"}, {"name": "a"}]),
        '.spec.containers: duplicate entries for key [name="a"]',
    ),
    "two of one key by its default": (
        pod_spec(
            containers=[
                {
                    "name": "a",
                    "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}],
                }
            ]
        ),
        '.spec.containers[name="a"].ports: duplicate entries for key '
        '[containerPort=1,protocol="TCP"]',
    ),
    "a text among named items": (
        pod_spec(containers=["a"]),
        ".spec.containers: element 0: associative list with keys may not have non-map elements",
    ),
    "null among named items": (
        pod_spec(containers=[None]),
        ".spec.containers: element 0: associative list with keys may not have a null element",
    ),
    "inside an atomic list": (
        pod_spec(tolerations=[{"key": "a"}, {"nope": 1}]),
        ".spec.tolerations[1].nope: field not declared in schema",
    ),
    "several": (
        pod_spec(priority="1", nodeName=5),
        "errors:\n  .spec.priority: expected numeric (int or float), got string\n"
        "  .spec.nodeName: expected string, got &value.valueUnstructured{Value:5}",
    ),
}

POD_MESSAGE = schema_for("", "v1", "Pod")
assert POD_MESSAGE is not None
POD = shape_of(POD_MESSAGE)


@pytest.mark.parametrize("case", FITTING)
def test_fitting(case: str) -> None:
    """A value of its shape has nothing to complain about."""
    assert misfits(POD, FITTING[case]) == []


@pytest.mark.parametrize("case", MISFITS)
def test_misfits(case: str) -> None:
    """What does not fit is named by its path and what it should be."""
    value, want = MISFITS[case]
    assert misfits_text(misfits(POD, value)) == want


def test_custom_keys_without_defaults() -> None:
    """An item that has none of the keys of its list cannot be told from others."""
    schema = {
        "type": "object",
        "properties": {
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "properties": {"port": {"type": "integer"}}},
            }
        },
    }
    found = misfits(custom_resource_shape(schema), {"ports": [{}]})
    assert misfits_text(found) == (
        ".ports: element 0: associative list with keys has an element that omits all key fields "
        '["port" "protocol"] (and doesn\'t have default values for any key fields)'
    )


def test_custom_resource_without_schema() -> None:
    """Without a schema anything goes but metadata that is none; objects are owned by member, lists whole."""
    shape = custom_resource_shape(None)
    value = {"metadata": {"labels": {"a": "b"}}, "x": {"y": [1, {"z": 2}], "empty": {}}}
    assert misfits(shape, value) == []
    assert misfits(shape, {"metadata": {"nope": 1}}) != []
    assert {path[-1] for path in fields_of(shape, value).paths()} == {
        *("f:a", "f:x", "f:y", "f:empty"),
    }


def test_preserved_unknown_fields() -> None:
    """Where a schema lets unknown fields be, they are taken as they come."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    shape = custom_resource_shape({"type": "object", "properties": {"spec": schema}})
    assert misfits(shape, {"spec": {"anything": {"at": ["all"]}}}) == []
    assert misfits(shape, {"other": 1}) != []


def test_objects_without_content() -> None:
    """An empty object shows the fields that are always written, and no others."""
    assert POD_MESSAGE is not None
    empty = zero_of(POD_MESSAGE)
    assert empty["spec"] == {"containers": None}
    assert "kind" not in empty
