"""Strategic merge patch: merging by key, directives, order, refusals."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.schema import Message, schema_for
from drayman.apiserver.patching.strategic import apply_strategic_merge
from drayman.apiserver.protocol.errors import StatusError


def message(group: str, kind: str) -> Message:
    found = schema_for(group, "v1", kind)
    assert found is not None
    return found


POD = message("", "Pod")
NODE = message("", "Node")
CLAIM = message("resource.k8s.io", "ResourceClaim")


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


MERGED: dict[str, tuple[Any, Any, Any]] = {
    "an item by its key": (
        pod(containers=[{"name": "a", "image": "1", "tty": True}]),
        pod(containers=[{"name": "a", "image": "2"}]),
        pod(containers=[{"name": "a", "image": "2", "tty": True}]),
    ),
    "a new item comes first": (
        pod(containers=named("a", "b")),
        pod(containers=named("c")),
        pod(containers=named("c", "a", "b")),
    ),
    "a new item comes behind an old one the patch names before it": (
        pod(containers=named("a", "b")),
        pod(containers=named("a", "c")),
        pod(containers=named("a", "c", "b")),
    ),
    "an item is deleted": (
        pod(containers=named("a", "b")),
        pod(containers=[{"name": "a", "$patch": "delete"}]),
        pod(containers=named("b")),
    ),
    "a list is replaced": (
        pod(containers=named("a", "b")),
        pod(containers=[{"name": "z"}, {"$patch": "replace"}]),
        pod(containers=named("z")),
    ),
    "a list is emptied": (
        pod(containers=named("a", "b")),
        pod(containers=[{"$patch": "replace"}]),
        pod(containers=[]),
    ),
    "a list without a key is replaced": (
        pod(tolerations=[{"key": "a"}]),
        pod(tolerations=[{"key": "b"}]),
        pod(tolerations=[{"key": "b"}]),
    ),
    "null takes away": (pod(nodeName="n", priority=1), pod(nodeName=None), pod(priority=1)),
    "null of what is absent is nothing": (pod(), pod(nodeName=None), pod()),
    "nulls in what is new are nothing": (
        pod(),
        pod(affinity={"nodeAffinity": None}),
        pod(affinity={}),
    ),
    "a map is replaced": (
        pod(nodeSelector={"a": "1"}),
        pod(nodeSelector={"$patch": "replace", "b": "2"}),
        pod(nodeSelector={"b": "2"}),
    ),
    "a map is deleted": (
        pod(nodeSelector={"a": "1"}),
        pod(nodeSelector={"$patch": "delete"}),
        pod(nodeSelector={}),
    ),
    "a directive about what is absent leaves nothing": (
        pod(),
        pod(nodeSelector={"$patch": "replace", "b": "2"}),
        pod(),
    ),
    "only the named members are retained": (
        pod(volumes=[{"name": "v", "emptyDir": {}}]),
        pod(volumes=[{"name": "v", "$retainKeys": ["name", "secret"], "secret": {}}]),
        pod(volumes=[{"name": "v", "secret": {}}]),
    ),
    "scalars are added to a set": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["b", "c"]}},
        {"metadata": {"finalizers": ["a", "b", "c"]}},
    ),
    "scalars are deleted from a set": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
    "an order is set": (
        pod(containers=named("a", "b")),
        {"spec": {"$setElementOrder/containers": named("c", "b", "a"), "containers": named("c")}},
        pod(containers=named("c", "b", "a")),
    ),
    "an order is set, nothing else": (
        pod(containers=named("a", "b")),
        {"spec": {"$setElementOrder/containers": named("b", "a")}},
        pod(containers=named("b", "a")),
    ),
    "items an order does not name keep their place": (
        pod(containers=named("x", "a", "b", "y")),
        {"spec": {"$setElementOrder/containers": named("b", "a")}},
        pod(containers=named("x", "b", "a", "y")),
    ),
    "an order for a list that is new": (
        pod(),
        {"spec": {"$setElementOrder/containers": named("a"), "containers": named("a")}},
        pod(containers=named("a")),
    ),
    "an order for a list that is nowhere": (
        pod(),
        {"spec": {"$setElementOrder/containers": named("a")}},
        pod(),
    ),
    "a value of another kind replaces": (pod(nodeName="a"), pod(nodeName={}), pod(nodeName={})),
    "a struct is merged": (
        {"status": {"allocation": {"devices": {}}}},
        {"status": {"allocation": {"nodeSelector": {}}}},
        {"status": {"allocation": {"devices": {}, "nodeSelector": {}}}},
    ),
}


@pytest.mark.parametrize("case", MERGED)
def test_merged(case: str) -> None:
    """A patch makes of an object what is listed, and leaves its arguments alone."""
    obj, patch, want = MERGED[case]
    arguments = copy.deepcopy((obj, patch))
    assert apply_strategic_merge(CLAIM if "status" in obj else POD, obj, patch) == want
    assert (obj, patch) == arguments


REFUSED: dict[str, tuple[Any, Any, int, str]] = {
    "no merge key": (
        pod(containers=named("a")),
        pod(containers=[{"image": "x"}]),
        500,
        "map: map[image:x] does not contain declared merge key: name",
    ),
    "a deletion without merge key": (
        pod(containers=named("a")),
        pod(containers=[{"$patch": "delete"}]),
        500,
        "map: map[$patch:delete] does not contain declared merge key: name",
    ),
    "an unknown directive": (
        pod(nodeSelector={"a": "1"}),
        pod(nodeSelector={"$patch": "frob"}),
        500,
        "unknown patch type: frob in map: map[$patch:frob]",
    ),
    "an unknown directive in a list": (
        pod(containers=named("a")),
        pod(containers=[{"name": "a", "$patch": "frob"}]),
        500,
        "unknown patch type: frob in map: map[$patch:frob name:a]",
    ),
    "merge as a directive": (
        pod(containers=named("a")),
        pod(containers=[{"name": "a", "$patch": "merge"}]),
        400,
        "merging lists cannot yet be specified in the patch",
    ),
    "items of two kinds": (
        pod(containers=named("a")),
        pod(containers=["b"]),
        400,
        "list element types are not identical: [[map[name:a]] [b]]",
    ),
    "keys that are not retained": (
        pod(securityContext={}),
        pod(securityContext={"$retainKeys": ["a"], "b": 1}),
        400,
        "invalid patch format of retainKeys",
    ),
    "keys to retain that are no list": (
        pod(securityContext={}),
        pod(securityContext={"$retainKeys": "a"}),
        400,
        "invalid patch format of retainKeys",
    ),
    "an order that does not fit the patch": (
        pod(containers=named("a")),
        {"spec": {"$setElementOrder/containers": named("a"), "containers": named("b")}},
        400,
        "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n"
        "[map[name:a]]\n",
    ),
    "a directive without a list": (
        pod(containers=named("a")),
        {"spec": {"$deleteFromPrimitiveList": ["a"]}},
        400,
        "invalid patch format of primitive list",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """What cannot be merged is refused with the code and the words clients know."""
    obj, patch, code, message_ = REFUSED[case]
    with pytest.raises(StatusError) as caught:
        apply_strategic_merge(POD, obj, patch)
    assert (caught.value.code, caught.value.message) == (code, message_)


names = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5)


@given(names, names)
def test_merging_lists_loses_and_doubles_nothing(old: list[str], new: list[str]) -> None:
    """After a merge each name is there once, and those of the patch are in its order."""
    result = apply_strategic_merge(POD, pod(containers=named(*old)), pod(containers=named(*new)))
    found = [item["name"] for item in result["spec"]["containers"]]
    assert sorted(found) == sorted({*old, *new})
    assert [name for name in found if name in new] == new
    others = [name for name in old if name not in new]
    assert [name for name in found if name not in new] == others


@given(names, names)
def test_merging_twice_is_merging_once(old: list[str], new: list[str]) -> None:
    """A patch without directives has nothing left to do on what it made."""
    patch = pod(containers=named(*new))
    once = apply_strategic_merge(POD, pod(containers=named(*old)), patch)
    assert apply_strategic_merge(POD, once, patch) == once


def test_lists_of_status_merge_by_their_keys() -> None:
    """Conditions merge by type and addresses by type, so that controllers can share a status."""
    live = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    patch = {"status": {"conditions": [{"type": "Disk", "status": "False"}]}}
    result = apply_strategic_merge(NODE, live, patch)
    assert [c["type"] for c in result["status"]["conditions"]] == ["Disk", "Ready"]
