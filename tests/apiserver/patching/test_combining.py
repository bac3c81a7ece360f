"""Merging what is applied into what is there: which items a list has afterwards, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.patching.combining import merge, remove
from drayman.apiserver.patching.custom_shapes import structural_shape
from drayman.apiserver.patching.field_set import field_set, key_element, named_path
from drayman.apiserver.patching.shaped_sets import with_named_fields
from drayman.apiserver.patching.tracing import compare, fields_of

SET = structural_shape(
    {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
)
TREE = structural_shape(
    {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "mode": {"type": "object", "properties": {"name": {"type": "string"}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "args": {"type": "array", "items": {"type": "string"}},
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
            },
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {
                    "type": "object",
                    "properties": {
                        "port": {"type": "integer"},
                        "protocol": {"type": "string", "default": "TCP"},
                        "name": {"type": "string"},
                    },
                },
            },
            "ref": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            },
        },
    }
)

ORDERS = [
    ("abc", "abc", "abc"),
    ("abc", "cba", "cba"),
    ("abcd", "db", "acdb"),
    ("ab", "xa", "xab"),
    ("ab", "ax", "abx"),
    ("ab", "bxa", "bxa"),
    ("axb", "ba", "xba"),
    ("abc", "c", "abc"),
    ("", "ab", "ab"),
    ("ab", "", "ab"),
]


@pytest.mark.parametrize(("live", "applied", "want"), ORDERS)
def test_order(live: str, applied: str, want: str) -> None:
    """Shared items come in the order applied; items of the live list only keep their neighbours before them."""
    assert "".join(merge(SET, list(live), list(applied))) == want


letters = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@given(letters, letters)
def test_merged_list(live: list[str], applied: list[str]) -> None:
    """No item is lost or doubled, and those applied are in the order applied."""
    result = merge(SET, live, applied)
    assert sorted(result) == sorted({*live, *applied})
    assert [item for item in result if item in applied] == applied


trees = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "mode": st.fixed_dictionaries({}, optional={"name": st.sampled_from("xy")}),
        "labels": st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=2),
        "args": st.lists(st.sampled_from("xy"), max_size=2),
        "tags": st.lists(st.sampled_from("xyz"), unique=True, max_size=3),
        "ports": st.lists(
            st.fixed_dictionaries(
                {"port": st.integers(1, 3)},
                optional={
                    "protocol": st.sampled_from(["TCP", "UDP"]),
                    "name": st.sampled_from("xy"),
                },
            ),
            unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
            max_size=3,
        ),
        "ref": st.fixed_dictionaries({}, optional={"a": st.just("1"), "b": st.just("2")}),
    },
)


@given(trees, trees)
def test_merge_takes_all_that_is_applied(live: Any, applied: Any) -> None:
    """After a merge every field is there, and those applied have the values applied."""
    result = merge(TREE, live, applied)
    assert merge(TREE, result, applied) == result
    missing = fields_of(TREE, live) - fields_of(TREE, result)
    gone = compare(TREE, live, result).removed
    assert not gone, missing
    assert not (compare(TREE, result, applied).modified & fields_of(TREE, applied))


@given(trees, trees)
def test_comparison_accounts_for_every_field(old: Any, new: Any) -> None:
    """What is removed was there, what is added was not, and no path is in two of the sets."""
    found = compare(TREE, old, new)
    assert not (found.removed & found.added)
    assert not (found.removed & found.modified)
    assert not (found.added & found.modified)
    assert not (found.removed & fields_of(TREE, new))
    assert not (found.added & fields_of(TREE, old))
    assert bool(found.removed | found.changed) == (old != new) or reordered(old, new)


def reordered(old: Any, new: Any) -> bool:
    """The order of items that have names, and a key given in place of its default, are nobody's."""
    return {**old, "ports": 0, "tags": 0} == {**new, "ports": 0, "tags": 0}


@given(trees)
def test_removing_every_field_leaves_nothing(tree: Any) -> None:
    """A value without any of its fields has no content."""
    every = with_named_fields(TREE, fields_of(TREE, tree))
    assert not any((remove(TREE, tree, every) or {}).values())


def test_removing_some_fields() -> None:
    """Fields, members of maps and list items go; what loses all its items becomes null."""
    tree = {
        "size": 1,
        "labels": {"a": "x", "b": "y"},
        "tags": ["x"],
        "ports": [{"port": 1, "name": "n"}, {"port": 2}],
    }
    key = key_element({"port": 1, "protocol": "TCP"})
    gone = field_set(
        [
            named_path("size"),
            named_path("labels", "a"),
            ("f:tags", 'v:"x"'),
            ("f:ports", key, "f:name"),
        ]
    )
    assert remove(TREE, tree, gone) == {
        "labels": {"b": "y"},
        "tags": None,
        "ports": [{"port": 1}, {"port": 2}],
    }


def test_named_fields_on_the_way() -> None:
    """Owning a field of a struct owns the struct's place, owning a member of a map does not own the map's members."""
    fields = field_set([named_path("mode", "name"), named_path("labels", "a")])
    want = {("f:mode",), ("f:labels",), ("f:mode", "f:name"), ("f:labels", "f:a")}
    assert set(with_named_fields(TREE, fields).paths()) == want
