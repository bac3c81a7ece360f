"""Objects to build cases on: a valid one of each kind, and how to change it."""

from __future__ import annotations

import copy
from typing import Any

from drayman.api import codec
from drayman.api.catalog import kind_of
from drayman.api.defaults import with_defaults
from drayman.api.struct import ApiStruct
from drayman.api.validation import FieldError
from drayman.cel.device import ProblemKind, SelectorProblem

Json = Any
Change = dict[str, Json]
"""Paths of keys and positions, separated by slashes, with new values; ... removes."""
Expected = set[tuple[str, str]]
"""Fields and kinds of the errors."""

REQUIRED, INVALID, TOO_LONG, TOO_MANY = "REQUIRED", "INVALID", "TOO_LONG", "TOO_MANY"
DUPLICATE, NOT_SUPPORTED, FORBIDDEN, NOT_FOUND = (
    "DUPLICATE",
    "NOT_SUPPORTED",
    "FORBIDDEN",
    "NOT_FOUND",
)

SLICE: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-1",
        "pool": {"name": "pool/a", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"model": {"string": "x"}},
                "capacity": {"mem": {"value": "10"}},
            },
            {
                "name": "gpu-1",
                "allowMultipleAllocations": True,
                "capacity": {"mem": {"value": "10"}},
            },
        ],
    },
}
CLAIM: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "claim", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}},
                {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "c"}]},
            ],
            "constraints": [{"requests": ["gpu", "any/big"], "matchAttribute": "example.com/numa"}],
            "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}],
        }
    },
}
TEMPLATE: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "template"},
    "spec": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM["spec"]},
}
CLASS: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.example.com"},
    "spec": {
        "selectors": [{"cel": {"expression": "true"}}],
        "extendedResourceName": "example.com/gpu",
    },
}
RULE: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "rule"},
    "spec": {
        "deviceSelector": {"driver": "gpu.example.com"},
        "taint": {"key": "k", "effect": "NoExecute"},
    },
}
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pod"},
    "spec": {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
        "containers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}],
    },
}
RESULT: Json = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "gpu-0"}
STATUS: Json = {
    "allocation": {"devices": {"results": [RESULT]}},
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    "devices": [{"driver": "gpu.example.com", "pool": "p", "device": "gpu-0"}],
}


def changed(value: Json, change: Change) -> Json:
    """A copy of an object with values replaced, added or removed."""
    value = copy.deepcopy(value)
    for path, new in change.items():
        *parents, last = path.split("/")
        target = value
        for part in parents:
            target = target[int(part)] if isinstance(target, list) else target.setdefault(part, {})
        if new is ...:
            del target[last]
        elif isinstance(target, list):
            target[int(last)] = new
        else:
            target[last] = new
    return value


def decoded(value: Json) -> ApiStruct:
    kind = kind_of(value["apiVersion"], value["kind"])
    assert kind is not None
    return with_defaults(codec.convert(kind.type, value), now="2024-01-01T00:00:00Z")


def fussy(expression: str, stored: bool) -> SelectorProblem | None:
    """A checker that dislikes one word, unless it is stored already."""
    bad = "bad" in expression and not stored
    return SelectorProblem(ProblemKind.INVALID, "does not compile") if bad else None


def accept_selectors(expression: str, stored: bool) -> SelectorProblem | None:
    """A checker that takes everything."""
    return None


def found(errors: list[FieldError]) -> Expected:
    assert all(str(error).startswith(f"{error.path}: {error.kind.label}") for error in errors)
    return {(error.path, error.kind.name) for error in errors}


def many(item: Json, count: int) -> list[Json]:
    """Copies of an item with different names."""
    return [{**item, "name": f"n-{index}"} for index in range(count)]
