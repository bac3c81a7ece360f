"""Sets of fields: their form, their algebra, their order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.patching.field_set import (
    EMPTY,
    FieldSet,
    FieldSetError,
    Path,
    decode,
    encode,
    field_set,
    key_element,
    named_path,
    path_text,
    value_element,
)

scalars = st.text('a"<é', max_size=3) | st.integers(-2, 20) | st.booleans()
elements = st.one_of(
    st.sampled_from("abc.").map(lambda name: f"f:{name}"),
    st.dictionaries(st.sampled_from(["name", "port"]), scalars, min_size=1).map(key_element),
    scalars.map(value_element),
    st.integers(0, 3).map(lambda index: f"i:{index}"),
)
paths = st.lists(elements, min_size=1, max_size=4).map(tuple)
sets = st.frozensets(paths, max_size=8)


def of(fields: FieldSet) -> frozenset[Path]:
    return frozenset(fields.paths())


@given(sets)
def test_encode_then_decode_is_identity(members: frozenset[Path]) -> None:
    """What is written as FieldsV1 is read as the same set."""
    fields = field_set(members)
    assert decode(encode(fields)) == fields
    assert of(fields) == members


@given(sets, sets)
def test_algebra(left: frozenset[Path], right: frozenset[Path]) -> None:
    """Union, intersection and difference are those of the sets of paths."""
    ours, theirs = field_set(left), field_set(right)
    assert of(ours | theirs) == left | right
    assert of(ours & theirs) == left & right
    assert of(ours - theirs) == left - right
    assert bool(ours - theirs) == bool(left - right)
    assert (ours == theirs) == (left == right)


@given(sets, sets)
def test_without_trees(left: frozenset[Path], right: frozenset[Path]) -> None:
    """Taking away trees takes everything below a member, too."""
    want = {path for path in left if not any(path[: len(root)] == root for root in right)}
    assert of(field_set(left).without_trees(field_set(right))) == want


@given(sets, paths)
def test_has(members: frozenset[Path], path: Path) -> None:
    """A path is in the set if it is a member, not if it leads to one."""
    assert field_set(members).has(path) == (path in members)


@given(sets)
def test_encoding_is_sorted(members: frozenset[Path]) -> None:
    """Equal sets are written in the same order, whatever order they were made in."""
    forwards, backwards = sorted(members), sorted(members, reverse=True)
    assert list(walk(encode(field_set(forwards)))) == list(walk(encode(field_set(backwards))))


def walk(fields: dict[str, Any]) -> list[str]:
    return [text for name, inner in fields.items() for text in (name, *walk(inner))]


FORMS: dict[str, tuple[list[Path], dict[str, Any]]] = {
    "a field": ([named_path("a")], {"f:a": {}}),
    "a field below": ([named_path("a", "b")], {"f:a": {"f:b": {}}}),
    "both": ([named_path("a"), named_path("a", "b")], {"f:a": {".": {}, "f:b": {}}}),
    "a list item": (
        [("f:ports", 'k:{"port":1,"protocol":"TCP"}')],
        {"f:ports": {'k:{"port":1,"protocol":"TCP"}': {}}},
    ),
    "an item of a set": ([("f:tags", 'v:"x"')], {"f:tags": {'v:"x"': {}}}),
    "nothing": ([], {}),
}


@pytest.mark.parametrize("case", FORMS)
def test_forms(case: str) -> None:
    """Sets are written as the API defines."""
    members, want = FORMS[case]
    assert encode(field_set(members)) == want


def test_order() -> None:
    """Fields come before list items, those before set items; numbers sort as numbers."""
    members = [("v:1",), ("i:0",), ('k:{"p":10}',), ('k:{"p":9}',), ("f:b",), ("f:a",)]
    want = ["f:a", "f:b", 'k:{"p":9}', 'k:{"p":10}', "v:1", "i:0"]
    assert list(encode(field_set(members))) == want


def test_keys_are_read_in_any_spelling() -> None:
    """Elements that mean the same are the same, however they are spelled."""
    spelled = decode({'k:{"b": 1, "a": "\\u003c"}': {}, 'v: "x"': {}})
    assert spelled == field_set([(key_element({"a": "<", "b": 1}),), (value_element("x"),)])


def test_unknown_elements_are_left_out() -> None:
    """A sort of element that is not known is skipped with all below it."""
    assert decode({"z:new": {"f:a": {}}, "f:b": {}}) == field_set([named_path("b")])


@pytest.mark.parametrize(
    "fields", ["x", {"f": {}}, {"fa": {}}, {"k:{": {}}, {"k:[1]": {}}, {"f:a": 1}]
)
def test_what_is_no_set(fields: Any) -> None:
    """What does not describe a set of fields is refused."""
    with pytest.raises(FieldSetError):
        decode(fields)


def test_empty_node_is_a_member() -> None:
    """An element that was written without anything below it is a member, also when what was below is not known."""
    assert decode({"f:a": {"z:new": {}}}) == field_set([named_path("a")])
    assert decode({}) == EMPTY


def test_path_text() -> None:
    """Paths read as people write them."""
    path = ("f:spec", key_element({"name": "c", "port": 80}), "f:args", value_element("x"), "i:1")
    assert path_text(path) == '.spec[name="c",port=80].args[="x"][1]'
