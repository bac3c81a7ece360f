"""Lists without managedFields: the same objects, however often they change between two lists."""

from __future__ import annotations

import json
import zlib
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import Harness, config
from drayman.apiserver.protocol.exchange import PIECE
from drayman.apiserver.served.encoding import stored_form
from drayman.apiserver.served.resources import GroupVersionKind
from drayman.apiserver.serving.http import Listener, start
from drayman.apiserver.verbs import lean_lists
from drayman.apiserver.verbs.lean_lists import RUN_BYTES, LeanLists, without_managed_fields
from drayman.cluster.embedded.model import Key, Stored
from drayman.cluster.kube.client import HttpClient
from drayman.cluster.kube.connection import Connection
from drayman.cluster.options import ListOptions
from drayman.cluster.resources import CONFIG_MAPS

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


def _unpacked(lists: LeanLists, items: tuple[Stored, ...]) -> bytes:
    """What a client makes of a list. The checksum is looked at, too."""
    pieces = lists.packed(b"[", items, b"{", 3, b"]")
    assert all(len(piece) < 2 * PIECE for piece in pieces)
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(b"".join(pieces))
    assert unpacking.eof
    assert not unpacking.unused_data
    return text


@given(CHANGES, st.sampled_from([1, 4_000, 2**30]), st.data())
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
            plain = [b"{" + without_managed_fields(stored.data)[3:] for stored in items]
            assert _unpacked(lists, items) == b"[" + b",".join(plain) + b"]"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The objects whose texts were made anew."""
    found: list[bytes] = []

    def noting(data: bytes) -> bytes:
        found.append(data)
        return without_managed_fields(data)

    monkeypatch.setattr(lean_lists, "without_managed_fields", noting)
    return found


def test_what_did_not_change_is_kept(made: list[bytes]) -> None:
    """A change costs its own run and no other, and runs do not get smaller and smaller."""
    lists = LeanLists()
    items = [_stored(name, name + 1, 1_000) for name in range(1_000)]
    _unpacked(lists, tuple(items))
    assert len(made) == len(items)
    in_a_run = 2 * RUN_BYTES // 1_000
    for revision in range(2_000, 2_100):
        made.clear()
        items[500] = _stored(500, revision, 1_000)
        _unpacked(lists, tuple(items))
        assert 0 < len(made) <= in_a_run
    for revision in range(3_000, 3_900):
        del items[50]
        items[20] = _stored(20, revision, 1_000)
        _unpacked(lists, tuple(items))
    runs = sum(1 for _ in lists._runs_of(tuple(items), b"", 0))
    assert runs <= 2 * sum(len(stored.data) for stored in items) // RUN_BYTES + 2
    made.clear()
    _unpacked(lists, tuple(items))
    assert not made


def test_what_is_new_in_between_costs_its_neighbours_only(made: list[bytes]) -> None:
    """Names are not in the order in which objects are made; what is behind a new one stays together as it was."""
    lists = LeanLists()
    items = [_stored(10 * name, name + 1, 1_000) for name in range(1_000)]
    _unpacked(lists, tuple(items))
    in_a_run = 2 * RUN_BYTES // 1_000
    for number in range(300):
        place = number * 37 % len(items)
        before = int(items[place].key.name)
        new = _stored(before + 1 + number % 9, 2_000 + number, 1_000)
        if new.key.name == items[(place + 1) % len(items)].key.name:
            continue
        items.insert(place + 1, new)
        made.clear()
        _unpacked(lists, tuple(items))
        assert 0 < len(made) <= in_a_run


def test_little_used_texts_are_forgotten(made: list[bytes]) -> None:
    lists = LeanLists(limit=1)
    items = tuple(_stored(name, name + 1, RUN_BYTES) for name in range(20))
    once = _unpacked(lists, items)
    assert len(made) == len(items)
    assert _unpacked(lists, items) == once
    assert len(made) == 2 * len(items)


async def _with_configs() -> tuple[Harness, str]:
    harness = Harness()
    base = f"{await harness.namespace()}/configmaps"
    for number in range(60):
        body = {**config(f"c{number:02}"), "data": {"a": "x" * 2_000}}
        body["metadata"]["labels"] = {"even": str(number % 2 == 0)}
        await harness.json("POST", base, body, fieldManager="somebody")
    return harness, base


LEAN = {"omitManagedFields": "true"}


async def test_through_the_api() -> None:
    """In pages, selected, and in each form that there is; lists that do not ask are as ever."""
    harness, base = await _with_configs()
    full = await harness.json("GET", base)
    assert all(item["metadata"].pop("managedFields") for item in full["items"])
    assert await harness.json("GET", base, **LEAN) == full
    paged: list[Object] = []
    token = ""
    while True:
        page = await harness.json("GET", base, **LEAN, limit="7", **{"continue": token})
        paged += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert paged == full["items"]
    even = await harness.json("GET", base, **LEAN, labelSelector="even=True")
    assert even["items"] == full["items"][::2]
    pretty = await harness.send("GET", base, **LEAN, pretty="true")
    assert pretty.body.count(b"\n") > len(full["items"])
    assert json.loads(pretty.body) == full
    yaml = await harness.send("GET", base, headers={"accept": "application/yaml"}, **LEAN)
    assert msgspec.yaml.decode(yaml.body) == full
    assert "managedFields" in (await harness.json("GET", base))["items"][0]["metadata"]


ENCODINGS = {
    "takes it": ("deflate, identity", "deflate"),
    "takes others as well": ("deflate, gzip", "deflate"),
    "takes only others": ("gzip", "gzip"),
    "takes none": ("identity", ""),
}


@pytest.mark.parametrize(("accepted", "sent"), ENCODINGS.values(), ids=ENCODINGS)
async def test_over_a_socket(accepted: str, sent: str) -> None:
    """Compressed for who takes that, whole or in pages; and the same for all."""
    harness, base = await _with_configs()
    whole = await harness.json("GET", base, **LEAN)
    server = await start(harness.server, Listener())
    try:
        async with aiohttp.ClientSession(server.url) as session:
            headers = {"Accept-Encoding": accepted}
            async with session.get(base, headers=headers, params=LEAN) as response:
                assert await response.json() == whole
                assert response.headers.get("Content-Encoding", "") == sent
            few = {**LEAN, "limit": "3"}
            async with session.get(base, headers=headers, params=few) as response:
                assert "Content-Encoding" not in response.headers
                assert (await response.json())["items"] == whole["items"][:3]
            async with session.get(base, headers=headers) as response:
                assert response.headers.get("Content-Encoding", "") in ("", "gzip")
                assert len((await response.json())["items"]) == len(whole["items"])
    finally:
        await server.stop()


async def test_the_own_client_asks_for_them() -> None:
    """It gets the same objects, from a server of this kind."""
    harness, base = await _with_configs()
    namespace = base.split("/")[-2]
    server = await start(harness.server, Listener())
    try:
        async with HttpClient(Connection(server.url)) as client:
            lean = await client.list(
                CONFIG_MAPS, namespace, options=ListOptions(omit_managed_fields=True)
            )
            full = await client.list(CONFIG_MAPS, namespace)
    finally:
        await server.stop()
    assert all(item["metadata"].pop("managedFields") for item in full.items)
    assert lean.items == full.items
