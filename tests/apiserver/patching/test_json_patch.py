"""JSON Patch: the operations, the liberties, and that a patch does what it is made for."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.patching.json_patch import (
    MAX_COPIED_BYTES,
    MAX_OPERATIONS,
    apply_json_patch,
)
from drayman.apiserver.protocol.errors import StatusError

APPLIED: dict[str, tuple[Any, list[dict[str, Any]], Any]] = {
    "add a member": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux"}],
        {"foo": "bar", "baz": "qux"},
    ),
    "insert into a list": (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    "append to a list": (
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc"]}],
        {"foo": ["bar", ["abc"]]},
    ),
    "append by the index behind the last": (
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/1", "value": 1}],
        {"foo": ["bar", 1]},
    ),
    "insert by a negative index": (
        {"foo": [1, 2]},
        [{"op": "add", "path": "/foo/-1", "value": 3}],
        {"foo": [1, 2, 3]},
    ),
    "remove a member": (
        {"a": 1, "b": 2},
        [{"op": "remove", "path": "/a"}],
        {"b": 2},
    ),
    "remove from a list": (
        {"foo": ["bar", "qux", "baz"]},
        [{"op": "remove", "path": "/foo/1"}],
        {"foo": ["bar", "baz"]},
    ),
    "replace": ({"a": 1}, [{"op": "replace", "path": "/a", "value": {"b": 2}}], {"a": {"b": 2}}),
    "replace in a list": (
        {"a": [1, 2]},
        [{"op": "replace", "path": "/a/-1", "value": 3}],
        {"a": [1, 3]},
    ),
    "replace an absent member": ({}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
    "replace the whole": ({"a": 1}, [{"op": "replace", "path": "", "value": {}}], {}),
    "move between objects": (
        {"foo": {"bar": 1, "waldo": 2}, "qux": {}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": 1}, "qux": {"thud": 2}},
    ),
    "move within a list": (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    "copy, then change the copy": (
        {"a": {"x": 1}},
        [
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "replace", "path": "/b/x", "value": 2},
        ],
        {"a": {"x": 1}, "b": {"x": 2}},
    ),
    "test passes": ({"a": [1]}, [{"op": "test", "path": "/a", "value": [1]}], {"a": [1]}),
    "test of the whole": ({"a": 1}, [{"op": "test", "path": "", "value": {"a": 1}}], {"a": 1}),
    "test of an absent member for null": ({}, [{"op": "test", "path": "/a", "value": None}], {}),
    "escapes": (
        {"a/b": 1, "m~n": 2},
        [{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/m~0n"}],
        {},
    ),
    "an escape of an escape": ({"~1": 1}, [{"op": "remove", "path": "/~01"}], {}),
    "the empty name": ({}, [{"op": "add", "path": "/", "value": 1}], {"": 1}),
    "no value is null": ({}, [{"op": "add", "path": "/a"}], {"a": None}),
    "what is before the first slash does not count": (
        {},
        [{"op": "add", "path": "x/a", "value": 1}],
        {"a": 1},
    ),
    "no operations": ({"a": 1}, [], {"a": 1}),
}

REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "remove what is absent": ({}, {"op": "remove", "path": "/a"}),
    "remove the whole": ({}, {"op": "remove", "path": ""}),
    "add below what is absent": ({}, {"op": "add", "path": "/a/b", "value": 1}),
    "add below a text": ({"a": "x"}, {"op": "add", "path": "/a/b", "value": 1}),
    "add below null": ({"a": None}, {"op": "add", "path": "/a/b", "value": 1}),
    "add the whole": ({}, {"op": "add", "path": "", "value": {}}),
    "index out of range": ({"a": [1]}, {"op": "add", "path": "/a/3", "value": 1}),
    "negative index out of range": ({"a": [1]}, {"op": "remove", "path": "/a/-2"}),
    "index that is no number": ({"a": [1]}, {"op": "remove", "path": "/a/x"}),
    "index with a separator": ({"a": list(range(20))}, {"op": "remove", "path": "/a/1_0"}),
    "replace beyond the end": ({"a": [1]}, {"op": "replace", "path": "/a/1", "value": 1}),
    "replace the end": ({"a": [1]}, {"op": "replace", "path": "/a/-", "value": 1}),
    "replace the whole by a text": ({}, {"op": "replace", "path": "", "value": "x"}),
    "test another value": ({"a": 1}, {"op": "test", "path": "/a", "value": 2}),
    "test a number of another kind": ({"a": 1}, {"op": "test", "path": "/a", "value": 1.0}),
    "test a number for true": ({"a": 1}, {"op": "test", "path": "/a", "value": True}),
    "test more members": ({"a": {}}, {"op": "test", "path": "/a", "value": {"b": 1}}),
    "move what is absent": ({}, {"op": "move", "from": "/a", "path": "/b"}),
    "move without from": ({"a": 1}, {"op": "move", "path": "/b"}),
    "copy out of range": ({"a": []}, {"op": "copy", "from": "/a/0", "path": "/b"}),
    "no path": ({}, {"op": "add", "value": 1}),
    "no operation": ({}, {"path": "/a", "value": 1}),
    "unknown operation": ({}, {"op": "frob", "path": "/a"}),
}


@pytest.mark.parametrize("case", APPLIED)
def test_applied(case: str) -> None:
    """Each operation changes the document as listed, and not the one handed in."""
    document, operations, want = APPLIED[case]
    before = copy.deepcopy(document)
    assert apply_json_patch(document, operations) == want
    assert document == before


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """An operation that does not apply is a 422 that names nothing."""
    document, operation = REFUSED[case]
    with pytest.raises(StatusError) as caught:
        apply_json_patch(document, [operation])
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert caught.value.message == "the server rejected our request due to an error in our request"


UNREADABLE: dict[str, tuple[Any, str]] = {
    "an object": ({}, "object into Go value of type []handlers.jsonPatchOp"),
    "a list of texts": (["x"], "string into Go value of type handlers.jsonPatchOp"),
    "a path that is a number": (
        [{"op": "add", "path": 5}],
        "number into Go struct field jsonPatchOp.path of type string",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable(case: str) -> None:
    """What is no list of operations is a 400."""
    patch, want = UNREADABLE[case]
    with pytest.raises(StatusError) as caught:
        apply_json_patch({}, patch)
    assert caught.value.code == 400
    assert caught.value.message == f"error decoding patch: json: cannot unmarshal {want}"


def test_too_many_operations() -> None:
    """A patch of more operations than the limit is refused by its length."""
    operation = {"op": "test", "path": "/a", "value": None}
    assert apply_json_patch({}, [operation] * MAX_OPERATIONS) == {}
    with pytest.raises(StatusError) as caught:
        apply_json_patch({}, [operation] * (MAX_OPERATIONS + 1))
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")


def test_copies_cannot_nest_without_end() -> None:
    """A value copied into its own depths is twice as deep; so the patch is refused before anything recurses that far."""
    operations = [
        {"op": "copy", "from": "/a", "path": "/a" + "/b" * 2**power} for power in range(14)
    ]
    with pytest.raises(StatusError) as refused:
        apply_json_patch({"a": {}}, operations)
    assert refused.value.code == 422


def test_copies_cannot_double_forever() -> None:
    """Copies may add no more than a limit together."""
    document = {"a": "x" * (MAX_COPIED_BYTES // 2 - 2)}
    copies = [{"op": "copy", "from": "/a", "path": f"/{index}"} for index in range(3)]
    assert len(apply_json_patch(document, copies[:2])) == 3
    with pytest.raises(StatusError, match="rejected"):
        apply_json_patch(document, copies)


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab/~0", max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
roots = st.dictionaries(st.text("ab/~0", max_size=3), documents, max_size=5)


def difference(before: Any, after: Any, path: str = "") -> list[dict[str, Any]]:
    """A patch from one document to another, made the plain way."""
    if isinstance(before, dict) and isinstance(after, dict):
        gone = before.keys() - after.keys()
        patch = [{"op": "remove", "path": f"{path}/{escaped(name)}"} for name in gone]
        for name, value in after.items():
            place = f"{path}/{escaped(name)}"
            if name in before:
                patch += difference(before[name], value, place)
            else:
                patch.append({"op": "add", "path": place, "value": value})
        return patch
    if isinstance(before, list) and isinstance(after, list):
        common = min(len(before), len(after))
        patch = [
            step for i in range(common) for step in difference(before[i], after[i], f"{path}/{i}")
        ]
        patch += [{"op": "remove", "path": f"{path}/{common}"}] * (len(before) - common)
        patch += [{"op": "add", "path": f"{path}/-", "value": item} for item in after[common:]]
        return patch
    return [{"op": "replace", "path": path, "value": after}]


def escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


@given(roots, roots)
def test_difference_then_patch_is_the_other_document(before: Any, after: Any) -> None:
    """The patch from one document to another makes the other of the one."""
    assert apply_json_patch(before, difference(before, after)) == after


@given(roots)
def test_every_document_passes_a_test_against_itself(document: Any) -> None:
    """A document is equal to itself, whole and by member."""
    tests = [{"op": "test", "path": "", "value": document}]
    tests += [
        {"op": "test", "path": f"/{escaped(name)}", "value": value}
        for name, value in document.items()
    ]
    assert apply_json_patch(document, tests) == document


@pytest.mark.parametrize(
    ("path", "shared"),
    [("/a~1b/x", {"c"}), ("/c/y", {"a/b"}), ("", set())],
    ids=["an escaped name", "a name", "the whole"],
)
def test_what_no_operation_is_about_is_shared(path: str, shared: set[str]) -> None:
    """And the document before stays as it was."""
    before: dict[str, Any] = {"a/b": {"x": [1]}, "c": {"y": [2]}}
    kept = copy.deepcopy(before)
    after = apply_json_patch(before, [{"op": "replace", "path": path, "value": {"z": 0}}])
    assert {name for name in before if after.get(name) is before[name]} == shared
    assert before == kept
