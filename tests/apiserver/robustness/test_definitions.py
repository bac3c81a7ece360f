"""Custom resources whose schemas, rules and defaults are made to hurt."""

from __future__ import annotations

from typing import Any

import pytest
from robustness.hostile import APPLY, DEFINITIONS, JSON, JSON_PATCH, MERGE_PATCH, YAML, attack

TEN = "[0,1,2,3,4,5,6,7,8,9]"
VALUES: tuple[Any, ...] = (
    None, 1, 1.5, "x", "a" * 30 + "b", "a" * 50_000, [], {}, True, ["a", "a"], [{"a": "x"}, {"a": "x"}], [{"a": 1}],
    {"a": None}, {"a": "b"}, {"apiVersion": 1, "kind": [], "metadata": 5}, 2**63, 1e308, "\0", "9" * 5000,
    list(range(300)), [f"x{n}" for n in range(2000)], "%s%d%%", "1.1.1.1", "5000000h",
)  # fmt: skip


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "default": {}, "properties": {"a": schema}}
    return schema


def ruled(rule: str, **schema: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": rule}]}


STRINGS = {"type": "array", "items": {"type": "string"}}
HOSTILE: dict[str, Any] = {
    "nothing": None,
    "a reference to itself": {"$ref": "#"},
    "an unknown type": {"type": "zz"},
    "a pattern that is none": {"type": "string", "pattern": "("},
    "a pattern that backtracks": {"type": "string", "pattern": "(a+)+$"},
    "a pattern that expands": {"type": "string", "pattern": "a{1000}{1000}"},
    "a multiple of nothing": {"type": "number", "multipleOf": 0},
    "a multiple of next to nothing": {"type": "number", "multipleOf": 1e-300},
    "a default of another type": {"type": "integer", "default": "x"},
    "defaults sixty levels deep": nested(60),
    "defaults three hundred levels deep": nested(300),
    "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "an embedded object": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "a list by key": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
    },
    "a set": {**STRINGS, "x-kubernetes-list-type": "set"},
    "two thousand alternatives": {"type": "string", "anyOf": [{}] * 2000},
    "a rule of brackets": ruled("(" * 5000, type="object"),
    "a rule of negations": ruled("!" * 3000 + "true", type="object"),
    "a rule that is a product": ruled(
        "".join(f"{TEN}.all({name}," for name in "abcdefg") + "true" + ")" * 7, type="object"
    ),
    "a rule that is a cube": ruled("self.all(x,self.all(y,self.all(z,x!=y)))", **STRINGS),
    "a rule that grows": ruled(
        "self" + ".replace('a',self)" * 6 + ".size()>=0", type="string", maxLength=100
    ),
    "a rule that divides": ruled("self/0==1", type="integer"),
    "a rule that formats": ruled("self.format([self])==''", type="string", maxLength=100),
    "a rule that matches itself": ruled("self.matches(self)", type="string", maxLength=100),
}


def definition(schema: Any) -> dict[str, Any]:
    whole = {"type": "object", "properties": {"spec": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_do_no_harm(name: str) -> None:
    """A definition is refused, or its objects are created, patched and listed like any other."""
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    requests: list[tuple[Any, ...]] = [("POST", DEFINITIONS, definition(HOSTILE[name]))]
    for number, value in enumerate(VALUES):
        path = f"{widgets}/w{number}"
        widget = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": f"w{number}"},
            "spec": value,
        }
        requests += [
            ("POST", widgets, widget),
            ("PATCH", path, {"spec": VALUES[number - 3]}, MERGE_PATCH),
            ("PATCH", path, [{"op": "add", "path": "/spec/a", "value": value}], JSON_PATCH),
            ("PATCH", path, widget, APPLY, "fieldManager=m&force=true"),
        ]
    for depth in (100, 150, 300, 900):
        spec = '{"a":' * depth + '"x"' + "}" * depth
        deep = (
            '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"deep"},'
            f'"spec":{spec}}}'
        ).encode()
        requests += [("POST", widgets, deep, media) for media in (JSON, YAML)]
        requests += [
            ("PATCH", f"{widgets}/deep", deep, m, "fieldManager=m") for m in (MERGE_PATCH, APPLY)
        ]
    requests += [("GET", widgets), ("GET", "/openapi/v3/apis/example.com/v1"), ("GET", "/apis")]
    attack(requests)


@pytest.mark.parametrize("around", ["additionalProperties", "items", "not"])
def test_schemas_in_schemas_do_not_exhaust_the_interpreter(around: str) -> None:
    """However deep they are, such a definition is refused or accepted like any other."""
    requests: list[tuple[Any, ...]] = []
    for depth in (100, 160, 200, 240, 248):
        schema: dict[str, Any] = {"type": "string"}
        for _ in range(depth):
            schema = {around: schema}
        requests += [("POST", DEFINITIONS, definition(schema))]
    attack(requests)
