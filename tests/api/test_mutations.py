"""Checking survives whatever happens to a valid object."""

from __future__ import annotations

import copy
import json
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from api.objects import CLAIM, CLASS, POD, RULE, SLICE, TEMPLATE, accept_selectors
from drayman.api.checking import check_files
from drayman.api.versions import from_v1

Json = Any

OBJECTS: list[Json] = [
    CLAIM,
    CLASS,
    POD,
    RULE,
    SLICE,
    TEMPLATE,
    *(from_v1(value, "v1beta1") for value in (CLAIM, CLASS, SLICE, TEMPLATE)),
    {"apiVersion": "v1", "kind": "List", "items": [CLAIM, SLICE]},
]

texts = st.sampled_from(
    [
        "",
        "a",
        "A b",
        "1e400",
        "-5",
        "80Gi",
        "x" * 300,
        "é",
        "\x00",
        "a/b/c",
        "In",
        "All",
        "[0]",
        ".",
    ]
) | st.text(st.characters(codec="utf-8"), max_size=5)
scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 1, 2**31, 2**63, -(2**63), 10**300, 0.5, 1e300])
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def places(value: Json) -> list[tuple[Json, str | int]]:
    """Every container in a value with each of its keys or positions."""
    if not isinstance(value, dict | list):
        return []
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [p for key in keys for p in places(value[key])]


def remove(parent: Json, key: str | int) -> None:
    del parent[key]


def repeat(parent: Json, key: str | int) -> None:
    if isinstance(parent, list):
        parent.extend([copy.deepcopy(parent[int(key)])] * 40)
    else:
        parent[f"{key}{key}"] = copy.deepcopy(parent[key])


def wrap(parent: Json, key: str | int) -> None:
    parent[key] = [parent[key]]


@st.composite
def mutated(draw: st.DrawFn) -> Json:
    """A valid object with one to four things changed about it."""
    value = copy.deepcopy(draw(st.sampled_from(OBJECTS)))
    for _ in range(draw(st.integers(1, 4))):
        found = places(value)
        if not found:
            break
        parent, key = draw(st.sampled_from(found))
        change = draw(st.sampled_from([remove, repeat, wrap, None, None]))
        if change is None:
            parent[key] = draw(values)
        else:
            change(parent, key)
    return value


@given(st.lists(mutated(), min_size=1, max_size=2), st.booleans())
def test_any_mutation_gets_an_answer(objects: list[Json], as_yaml: bool) -> None:
    """The report is complete: what did not become an object is an error, and every finding can be printed."""
    files = [
        (f"{index}", (yaml.safe_dump(value) if as_yaml else json.dumps(value)).encode())
        for index, value in enumerate(objects)
    ]
    report = check_files(files, accept_selectors)
    assert report.objects or report.errors or "items" in str(objects)
    for finding in report.findings:
        assert finding.file in {"0", "1"}
        assert str(finding).startswith(finding.file)
        assert len(str(finding)) < 10_000


@given(mutated(), st.data())
def test_any_cut_or_flipped_byte_gets_an_answer(value: Json, data: st.DataObject) -> None:
    """A file that was damaged on its way is refused or read, never anything else."""
    damaged = bytearray(yaml.safe_dump(value).encode())
    position = data.draw(st.integers(0, len(damaged) - 1))
    damaged[position] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(position, len(damaged))) :]
    report = check_files([("f", bytes(damaged))], accept_selectors)
    assert all(finding.file == "f" for finding in report.findings)
