"""A wrong type in any field of any kind is an error that names the field.

The cases are not written down but derived from the structs: every field there is, with every type it must not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.objects import accept_selectors
from drayman.api.catalog import KINDS, Kind
from drayman.api.checking import check_files
from drayman.api.shape import Mapping, Opaque, Record, Scalar, Sequence, Shape, shape_of

Json = Any
Steps = tuple[str | int, ...]
LOADED = tuple(kind for kind in KINDS if kind.loaded)

SAMPLES: dict[str, Json] = {
    "string": "text",
    "integer": 7,
    "number": 1.5,
    "boolean": True,
    "array": [1],
    "object": {"k": 1},
    "large number": 2**70,
    "text in a list": ["a"],
}
FITTING: dict[type, set[str]] = {
    str: {"string"},
    int: {"integer"},
    bool: {"boolean"},
}
KEY = "a.example.com/key"


def fields(shape: Shape, steps: Steps = (), depth: int = 12) -> Iterator[tuple[Steps, Shape]]:
    """Every place below a shape, one item of each list and map, with what belongs there."""
    if steps:
        yield steps, shape
    if depth == 0:
        return
    match shape:
        case Record(known):
            for name, below in known.items():
                yield from fields(below, (*steps, name), depth - 1)
        case Sequence(item):
            yield from fields(item, (*steps, 0), depth - 1)
        case Mapping(item):
            yield from fields(item, (*steps, KEY), depth - 1)


def misfits(shape: Shape) -> Iterator[Json]:
    """Values of every type that a shape does not take."""
    match shape:
        case Scalar(expected="quantity"):
            fitting = {"integer", "number", "large number"}
        case Scalar(accepts=(type_,)):
            fitting = FITTING[type_]
        case Sequence():
            fitting = {"array", "text in a list"}
        case Record() | Mapping():
            fitting = {"object"}
        case Opaque():
            return
    for name, value in SAMPLES.items():
        if name not in fitting:
            yield value


def holding(kind: Kind, steps: Steps, value: Json) -> dict[str, Json]:
    """An object of a kind with a value at a place, and little else."""
    for step in reversed(steps):
        value = [value] if isinstance(step, int) else {step: value}
    return {"apiVersion": kind.api_versions[0], "kind": kind.name, **value}


def path_of(steps: Steps) -> str:
    path = ""
    for step in steps:
        if isinstance(step, int) or step == KEY:
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path


@pytest.mark.parametrize("kind", LOADED, ids=lambda kind: kind.name)
def test_every_field_names_its_wrong_type(kind: Kind) -> None:
    """The one error is about the field itself, and about no other."""
    shape = shape_of(kind.type)
    tried = 0
    for steps, expected in fields(shape):
        if steps in {("apiVersion",), ("kind",)}:
            continue
        for value in misfits(expected):
            data = json.dumps(holding(kind, steps, value)).encode()
            errors = check_files([("f", data)], accept_selectors).errors
            assert [error.path for error in errors] == [path_of(steps)], (steps, value)
            tried += 1
    assert tried > 50


@pytest.mark.parametrize("kind", LOADED, ids=lambda kind: kind.name)
def test_null_is_no_wrong_type(kind: Kind) -> None:
    """Null stands for absence in every field, as it does for the API server."""
    for steps, _ in fields(shape_of(kind.type)):
        if steps in {("apiVersion",), ("kind",)}:
            continue
        data = json.dumps(holding(kind, steps, None)).encode()
        report = check_files([("f", data)], accept_selectors)
        assert len(report.objects) == 1, (steps, report.findings)


@pytest.mark.parametrize("name", ["apiVersion", "kind"])
@pytest.mark.parametrize("value", [None, *SAMPLES.values()], ids=str)
def test_the_type_of_an_object_must_be_told(name: str, value: Json) -> None:
    """Without a usable apiVersion or kind, that is the error."""
    if value == "text":
        value = ""
    object_ = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, name: value}
    (error,) = check_files([("f", json.dumps(object_).encode())], accept_selectors).errors
    assert error.path == name
