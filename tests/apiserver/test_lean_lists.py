"""Lists without managedFields: the same objects, however often they change between two lists."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from building import Harness, config
from drayman.apiserver.encoding import stored_form
from drayman.apiserver.lean_lists import RUN_BYTES, LeanLists, without_managed_fields
from drayman.apiserver.resources import GroupVersionKind
from drayman.cluster.embedded.model import Key, Stored

KIND = GroupVersionKind("apps", "v1", "Deployment")
Object = dict[str, Any]

HOSTILE = st.text(alphabet='"\\[]{},:a<é\u2028', max_size=8) | st.sampled_from(
    ['}]},"spec":{', ',"managedFields":[{', '\\"}]', '"metadata":{', "\\", "}]", '"}],"']
)
FIELDS = st.recursive(
    st.just({}), lambda inner: st.dictionaries(HOSTILE, inner, max_size=3), max_leaves=6
)
ENTRIES = st.lists(
    st.fixed_dictionaries({"manager": HOSTILE, "fieldsV1": FIELDS}, optional={"time": HOSTILE}),
    max_size=3,
)
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "labels": st.dictionaries(HOSTILE, HOSTILE, max_size=2),
    "ownerReferences": st.lists(st.fixed_dictionaries({"uid": HOSTILE}), max_size=2),
    "managedFields": ENTRIES,
    "deletionTimestamp": HOSTILE,
}
METADATA = st.fixed_dictionaries({}, optional=MEMBERS)


@given(METADATA, st.none() | METADATA, st.permutations(tuple(MEMBERS)))
def test_only_the_objects_own_are_left_out(
    metadata: Object, template: Object | None, order: list[str]
) -> None:
    """Whatever its texts look like, and also where a template in it has some."""
    given = {"name": "n", "uid": "u", **{k: metadata[k] for k in order if k in metadata}}
    spec = {} if template is None else {"spec": {"template": {"metadata": template}}}
    data = stored_form({"metadata": given, **spec}, KIND)(7)
    before, after = json.loads(data), json.loads(without_managed_fields(data))
    if before["metadata"].get("managedFields"):
        del before["metadata"]["managedFields"]
    assert after == before


def _stored(name: int, revision: int, size: int) -> Stored:
    data = stored_form(
        {
            "metadata": {"name": f"{name:05}", "uid": "u", "managedFields": [{"manager": "m"}]},
            "spec": {"text": "x" * size},
        },
        KIND,
    )(revision)
    return Stored(Key("deployments.apps", "ns", f"{name:05}"), revision, data)


CHANGES = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "remove"]),
            st.integers(0, 60),
            st.sampled_from([1, 3_000, RUN_BYTES // 3, 2 * RUN_BYTES]),
        ),
        max_size=25,
    ),
    min_size=1,
    max_size=6,
)


@given(CHANGES, st.sampled_from([1, 4 * RUN_BYTES, 2**30]), st.data())
def test_what_is_kept_is_what_is_there(
    rounds: list[list[tuple[str, int, int]]], limit: int, data: st.DataObject
) -> None:
    """Lists of all and of some, after any changes, with much or little memory."""
    lists, there, revision = LeanLists(limit), dict[int, Stored](), 0
    for changes in rounds:
        for what, name, size in changes:
            revision += 1
            if what == "put":
                there[name] = _stored(name, revision, size)
            else:
                there.pop(name, None)
        everything = tuple(there[name] for name in sorted(there))
        begin = data.draw(st.integers(0, len(everything)))
        for items in (everything, everything[begin:], everything):
            texts = tuple(lists.texts(items, b"{", 3))
            plain = [b"{" + without_managed_fields(stored.data)[3:] for stored in items]
            assert b",".join(texts) == b",".join(plain)


def test_what_did_not_change_is_kept() -> None:
    """A change costs its own run and no other, and runs do not get smaller and smaller."""
    lists = LeanLists()
    items = [_stored(name, name + 1, 1_000) for name in range(1_000)]
    first = tuple(lists.texts(tuple(items), b"", 0))
    for revision in range(2_000, 2_500):
        items[500] = _stored(500, revision, 1_000)
        changed = tuple(lists.texts(tuple(items), b"", 0))
    kept = {id(text) for text in first} & {id(text) for text in changed}
    assert len(first) - 2 <= len(kept) < len(first)
    for revision in range(3_000, 3_900):
        del items[50]
        items[20] = _stored(20, revision, 1_000)
        left = tuple(lists.texts(tuple(items), b"", 0))
    assert len(left) <= 2 * sum(map(len, left)) // RUN_BYTES + 2


def test_little_used_texts_are_forgotten() -> None:
    lists = LeanLists(limit=3 * RUN_BYTES)
    items = tuple(_stored(name, name + 1, RUN_BYTES) for name in range(20))
    once = tuple(lists.texts(items, b"", 0))
    again = tuple(lists.texts(items, b"", 0))
    assert once == again
    assert not {id(text) for text in once} & {id(text) for text in again}


async def test_through_the_api() -> None:
    """In pages, selected, and in each form that there is; lists that do not ask are as ever."""
    harness = Harness()
    base = f"{await harness.namespace()}/configmaps"
    for number in range(60):
        body = {**config(f"c{number:02}"), "data": {"a": "x" * 2_000}}
        body["metadata"]["labels"] = {"even": str(number % 2 == 0)}
        await harness.json("POST", base, body, fieldManager="somebody")
    lean = {"omitManagedFields": "true"}
    full = await harness.json("GET", base)
    assert all(item["metadata"].pop("managedFields") for item in full["items"])
    assert await harness.json("GET", base, **lean) == full
    paged: list[Object] = []
    token = ""
    while True:
        page = await harness.json("GET", base, **lean, limit="7", **{"continue": token})
        paged += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert paged == full["items"]
    even = await harness.json("GET", base, **lean, labelSelector="even=True")
    assert even["items"] == full["items"][::2]
    pretty = await harness.send("GET", base, **lean, pretty="true")
    assert pretty.body.count(b"\n") > len(full["items"])
    assert json.loads(pretty.body) == full
    yaml = await harness.send("GET", base, headers={"accept": "application/yaml"}, **lean)
    assert msgspec.yaml.decode(yaml.body) == full
    assert "managedFields" in (await harness.json("GET", base))["items"][0]["metadata"]
