"""JSON on the wire, and objects as they are stored."""

from __future__ import annotations

import json

import yaml
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.served.encoding import encode, encode_yaml, stored_form, type_prefix
from drayman.apiserver.served.resources import GroupVersionKind

KIND = GroupVersionKind("apps", "v1", "Deployment")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_escaping_changes_the_text_and_not_the_value(value: object) -> None:
    """Characters that mean something in HTML never appear."""
    data = encode(value)
    assert json.loads(data) == value
    assert not set(data) & set(b"<>&")


@given(
    st.dictionaries(st.sampled_from(["labels", "annotations", "resourceVersion"]), VALUES),
    st.dictionaries(st.sampled_from(["spec", "status", "data"]), VALUES),
    st.integers(1, 2**60),
)
def test_the_stored_form_is_the_object_with_its_revision(
    metadata: dict[str, object], rest: dict[str, object], revision: int
) -> None:
    """It begins as every object of its kind, and what a client sent as resourceVersion is gone."""
    named = {"name": "n", "uid": "u", **metadata}
    data = stored_form({"metadata": named, **rest}, KIND)(revision)
    assert data.startswith(type_prefix(KIND))
    expected = {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {**named, "resourceVersion": str(revision)},
        **rest,
    }
    assert json.loads(data) == expected


def test_lists_in_yaml_are_those_of_the_library() -> None:
    """Items are written one at a time, with the same result."""
    items = [{"a": {"b": [1, {"c": None}]}, "t": "x\ny: z"}, {"k": [], "m": {}}, "s", [1, [2]]]
    for found in ([], items):
        value = {"kind": "L", "apiVersion": "v1", "items": found, "metadata": {"x": "1"}}
        expected = yaml.safe_dump(value, default_flow_style=False)
        assert encode_yaml(value).decode() == expected
