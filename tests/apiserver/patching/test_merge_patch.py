"""JSON Merge Patch: the examples of RFC 7386 and its laws."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.patching.merge_patch import apply_merge_patch
from drayman.apiserver.protocol.errors import StatusError

EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": "foo"}, {"a": {"x": None, "y": 1}}, {"a": {"y": 1}}),
    ({}, {"a": [{"b": None}]}, {"a": [{}]}),
    ({"a": {"x": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
]


@pytest.mark.parametrize(("target", "patch", "want"), EXAMPLES)
def test_examples(target: Any, patch: Any, want: Any) -> None:
    """Objects merge, null takes away, all else replaces; the arguments stay as they are."""
    arguments = copy.deepcopy((target, patch))
    assert apply_merge_patch(target, patch) == want
    assert (target, patch) == arguments


@pytest.mark.parametrize("patch", [[], "x", 5, True, None])
def test_patch_that_is_no_object(patch: Any) -> None:
    """A patch must be an object: anything else is a 400."""
    with pytest.raises(StatusError) as caught:
        apply_merge_patch({}, patch)
    assert caught.value.code == 400


values = st.recursive(
    st.booleans() | st.integers(0, 2) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
patches = st.recursive(
    st.none() | values,
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
).filter(lambda patch: isinstance(patch, dict))


@given(objects, patches)
def test_patching_twice_is_patching_once(target: Any, patch: Any) -> None:
    """A patch has nothing left to do on what it made."""
    once = apply_merge_patch(target, patch)
    assert apply_merge_patch(once, patch) == once


@given(objects, objects)
def test_replacing_member_by_member(before: Any, after: Any) -> None:
    """A patch that takes away all that was there and then sets the rest makes another object."""
    cleared = apply_merge_patch(before, dict.fromkeys(before))
    assert cleared == {}
    assert apply_merge_patch(cleared, after) == after
